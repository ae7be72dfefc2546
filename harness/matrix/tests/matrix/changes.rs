//! The command line's say: --set, --only, --rounds, --seed.

use yieldpoint_matrix::{Changes, Matrix};
use yieldpoint_terms::{Nanos, Rounds, Value};

use crate::catalog::{changes_of, parse, with_head};

const TEXT: &str = r#"
[knobs]
client   = ["hyper", "ureq"]
threads  = [1, 2, 3]
duration = "130s"
lab.sysctl.net.ipv4.tcp_tw_reuse = 0

[axis.kernel.default]
[axis.kernel.wide]
lab.sysctl.net.ipv4.tcp_tw_reuse = 1

[[exclude]]
threads = 3
kernel  = "wide"

[[claim]]
id = "c"
base    = { threads = 1 }
changed = { threads = 3 }
published_ratio = 2.5
"#;

fn with(set: &[&str], only: &[&str]) -> Matrix {
    parse(&with_head(TEXT), &changes_of(set, only)).unwrap_or_else(|e| panic!("{e}"))
}

fn ids(matrix: &Matrix) -> Vec<&str> {
    matrix
        .cells
        .iter()
        .map(|c| &c.id["test/".len()..])
        .collect()
}

#[test]
fn set_replaces_a_setting_and_becomes_a_column() {
    let matrix = with(&["duration=2s", "keep_alive=false"], &[]);
    assert_eq!(matrix.set_names, ["duration", "keep_alive"]);
    assert_eq!(matrix.cells.len(), 2 * 3 * 2 - 2);
    for cell in &matrix.cells {
        assert_eq!(cell.knobs.duration("duration"), Ok(Nanos::from_secs(2)));
        assert_eq!(cell.knobs.bool("keep_alive"), Ok(false));
    }
}

#[test]
fn set_narrows_an_axis_to_a_value_that_need_not_be_in_the_file() {
    let matrix = with(&["threads=8"], &["kernel=default", "client=ureq"]);
    assert_eq!(ids(&matrix), ["client=ureq,threads=8,kernel=default"]);
    assert_eq!(matrix.axes.len(), 3, "an axis stays an axis");
    assert_eq!(matrix.axes[1].values, [Value::Int(8)]);
    assert_eq!(
        matrix.notes,
        ["1 of 1 claims cannot be judged: their cells are not in this plan"],
        "exclusions and claims may name values that are left out"
    );
}

#[test]
fn set_wins_over_a_bundle_and_chooses_one_by_its_label() {
    let matrix = with(
        &["lab.sysctl.net.ipv4.tcp_tw_reuse=2"],
        &["threads=1", "client=ureq"],
    );
    assert_eq!(
        ids(&matrix),
        ["client=ureq,threads=1,kernel=default"],
        "the bundles became equal"
    );
    let knob = matrix.cells[0]
        .knobs
        .get("lab.sysctl.net.ipv4.tcp_tw_reuse");
    assert_eq!(knob, Some(&Value::Int(2)));

    let matrix = with(&["kernel=wide"], &["threads=1", "client=ureq"]);
    assert_eq!(ids(&matrix), ["client=ureq,threads=1,kernel=wide"]);
    let knob = matrix.cells[0]
        .knobs
        .get("lab.sysctl.net.ipv4.tcp_tw_reuse");
    assert_eq!(knob, Some(&Value::Int(1)), "a bundle wins over [knobs]");
}

#[test]
fn only_keeps_values_in_the_order_of_the_file() {
    let matrix = with(&[], &["threads=3,1", "kernel=default", "client=hyper"]);
    assert_eq!(
        ids(&matrix),
        [
            "client=hyper,threads=1,kernel=default",
            "client=hyper,threads=3,kernel=default"
        ]
    );
}

#[test]
fn rounds_and_seed_win_over_the_file() {
    let text =
        with_head("[run]\nrounds = 2\nseed = 18446744073709551615\n[knobs]\nclient = \"ureq\"");
    let file = parse(&text, &Changes::default()).unwrap();
    assert_eq!(
        (file.run.rounds, file.run.seed),
        (Rounds::Fixed(2), u64::MAX)
    );
    let typed = Changes {
        rounds: Some(Rounds::Fixed(9)),
        seed: Some(0),
        ..Changes::default()
    };
    let typed = parse(&text, &typed).unwrap();
    assert_eq!((typed.run.rounds, typed.run.seed), (Rounds::Fixed(9), 0));
}

#[test]
fn what_is_wrong_names_the_argument() {
    // each row: --set, --only
    let table: [(&[&str], &[&str]); 16] = [
        (&["thread=2"], &[]),               // unknown, and near
        (&["colour=2"], &[]),               // unknown, and near to nothing
        (&["threads=two"], &[]),            // type
        (&["threads=0"], &[]),              // range
        (&["duration=0s"], &[]),            // zero duration
        (&["duration=5"], &[]),             // no unit
        (&["threads=1", "threads=2"], &[]), // contradiction
        (&["rounds=2"], &[]),               // a setting of the run
        (&["client=urq"], &[]),             // unknown client
        (&["kernel=narrow"], &[]),          // unknown label
        (&["rate=nan"], &[]),               // a number to the standard library only
        (&[], &["threads=1,9"]),            // a value the axis does not have
        (&[], &["thread=1"]),               // no such axis, and near
        (&[], &["duration=2s"]),            // a knob, and no axis
        (&[], &["threads=1", "threads=2"]), // contradiction
        (&["threads=8"], &["threads=1"]),   // --set came first
    ];
    let mut shown = String::new();
    for (set, only) in table {
        let errors = parse(&with_head(TEXT), &changes_of(set, only)).unwrap_err();
        shown.push_str(&errors.render(false));
    }
    insta::assert_snapshot!("arguments", shown);

    let rounds = Changes {
        rounds: Some(Rounds::Fixed(0)),
        ..Changes::default()
    };
    let error = parse(&with_head(TEXT), &rounds).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--rounds 0: \"rounds\": expected a whole number from 1 to 10000, got 0; give a number in that range"
    );
}

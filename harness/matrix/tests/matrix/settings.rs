//! What `[run]` and the command line say of rounds, comparisons, controls and ceilings.

use yieldpoint_matrix::Changes;
use yieldpoint_terms::Rounds;

use crate::catalog::{changes_of, parse, with_head};

/// A file with two axes that have several values, and one that has one.
fn text(run: &str) -> String {
    with_head(&format!(
        "[run]\n{run}\n[knobs]\nclient = [\"ureq\"]\nthreads = [1, 2]\nkeep_alive = [true, false]"
    ))
}

fn typed(rounds: Option<&str>, compare: Option<&str>) -> Changes {
    Changes {
        rounds: rounds.map(|r| r.parse().unwrap()),
        compare: compare.map(str::to_owned),
        ..Changes::default()
    }
}

#[test]
fn auto_compares_one_axis() {
    // [run], --rounds, --compare, what is compared or what the error says
    type Row<'a> = (
        &'a str,
        Option<&'a str>,
        Option<&'a str>,
        Result<Option<&'a str>, &'a str>,
    );
    let table: [Row; 14] = [
        ("rounds = 8", None, None, Ok(None)),
        ("rounds = \"auto\"", None, None, Ok(Some("threads"))), // the first with several values
        (
            "rounds = \"auto\"\ncompare = \"keep_alive\"",
            None,
            None,
            Ok(Some("keep_alive")),
        ),
        ("rounds = 8", Some("auto"), None, Ok(Some("threads"))),
        ("", Some("auto"), Some("keep_alive"), Ok(Some("keep_alive"))),
        // what was typed wins
        (
            "rounds = \"auto\"\ncompare = \"keep_alive\"",
            None,
            Some("threads"),
            Ok(Some("threads")),
        ),
        // a file that compares, with a number for once
        (
            "rounds = \"auto\"\ncompare = \"keep_alive\"",
            Some("1"),
            None,
            Ok(None),
        ),
        (
            "rounds = 8\ncompare = \"threads\"",
            Some("auto"),
            None,
            Ok(Some("threads")),
        ),
        (
            "rounds = 8\ncompare = \"threads\"",
            None,
            None,
            Err("beside a number of rounds"),
        ),
        (
            "rounds = \"auto\"",
            Some("8"),
            Some("threads"),
            Err("--compare threads: \"compare\" beside a number"),
        ),
        (
            "rounds = \"auto\"\ncompare = \"client\"",
            None,
            None,
            Err("two values or more, got one value"),
        ),
        (
            "rounds = \"auto\"\ncompare = \"thread\"",
            None,
            None,
            Err("did you mean \"threads\"?"),
        ),
        // a setting is no axis
        (
            "rounds = \"auto\"",
            None,
            Some("duration"),
            Err("an axis of this matrix (client, threads, keep_alive)"),
        ),
        // the axis is judged in a file that compares, whatever was typed
        (
            "rounds = \"auto\"\ncompare = \"duration\"",
            Some("3"),
            None,
            Err("an axis of this matrix"),
        ),
    ];
    for (run, rounds, compare, want) in table {
        let got = parse(&text(run), &typed(rounds, compare));
        match (got, want) {
            (Ok(matrix), Ok(axis)) => {
                assert_eq!(matrix.run.compare.as_deref(), axis, "{run}");
                let auto = matrix.run.rounds == Rounds::Auto;
                assert_eq!(auto, axis.is_some(), "{run}");
            }
            (Err(e), Err(part)) => assert!(e.to_string().contains(part), "{run}: {e}"),
            (got, want) => panic!("{run}: expected {want:?}, got {got:?}"),
        }
    }
}

#[test]
fn auto_needs_something_to_compare() {
    let narrowed = Changes {
        rounds: Some(Rounds::Auto),
        ..changes_of(&["keep_alive=true"], &["threads=2"])
    };
    let error = parse(&text(""), &narrowed).unwrap_err().to_string();
    assert_eq!(
        error,
        "--rounds auto: \"rounds\" is \"auto\": expected an axis with two values or more, which are compared, got none; make a knob an axis, or give a number of rounds"
    );
}

#[test]
fn controls_and_ceilings_are_there_unless_one_of_the_two_leaves_them_out() {
    // [run], --no-controls, --no-ceilings, controls, ceilings
    let table = [
        ("", false, false, true, true),
        ("controls = false", false, false, false, true),
        ("ceilings = false", false, false, true, false),
        ("controls = true", true, false, false, true), // what was typed wins
        ("", false, true, true, false),
    ];
    for (run, no_controls, no_ceilings, controls, ceilings) in table {
        let changes = Changes {
            no_controls,
            no_ceilings,
            ..Changes::default()
        };
        let run = parse(&text(run), &changes).unwrap().run;
        assert_eq!((run.controls, run.ceilings), (controls, ceilings));
    }
}

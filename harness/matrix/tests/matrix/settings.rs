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

#[test]
fn a_search_goes_along_one_axis_of_numbers() {
    let several = "client = [\"hyper\", \"ureq\"]\nthreads = [1, 2]\nduration = [\"1s\", \"2s\"]";
    let one = "client = [\"hyper\", \"ureq\"]\nkeep_alive = [true, false]\nthreads = [1, 2, 4]";
    let none = "client = [\"hyper\", \"ureq\"]\nkeep_alive = [true, false]\nthreads = 2";
    // [run], [knobs], --find, --along, what is searched or what the error says
    type Row<'a> = (
        &'a str,
        &'a str,
        Option<&'a str>,
        Option<&'a str>,
        Result<Option<&'a str>, &'a str>,
    );
    let find = "find = \"breakpoint\"";
    let table: [Row; 14] = [
        ("", several, None, None, Ok(None)),
        (find, one, None, None, Ok(Some("threads"))), // words and truths are no numbers
        ("", one, Some("breakpoint"), None, Ok(Some("threads"))),
        (find, several, None, Some("duration"), Ok(Some("duration"))),
        (
            "find = \"breakpoint\"\nalong = \"threads\"",
            several,
            None,
            None,
            Ok(Some("threads")),
        ),
        // what was typed wins
        (
            "find = \"breakpoint\"\nalong = \"threads\"",
            several,
            None,
            Some("duration"),
            Ok(Some("duration")),
        ),
        (
            find,
            several,
            None,
            None,
            Err("along = one of threads, duration, got nothing"),
        ),
        (find, none, None, None, Err("no axis to search")),
        (
            find,
            one,
            None,
            Some("client"),
            Err("numbers or durations (threads), got \"client\""),
        ),
        (
            find,
            one,
            None,
            Some("thread"),
            Err("did you mean \"threads\"?"),
        ),
        (
            "find = \"knee\"",
            one,
            None,
            None,
            Err("expected \"breakpoint\", got \"knee\""),
        ),
        (
            "along = \"threads\"",
            one,
            None,
            None,
            Err("\"along\" without \"find\""),
        ),
        (
            "",
            one,
            None,
            Some("threads"),
            Err("--along threads: \"along\" without \"find\""),
        ),
        (
            "find = \"breakpoint\"\nrounds = \"auto\"",
            one,
            None,
            None,
            Err("together with rounds = \"auto\""),
        ),
    ];
    for (run, knobs, find, along, want) in table {
        let text = with_head(&format!("[run]\n{run}\n[knobs]\n{knobs}"));
        let changes = Changes {
            find: find.map(str::to_owned),
            along: along.map(str::to_owned),
            ..Changes::default()
        };
        match (parse(&text, &changes), want) {
            (Ok(matrix), Ok(axis)) => {
                assert_eq!(matrix.run.along.as_deref(), axis, "{run}");
            }
            (Err(e), Err(part)) => assert!(e.to_string().contains(part), "{run}: {e}"),
            (got, want) => panic!("{run}: expected {want:?}, got {got:?}"),
        }
    }
}

//! Every way to write a matrix wrongly, and the words it is answered with.

use std::fmt::Write as _;

use yieldpoint_matrix::Changes;

use crate::catalog::{body, parse, with_head};

/// What is wrong, and the text below a sound head of two lines.
pub(crate) const TABLE: &[(&str, &str)] = &[
    ("syntax: no quotes around a text", "[knobs]\nclient = ureq"),
    ("syntax: no value", "[knobs]\nclient = \"ureq\"\nthreads ="),
    (
        "syntax: a list that does not end",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2",
    ),
    (
        "syntax: two errors, both told",
        "[knobs]\nclient = ureq\nkeep_alive = yes",
    ),
    (
        "unknown top-level key, near",
        "knob = 1\n[knobs]\nclient = \"ureq\"",
    ),
    (
        "unknown top-level key: a knob",
        "threads = 1\n[knobs]\nclient = \"ureq\"",
    ),
    (
        "empty question",
        "source = \" \"\n[knobs]\nclient = \"ureq\"",
    ),
    (
        "unknown knob, near",
        "[knobs]\nclient = \"ureq\"\nkeepalive = true",
    ),
    (
        "unknown knob, near nothing",
        "[knobs]\nclient = \"ureq\"\ncolour = \"red\"",
    ),
    (
        "unknown knob of a prefix",
        "[knobs]\nclient = \"ureq\"\n[knobs.target]\nworker = 1",
    ),
    (
        "a prefix is not a knob",
        "[knobs]\nclient = \"ureq\"\ntarget = 3",
    ),
    (
        "a wildcard is not a knob",
        "[knobs]\nclient = \"ureq\"\nlab.sysctl.\"*\" = 3",
    ),
    ("reserved", "[knobs]\nclient = \"ureq\"\nhttp2 = true"),
    (
        "wrong type: text for a number",
        "[knobs]\nclient = \"ureq\"\nthreads = \"3\"",
    ),
    (
        "wrong type: number for a bool",
        "[knobs]\nclient = \"ureq\"\nkeep_alive = 1",
    ),
    (
        "wrong type: text for a bool, in an axis",
        "[knobs]\nclient = \"ureq\"\nkeep_alive = [true, \"false\"]",
    ),
    (
        "wrong type: number for a text",
        "[knobs]\nclient = \"ureq\"\nlab.cpus.client = 0",
    ),
    (
        "wrong type: a date",
        "[knobs]\nclient = \"ureq\"\nthreads = 2026-01-01",
    ),
    (
        "wrong type: lists in a list",
        "[knobs]\nclient = \"ureq\"\nthreads = [[1, 2]]",
    ),
    (
        "wrong type: tables in a list",
        "[knobs]\nclient = \"ureq\"\nthreads = [{ a = 1 }]",
    ),
    ("out of range", "[knobs]\nclient = \"ureq\"\nthreads = 0"),
    (
        "out of every range",
        "[knobs]\nclient = \"ureq\"\nthreads = 99999999999999999999",
    ),
    ("not a number", "[knobs]\nclient = \"ureq\"\nrate = nan"),
    (
        "zero duration",
        "[knobs]\nclient = \"ureq\"\nduration = \"0s\"",
    ),
    (
        "duration without a unit",
        "[knobs]\nclient = \"ureq\"\nduration = 130",
    ),
    (
        "unknown word of a choice",
        "[knobs]\nclient = \"ureq\"\nlab.mode = \"privat\"",
    ),
    ("empty axis", "[knobs]\nclient = \"ureq\"\nthreads = []"),
    (
        "a value twice",
        "[knobs]\nclient = \"ureq\"\nduration = [\"2m\", \"1s\", \"120s\"]",
    ),
    ("unknown client", "[knobs]\nclient = [\"ureq\", \"hypre\"]"),
    ("no client", "[knobs]\nthreads = 1"),
    (
        "option of an unknown client",
        "[knobs]\nclient = \"ureq\"\noptions.curl.tcp_nodelay = true",
    ),
    (
        "unknown option of a client",
        "[knobs]\nclient = \"isahc\"\noptions.isahc.nodelay = true",
    ),
    (
        "run: rounds as an axis",
        "[run]\nrounds = [1, 2]\n[knobs]\nclient = \"ureq\"",
    ),
    (
        "run: rounds among the knobs",
        "[knobs]\nclient = \"ureq\"\nrounds = 3\nseed = [1, 2]",
    ),
    (
        "run: out of range",
        "[run]\nrounds = 0\nseed = -1\n[knobs]\nclient = \"ureq\"",
    ),
    (
        "run: a knob",
        "[run]\nround = 1\nthreads = 2\n[knobs]\nclient = \"ureq\"",
    ),
    (
        "run: neither a number nor auto",
        "[run]\nrounds = \"many\"\ncontrols = 1\nceilings = \"no\"\ncompare = 2\n[knobs]\nclient = \"ureq\"",
    ),
    ("run: not a table", "run = 3\nknobs = [1]"),
    (
        "twice: the same form",
        "[knobs]\nclient = \"ureq\"\nthreads = 1\nthreads = [1, 2]",
    ),
    (
        "twice: quoted and dotted",
        "[knobs]\nclient = \"ureq\"\ntarget.workers = 1\n\"target.workers\" = [1, 2]",
    ),
    (
        "twice: dotted and nested",
        "[knobs]\nclient = \"ureq\"\ntarget.workers = 1\n[knobs.target]\nport = 80",
    ),
    (
        "twice: nested, then dotted",
        "[knobs.target]\nport = 80\n[knobs]\nclient = \"ureq\"\ntarget.workers = 1",
    ),
    (
        "twice: setting and prefix",
        "[knobs]\nclient = \"ureq\"\nthreads = 1\nthreads.more = 1",
    ),
    (
        "twice: a whole table",
        "[knobs]\nclient = \"ureq\"\n[knobs]\nthreads = 1",
    ),
    (
        "twice, and another problem: both told",
        "[knobs]\nclient = \"ureq\"\nthreads = 1\nthreads = 2\nduration = 5",
    ),
    (
        "bundle: sets an axis",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[axis.load.low]\nthreads = 1\n[axis.load.high]\nthreads = 2",
    ),
    (
        "bundle: two axes set one knob",
        "[knobs]\nclient = \"ureq\"\n[axis.a.x]\nthreads = 1\n[axis.b.x]\nthreads = 2",
    ),
    (
        "bundle: holds a list",
        "[knobs]\nclient = \"ureq\"\n[axis.a.x]\nthreads = [1, 2]",
    ),
    (
        "bundle: unknown knob",
        "[knobs]\nclient = \"ureq\"\n[axis.a.x]\nthread = 1",
    ),
    (
        "bundle: has a knob's name",
        "[knobs]\nclient = \"ureq\"\n[axis.threads.x]\nthreads = 1",
    ),
    ("bundle: empty axis", "[knobs]\nclient = \"ureq\"\n[axis.a]"),
    (
        "bundle: no tables",
        "[knobs]\nclient = \"ureq\"\n[axis]\nthreads = [1, 2]\n[axis.a]\nx = 1",
    ),
    (
        "bundle: a name with a dot",
        "[knobs]\nclient = \"ureq\"\n[axis.\"a.b\".x]\nthreads = 1",
    ),
    (
        "client: no command",
        "[knobs]\nclient = \"mine\"\n[clients.mine]",
    ),
    (
        "client: empty command",
        "[knobs]\nclient = \"mine\"\n[clients.mine]\ncommand = []",
    ),
    (
        "client: command is a text",
        "[knobs]\nclient = \"mine\"\n[clients.mine]\ncommand = \"./x\"\ncwd = \"/\"",
    ),
    (
        "client: a name with a blank",
        "[knobs]\nclient = \"ureq\"\n[clients.\"my client\"]\ncommand = [\"./x\"]",
    ),
    (
        "exclude: unknown axis",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[exclude]]\nthread = 1",
    ),
    (
        "exclude: a setting",
        "[knobs]\nclient = [\"ureq\", \"hyper\"]\nthreads = 1\n[[exclude]]\nthreads = 1",
    ),
    (
        "exclude: no axis at all",
        "[knobs]\nclient = \"ureq\"\n[[exclude]]\nthreads = 1",
    ),
    (
        "exclude: unknown value",
        "[knobs]\nclient = [\"ureq\", \"hyper\"]\n[[exclude]]\nclient = \"isahc\"",
    ),
    (
        "exclude: unknown label, near",
        "[knobs]\nclient = \"ureq\"\n[axis.kernel.wide]\n[axis.kernel.default]\n[[exclude]]\nkernel = \"wid\"",
    ),
    (
        "exclude: wrong type",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[exclude]]\nthreads = \"1\"",
    ),
    (
        "exclude: a list",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[exclude]]\nthreads = [1, 2]",
    ),
    ("exclude: empty", "[knobs]\nclient = \"ureq\"\n[[exclude]]"),
    (
        "exclude: one bracket",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[exclude]\nthreads = 1",
    ),
    (
        "exclude: everything",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[exclude]]\nthreads = 1\n[[exclude]]\nthreads = 2",
    ),
    (
        "claim: incomplete",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[claim]]\nid = \"a\"\nbase = { threads = 1 }",
    ),
    (
        "claim: unknown axis and value",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[claim]]\nid = \"a\"\nbase = { thread = 1 }\nchanged = { threads = 3 }\npublished_ratio = 2",
    ),
    (
        "claim: a cell with itself",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[claim]]\nid = \"a\"\nbase = { threads = 1 }\nchanged = { threads = 1 }\npublished_ratio = 2",
    ),
    (
        "claim: no ratio",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[claim]]\nid = \"a\"\nbase = { threads = 1 }\nchanged = { threads = 2 }\npublished_ratio = 0\nnotes = \"x\"",
    ),
    (
        "claim: an id twice",
        "[knobs]\nclient = \"ureq\"\nthreads = [1, 2]\n[[claim]]\nid = \"a\"\nbase = { threads = 1 }\nchanged = { threads = 2 }\npublished_ratio = 2\n[[claim]]\nid = \"a\"\nbase = { threads = 2 }\nchanged = { threads = 1 }\npublished_ratio = 2",
    ),
    (
        "many at once, in the order of the file",
        "[run]\nrounds = 0\n[knobs]\nclient = \"urq\"\nthread = 1\nduration = \"0s\"\n[[exclude]]\nthreads = 1",
    ),
];

#[test]
fn every_error_is_answered_in_these_words() {
    let mut shown = String::new();
    for (title, text) in TABLE {
        match body(text) {
            Ok(_) => panic!("{title}: accepted\n{text}"),
            Err(errors) => writeln!(shown, "# {title}\n{}", errors.render(false)).unwrap(),
        }
    }
    insta::assert_snapshot!("errors", shown);
}

#[test]
fn a_file_must_say_its_format_and_its_question() {
    let heads = [
        "",
        "format = 2\nquestion = \"Why?\"",
        "format = \"1\"\nquestion = 3",
        "format = 1\nquestion = \"\"",
    ];
    let mut shown = String::new();
    for head in heads {
        let errors = parse(
            &format!("{head}\n[knobs]\nclient = \"ureq\""),
            &Changes::default(),
        )
        .unwrap_err();
        writeln!(shown, "# {head:?}\n{}", errors.render(false)).unwrap();
    }
    insta::assert_snapshot!("head", shown);
}

#[test]
fn too_many_cells_are_refused_before_they_are_made() {
    let values: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let values = values.join(", ");
    let knobs = [
        "threads",
        "users_per_thread",
        "target.backlog",
        "requests_per_iteration",
    ];
    let axes: Vec<String> = knobs.iter().map(|k| format!("{k} = [{values}]")).collect();
    let errors = body(&format!(
        "[knobs]\nclient = \"ureq\"\n{}\n",
        axes.join("\n")
    ))
    .unwrap_err();
    assert_eq!(
        errors.to_string(),
        "test.toml:8:1: too many cells: expected at most 10000, got 1000000000000; \
         keep fewer values: \"requests_per_iteration\" alone has 1000, see --only"
    );
}

#[test]
fn a_terminal_sees_the_lines_of_both_places() {
    let text = with_head(
        "[knobs]\nclient = \"ureq\"\ntarget.workers = 1\n\"target.workers\" = [1, 2]\nduraton = \"1s\"",
    );
    let errors = parse(&text, &Changes::default()).unwrap_err();
    let fancy = errors.render(true);
    // The colours themselves are the library's business; without them the picture is stable.
    let plain: String = fancy
        .split('\u{1b}')
        .enumerate()
        .map(|(at, part)| {
            if at == 0 {
                part
            } else {
                part.split_once('m').map_or("", |(_, rest)| rest)
            }
        })
        .collect();
    insta::assert_snapshot!("fancy", plain);
    assert!(fancy.contains('\u{1b}'), "colours");
}

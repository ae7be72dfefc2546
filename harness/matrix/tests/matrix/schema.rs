//! The schema accepts what the parser accepts, and refuses what can be seen without the whole file.

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use yieldpoint_matrix::schema;

use crate::catalog::{catalog, clients, with_head};
use crate::errors::TABLE;

fn validator() -> Validator {
    // The published schema of schemas judges ours first.
    jsonschema::draft202012::new(&schema(&catalog(), &clients())).unwrap()
}

/// A text as an editor hands it to a validator; `None`: not TOML.
fn json(text: &str) -> Option<serde_json::Value> {
    let table: toml::Table = toml::from_str(text).ok()?;
    Some(serde_json::to_value(table).unwrap())
}

fn complaints(validator: &Validator, text: &str) -> Vec<String> {
    let json = json(text).unwrap();
    let errors = validator.iter_errors(&json);
    errors.map(|e| e.to_string()).collect()
}

#[test]
fn the_shipped_matrices_and_the_examples_are_valid() {
    let validator = validator();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../matrices");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(complaints(&validator, &text), [""; 0], "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen} matrices");
    for text in crate::readme::examples() {
        assert_eq!(complaints(&validator, &text), [""; 0], "{text}");
    }
}

#[test]
fn nested_dotted_quoted_and_mixed_keys_are_one() {
    let validator = validator();
    let head = with_head("[knobs]\nclient = \"ureq\"\n");
    // each row: below [knobs], whether it is valid
    let table = [
        ("target.workers = 2", true),
        ("\"target.workers\" = 2", true),
        ("[knobs.target]\nworkers = [1, 2]", true),
        ("lab.cpus.client = \"0\"", true),
        ("\"lab.cpus\".client = \"0\"", true), // quoted in part
        ("lab.sysctl.net.ipv4.tcp_tw_reuse = [0, 1]", true),
        ("\"lab.sysctl.net.ipv4.tcp_tw_reuse\" = 0", true),
        (
            "lab.sysctl.\"net.ipv4.ip_local_port_range\" = \"1 2\"",
            true,
        ),
        ("options.mine.anything = 1.5", true), // a client of the file answers for it
        ("client_of_mine = 1", false),
        ("target.worker = 2", false),
        ("\"target.worker\" = 2", false),
        ("[knobs.target]\nworkers = \"2\"", false),
        ("lab.sysctl.net.ipv4.tcp_tw_reuse = true", false), // a number or a text
        ("options.isahc.nodelay = true", false),            // an installed client is known
        ("threads = []", false),
        ("threads = [1, 1]", false),
        ("[axis.kernel.wide]\nthreads = [1, 2]", false), // a bundle holds single values
        ("[axis.kernel.wide]\nthreads = 2", true),
        ("[[exclude]]\nkernel = \"wide\"\nthreads = 2", true), // the name of a bundle axis
        ("[[exclude]]\nthreads = [1, 2]", false),
        ("[clients.mine]\ncommand = []", false),
    ];
    for (body, valid) in table {
        let found = complaints(&validator, &format!("{head}{body}"));
        assert_eq!(found.is_empty(), valid, "{body}: {found:?}");
    }
}

/// Errors of the parser's table that no schema can see: they compare places of a file, or
/// read the inside of a text.
const ONLY_THE_PARSER: &[&str] = &[
    "a wildcard is not a knob",
    "zero duration",
    "a value twice",  // in two ways of writing it
    "unknown client", // [clients.NAME] may bring it
    "option of an unknown client",
    "twice: quoted and dotted",
    "bundle: sets an axis",
    "bundle: two axes set one knob",
    "exclude: unknown axis",
    "exclude: a setting",
    "exclude: no axis at all",
    "exclude: unknown value",
    "exclude: unknown label, near",
    "exclude: everything",
    "claim: unknown axis and value",
    "claim: a cell with itself",
    "claim: an id twice",
];

#[test]
fn what_the_parser_refuses_the_schema_refuses_where_it_can() {
    let validator = validator();
    let mut passed = Vec::new();
    for (what, body) in TABLE {
        if let Some(json) = json(&with_head(body))
            && validator.is_valid(&json)
        {
            passed.push(*what);
        }
    }
    assert_eq!(passed, ONLY_THE_PARSER);
}

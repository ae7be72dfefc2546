//! Shipped matrices with slips: a matrix or errors with a place in the text, never a panic, never a hang.
//!
//! `cargo run --release -p yieldpoint-matrix --example mutate-matrix -- N SEED` does the same with more inputs.

#[cfg(test)]
#[allow(dead_code)]
#[path = "matrix/catalog.rs"]
mod catalog;

use yieldpoint_matrix::{Changes, Matrix, Place, describe_clients, parse_only, parse_set};
use yieldpoint_mutate::{Mutator, Report, drive};
use yieldpoint_terms::Rounds;

use crate::catalog::{catalog, clients};

const SOUND: [&str; 4] = [
    include_str!("../../../matrices/quickstart.toml"),
    include_str!("../../../matrices/keepalive.toml"),
    include_str!("../../../matrices/ports.toml"),
    include_str!("matrix/sound.toml"),
];

/// Pieces of the format beside the names of knobs.
const WORDS: [&str; 33] = [
    "format = 1",
    "question",
    "source",
    "analysis",
    "[run]",
    "rounds",
    "\"auto\"",
    "seed",
    "compare",
    "find = \"breakpoint\"",
    "along",
    "controls",
    "[knobs]",
    "[axis.a.b]",
    "[[exclude]]",
    "[[claim]]",
    "[clients.x]",
    "command = []",
    "id",
    "base = {}",
    "changed",
    "published_ratio",
    "note",
    "true",
    "nan",
    "inf",
    "\"\"\"",
    "\'\'\'",
    "\"1s\"",
    "2026-01-01T00:00:00Z",
    "[1, 2, 3]",
    "\\u0000",
    "= # comment",
];

/// One in so many errors is drawn in full, with its source around it, which takes a hundred times as long.
const DRAWN: u64 = 64;

/// Parses so many mutated matrices.
pub fn matrices(inputs: u64, seed: u64) -> Report {
    let (catalog, clients) = (catalog(), clients());
    let corpus: Vec<&[u8]> = SOUND.iter().map(|text| text.as_bytes()).collect();
    let words: Vec<&str> = WORDS
        .into_iter()
        .chain(catalog.iter().map(|k| k.name.as_ref()))
        .collect();
    let mutator = Mutator::new(seed, &corpus, &words);
    let mut n = 0;
    drive("matrix", &mutator, inputs, |bytes| {
        n += 1;
        // A file that is not UTF-8 is refused before it comes here.
        let text = String::from_utf8_lossy(bytes);
        let _ = describe_clients(&text, "x.toml");
        let line = text.lines().next().unwrap_or_default();
        let (set, only) = (parse_set(line), parse_only(line));
        let changes = Changes {
            set: set.into_iter().collect(),
            only: only.into_iter().collect(),
            ..Changes::default()
        };
        // What is typed is rarely sound when it is a line of a file: mostly without it.
        let changes = if n % 8 == 0 {
            changes
        } else {
            Changes::default()
        };
        match Matrix::parse("x", "x.toml", &text, &catalog, &clients, &changes) {
            Ok(matrix) => {
                assert!(!matrix.cells.is_empty());
                let compares = matrix.run.rounds == Rounds::Auto;
                assert_eq!(matrix.run.compare.is_some(), compares);
                true
            }
            Err(errors) => {
                assert!(!errors.problems().is_empty());
                for problem in errors.problems() {
                    if let Place::Span { start, end } = problem.place {
                        assert!(start <= end && end <= text.len(), "{problem:?}");
                        assert!(
                            text.is_char_boundary(start) && text.is_char_boundary(end),
                            "{problem:?}"
                        );
                    }
                }
                assert_eq!(
                    errors.render(false).lines().count(),
                    errors.problems().len()
                );
                if n % DRAWN == 0 {
                    assert!(!errors.render(true).is_empty());
                }
                false
            }
        }
    })
}

#[test]
fn no_slip_makes_the_parser_panic_or_hang() {
    let report = matrices(20_000, 1);
    // A mutator that breaks everything, or nothing, tests nothing.
    assert!(
        report.accepted > 200 && report.accepted < 19_800,
        "{report}"
    );
}

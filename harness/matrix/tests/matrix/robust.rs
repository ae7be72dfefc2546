//! Whatever the text: a matrix or errors, never a panic, and no error without a place in the text.

use proptest::prelude::*;
use yieldpoint_matrix::{Changes, Place, describe_clients, parse_only, parse_set};
use yieldpoint_terms::Rounds;

use crate::catalog::parse;

const SOUND: [&str; 3] = [
    include_str!("../../../../matrices/quickstart.toml"),
    include_str!("../../../../matrices/keepalive.toml"),
    include_str!("sound.toml"),
];

/// Pieces that a matrix is made of, and some that it is not.
const PIECES: [&str; 28] = [
    "[",
    "]",
    "[[",
    "]]",
    "=",
    ".",
    ",",
    "\n",
    "\"",
    "'",
    "{",
    "}",
    "#",
    "knobs",
    "axis",
    "claim",
    "exclude",
    "threads",
    "client",
    "1",
    "-0",
    "1e999",
    "nan",
    "2026-01-01",
    "\"\"\"",
    "true",
    "ü",
    "\u{0}",
];

fn check(text: &str) -> Result<(), TestCaseError> {
    let _ = describe_clients(text, "x");
    match parse(text, &Changes::default()) {
        Ok(matrix) => {
            prop_assert!(!matrix.cells.is_empty());
            prop_assert_eq!(
                matrix.run.compare.is_some(),
                matrix.run.rounds == Rounds::Auto
            );
        }
        Err(errors) => {
            prop_assert!(!errors.problems().is_empty());
            for problem in errors.problems() {
                if let Place::Span { start, end } = problem.place {
                    prop_assert!(start <= end && end <= text.len(), "{:?}", problem);
                }
            }
            let plain = errors.render(false);
            prop_assert_eq!(plain.lines().count(), errors.problems().len(), "{}", plain);
            prop_assert!(!errors.render(true).is_empty());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        check(&text)?;
    }

    #[test]
    fn any_pieces(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)) {
        check(&pieces.concat())?;
        check(&pieces.join(" "))?;
    }

    #[test]
    fn a_sound_matrix_with_a_slip(
        which in 0..SOUND.len(),
        slips in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, prop::sample::select(&PIECES[..])), 1..4),
    ) {
        let mut chars: Vec<char> = SOUND[which].chars().collect();
        for (at, length, piece) in slips {
            let start = at.index(chars.len() + 1);
            let end = (start + length).min(chars.len());
            chars.splice(start..end, piece.chars());
        }
        check(&chars.into_iter().collect::<String>())?;
    }

    #[test]
    fn a_sound_matrix_with_lines_moved(which in 0..SOUND.len(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let mut lines: Vec<&str> = SOUND[which].lines().collect();
        let line = lines[from.index(lines.len())];
        lines.insert(to.index(lines.len()), line);
        check(&lines.join("\n"))?;
    }

    #[test]
    fn any_argument(text in "[a-c=,\"'\\\\ ü]{0,20}") {
        let _ = parse_set(&text);
        let _ = parse_only(&text);
    }
}

#[test]
fn names_and_nesting_without_end() {
    for text in [
        format!("{} = 1", vec!["a"; 100_000].join(".")),
        format!("[{}]", vec!["a"; 100_000].join(".")),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{ a = ".repeat(100_000)),
        "a = [[[[[[[[1]]]]]]]]\n".repeat(1000),
        "x".repeat(2 << 20),
        "[[claim]]\n".repeat(10_000),
    ] {
        let errors = parse(&text, &Changes::default()).unwrap_err();
        assert!(!errors.render(false).is_empty());
    }
}

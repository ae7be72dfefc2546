//! The reference of the format must not teach what the parser refuses.

use yieldpoint_matrix::{Changes, Matrix};

use crate::catalog::{catalog, changes_of, clients, parse};

const README: &str = include_str!("../../../../matrices/README.md");

/// Every block of TOML; a fragment is completed with what it leaves out.
pub(crate) fn examples() -> Vec<String> {
    let blocks = README.split("```toml\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or_default());
    let complete = |block: &str| {
        let mut text = block.to_owned();
        if !text.contains("client ") {
            match text.find("[knobs]\n") {
                Some(at) => text.insert_str(at + "[knobs]\n".len(), "client = \"ureq\"\n"),
                None => text.push_str("\n[knobs]\nclient = \"ureq\"\n"),
            }
        }
        if !text.contains("format ") {
            text.insert_str(0, "format = 1\nquestion = \"Why?\"\n");
        }
        text
    };
    blocks.map(complete).collect()
}

fn cells(text: &str) -> usize {
    let matrix: Matrix = parse(text, &Changes::default()).unwrap_or_else(|e| panic!("{text}\n{e}"));
    matrix.cells.len()
}

#[test]
fn every_example_is_sound_and_has_as_many_cells_as_it_says() {
    let counts: Vec<usize> = examples().iter().map(|text| cells(text)).collect();
    // smallest, [run], auto, find, [knobs], three forms of a key, option, bundles, exclude, claim, clients
    assert_eq!(counts, [2, 1, 6, 20, 4, 1, 1, 1, 3, 2, 5, 8, 2]);
}

#[test]
fn the_example_of_a_command_line_is_sound() {
    let command = README
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let command = command.replace("\\\n", " ");
    let words: Vec<&str> = command.split("--").skip(1).collect();
    let of = |flag: &str| -> Vec<&str> {
        let found = words.iter().filter_map(|w| w.strip_prefix(flag));
        found.map(|w| w.trim().trim_matches('\'')).collect()
    };
    let changes = changes_of(&of("set "), &of("only "));
    assert_eq!((changes.set.len(), changes.only.len()), (2, 2));
    let text = include_str!("../../../../matrices/keepalive.toml");
    let matrix = Matrix::parse("keepalive", "k", text, &catalog(), &clients(), &changes);
    assert_eq!(
        matrix.unwrap_or_else(|e| panic!("{e}")).cells.len(),
        2 * 4 * 2
    );
}

//! A step of the wall clock must not reach a measurement: what measures reads CLOCK_MONOTONIC alone.

use std::path::{Path, PathBuf};

/// Where the wall clock may be read: the name of a run's folder and the `started` of its rows.
const NAMES_ONLY: &str = "run/src/runner.rs";
/// Everything that measures a trial or takes part in it.
const MEASURES: [&str; 7] = [
    "terms/src",
    "protocol/src",
    "run/src",
    "sample/src",
    "lab/src",
    "clients",
    "record/src",
];

#[test]
fn nothing_that_measures_reads_the_wall_clock() {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in MEASURES {
        sources(&harness.join(folder), &mut files);
    }
    assert!(files.len() > 50, "the sources were found");
    let readers: Vec<_> = files
        .iter()
        .filter(|file| {
            let text = std::fs::read_to_string(file).expect("a source is UTF-8");
            ["SystemTime", "ClockId::Realtime", "CLOCK_REALTIME"]
                .iter()
                .any(|word| text.contains(word))
        })
        .collect();
    let expected = harness.join(NAMES_ONLY);
    assert_eq!(readers, [&expected]);
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder)
        .expect("a folder of ours")
        .flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

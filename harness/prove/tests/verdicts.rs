//! The short form of the proof of verdicts: causes that bind by counts and laws, whatever else the machine does.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of `yieldpoint`, clients, target and lab program, built by scripts/build.
fn programs() -> PathBuf {
    let folder = std::env::var_os("YIELDPOINT_PROGRAMS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bin"),
        PathBuf::from,
    );
    assert!(
        folder.join("yieldpoint-lab").is_file(),
        "\"{}\" has no yieldpoint-lab: run scripts/build first (scripts/test does)",
        folder.display()
    );
    folder
}

#[test]
fn injected_causes_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_yieldpoint-prove"))
        .args(["verdicts", "--seed", "1", "--repeats", "1"])
        .args(["--only", "ports_exhausted,bandwidth,pacing"])
        .arg("--out")
        .arg(scratch.path())
        .env("YIELDPOINT_PROGRAMS", programs())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let progress = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}\n{progress}");
    assert!(progress.contains("seed 1\n"), "{progress}");
    // The path of the matrix is printed, and the counts stand beside it.
    let matrix = said.lines().find(|l| l.ends_with("confusion.md")).unwrap();
    let csv = std::fs::read_to_string(Path::new(matrix).with_extension("csv")).unwrap();
    let mut rows: Vec<&str> = csv.lines().skip(1).collect();
    rows.sort_unstable();
    // Two clients each, and none was taken for another.
    let want = [
        "bandwidth",
        "bandwidth+target_errors",
        "pacing",
        "ports_exhausted",
        "ports_exhausted+target_errors",
    ];
    assert_eq!(
        rows,
        want.map(|cause| format!("{cause},{cause},2")),
        "{said}"
    );
}

//! The short form of the proof of verdicts: causes that bind by counts, however little of the machine is left.

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
    let scenarios = [
        "client_memory",
        "fd_limit",
        "fd_limit+target_errors",
        "keepalive_limit",
        "keepalive_limit+target_errors",
        "target_errors",
    ];
    let scratch = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_yieldpoint-prove"))
        .args(["verdicts", "--seed", "1", "--repeats", "1"])
        .args(["--only", &scenarios.join(",")])
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
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    // Two clients each, and none was taken for another.
    assert_eq!(rows, scenarios.map(|s| format!("{s},{s},2")), "{said}");
}

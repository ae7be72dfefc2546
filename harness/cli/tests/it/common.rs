//! What the tests of the command share: its programs, a matrix in a scratch folder, a run of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use yieldpoint_record::{RunFolder, Trial, read_journal};

/// The folder of clients, target and lab program, built by scripts/build.
pub fn programs() -> PathBuf {
    let folder = std::env::var_os("YIELDPOINT_PROGRAMS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bin"),
        PathBuf::from,
    );
    assert!(
        folder.join("yieldpoint-lab").is_file(),
        "\"{}\" has no yieldpoint-lab: run scripts/build first (scripts/test does)",
        folder.display()
    );
    folder.canonicalize().expect("it exists")
}

/// The misbehaving client.
pub fn fake() -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_yieldpoint"));
    let fake = command
        .parent()
        .expect("a program lies in a folder")
        .join("examples/fake");
    assert!(
        fake.is_file(),
        "\"{}\" is built with the tests",
        fake.display()
    );
    fake
}

/// A scratch folder in which the command runs.
pub struct Scratch {
    pub dir: TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a matrix: the head that every matrix has, and `rest`.
    pub fn matrix(&self, name: &str, rest: &str) -> PathBuf {
        let path = self.path().join(format!("{name}.toml"));
        let text = format!("format = 1\nquestion = \"a test\"\n{rest}");
        std::fs::write(&path, text).expect("a scratch folder is writable");
        path
    }

    /// The command, in this folder.
    pub fn yieldpoint(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_yieldpoint"));
        command
            .current_dir(self.path())
            .env("YIELDPOINT_PROGRAMS", programs())
            .env("NO_COLOR", "1")
            .args(arguments);
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.yieldpoint(arguments)
            .output()
            .expect("the command starts")
    }
}

pub fn stdout(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

pub fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// The folder that a finished `run` names in its last line, and its rows.
pub fn rows(scratch: &Scratch, out: &Output) -> (RunFolder, Vec<Trial>) {
    let text = stdout(out);
    let last = text
        .lines()
        .last()
        .unwrap_or_else(|| panic!("no output: {}", stderr(out)));
    let folder = RunFolder::open(&scratch.path().join(last)).expect("the last line is the run");
    let (rows, cut) = read_journal(&folder.journal()).expect("a journal that reads");
    assert!(!cut);
    (folder, rows)
}

/// Processes that belong to the run of process `runner`: its labs, which carry its number among their
/// arguments, and their programs, whose environment holds `marker`.
pub fn processes_of(runner: u32, marker: &str) -> Vec<String> {
    let lab = format!("\0{runner}\0");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")
        .expect("/proc is there")
        .flatten()
    {
        let read = |file: &str| {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let arguments = read("cmdline");
        let is_lab = arguments.contains("yieldpoint-lab") && arguments.contains(&lab);
        let is_program = arguments.contains("yieldpoint-") && read("environ").contains(marker);
        if is_lab || is_program {
            found.push(arguments.replace('\0', " "));
        }
    }
    found
}

/// Processes whose environment holds `marker` ("NAME=value").
pub fn marked(marker: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let mut variables = environment.split(|b| *b == 0);
            variables.any(|v| v == marker.as_bytes()).then_some(pid)
        })
        .collect()
}

/// A child that does not outlive its test.
pub struct Guarded(pub std::process::Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // It has ended where the test went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

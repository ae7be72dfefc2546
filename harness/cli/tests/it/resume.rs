//! Runs that are killed at any moment go on where they stopped.
//!
//! By default a few kills, at moments from a fixed seed; `YIELDPOINT_PROVE_KILLS`,
//! `YIELDPOINT_PROVE_INTERRUPTS` and `YIELDPOINT_PROVE_SEED` ask for more (scripts/prove-resume).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Guarded, Scratch, marked, rows, stderr, stdout};
use yieldpoint_record::{Role, RunFolder, Status, Trial, file, read_journal};

const MATRIX: &str = r#"
[run]
rounds = 3
seed = 7
[knobs]
client = "reference"
duration = "60ms"
requests_per_iteration = [1, 2, 3]
"#;
/// Three cells, the twin of one, and a ceiling each, since how often a connection is used is a ceiling's affair.
const TRIALS: usize = 3 + 1 + 3;
const ROUNDS: u32 = 3;
/// Only a hang is longer.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_run_that_is_killed_at_random_moments_loses_nothing_and_leaves_nothing() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |v| v.parse().expect("a whole number"))
    };
    let seed = number("YIELDPOINT_PROVE_SEED", 1);
    for (signal, kills) in [
        (Signal::KILL, number("YIELDPOINT_PROVE_KILLS", 5)),
        (Signal::INT, number("YIELDPOINT_PROVE_INTERRUPTS", 2)),
    ] {
        let mut moments = Moments(seed);
        let (mut done, mut runs) = (0, 0);
        while done < kills {
            // A run takes a few kills until it is complete; then the next run takes the others.
            done += kill_until_complete(signal, kills - done, &mut moments);
            runs += 1;
        }
        println!("seed {seed}: {done} × {signal:?} in {runs} runs, nothing lost, nothing left");
    }
}

/// Moments to kill at, from a seed (a linear congruential generator: any spread will do).
struct Moments(u64);

impl Moments {
    /// Between nothing and a bit more than the start of the command and two trials take.
    fn next(&mut self) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % 1_200)
    }
}

/// Kills a run again and again, at most `most` times, then lets it end. How often it was killed.
fn kill_until_complete(signal: Signal, most: u64, moments: &mut Moments) -> u64 {
    let scratch = Scratch::new();
    let temporary = scratch.path().join("tmp");
    std::fs::create_dir(&temporary).expect("scratch");
    let marker = format!(
        "YIELDPOINT_TEST_MARK=resume-{signal:?}-{}",
        std::process::id()
    );
    let (name, value) = marker.split_once('=').expect("it has one");
    let matrix = scratch.matrix("m", MATRIX);
    let matrix = matrix.to_str().expect("UTF-8");
    let command = |arguments: &[&str]| -> Command {
        let mut command = scratch.yieldpoint(arguments);
        command.env("TMPDIR", &temporary).env(name, value);
        command
    };
    let (mut kills, mut folder) = (0, None::<PathBuf>);
    // More kills than this never come before the end: every resumed run gets somewhere, or is let go.
    while kills < most {
        let before = folder.as_deref().map(journal);
        let resume = folder.as_ref().map(|f| f.to_str().expect("UTF-8"));
        let arguments = match resume {
            None => ["run", matrix].to_vec(),
            Some(run) => ["run", "--resume", run].to_vec(),
        };
        let child = command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut runner = Guarded(child.expect("starts"));
        std::thread::sleep(moments.next());
        let ended = runner.0.try_wait().expect("it is ours").is_some();
        if !ended {
            let pid = Pid::from_child(&runner.0);
            // A signal before the handler stands ends the process as well.
            kill_process(pid, signal).expect("it is not waited for");
            kills += 1;
        }
        runner.0.wait().expect("it ends");
        nothing_runs(&marker);
        folder = folder.or_else(|| the_run(scratch.path()));
        if let (Some(before), Some(folder)) = (before, &folder) {
            let whole = before
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |i| i + 1);
            assert!(
                journal(folder).starts_with(&before[..whole]),
                "finished trials changed"
            );
        }
        if ended {
            break;
        }
    }
    let last = match &folder {
        None => command(&["run", matrix]),
        Some(run) => command(&["run", "--resume", run.to_str().expect("UTF-8")]),
    }
    .output()
    .expect("starts");
    assert_eq!(last.status.code(), Some(0), "{}", stderr(&last));
    nothing_runs(&marker);
    complete(&scratch, &last);
    let left: Vec<_> = std::fs::read_dir(&temporary)
        .expect("it is ours")
        .flatten()
        .collect();
    assert!(left.is_empty(), "temporary files: {left:?}");
    kills
}

fn journal(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join(file::JOURNAL)).unwrap_or_default()
}

/// The run below `results`: the one folder that has a manifest, if the command came that far.
fn the_run(scratch: &Path) -> Option<PathBuf> {
    let all = std::fs::read_dir(scratch.join("results")).ok()?;
    all.flatten()
        .map(|e| e.path())
        .find(|p| RunFolder::open(p).is_ok())
}

/// No process of a run is left, and with the last process of a network namespace that is gone, too.
fn nothing_runs(marker: &str) {
    let began = Instant::now();
    while !marked(marker).is_empty() {
        assert!(
            began.elapsed() < PATIENCE,
            "processes are left: {:?}",
            marked(marker)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Every trial of every round once, in the seed's order, and nothing but known names in the folder.
fn complete(scratch: &Scratch, out: &std::process::Output) {
    let (folder, rows) = rows(scratch, out);
    assert_eq!(rows.len(), TRIALS * ROUNDS as usize);
    let place = |r: &Trial| (r.round, r.role, r.cell.clone());
    let distinct: BTreeSet<_> = rows.iter().map(place).collect();
    assert_eq!(distinct.len(), rows.len(), "each once");
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row.status, Status::Ok, "{}: {:?}", row.cell, row.error);
        assert_eq!(row.order as usize, i);
    }
    let names = [
        file::MANIFEST,
        file::MATRIX,
        file::JOURNAL,
        file::TABLES,
        file::LOGS,
        file::RESUMES,
    ];
    for entry in std::fs::read_dir(folder.path()).expect("a run").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let known = names.contains(&name.as_str()) || name.starts_with(file::CUT);
        assert!(known, "\"{name}\" is left in the run's folder");
    }
    for entry in std::fs::read_dir(folder.tables())
        .expect("tables")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            !name.starts_with('.'),
            "\"{name}\" is left among the tables"
        );
    }
}

/// A complete run of two short trials.
fn small_run(scratch: &Scratch) -> RunFolder {
    let matrix = scratch.matrix(
        "small",
        "[run]\nrounds = 2\ncontrols = false\nceilings = false\n[knobs]\nclient = \"reference\"\nduration = \"50ms\"\n",
    );
    let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    rows(scratch, &out).0
}

#[test]
fn a_journal_cut_in_a_line_goes_on_after_its_last_whole_line() {
    let scratch = Scratch::new();
    let run = small_run(&scratch);
    let path = run.path().to_str().expect("UTF-8");
    let whole = std::fs::read(run.journal()).expect("a journal");
    let first = whole.iter().position(|b| *b == b'\n').expect("a line") + 1;
    let cut = first + 100;
    std::fs::write(run.journal(), &whole[..cut]).expect("scratch");
    let out = scratch.output(&["run", "--resume", path]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (_, rows) = rows(&scratch, &out);
    assert_eq!(rows.len(), 2);
    assert!(
        std::fs::read(run.journal())
            .expect("a journal")
            .starts_with(&whole[..first]),
        "the finished trial is what it was"
    );
    let aside = std::fs::read(run.path().join("journal.cut-1")).expect("the tail is kept");
    assert_eq!(aside, &whole[first..cut]);
    let noted = std::fs::read_to_string(run.resumes()).expect("it is noted");
    assert!(noted.contains("\"cut\":\"journal.cut-1\""), "{noted}");

    let again = scratch.output(&["run", "--resume", path]);
    assert_eq!(again.status.code(), Some(0));
    assert!(
        stderr(&again).contains("nothing to resume: all 2 trials had finished"),
        "{}",
        stderr(&again)
    );
    assert!(stdout(&again).trim_end().ends_with(path));
}

#[test]
fn what_has_changed_is_named_and_nothing_is_run() {
    let scratch = Scratch::new();
    let run = small_run(&scratch);
    let path = run.path().to_str().expect("UTF-8");
    let refused = |want: &str| {
        let journal = std::fs::read(run.journal()).expect("a journal");
        let out = scratch.output(&["run", "--resume", path]);
        assert_eq!(out.status.code(), Some(1), "{want}");
        assert!(
            stderr(&out).contains(want),
            "\"{want}\" in {}",
            stderr(&out)
        );
        assert_eq!(std::fs::read(run.journal()).expect("a journal"), journal);
    };
    // file, text, what it becomes, what is said
    let table = [
        (
            run.matrix(),
            "\"50ms\"",
            "\"51ms\"",
            "got \"duration = \\\"51ms\\\"\"",
        ),
        (
            run.path().join(file::MANIFEST),
            "\"yieldpoint\": \"",
            "\"yieldpoint\": \"9.",
            "version of yieldpoint: expected \"9.",
        ),
        (
            run.path().join(file::MANIFEST),
            "\"kernel\": \"",
            "\"kernel\": \"1.",
            "kernel: expected \"1.",
        ),
        (
            run.path().join(file::MANIFEST),
            "\"sha256\": \"",
            "\"sha256\": \"0",
            "was rebuilt: expected SHA-256 0",
        ),
    ];
    for (changed, from, to, want) in table {
        let text = std::fs::read_to_string(&changed).expect("it is there");
        assert!(text.contains(from), "\"{from}\" in {}", changed.display());
        std::fs::write(&changed, text.replacen(from, to, 1)).expect("scratch");
        refused(&want.replace("\\\"", "\""));
        std::fs::write(&changed, text).expect("scratch");
    }
    // Two runners exclude each other.
    let held = std::fs::File::open(run.journal()).expect("a journal");
    held.lock().expect("nobody holds it");
    let own = format!("another runner (process {})", std::process::id());
    refused(&own);
    drop(held);
    // A folder without a manifest is no run.
    let half = scratch.path().join("results/2026-12-01.9-half");
    std::fs::create_dir(&half).expect("scratch");
    std::fs::write(half.join(file::MANIFEST_PART), "{").expect("scratch");
    let out = scratch.output(&["run", "--resume", half.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).contains("is not a run"), "{}", stderr(&out));
}

#[test]
fn a_full_disk_stops_the_run_with_one_error_and_it_goes_on_once_there_is_room() {
    let scratch = Scratch::new();
    let matrix = scratch.matrix(
        "full",
        "[run]\nrounds = 40\ncontrols = false\nceilings = false\n[knobs]\nclient = \"reference\"\nduration = \"20ms\"\n",
    );
    // A disk of its own, in namespaces of its own; what it held is copied out before it goes.
    let script = "mkdir results && mount -t tmpfs -o size=192k tmpfs results || exit 77; \
                  \"$@\"; code=$?; cp -r results kept; exit $code";
    let yieldpoint = env!("CARGO_BIN_EXE_yieldpoint");
    let mut command = Command::new("unshare");
    command
        .args(["-Urm", "sh", "-c", script, "sh", yieldpoint, "run"])
        .arg(&matrix)
        .current_dir(scratch.path())
        .env("YIELDPOINT_PROGRAMS", crate::common::programs())
        .env("NO_COLOR", "1");
    let out = command.output().expect("unshare is part of util-linux");
    if out.status.code() == Some(77) || stderr(&out).starts_with("unshare:") {
        eprintln!("no disk of one's own can be mounted here: a full disk is not tested");
        return;
    }
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let said = stderr(&out);
    assert_eq!(said.matches("error:").count(), 1, "one error: {said}");
    assert!(said.contains("No space left on device"), "{said}");
    let kept = scratch.path().join("kept");
    let run = std::fs::read_dir(&kept)
        .expect("it was copied")
        .flatten()
        .next()
        .expect("a run")
        .path();
    let run = RunFolder::open(&run).expect("it has its manifest");
    let before = std::fs::read(run.journal()).expect("a journal");
    let (finished, cut) = read_journal(&run.journal()).expect("it reads");
    assert!(!finished.is_empty() && !cut, "{} rows", finished.len());

    let path = run.path().to_str().expect("UTF-8");
    let out = scratch.output(&["run", "--resume", path]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(
        std::fs::read(run.journal())
            .expect("a journal")
            .starts_with(&before),
        "finished rows are kept"
    );
    assert_eq!(read_journal(&run.journal()).expect("it reads").0.len(), 40);
}

/// A run that ends when its comparison is decided, and which is killed before, decides the same.
#[test]
fn an_interrupted_auto_run_goes_on_to_the_same_decision() {
    let scratch = Scratch::new();
    let matrix = scratch.matrix(
        "auto",
        r#"
[run]
rounds = "auto"
ceilings = false
[knobs]
client = "reference"
duration = "1s"
rate = 200
[axis.delay.none]
[axis.delay.long]
target.delay = "600ms"
"#,
    );
    let matrix = matrix.to_str().expect("UTF-8");
    let out = scratch.output(&["run", matrix]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (run, whole) = rows(&scratch, &out);
    // 200 requests against the one that ends within a second. The first look wants a difference of about 17
    // standard errors; a machine that is late catches up with the rate, and is never late by 400 ms.
    assert_eq!(
        whole.len(),
        8 * 3,
        "decided at the first look: {}",
        stderr(&out)
    );
    let decided = |text: &str| -> Option<String> {
        let mut lines = text.lines();
        lines
            .find(|l| l.starts_with("delay=none→long: 0."))
            .map(str::to_owned)
    };
    let first =
        decided(&stderr(&out)).unwrap_or_else(|| panic!("it is said in a line: {}", stderr(&out)));
    assert!(first.ends_with("after 8 rounds"), "{first}");
    let twins = whole.iter().filter(|r| r.role == Role::Control);
    let twins: Vec<&Trial> = twins.collect();
    assert_eq!(twins.len(), 8, "one in every round");
    for twin in twins {
        let cell = whole
            .iter()
            .find(|r| r.role == Role::Cell && r.cell == twin.cell && r.round == twin.round)
            .expect("a twin has its cell");
        assert_eq!(
            (&twin.knobs, &twin.coordinates),
            (&cell.knobs, &cell.coordinates)
        );
        assert_eq!(twin.status, Status::Ok, "{:?}", twin.error);
    }
    // The journal as a kill in the sixth round would have left it, then in the last trial of all.
    let path = run.path().to_str().expect("UTF-8");
    let journal = std::fs::read_to_string(run.journal()).expect("a journal");
    for kept in [16, 23] {
        let lines: String = journal.split_inclusive('\n').take(kept).collect();
        std::fs::write(run.journal(), &lines).expect("scratch");
        let out = scratch.output(&["run", "--resume", path]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let (_, rows) = rows(&scratch, &out);
        assert_eq!(rows.len(), 8 * 3, "no round more, none less");
        let now = std::fs::read_to_string(run.journal()).expect("a journal");
        assert!(
            now.starts_with(&lines),
            "finished trials are what they were"
        );
        let places = |rows: &[Trial]| -> Vec<_> {
            rows.iter()
                .map(|r| (r.order, r.round, r.role, r.cell.clone()))
                .collect()
        };
        assert_eq!(places(&rows), places(&whole), "the order is the plan's");
        assert!(decided(&stderr(&out)).is_some(), "{}", stderr(&out));
    }
    // Whatever is in the journal decides: nothing is left to run.
    let out = scratch.output(&["run", "--resume", path]);
    assert!(
        stderr(&out).contains("nothing to resume: all 24 trials had finished"),
        "{}",
        stderr(&out)
    );
}

//! A run from beginning to end, and every way to end it early.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Guarded, Scratch, processes_of, programs, rows, stderr, stdout};
use yieldpoint_record::{RunFolder, Status, read_journal};

/// Long enough for a loaded machine; only a hang is longer.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The heart of the project in small: with n ports and no reuse, a client that forgets its connection
/// after every request opens exactly n connections, and then none.
#[test]
fn a_client_opens_as_many_connections_as_there_are_ports_and_then_none() {
    let scratch = Scratch::new();
    let matrix = scratch.matrix(
        "ports",
        r#"
[run]
rounds = 1
controls = false
ceilings = false
[knobs]
client = ["reference", "hyper", "ureq", "isahc"]
same_user = false
duration = "1500ms"
lab.sysctl.net.ipv4.tcp_tw_reuse = 0
lab.sysctl.net.ipv4.ip_local_port_range = "32768 33067"
"#,
    );
    let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (_, rows) = rows(&scratch, &out);
    assert_eq!(rows.len(), 4);
    for row in rows {
        if row.lab_mode.as_deref() != Some("private") {
            eprintln!("namespaces are refused here: the ports law is not tested");
            return;
        }
        assert_eq!(row.status, Status::Ok, "{}: {:?}", row.cell, row.error);
        let outcome = row.outcome.as_ref().expect("an ok row has an outcome");
        assert_eq!(outcome.total.connections, 300, "{}", row.cell);
        assert_eq!(
            row.testimony.as_ref().map(|t| t.connections),
            Some(300),
            "{}",
            row.cell
        );
        assert_eq!(
            row.time_wait.and_then(|t| t.client),
            Some(300),
            "{}",
            row.cell
        );
        let kinds: Vec<_> = outcome.errors.iter().map(|e| e.kind.name()).collect();
        assert_eq!(kinds, ["address_not_available"], "{}", row.cell);
        assert!(
            row.flags.iter().any(|f| f == "burst_only"),
            "{}: {:?}",
            row.cell,
            row.flags
        );
    }
}

/// What makes a client more than one closed loop still ends in rows of which both ends agree.
#[test]
fn open_loops_and_several_processes_are_ok() {
    let scratch = Scratch::new();
    let matrix = scratch.matrix(
        "spread",
        r#"
[run]
rounds = 1
controls = false
ceilings = false
[knobs]
client = ["reference", "hyper", "ureq", "isahc"]
duration = "1s"
[axis.load.open]
rate = 50
[axis.load.open_in_two]
rate = 50
processes = 2
[axis.load.closed_in_two]
processes = 2
"#,
    );
    let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (_, rows) = rows(&scratch, &out);
    assert_eq!(rows.len(), 12);
    for row in rows {
        assert_eq!(row.status, Status::Ok, "{}: {:?}", row.cell, row.error);
        let outcome = row.outcome.as_ref().expect("an ok row has an outcome");
        let processes = if row.cell.ends_with("two") { 2 } else { 1 };
        assert_eq!(outcome.users, processes, "{}", row.cell);
        if row.cell.contains("load=open") {
            // Starts at 0, 20, … 980 ms in each process; a starved machine may miss some.
            let attempts = outcome.total.attempts;
            assert!(
                attempts > 0 && attempts <= 50 * processes,
                "{}: {attempts}",
                row.cell
            );
        }
    }
}

#[test]
fn the_order_is_the_seed_s_and_tables_and_report_are_left() {
    let scratch = Scratch::new();
    let matrix = scratch.matrix(
        "order",
        "[run]\nrounds = 2\nseed = 5\ncontrols = false\nceilings = false\n[knobs]\nclient = \"reference\"\nduration = \"50ms\"\nrequests_per_iteration = [1, 2, 3]\n",
    );
    let run = || {
        let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let (folder, rows) = rows(&scratch, &out);
        assert!(rows.iter().all(|r| r.status == Status::Ok), "{rows:?}");
        let cells: Vec<_> = rows.iter().map(|r| (r.round, r.cell.clone())).collect();
        (folder, cells)
    };
    let (first, order) = run();
    let (second, again) = run();
    assert_eq!(order, again, "the same seed");
    assert_ne!(first.path(), second.path(), "nothing is overwritten");
    for round in [1, 2] {
        let mut cells: Vec<_> = order.iter().filter(|o| o.0 == round).collect();
        cells.sort();
        cells.dedup();
        assert_eq!(cells.len(), 3, "each round has each cell once");
    }
    for table in ["trials", "timeline", "samples", "errors", "histograms"] {
        let file = first.tables().join(format!("{table}.parquet"));
        let bytes = std::fs::read(&file).expect("every table is written");
        assert_eq!(bytes.get(..4), Some(&b"PAR1"[..]), "{}", file.display());
    }
    let page = scratch
        .path()
        .join("reports")
        .join(first.name())
        .join("index.html");
    assert!(
        std::fs::read_to_string(&page)
            .expect("a page")
            .contains("a test"),
        "its question"
    );
}

#[test]
fn ctrl_c_keeps_finished_trials_and_leaves_nothing_behind() {
    end_early(rustix::process::Signal::INT);
}

#[test]
fn kill_9_keeps_finished_trials_and_leaves_nothing_behind() {
    end_early(rustix::process::Signal::KILL);
}

fn end_early(signal: rustix::process::Signal) {
    let scratch = Scratch::new();
    let marker = format!("YIELDPOINT_TEST_MARK={}-{signal:?}", std::process::id());
    let (name, value) = marker.split_once('=').expect("it has one");
    // One trial that ends, one that would go on for an hour.
    let matrix = scratch.matrix(
        "long",
        r#"
[run]
rounds = 1
controls = false
ceilings = false
[knobs]
client = "reference"
[axis.length.short]
duration = "50ms"
[axis.length.long]
duration = "1h"
"#,
    );
    let mut runner = Guarded(
        scratch
            .yieldpoint(&["run", matrix.to_str().expect("UTF-8"), "--seed", "1"])
            .env(name, value)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts"),
    );
    let pid = runner.0.id();
    let results = scratch.path().join("results");
    let journal = || {
        let run = std::fs::read_dir(&results).ok()?.flatten().next()?.path();
        Some(read_journal(&RunFolder::open(&run).ok()?.journal()).ok()?.0)
    };
    // The seed puts the short one first.
    until("the first trial is in the journal", || {
        journal().is_some_and(|j| j.len() == 1)
    });
    // Client, target, lab outside and inside: all four are up in the middle of a trial.
    until("the second is under way", || {
        processes_of(pid, &marker).len() >= 4
    });
    let own = rustix::process::Pid::from_child(&runner.0);
    rustix::process::kill_process(own, signal).expect("it is ours");
    let status = runner.0.wait().expect("it ends");
    if signal == rustix::process::Signal::INT {
        assert_eq!(status.code(), Some(130), "as a shell says of Ctrl-C");
    }
    until("no process is left", || {
        processes_of(pid, &marker).is_empty()
    });
    let kept = journal().expect("the run is still there");
    assert_eq!(kept.len(), 1, "finished trials are kept");
    assert!(kept[0].cell.ends_with("length=short"), "{}", kept[0].cell);
}

#[test]
fn an_unprivileged_user_gets_the_same() {
    if !rustix::process::getuid().is_root() {
        return; // Then every other test of this file is this test.
    }
    let scratch = Scratch::new();
    let nobody = 65534;
    std::os::unix::fs::chown(scratch.path(), Some(nobody), Some(nobody)).expect("root may");
    // Programs and command where that user may read them.
    let folder = scratch.path().join("programs");
    std::fs::create_dir(&folder).expect("scratch");
    for program in std::fs::read_dir(programs()).expect("built").flatten() {
        std::fs::copy(program.path(), folder.join(program.file_name())).expect("scratch");
    }
    let command = folder.join("yieldpoint");
    std::fs::copy(env!("CARGO_BIN_EXE_yieldpoint"), &command).expect("scratch");
    let matrix = scratch.matrix(
        "plain",
        "[run]\nrounds = 1\ncontrols = false\nceilings = false\n[knobs]\nclient = [\"reference\", \"ureq\"]\nsame_user = false\nduration = \"300ms\"\nlab.mode = \"private\"\nlab.sysctl.net.ipv4.ip_local_port_range = \"32768 32867\"\nlab.sysctl.net.ipv4.tcp_tw_reuse = 0\n",
    );
    let out = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&command)
        .args(["run", matrix.to_str().expect("UTF-8")])
        .current_dir(scratch.path())
        .env("HOME", scratch.path())
        .env_remove("YIELDPOINT_PROGRAMS")
        .output()
        .expect("setpriv is part of util-linux");
    assert_eq!(
        out.status.code(),
        Some(0),
        "{}{}",
        stdout(&out),
        stderr(&out)
    );
    let (_, rows) = rows(&scratch, &out);
    for row in &rows {
        assert_eq!(row.status, Status::Ok, "{:?}", row.error);
        assert_eq!(
            row.outcome.as_ref().map(|o| o.total.connections),
            Some(100),
            "{}",
            row.cell
        );
    }
    assert_eq!(rows.len(), 2);
}

//! Whatever a program or a matrix does wrong gives one clear error, and the run goes on.

use crate::common::{Scratch, fake, marked, programs, rows, stderr};
use yieldpoint_record::Status;

/// One trial a behaviour; the reason that its row must carry, or none where the trial is fine.
const BEHAVIOURS: &[(&str, Status, &str)] = &[
    ("honest", Status::Ok, ""),
    (
        "claims-more",
        Status::Error,
        "client: 57 answered, 0 broken off; target: 50 served",
    ),
    (
        "claims-less",
        Status::Error,
        "client: 43 answered, 0 broken off; target: 50 served",
    ),
    ("cannot-add", Status::Error, "client_sums"),
    ("hangs", Status::Error, "hangs"),
    ("aborts", Status::Error, "was killed by signal 6"),
    ("exits", Status::Error, "exited with code 4"),
    (
        "half-line",
        Status::Error,
        "expected end, got \"{\"type\":\"end\",\"at\"",
    ),
    (
        "garbage",
        Status::Error,
        "expected end, got \"all went well!\"",
    ),
    (
        "other-version",
        Status::Error,
        "speaks protocol version 2, expected 1",
    ),
    ("refuses", Status::Unsupported, "this fake can do nothing"),
    (
        "floods",
        Status::Error,
        "a line of more than 262144 bytes where end was expected",
    ),
    // It dies, and a child of its child holds its stdout: death is seen all the same.
    ("orphans", Status::Error, "exited with code 4"),
    // The trial is fine; what outlives it goes with the lab.
    ("grandchild", Status::Ok, ""),
    ("half-and-hangs", Status::Error, "hangs"),
    (
        "closes-stdout",
        Status::Error,
        "closed its stdout where \"end\" was expected",
    ),
    ("exhausts", Status::Error, "no descriptor is left after"),
    (
        "claims-more-time",
        Status::Error,
        "little: requests took 3600.000 s in all, 1 users had",
    ),
    ("claims-everything", Status::Error, "client_sums"),
    ("ends-before-it-starts", Status::Error, "client_times"),
    ("ends-tomorrow", Status::Error, "client_times"),
    ("errs-before-go", Status::Error, "client_times"),
    (
        "no-histogram",
        Status::Error,
        "its histogram \"iteration\": not an HDR histogram",
    ),
];

#[test]
fn every_misbehaving_client_is_a_row_with_its_reason_and_the_run_goes_on() {
    let scratch = Scratch::new();
    let mut text = String::from(
        "[run]\nrounds = 1\ncontrols = false\nceilings = false\n[knobs]\nduration = \"200ms\"\nrequest_timeout = \"200ms\"\nconnect_timeout = \"100ms\"\n",
    );
    let names: Vec<_> = BEHAVIOURS
        .iter()
        .map(|(b, ..)| format!("\"{b}\""))
        .collect();
    text += &format!("client = [{}]\n", names.join(", "));
    for (behaviour, ..) in BEHAVIOURS {
        text += &format!(
            "[clients.{behaviour}]\ncommand = [{:?}, \"{behaviour}\"]\n",
            fake()
        );
    }
    let matrix = scratch.matrix("fakes", &text);
    let marker = format!("YIELDPOINT_TEST_MARK=fakes-{}", std::process::id());
    let (name, value) = marker.split_once('=').expect("it has one");
    let out = scratch
        .yieldpoint(&[
            "run",
            matrix.to_str().expect("a path of ours is UTF-8"),
            "--strict",
        ])
        .env(name, value)
        .output()
        .expect("the command starts");
    assert_eq!(out.status.code(), Some(3), "--strict: {}", stderr(&out));
    // Whatever a fake left behind (a grandchild in a session of its own, too) has ended with its lab.
    assert_eq!(marked(&marker), [0; 0]);

    let (folder, rows) = rows(&scratch, &out);
    assert_eq!(rows.len(), BEHAVIOURS.len());
    for (behaviour, status, reason) in BEHAVIOURS {
        let row = rows
            .iter()
            .find(|r| r.cell.ends_with(&format!("client={behaviour}")))
            .unwrap_or_else(|| panic!("no row of {behaviour}"));
        assert_eq!(row.status, *status, "{behaviour}: {:?}", row.error);
        let error = row.error.clone().unwrap_or_default();
        assert!(
            error.contains(reason),
            "{behaviour}: expected \"{reason}\" in \"{error}\""
        );
        if *status == Status::Error {
            assert!(
                error.starts_with(&format!("client \"{behaviour}\": ")),
                "who: {error}"
            );
        }
    }
    let csv =
        std::fs::read_to_string(folder.tables().join("trials.csv")).expect("tables are written");
    assert_eq!(
        csv.lines().count(),
        1 + BEHAVIOURS.len(),
        "a row a trial, and the head"
    );
}

#[test]
fn a_client_that_is_no_client_is_refused_before_the_run() {
    let scratch = Scratch::new();
    // how it is started, what the error says
    let table = [
        (
            format!("[{:?}, \"old-description\"]", fake()),
            "speaks protocol version 2, expected 1",
        ),
        ("[\"/bin/true\"]".into(), "after --describe, got \"\""),
        ("[\"/nonexistent/client\"]".into(), "cannot be started"),
    ];
    for (command, want) in table {
        let text = format!("[knobs]\nclient = \"mine\"\n[clients.mine]\ncommand = {command}\n");
        let matrix = scratch.matrix("stranger", &text);
        let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
        assert_eq!(out.status.code(), Some(1), "{command}");
        assert!(stderr(&out).contains(want), "{command}: {}", stderr(&out));
        assert!(!scratch.path().join("results").exists(), "nothing ran");
    }
}

#[test]
fn a_target_that_does_not_start_or_finds_its_port_taken_is_a_row() {
    let scratch = Scratch::new();
    // A folder of programs with one target more, which dies.
    let folder = scratch.path().join("programs");
    std::fs::create_dir(&folder).expect("scratch");
    for program in std::fs::read_dir(programs()).expect("built").flatten() {
        let to = folder.join(program.file_name());
        std::os::unix::fs::symlink(program.path(), to).expect("scratch");
    }
    std::os::unix::fs::symlink(fake(), folder.join("yieldpoint-target-dies")).expect("scratch");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let port = taken.local_addr().expect("it is bound").port();

    let head = "[run]\nrounds = 1\ncontrols = false\nceilings = false\n[knobs]\nclient = \"reference\"\nduration = \"100ms\"\n";
    let table = [
        (
            "target.kind = \"dies\"".to_owned(),
            "target \"dies\": exited with code 7",
        ),
        (
            format!("lab.mode = \"host\"\ntarget.port = {port}"),
            "target \"static\": ",
        ),
    ];
    for (i, (knobs, want)) in table.iter().enumerate() {
        let matrix = scratch.matrix(&format!("m{i}"), &format!("{head}{knobs}\n"));
        let out = scratch
            .yieldpoint(&["run", matrix.to_str().expect("UTF-8")])
            .env("YIELDPOINT_PROGRAMS", &folder)
            .output()
            .expect("starts");
        assert_eq!(
            out.status.code(),
            Some(0),
            "a failed trial is a row: {}",
            stderr(&out)
        );
        let (run, rows) = rows(&scratch, &out);
        let error = rows[0].error.clone().unwrap_or_default();
        assert_eq!(rows[0].status, Status::Error);
        assert!(error.contains(want), "expected \"{want}\" in \"{error}\"");
        if i == 0 {
            let log = std::fs::read_to_string(run.logs().join("0000-target.log")).expect("a log");
            assert!(log.contains("this target does not start"), "{log}");
        } else {
            assert!(
                error.contains(&port.to_string()) && error.contains("target.port"),
                "{error}"
            );
        }
    }
}

/// A folder of programs with one target more.
fn with_target(scratch: &Scratch, behaviour: &str) -> std::path::PathBuf {
    let folder = scratch.path().join(format!("with-{behaviour}"));
    std::fs::create_dir(&folder).expect("scratch");
    for program in std::fs::read_dir(programs()).expect("built").flatten() {
        let to = folder.join(program.file_name());
        std::os::unix::fs::symlink(program.path(), to).expect("scratch");
    }
    let to = folder.join(format!("yieldpoint-target-{behaviour}"));
    std::os::unix::fs::symlink(fake(), to).expect("scratch");
    folder
}

#[test]
fn a_target_that_fails_in_the_middle_is_a_row_or_errors_of_the_client() {
    let scratch = Scratch::new();
    // behaviour, status, what the row's error says, the kinds of error that the client counts
    let table: [(&str, Status, &str, &[&str]); 4] = [
        (
            "collapses",
            Status::Error,
            "target \"collapses\": exited with code 9",
            &[],
        ),
        // Handshakes are the kernel's; no answer ever comes.
        ("deaf", Status::Ok, "", &["timeout", "connect_timeout"]),
        ("garbles", Status::Ok, "", &["protocol"]),
        (
            "chatters",
            Status::Error,
            "target \"chatters\": no testimony in time",
            &[],
        ),
    ];
    for (behaviour, status, want, kinds) in table {
        let matrix = scratch.matrix(
            behaviour,
            &format!(
                "[run]\nrounds = 1\ncontrols = false\nceilings = false\n[knobs]\nclient = \"reference\"\nduration = \"500ms\"\nrequest_timeout = \"200ms\"\nconnect_timeout = \"200ms\"\ntarget.kind = \"{behaviour}\"\n"
            ),
        );
        let out = scratch
            .yieldpoint(&["run", matrix.to_str().expect("UTF-8")])
            .env("YIELDPOINT_PROGRAMS", with_target(&scratch, behaviour))
            .output()
            .expect("starts");
        assert_eq!(out.status.code(), Some(0), "{behaviour}: {}", stderr(&out));
        let (_, rows) = rows(&scratch, &out);
        let error = rows[0].error.clone().unwrap_or_default();
        assert_eq!(rows[0].status, status, "{behaviour}: {error}");
        assert!(error.contains(want), "expected \"{want}\" in \"{error}\"");
        if status == Status::Ok {
            let outcome = rows[0].outcome.as_ref().expect("an ok row has one");
            assert_eq!(outcome.total.good, 0, "{behaviour}");
            assert!(outcome.total.errors > 0, "{behaviour}");
            for e in &outcome.errors {
                assert!(kinds.contains(&e.kind.name()), "{behaviour}: {e:?}");
            }
        }
    }
}

#[test]
fn several_processes_are_one_client_and_each_does_the_whole_job() {
    let scratch = Scratch::new();
    let matrix = scratch.matrix(
        "several",
        &format!(
            "[run]\nrounds = 1\ncontrols = false\nceilings = false\n[knobs]\nclient = [\"honest\", \"reference\"]\nduration = \"300ms\"\nprocesses = 3\n[clients.honest]\ncommand = [{:?}, \"honest\"]\n",
            fake()
        ),
    );
    let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (_, rows) = rows(&scratch, &out);
    for row in &rows {
        assert_eq!(row.status, Status::Ok, "{}: {:?}", row.cell, row.error);
        let outcome = row.outcome.as_ref().expect("an ok row has one");
        assert_eq!(outcome.users, 3, "{}", row.cell);
        if row.cell.ends_with("honest") {
            assert_eq!(outcome.total.good, 150, "50 requests each");
            let target = row.testimony.as_ref().expect("ours testifies");
            assert_eq!((target.requests, target.connections), (150, 3));
        } else {
            let latency = outcome.latency.decode().expect("a histogram");
            assert_eq!(latency.len(), outcome.window.good, "added, not lost");
        }
    }
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_client_that_does_not_put_the_asked_load_on_is_flagged() {
    let scratch = Scratch::new();
    // The fake runs one user, whatever is asked; the users of the reference wait for a target that does not answer.
    let matrix = scratch.matrix(
        "starved",
        &format!(
            "[run]\nrounds = 1\ncontrols = false\nceilings = false\n[knobs]\nclient = [\"honest\", \"reference\"]\nthreads = [1, 2]\nduration = \"400ms\"\nrequest_timeout = \"1s\"\n[axis.load.closed]\n[axis.load.open]\nrate = 500\ntarget.delay = \"300ms\"\n[[exclude]]\nclient = \"honest\"\nload = \"open\"\n[clients.honest]\ncommand = [{:?}, \"honest\"]\n",
            fake()
        ),
    );
    let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (_, rows) = rows(&scratch, &out);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert_eq!(row.status, Status::Ok, "{}: {:?}", row.cell, row.error);
        let one_of_two = row.cell.contains("client=honest") && row.cell.contains("threads=2");
        let want = one_of_two || row.cell.contains("load=open");
        let is = row.flags.iter().any(|f| f == "starved");
        assert_eq!(is, want, "{}: {:?}", row.cell, row.flags);
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_the_run() {
    let scratch = Scratch::new();
    // knobs, what the error says
    let table = [
        ("thread = 2", "threads"), // the nearest name
        ("threads = 0", "a whole number from 1"),
        ("duration = \"0s\"", "duration"),
        ("threads = []", "threads"),
        ("client = \"urek\"", "ureq"),
        ("threads = 1000\nusers_per_thread = 10000", "descriptors"),
        ("lab.sysctl.net.ipv4.tcp_tw_reusee = 1", "tcp_tw_reusee"),
        ("lab.sysctl.kernel.pid_max = 1000", "kernel.pid_max"),
        ("lab.cpus.client = \"1023\"", "there is no CPU 1023"),
        (
            "target.kind = \"url\"\nurl = \"http://192.0.2.1/\"",
            "--allow-address 192.0.2.1",
        ),
        (
            "target.kind = \"url\"\nurl = \"http://example.org/\"",
            "numeric IPv4 address",
        ),
        ("target.kind = \"url\"", "needs `url`"),
        (
            "client = \"isahc\"\nusers_per_thread = 2",
            "users_per_thread up to 1",
        ),
    ];
    for (knobs, want) in table {
        let client = if knobs.starts_with("client =") {
            ""
        } else {
            "client = \"reference\"\n"
        };
        let matrix = scratch.matrix("bad", &format!("[knobs]\n{client}{knobs}\n"));
        let out = scratch.output(&["run", matrix.to_str().expect("UTF-8")]);
        assert_eq!(out.status.code(), Some(1), "{knobs}: {}", stderr(&out));
        assert!(stderr(&out).contains(want), "{knobs}: {}", stderr(&out));
        assert!(!scratch.path().join("results").exists(), "nothing ran");
    }
}

//! What the runner says and hears.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use yieldpoint_protocol::{FromProgram, Role, Testimony, ToProgram};
use yieldpoint_terms::clock::{now_ns, sleep_until};
use yieldpoint_terms::{Catalog, Value};

use crate::client::{Client, GET};
use crate::program::{Program, command, int, text};

fn reason(answer: FromProgram) -> String {
    match answer {
        FromProgram::Failed { reason } => reason,
        other => panic!("expected failed, got {other:?}"),
    }
}

#[test]
fn it_says_who_it_is() {
    let program = Program::spawn();
    assert_eq!(
        (program.hello.role, program.hello.name.as_str()),
        (Role::Target, "static")
    );
    let described = command().arg("--describe").output().unwrap();
    assert!(described.status.success());
    let line: FromProgram = serde_json::from_slice(&described.stdout).unwrap();
    assert_eq!(line, FromProgram::Hello(program.hello.clone()));
    let mut catalog = Catalog::new();
    catalog.add(program.hello.knobs.iter().cloned());
    for name in [
        "address",
        "port",
        "workers",
        "body_bytes",
        "keep_alive",
        "keepalive_requests",
        "keepalive_timeout",
        "backlog",
        "access_log",
        "close",
    ] {
        assert!(catalog.get(name).is_some(), "knob {name}");
    }
    assert_eq!(
        catalog.get("close").unwrap().default_value(),
        Some(text("with_data"))
    );
    let help = command().arg("--help").output().unwrap();
    assert!(
        help.status.success()
            && String::from_utf8_lossy(&help.stdout).contains("keepalive_requests")
    );
}

#[test]
fn what_cannot_be_done_is_told_with_its_fix() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let in_use =
        format!("port {port} of 127.0.0.1 is in use; choose another with --set target.port=N");
    // each row: knob, value, what the reason must say
    let table = [
        ("port", int(i64::from(port)), in_use.as_str()),
        ("workerz", int(1), "did you mean \"workers\"?"),
        ("workers", int(0), "expected a whole number from 1 to 256"),
        ("address", text("0.0.0.0"), "127.0.0.0/8"),
    ];
    for (name, value, says) in table {
        let mut program = Program::spawn();
        let reason = reason(program.job(&[(name, value)]));
        assert!(reason.contains(says), "{reason}");
        assert!(!program.ended().success());
    }
    let mut program = Program::spawn();
    program.tell(&ToProgram::Go { start_at_ns: 0 });
    assert!(reason(program.hear()).contains("expected job"));
}

#[test]
fn the_end_of_the_runner_is_its_end() {
    // before the job
    let mut program = Program::spawn();
    program.hang_up();
    assert!(program.ended().success());
    // between ready and go
    let mut program = Program::spawn();
    program.job(&[]);
    program.hang_up();
    assert!(program.ended().success());
    // under load
    let (mut program, address) = Program::serving(&[("workers", int(2))]);
    let load = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut buffer = [0; 4096];
        // Until the connection ends, well or not; bounded all the same.
        (0..50_000_000).find(|_| {
            let sent = stream.write_all(GET.as_bytes());
            sent.is_err() || matches!(stream.read(&mut buffer), Ok(0) | Err(_))
        })
    });
    while !matches!(program.hear(), FromProgram::Tick { requests: 1.., .. }) {}
    program.hang_up();
    assert!(program.ended().success());
    let served = load.join().unwrap();
    assert!(
        served > Some(0),
        "the load was served, and ended with the target"
    );
}

#[test]
fn go_forgets_what_was_before_and_slots_start_where_it_says() {
    let mut program = Program::spawn();
    let FromProgram::Ready { listens } = program.job(&[("access_log", Value::Bool(true))]) else {
        panic!("ready");
    };
    assert!(listens.starts_with("127.0.0.1:"));
    program.go(now_ns());
    let mut client = Client::connect(listens.parse().unwrap());
    for _ in 0..7 {
        client.get();
    }
    // A response is counted after it is sent, so the last one may take a moment.
    let counted =
        |program: &mut Program| program.testimony().responses == BTreeMap::from([(200, 7)]);
    assert!((0..100).any(|_| counted(&mut program)));
    // Far enough ahead that the target has heard of it when the next request comes.
    let start_at_ns = now_ns() + 1_000_000_000;
    program.go(start_at_ns);
    let done = Arc::new(AtomicBool::new(false));
    let stop = done.clone();
    let load = std::thread::spawn(move || {
        sleep_until(start_at_ns);
        let mut requests = 0;
        while !stop.load(Relaxed) {
            client.get();
            requests += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        (client, requests)
    });
    let mut ticks = Vec::new();
    while ticks.len() < 2 {
        match program.hear() {
            FromProgram::Tick {
                requests,
                connections,
            } => ticks.push((requests, connections)),
            other => panic!("expected a tick, got {other:?}"),
        }
    }
    done.store(true, Relaxed);
    let (client, requests) = load.join().unwrap();
    let t = program.testimony();
    assert_eq!(t.series.start_ns, start_at_ns);
    assert_eq!(t.connections, 0, "it was opened before");
    assert_eq!((t.requests, t.responses[&200]), (requests, requests));
    assert!(
        ticks[0].0 <= ticks[1].0 && ticks[1].0 <= t.requests,
        "{ticks:?}"
    );
    assert!(ticks[0].0 > 0 && ticks[0].1 == 0);
    assert!(
        t.series.responses.len() >= 20,
        "two seconds have twenty slots"
    );
    assert!(t.series.active.iter().all(|n| *n == 1));
    assert_eq!(t.active, 1, "it does not wait for ever");
    drop(client);
    program.bye();
}

#[test]
fn without_descriptors_it_waits_and_does_not_spin() {
    let (mut program, address) = Program::serving(&[]);
    let pid = Pid::from_child(&program.child);
    let limit = Rlimit {
        current: Some(20),
        maximum: Some(20),
    };
    prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    let mut clients: Vec<_> = (0..40).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        client.send(GET);
    }
    // Long enough for a spin to show as CPU time.
    std::thread::sleep(Duration::from_secs(1));
    let t = program.testimony();
    assert!(
        t.connections < 20 && t.listen_queue_peak >= 20,
        "{} accepted, {} queued",
        t.connections,
        t.listen_queue_peak
    );
    assert!(
        t.cpu_ns < 500_000_000,
        "{} ns of CPU in 1 s of waiting",
        t.cpu_ns
    );
    // As connections close, the queue is served.
    for mut client in clients {
        assert_eq!(client.response().status, 200);
    }
    let t = program.testimony();
    assert_eq!((t.connections, t.requests, t.active), (40, 40, 0));
    program.bye();
}

#[test]
fn by_hand_it_serves_and_says_what_it_saw() {
    let mut child = command()
        .args(["--serve", "port=0", "access_log=true"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let mut client = Client::connect(address.parse().unwrap());
    client.get();
    client.get();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut testimony = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut testimony)
        .unwrap();
    assert!(child.wait().unwrap().success());
    let t: Testimony = serde_json::from_str(&testimony).unwrap();
    // The end closed what was idle.
    assert_eq!(
        (t.connections, t.requests, t.closed_by_target, t.active),
        (1, 2, 1, 0)
    );
    let mut log = String::new();
    stderr.read_to_string(&mut log).unwrap();
    let logged = log.lines().filter(|l| {
        l.starts_with("127.0.0.1 - - [") && l.contains("\"GET / HTTP/1.1\" 200 612 \"-\" \"-\"")
    });
    assert_eq!(logged.count(), 2, "{log}");

    let wrong = command().args(["--serve", "prt=0"]).output().unwrap();
    assert!(!wrong.status.success());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean \"port\"?"));
}

//! What happens at the limits of the machine: each test in a process of its own.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use yieldpoint_clients_core::{BlockingClient, Session};
use yieldpoint_protocol::{ErrorKind, FromProgram, LineReader, ToProgram, send};
use yieldpoint_terms::{Nanos, Value, clock};

use super::server::{Answer, Seen, server, server_on, wait_for};
use super::{Told, job, setup};

/// Threads and descriptors of this process.
fn threads_and_descriptors() -> (usize, usize) {
    let entries = |path| std::fs::read_dir(path).unwrap().count();
    (entries("/proc/self/task"), entries("/proc/self/fd"))
}

/// Neither threads nor descriptors grow with iterations, and none is spawned for a request.
/// Runs alone in a process of its own, so that nothing else counts.
pub fn iterations_leave_nothing(test: &str, client: &impl BlockingClient, threads: usize) {
    in_child(test, &[], || {
        let (address, seen) = server(Answer::Hello);
        // The server's listening thread; those of its connections end with them.
        let before = threads_and_descriptors();
        let mut session = client.session(&setup(address, true)).unwrap();
        let mut told = Told::default();
        session.request(&mut told).unwrap();
        seen.settle_at(1);
        let first = threads_and_descriptors();
        assert_eq!(
            first.0,
            before.0 + 1 + threads,
            "threads of one user, and the server's one"
        );
        for _ in 0..500 {
            session.reset();
            session.request(&mut told).unwrap();
        }
        seen.settle_at(1);
        wait_for(
            || threads_and_descriptors() == first,
            "threads or descriptors have grown",
        );
        assert_eq!((told.connected, Seen::get(&seen.accepts)), (501, 501));
        drop(session);
        seen.settle();
        wait_for(
            || threads_and_descriptors() == before,
            "a session leaves something behind",
        );
    });
}

/// Local ports in the namespace of a test.
const PORTS: u64 = 20;

/// With `PORTS` local ports and TIME_WAIT in each, the next connection is refused by our own kernel:
/// exactly that many are opened, and the failure says why.
pub fn ports_run_out(test: &str, client: &impl BlockingClient) {
    with_few_ports(test, |address, seen| {
        let mut session = client.session(&setup(address, true)).unwrap();
        let mut told = Told::default();
        for _ in 0..PORTS {
            session.request(&mut told).unwrap();
            session.reset();
        }
        for _ in 0..5 {
            let failure = session.request(&mut told).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::AddressNotAvailable, "{failure:?}");
            session.reset();
        }
        assert_eq!((told.connected, told.failed), (PORTS, 5));
        assert_eq!(Seen::get(&seen.accepts), PORTS);
    });
}

/// The same through the built program and its protocol: the driver resets after each request.
pub fn the_program_runs_out_of_ports(test: &str, program: &str) {
    with_few_ports(test, |address, seen| {
        let mut job = job(address, true);
        job.knobs.set("same_user", Value::Bool(false));
        // Five more than there are ports; the duration is only a bound on hangs.
        job.knobs.set("iterations", Value::Int(PORTS as i64 + 5));
        job.knobs
            .set("duration", Value::Duration(Nanos::from_secs(300)));
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut to = child.stdin.take().unwrap();
        let mut from = LineReader::new(child.stdout.take().unwrap());
        let hello: FromProgram = from.next("hello").unwrap();
        assert!(matches!(hello, FromProgram::Hello(_)), "{hello:?}");
        send(&mut to, &ToProgram::Job(job)).unwrap();
        let ready: FromProgram = from.next("ready").unwrap();
        assert!(matches!(ready, FromProgram::Ready { .. }), "{ready:?}");
        let start_at_ns = clock::now_ns();
        send(&mut to, &ToProgram::Go { start_at_ns }).unwrap();
        let outcome = loop {
            if let FromProgram::Outcome(outcome) = from.next("outcome").unwrap() {
                break outcome;
            }
        };
        send(&mut to, &ToProgram::Bye).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(outcome.total.connections, PORTS, "{outcome:?}");
        assert_eq!(outcome.total.good, PORTS, "{outcome:?}");
        assert_eq!(Seen::get(&seen.accepts), PORTS);
        let kinds: Vec<_> = outcome.errors.iter().map(|e| e.kind).collect();
        assert_eq!(kinds, [ErrorKind::AddressNotAvailable], "{outcome:?}");
        assert_eq!(
            (outcome.total.connect_failures, outcome.total.errors),
            (5, 5)
        );
    });
}

/// Runs `body` in a private network namespace of `PORTS` local ports, with a server beyond them.
/// Where namespaces are refused it says so and tests nothing.
fn with_few_ports(test: &str, body: impl FnOnce(SocketAddr, &Seen)) {
    let script = format!(
        "ip link set lo up && echo '32768 {}' > /proc/sys/net/ipv4/ip_local_port_range \
         && echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && exec \"$@\"",
        32767 + PORTS
    );
    let namespace = ["unshare", "-Urn", "sh", "-c", &script, "sh"];
    if !inside() {
        let [program, arguments @ ..] = &namespace;
        let probe = Command::new(program).args(arguments).arg("true").output();
        if !probe.as_ref().is_ok_and(|o| o.status.success()) {
            // Not by a macro of print: the test harness swallows those of a test that passes.
            let line = format!(
                "{test} tests nothing: a private network namespace is refused: {probe:?}\n"
            );
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return;
        }
    }
    in_child(test, &namespace, || {
        let listener = TcpListener::bind("127.0.0.1:8000").unwrap();
        let (address, seen) = server_on(listener, Answer::Hello);
        body(address, &seen);
    });
}

/// With too few descriptors left the kind says so, whichever of its parts found none;
/// with enough of them the port on which nobody listens refuses, and the session works again.
pub fn descriptors_run_out(test: &str, client: &impl BlockingClient) {
    in_child(test, &[], || {
        let setup = setup("127.0.0.1:9".parse().unwrap(), true);
        let mut session = client.session(&setup).unwrap();
        let mut held = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            held.push(file);
            assert!(held.len() < 2_000_000, "no limit of descriptors");
        }
        let mut told = Told::default();
        let failure = session.request(&mut told).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::FdLimit, "{failure:?}");
        let mut requests = 1;
        loop {
            session.reset();
            let failure = session.request(&mut told).unwrap_err();
            requests += 1;
            if failure.kind == ErrorKind::ConnectRefused {
                break;
            }
            assert_eq!(
                failure.kind,
                ErrorKind::FdLimit,
                "{requests} requests: {failure:?}"
            );
            held.pop();
            assert!(requests < 100, "it does not recover");
        }
        assert_eq!((told.connected, told.failed), (0, requests));
    });
}

/// Set in the process of a test's own.
const MARK: &str = "YIELDPOINT_TEST_CHILD";

fn inside() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs `body` in a process of its own: the test of that name, started again (behind `prefix`).
fn in_child(test: &str, prefix: &[&str], body: impl FnOnce()) {
    if inside() {
        return body();
    }
    let program = std::env::current_exe().unwrap();
    let mut words = prefix.iter().map(std::ffi::OsStr::new).chain([
        program.as_os_str(),
        std::ffi::OsStr::new("--exact"),
        std::ffi::OsStr::new(test),
        std::ffi::OsStr::new("--nocapture"),
    ]);
    let output = Command::new(words.next().unwrap())
        .args(words)
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success(),
        "{test} in its own process:\n{text}"
    );
    assert!(
        text.contains("1 passed"),
        "no test is named \"{test}\":\n{text}"
    );
}

//! What every client program must do, checked from outside against real sockets.
//!
//! A client's tests include this file and hand over their program:
//!
//! ```text
//! #[path = "../../core/test-support/conformance.rs"]
//! mod conformance;
//! #[test]
//! fn counts() { conformance::counts(PROGRAM, &[]); }
//! ```

#![allow(dead_code)] // A client with fewer abilities calls fewer of these.

#[path = "alone.rs"]
mod alone;
#[path = "client.rs"]
pub mod client;
#[path = "open_loop.rs"]
pub mod open_loop;
#[path = "ports.rs"]
mod ports;
#[path = "server.rs"]
pub mod server;

use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::Ordering;

#[allow(unused_imports)] // Not every client can bind.
pub use ports::{ports_run_out, source_addresses_multiply_ports};

use client::{Client, Knob, job, run};
use server::{Manner, Server};
use yieldpoint_protocol::{ErrorKind, FromProgram, Hello, Outcome, ToProgram};
use yieldpoint_terms::{Nanos, Value, clock};

fn url(server: &Server) -> String {
    format!("http://{}/x?y=z", server.address)
}

/// The common settings of a test followed by its own.
fn with<'a>(options: &[Knob<'a>], more: &[Knob<'a>]) -> Vec<Knob<'a>> {
    let all = options.iter().chain(more);
    all.cloned().collect()
}

/// What must hold for every outcome, whatever happened.
pub fn is_consistent(o: &Outcome) {
    for counts in [&o.window, &o.total] {
        assert_eq!(counts.attempts, counts.good + counts.errors, "{o:?}");
    }
    let sum = |f: fn(&yieldpoint_protocol::Second) -> u64| o.series.iter().map(f).sum::<u64>();
    assert_eq!(sum(|s| s.attempts), o.window.attempts);
    assert_eq!(sum(|s| s.good), o.window.good);
    assert_eq!(sum(|s| s.errors), o.window.errors);
    assert_eq!(sum(|s| s.connections), o.window.connections);
    assert_eq!(
        o.errors.iter().map(|e| e.count).sum::<u64>(),
        o.total.errors
    );
    assert_eq!(o.latency.decode().unwrap().len(), o.window.good);
    assert_eq!(o.iteration.decode().unwrap().len(), o.window.iterations);
    let intended = o.latency_intended.decode().unwrap().len();
    assert!(
        intended == o.window.good || o.latency_intended == Default::default(),
        "{intended} intended"
    );
    let connects = o.connect.decode().unwrap().len();
    assert!(
        connects == o.window.connections || connects == 0,
        "0: the library hides it"
    );
    for s in &o.series {
        assert_eq!(s.p50_ns.is_some(), s.good > 0);
        assert!(s.p50_ns <= s.p90_ns && s.p90_ns <= s.p99_ns && s.p99_ns <= s.max_ns);
    }
}

/// Requests and connections are exactly those of the job, on both ends.
pub fn counts(program: &str, options: &[Knob<'_>], users_per_thread: i64) {
    const THREADS: i64 = 2;
    const ITERATIONS: i64 = 3;
    const REQUESTS: i64 = 4;
    let users = THREADS * users_per_thread;
    // each row: keep_alive, same_user, connections of a user
    for (keep_alive, same_user, connections) in [
        (true, true, 1),
        (true, false, ITERATIONS),
        (false, true, ITERATIONS * REQUESTS),
        (false, false, ITERATIONS * REQUESTS),
    ] {
        let server = Server::start(Manner::Good);
        let knobs = with(
            options,
            &[
                ("threads", Value::Int(THREADS)),
                ("users_per_thread", Value::Int(users_per_thread)),
                ("iterations", Value::Int(ITERATIONS)),
                ("requests_per_iteration", Value::Int(REQUESTS)),
                ("keep_alive", Value::Bool(keep_alive)),
                ("same_user", Value::Bool(same_user)),
                ("expect.body_bytes", Value::Int(5)),
            ],
        );
        let o = run(program, &url(&server), &knobs);
        let row = format!("keep_alive {keep_alive}, same_user {same_user}: {o:?}");
        is_consistent(&o);
        let (connections, requests) = (users * connections, users * ITERATIONS * REQUESTS);
        let want = (connections as u64, requests as u64);
        assert_eq!((o.total.connections, o.total.good), want, "{row}");
        assert_eq!(server.counts(), want, "the server's view; {row}");
        assert_eq!(o.total.errors + o.total.connect_failures, 0, "{row}");
        assert_eq!(o.total.iterations as i64, users * ITERATIONS, "{row}");
        assert_eq!(o.total.body_bytes, 5 * want.1, "{row}");
        assert_eq!(o.window, o.total, "the count ended the window; {row}");
        assert_eq!(o.users as i64, users, "{row}");
        let last = server.seen.last.lock().unwrap().to_ascii_lowercase();
        assert!(last.starts_with("get /x?y=z http/1.1\r\n"), "{last}");
        assert!(
            last.contains(&format!("\r\nhost: {}\r\n", server.address)),
            "{last}"
        );
        assert_eq!(last.contains("connection: close"), !keep_alive, "{last}");
    }
}

/// A user closes its connection before it opens the next one.
pub fn closes_before_it_opens(program: &str, options: &[Knob<'_>]) {
    for keep_alive in [true, false] {
        let server = Server::start(Manner::Good);
        let knobs = with(
            options,
            &[
                ("keep_alive", Value::Bool(keep_alive)),
                ("same_user", Value::Bool(false)),
                ("iterations", Value::Int(100)),
                ("expect.body_bytes", Value::Int(5)),
            ],
        );
        let o = run(program, &url(&server), &knobs);
        assert_eq!((o.total.good, o.total.connections), (100, 100), "{o:?}");
        let overlaps = server.seen.overlaps.load(Ordering::SeqCst);
        assert_eq!(overlaps, 0, "keep_alive {keep_alive}");
    }
}

/// Bodies of every framing are read to their end.
pub fn bodies(program: &str, options: &[Knob<'_>]) {
    // each row: manner, connections of six requests
    for (manner, connections) in [
        (Manner::Chunked, 1),
        (Manner::Trickle, 1),
        (Manner::ToClose, 6),
        // The server's limit: the next request opens a connection, and that is no error.
        (Manner::LimitTwo, 3),
    ] {
        let server = Server::start(manner);
        let knobs = with(
            options,
            &[
                ("iterations", Value::Int(2)),
                ("requests_per_iteration", Value::Int(3)),
                ("expect.body_bytes", Value::Int(5)),
            ],
        );
        let o = run(program, &url(&server), &knobs);
        is_consistent(&o);
        let got = (o.total.good, o.total.errors, o.total.connections);
        assert_eq!(got, (6, 0, connections), "{manner:?}: {o:?}");
    }
}

/// Every failure has its kind, ends its iteration, and the run goes on.
pub fn failures(program: &str, options: &[Knob<'_>]) {
    // each row: manner, kind
    for (manner, kind) in [
        (Manner::Failing, ErrorKind::BadStatus),
        (Manner::Short, ErrorKind::BadLength),
        (Manner::Half, ErrorKind::ClosedEarly),
        (Manner::Deaf, ErrorKind::ClosedEarly),
        (Manner::Reset, ErrorKind::Reset),
        (Manner::Garbage, ErrorKind::Protocol),
        (Manner::Silent, ErrorKind::Timeout),
    ] {
        let server = Server::start(manner);
        let mut knobs = with(
            options,
            &[
                ("iterations", Value::Int(2)),
                ("requests_per_iteration", Value::Int(3)),
                ("expect.body_bytes", Value::Int(5)),
            ],
        );
        if manner == Manner::Silent {
            knobs.push(("request_timeout", Value::Duration(Nanos::from_millis(100))));
        }
        let o = run(program, &url(&server), &knobs);
        fails_with(&o, kind, 2);
        // What was answered may use its connection again.
        let connections = if kind.answered() { 1 } else { 2 };
        assert_eq!(o.total.connections, connections, "{manner:?}: {o:?}");
        assert_eq!(server.counts(), (connections, 2), "{manner:?}: {o:?}");
    }
}

/// Nobody listens.
pub fn refused(program: &str, options: &[Knob<'_>]) {
    // A port that was free a moment ago and is not in the way of an outgoing connection.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let o = run(
        program,
        &url,
        &with(options, &[("iterations", Value::Int(3))]),
    );
    fails_with(&o, ErrorKind::ConnectRefused, 3);
    assert_eq!(
        (o.total.connections, o.total.connect_failures),
        (0, 3),
        "{o:?}"
    );
}

/// The server accepts nothing and its queue is full, so the kernel drops what is asked of it.
pub fn full_accept_queue(program: &str, options: &[Knob<'_>]) {
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    // A queue of length 0 holds one connection.
    let _queued = std::net::TcpStream::connect(address).unwrap();
    let knobs = with(
        options,
        &[
            ("iterations", Value::Int(2)),
            ("connect_timeout", Value::Duration(Nanos::from_millis(100))),
        ],
    );
    let o = run(program, &format!("http://{address}/"), &knobs);
    fails_with(&o, ErrorKind::ConnectTimeout, 2);
    assert_eq!(
        (o.total.connections, o.total.connect_failures),
        (0, 2),
        "{o:?}"
    );
}

/// The process has no descriptor left when the load begins.
pub fn no_descriptor(program: &str, options: &[Knob<'_>]) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let server = Server::start(Manner::Good);
    let mut client = Client::start(program);
    let knobs = with(options, &[("iterations", Value::Int(2))]);
    let answer = client.offer(job(&url(&server), &knobs));
    assert!(matches!(answer, FromProgram::Ready { .. }), "{answer:?}");
    let pid = Pid::from_child(&client.child);
    let limit = Rlimit {
        current: Some(1),
        maximum: Some(1),
    };
    prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    let o = client.load();
    fails_with(&o, ErrorKind::FdLimit, 2);
    assert_eq!(
        (o.total.connections, o.total.connect_failures),
        (0, 2),
        "{o:?}"
    );
}

/// All of the outcome is `count` failures of one kind.
pub fn fails_with(o: &Outcome, kind: ErrorKind, count: u64) {
    is_consistent(o);
    let got: Vec<_> = o.errors.iter().map(|e| (e.kind, e.count)).collect();
    assert_eq!(got, [(kind, count)], "{:?}", o.errors);
    assert_eq!(o.total.good + o.total.iterations, 0, "{o:?}");
    assert!(!o.errors[0].example.is_empty(), "{o:?}");
}

/// A server that closes without a word may cost a request; it must not be called anything else.
pub fn silent_closes_are_honest(program: &str, options: &[Knob<'_>]) {
    let server = Server::start(Manner::SilentLimitTwo);
    let knobs = with(
        options,
        &[
            ("iterations", Value::Int(20)),
            ("requests_per_iteration", Value::Int(4)),
            ("expect.body_bytes", Value::Int(5)),
        ],
    );
    let o = run(program, &url(&server), &knobs);
    is_consistent(&o);
    let honest = [ErrorKind::ClosedEarly, ErrorKind::Reset];
    assert!(
        o.errors.iter().all(|e| honest.contains(&e.kind)),
        "{:?}",
        o.errors
    );
    // The first two of the first connection are good at least.
    assert!(o.total.good >= 2, "{o:?}");
    assert_eq!(server.counts().0, o.total.connections, "{o:?}");
    assert!(server.counts().1 >= o.total.good, "{o:?}");
}

/// A window that time ends: both ends agree, and at most the requests in flight lie outside.
pub fn window(program: &str, options: &[Knob<'_>], users_per_thread: i64) {
    let server = Server::start(Manner::Good);
    let knobs = with(
        options,
        &[
            ("threads", Value::Int(2)),
            ("users_per_thread", Value::Int(users_per_thread)),
            ("requests_per_iteration", Value::Int(7)),
            ("duration", Value::Duration(Nanos::from_millis(300))),
            ("expect.body_bytes", Value::Int(5)),
        ],
    );
    let o = run(program, &url(&server), &knobs);
    is_consistent(&o);
    assert_eq!(o.window_end_ns - o.window_start_ns, 300_000_000);
    assert_eq!(o.series.len(), 1);
    assert_eq!(o.total.errors, 0, "{:?}", o.errors);
    assert_eq!(
        server.counts(),
        (o.total.connections, o.total.attempts),
        "{o:?}"
    );
    let outside = o.total.attempts - o.window.attempts;
    assert!(
        outside <= o.users,
        "{outside} in flight of {} users",
        o.users
    );
}

/// `--describe`, unknown arguments, jobs that cannot be done, a runner that is gone.
pub fn protocol(program: &str) {
    let describe = Command::new(program).arg("--describe").output().unwrap();
    assert!(describe.status.success());
    let hello: Hello = serde_json::from_slice(&describe.stdout).unwrap();
    assert!(program.ends_with(&format!("yieldpoint-client-{}", hello.name)));
    assert!(
        hello.library.contains(|c: char| c.is_ascii_digit()),
        "{hello:?}"
    );

    let unknown = Command::new(program).arg("--descirbe").output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("--descirbe"));

    let server = Server::start(Manner::Good);
    let url = url(&server);
    let mut client = Client::start(program);
    let mut other = job(&url, &[]);
    other.protocol += 1;
    let answer = client.offer(other);
    assert!(
        matches!(&answer, FromProgram::Failed { reason } if reason.contains("version")),
        "{answer:?}"
    );
    assert!(!client.wait().success());

    for (name, limit) in &hello.limits {
        let mut client = Client::start(program);
        let answer = client.offer(job(&url, &[(name, Value::Int(limit + 1))]));
        assert!(
            matches!(&answer, FromProgram::Unsupported { reason } if reason.contains(name)),
            "{answer:?}"
        );
        assert!(client.wait().success());
    }

    // Bye instead of go: nothing is measured, and that is no failure.
    let mut client = Client::start(program);
    assert!(matches!(
        client.offer(job(&url, &[])),
        FromProgram::Ready { .. }
    ));
    client.tell(&ToProgram::Bye);
    assert!(client.wait().success());
    assert_eq!(server.counts(), (0, 0), "no probe touches the port");

    // The runner is gone in the middle of a load of 50 s.
    let mut client = Client::start(program);
    client.offer(job(&url, &[]));
    client.tell(&ToProgram::Go {
        start_at_ns: clock::now_ns(),
    });
    while server.counts().1 == 0 {
        std::thread::yield_now();
    }
    client.hang_up();
    assert!(!client.wait().success());
    assert_eq!(client.hear(), None, "no outcome of half a load");
}

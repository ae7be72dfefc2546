//! What a blocking client's `Session` must do and its program does not show: the bytes on the
//! wire, what a library leaves behind, whose failure it was. The rest is in `conformance.rs`.
#![allow(dead_code, unused_imports)] // Each client takes what applies to it.

#[path = "alone.rs"]
mod alone;
#[path = "client.rs"]
mod client;
#[path = "server.rs"]
mod server;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use alone::in_child;
use server::{Manner, Server};
use yieldpoint_clients_core::{BlockingClient, Failure, Meter, Response, Session, Setup};
use yieldpoint_protocol::ErrorKind;
use yieldpoint_terms::{Nanos, Value};

/// A bound on hangs, not a measure.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the session told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    connected: u64,
    failed: u64,
    timed: u64,
}

impl Meter for Told {
    fn connected(&mut self, connect_ns: Option<u64>) {
        self.connected += 1;
        // A connect() takes more than nothing and less than the patience of the test.
        let bounds = 1..PATIENCE.as_nanos() as u64;
        self.timed += u64::from(connect_ns.is_some_and(|ns| bounds.contains(&ns)));
    }
    fn connect_failed(&mut self) {
        self.failed += 1;
    }
}

fn setup(address: SocketAddr, keep_alive: bool) -> Setup {
    // A crowded machine may take long.
    let long = || Value::Duration(Nanos::from_secs(60));
    let knobs = [
        ("keep_alive", Value::Bool(keep_alive)),
        ("connect_timeout", long()),
        ("request_timeout", long()),
    ];
    Setup::from_job(&client::job(&format!("http://{address}/some?path"), &knobs)).unwrap()
}

fn one(client: &impl BlockingClient, setup: &Setup) -> (Result<Response, Failure>, Told) {
    let mut told = Told::default();
    let result = client.session(setup, 0).unwrap().request(&mut told);
    (result, told)
}

fn wait_for(done: impl Fn() -> bool, what: &str) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A connection that the server has closed is replaced, and the new one counted and timed.
pub fn a_connection_closed_by_the_server_is_replaced_and_counted(client: &impl BlockingClient) {
    for manner in [Manner::LimitTwo, Manner::SilentLimitTwo] {
        let server = Server::start(manner);
        let mut session = client.session(&setup(server.address, true), 0).unwrap();
        let mut told = Told::default();
        for request in 1..=6 {
            session.request(&mut told).unwrap();
            // An unannounced close must have arrived, or the next request races with it.
            wait_for(
                || server.ended() == request / 2,
                "the server does not close",
            );
        }
        assert_eq!((told.connected, told.timed), (3, 3), "{manner:?}");
        assert_eq!(server.counts(), (3, 6), "{manner:?}");
    }
}

/// Status and length are handed on as they came; a long body is read to its end.
pub fn any_complete_response_is_a_response(client: &impl BlockingClient) {
    let long: &'static str = Box::leak(
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n{}",
            "x".repeat(300_000)
        )
        .into_boxed_str(),
    );
    // each row: sent, status, bytes of body
    let table = [
        // not an error of the library
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!",
            404,
            3,
        ),
        // not followed
        (
            "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nno",
            302,
            2,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, 0),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 0),
        // longer than any buffer
        (long, 200, 300_000),
    ];
    for (sent, status, body_bytes) in table {
        let head = &sent[..sent.len().min(60)];
        let server = Server::start(Manner::Bytes(sent));
        let (result, told) = one(client, &setup(server.address, true));
        assert_eq!(result, Ok(Response { status, body_bytes }), "{head}");
        assert_eq!((told.connected, server.counts().0), (1, 1), "{head}");
    }
}

/// What the library makes of a response that ends within its head; they differ.
pub fn cut_in_its_head(client: &impl BlockingClient) -> Result<Response, ErrorKind> {
    let server = Server::start(Manner::Bytes("HTTP/1.1 200 OK\r\nConte"));
    let (result, told) = one(client, &setup(server.address, true));
    assert_eq!((told.connected, told.failed), (1, 0));
    result.map_err(|failure| failure.kind)
}

/// The bytes of a request, so that a change of a library's headers is noticed.
pub fn the_request_is(client: &impl BlockingClient, keep_alive: bool, headers: &str) {
    let server = Server::start(Manner::Good);
    one(client, &setup(server.address, keep_alive)).0.unwrap();
    assert_eq!(
        *server.seen.last.lock().unwrap(),
        format!("GET /some?path HTTP/1.1\r\n{headers}\r\n")
            .replace("ADDRESS", &server.address.to_string())
    );
}

/// Users that fail at the same time for different reasons each keep their own.
pub fn failures_are_told_apart_by_user(client: &impl BlockingClient) {
    // 127.0.0.2:9 refuses; a broadcast address is not a connect() at all (EACCES).
    std::thread::scope(|scope| {
        for (address, kind) in [
            ("127.0.0.2:9", ErrorKind::ConnectRefused),
            ("255.255.255.255:9", ErrorKind::Other),
            ("127.0.0.3:9", ErrorKind::ConnectRefused),
        ] {
            scope.spawn(move || {
                let setup = setup(address.parse().unwrap(), true);
                let mut session = client.session(&setup, 0).unwrap();
                for _ in 0..50 {
                    let failure = session.request(&mut Told::default()).unwrap_err();
                    assert_eq!(failure.kind, kind, "{address}: {failure:?}");
                }
            });
        }
    });
}

/// Threads and descriptors of this process.
fn threads_and_descriptors() -> (usize, usize) {
    let entries = |path| std::fs::read_dir(path).unwrap().count();
    (entries("/proc/self/task"), entries("/proc/self/fd"))
}

/// Neither threads nor descriptors grow with iterations, and none is spawned for a request.
/// `threads`: those that a user has beside its own.
pub fn iterations_leave_nothing(test: &str, client: &impl BlockingClient, threads: usize) {
    in_child(test, &[], || {
        let server = Server::start(Manner::Good);
        // The server's listening thread; those of its connections end with them.
        let before = threads_and_descriptors();
        let mut session = client.session(&setup(server.address, true), 0).unwrap();
        let mut told = Told::default();
        session.request(&mut told).unwrap();
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
        wait_for(
            || threads_and_descriptors() == first,
            "threads or descriptors have grown",
        );
        assert_eq!((told.connected, server.counts().0), (501, 501));
        drop(session);
        wait_for(
            // The server keeps one descriptor of its last connection.
            || threads_and_descriptors() == (before.0, before.1 + 1),
            "a session leaves something behind",
        );
    });
}

/// With too few descriptors left the kind says so, whichever of its parts found none;
/// with enough of them the port on which nobody listens refuses, and the session works again.
pub fn descriptors_run_out(test: &str, client: &impl BlockingClient) {
    in_child(test, &[], || {
        let setup = setup("127.0.0.1:9".parse().unwrap(), true);
        let mut session = client.session(&setup, 0).unwrap();
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

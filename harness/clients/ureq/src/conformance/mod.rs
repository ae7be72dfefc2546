//! What every blocking client must do, tested through its `Session`.
//! The isahc client includes this module too: what is claimed of both is written once.
//! Each test takes what it needs of it.
#![allow(dead_code, unused_imports)]

mod limits;
mod server;

use std::net::{SocketAddr, TcpListener, TcpStream};

use yieldpoint_clients_core::{BlockingClient, Failure, Meter, Response, Session, Setup};
use yieldpoint_protocol::{ErrorKind, Job, VERSION};
use yieldpoint_terms::{Nanos, Value};

pub use limits::{
    descriptors_run_out, iterations_leave_nothing, ports_run_out, the_program_runs_out_of_ports,
};
use server::{Answer, PATIENCE, Seen, server};

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

fn job(address: SocketAddr, keep_alive: bool) -> Job {
    let mut job = Job {
        protocol: VERSION,
        ..Job::default()
    };
    for knob in yieldpoint_clients_core::KNOBS {
        if let Some(value) = knob.default_value() {
            job.knobs.set(knob.name.clone(), value);
        }
    }
    job.knobs
        .set("url", Value::Text(format!("http://{address}/some?path")));
    job.knobs.set("keep_alive", Value::Bool(keep_alive));
    // A crowded machine may take long; what shall time out says so itself.
    for timeout in ["connect_timeout", "request_timeout"] {
        job.knobs
            .set(timeout, Value::Duration(Nanos::from_secs(60)));
    }
    job
}

fn setup(address: SocketAddr, keep_alive: bool) -> Setup {
    Setup::from_job(&job(address, keep_alive)).unwrap()
}

fn one(client: &impl BlockingClient, setup: &Setup) -> (Result<Response, Failure>, Told) {
    let mut told = Told::default();
    let result = client.session(setup).unwrap().request(&mut told);
    (result, told)
}

/// Both ends count the same connections, in every combination of the two knobs.
pub fn counts_are_exact(client: &impl BlockingClient) {
    const ITERATIONS: u64 = 3;
    const REQUESTS: u64 = 4;
    // each row: keep_alive, same_user, connections
    let table = [
        (true, true, 1),
        (true, false, ITERATIONS), // the client closes first at each iteration's end
        (false, true, ITERATIONS * REQUESTS), // this server does not close: the client must
        (false, false, ITERATIONS * REQUESTS),
    ];
    for (keep_alive, same_user, connections) in table {
        let row = format!("keep_alive={keep_alive} same_user={same_user}");
        let (address, seen) = server(Answer::Hello);
        let mut session = client.session(&setup(address, keep_alive)).unwrap();
        let mut told = Told::default();
        for iteration in 0..ITERATIONS {
            if !same_user && iteration > 0 {
                session.reset();
            }
            for _ in 0..REQUESTS {
                let response = session.request(&mut told).unwrap();
                assert_eq!((response.status, response.body_bytes), (200, 5), "{row}");
            }
        }
        session.reset();
        seen.settle();
        assert_eq!(told.connected, connections, "{row}");
        assert_eq!((told.failed, told.timed), (0, connections), "{row}");
        assert_eq!(Seen::get(&seen.accepts), connections, "{row}");
        assert_eq!(Seen::get(&seen.client_closed_first), connections, "{row}");
        assert_eq!(Seen::get(&seen.requests), ITERATIONS * REQUESTS, "{row}");
        let request = seen.last_request.lock().unwrap().to_ascii_lowercase();
        assert_eq!(request.contains("connection: close"), !keep_alive, "{row}");
    }
}

/// A connection that the server has closed is replaced, and the new one counted.
pub fn a_connection_closed_by_the_server_is_replaced_and_counted(client: &impl BlockingClient) {
    for announced in [true, false] {
        let (address, seen) = server(Answer::CloseAfter {
            requests: 2,
            announced,
        });
        let mut session = client.session(&setup(address, true)).unwrap();
        let mut told = Told::default();
        for request in 0..6 {
            session.request(&mut told).unwrap();
            if request % 2 == 1 {
                // An unannounced close must have arrived, or the next request races with it.
                seen.settle();
            }
        }
        assert_eq!(told.connected, 3, "announced={announced}");
        assert_eq!(Seen::get(&seen.accepts), 3, "announced={announced}");
        assert_eq!(Seen::get(&seen.requests), 6, "announced={announced}");
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
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!",
            404,
            3,
        ), // not an error of the library
        (
            "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nno",
            302,
            2,
        ), // not followed
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, 0),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 0),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
            200,
            4,
        ),
        (long, 200, 300_000), // longer than any buffer
    ];
    for (sent, status, body_bytes) in table {
        let head = &sent[..sent.len().min(60)];
        let (address, seen) = server(Answer::Bytes(sent));
        let (result, told) = one(client, &setup(address, true));
        assert_eq!(result, Ok(Response { status, body_bytes }), "{head}");
        assert_eq!((told.connected, Seen::get(&seen.accepts)), (1, 1), "{head}");
    }
}

/// Every way to fail has its kind, and its connections are counted.
pub fn failures_have_their_kind(client: &impl BlockingClient) {
    let partial = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nonly this";
    // each row: what the server does, kind
    let table = [
        (Answer::Silence, ErrorKind::Timeout),
        (Answer::Bytes(partial), ErrorKind::ClosedEarly), // in the body
        (Answer::Bytes(""), ErrorKind::ClosedEarly),      // before the first byte
        (Answer::Reset, ErrorKind::Reset),
        (
            Answer::Bytes("SSH-2.0-of another world\r\n\r\n"),
            ErrorKind::Protocol,
        ),
    ];
    for (answer, kind) in table {
        let (address, _) = server(answer);
        let mut setup = setup(address, true);
        if kind == ErrorKind::Timeout {
            setup.request_timeout = Nanos::from_secs(1);
        }
        let (result, told) = one(client, &setup);
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, kind, "{failure:?}");
        assert_eq!((told.connected, told.failed), (1, 0), "{failure:?}");
    }
    // Nobody listens on a port that was just given back.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (result, told) = one(client, &setup(free, true));
    let failure = result.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::ConnectRefused, "{failure:?}");
    assert_eq!((told.connected, told.failed), (0, 1));
}

/// What the library makes of a response that ends within its head; they differ.
pub fn cut_in_its_head(client: &impl BlockingClient) -> Result<Response, ErrorKind> {
    let (address, _) = server(Answer::Bytes("HTTP/1.1 200 OK\r\nConte"));
    let (result, told) = one(client, &setup(address, true));
    assert_eq!((told.connected, told.failed), (1, 0));
    result.map_err(|failure| failure.kind)
}

/// A listener whose queue is full drops the SYN: nothing answers within `connect_timeout`.
pub fn a_full_queue_is_a_connect_timeout(client: &impl BlockingClient) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    // A queue of length 0 holds one connection.
    let _plug = TcpStream::connect(address).unwrap();
    // each row: connect_timeout, request_timeout in ms; whichever ends it, there is no connection
    for (connect, request) in [(300, 60_000), (60_000, 300)] {
        let mut setup = setup(address, true);
        setup.connect_timeout = Nanos::from_millis(connect);
        setup.request_timeout = Nanos::from_millis(request);
        let (result, told) = one(client, &setup);
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::ConnectTimeout, "{failure:?}");
        assert_eq!((told.connected, told.failed), (0, 1), "{failure:?}");
    }
}

/// The bytes of a request, so that a change of a library's headers is noticed.
pub fn the_request_is(client: &impl BlockingClient, keep_alive: bool, headers: &str) {
    let (address, seen) = server(Answer::Hello);
    one(client, &setup(address, keep_alive)).0.unwrap();
    assert_eq!(
        *seen.last_request.lock().unwrap(),
        format!("GET /some?path HTTP/1.1\r\n{headers}\r\n")
            .replace("ADDRESS", &address.to_string())
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
                let mut session = client
                    .session(&setup(address.parse().unwrap(), true))
                    .unwrap();
                for _ in 0..50 {
                    let failure = session.request(&mut Told::default()).unwrap_err();
                    assert_eq!(failure.kind, kind, "{address}: {failure:?}");
                }
            });
        }
    });
}

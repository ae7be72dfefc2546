//! The program against real sockets, in both of its modes.

#[path = "../../core/test-support/conformance.rs"]
mod conformance;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use conformance::client::{Client, Knob, job, run};
use conformance::server::{Manner, PAUSE, Server};
use yieldpoint_protocol::{FromProgram, Outcome};
use yieldpoint_terms::{Nanos, Value};

const PROGRAM: &str = env!("CARGO_BIN_EXE_yieldpoint-client-reference");

fn blocking() -> [Knob<'static>; 1] {
    [("options.io", Value::Text("blocking".into()))]
}

#[test]
fn counts() {
    conformance::counts(PROGRAM, &[], 1);
    conformance::counts(PROGRAM, &[], 3);
    conformance::counts(PROGRAM, &blocking(), 1);
}

#[test]
fn closes_before_it_opens() {
    conformance::closes_before_it_opens(PROGRAM, &[]);
    conformance::closes_before_it_opens(PROGRAM, &blocking());
}

#[test]
fn bodies() {
    conformance::bodies(PROGRAM, &[]);
    conformance::bodies(PROGRAM, &blocking());
}

#[test]
fn failures_with_epoll() {
    conformance::failures(PROGRAM, &[]);
    conformance::refused(PROGRAM, &[]);
    conformance::silent_closes_are_honest(PROGRAM, &[]);
}

#[test]
fn failures_when_blocking() {
    conformance::failures(PROGRAM, &blocking());
    conformance::refused(PROGRAM, &blocking());
    conformance::silent_closes_are_honest(PROGRAM, &blocking());
}

#[test]
fn limits_of_the_kernel() {
    for options in [&[][..], &blocking()] {
        conformance::full_accept_queue(PROGRAM, options);
        conformance::no_descriptor(PROGRAM, options);
    }
}

#[test]
fn ports_run_out_with_epoll() {
    conformance::ports_run_out("ports_run_out_with_epoll", PROGRAM, &[]);
}

#[test]
fn ports_run_out_when_blocking() {
    conformance::ports_run_out("ports_run_out_when_blocking", PROGRAM, &blocking());
}

#[test]
fn source_addresses_with_epoll() {
    conformance::source_addresses_multiply_ports("source_addresses_with_epoll", PROGRAM, &[]);
}

#[test]
fn source_addresses_when_blocking() {
    conformance::source_addresses_multiply_ports(
        "source_addresses_when_blocking",
        PROGRAM,
        &blocking(),
    );
}

#[test]
fn open_loop_with_epoll() {
    conformance::open_loop::keeps_its_rate(PROGRAM, &[], 3);
    conformance::open_loop::a_stall_is_seen(PROGRAM, &[]);
    conformance::open_loop::a_connection_lost_while_waiting_is_replaced(PROGRAM, &[]);
}

#[test]
fn open_loop_when_blocking() {
    conformance::open_loop::keeps_its_rate(PROGRAM, &blocking(), 1);
    conformance::open_loop::a_stall_is_seen(PROGRAM, &blocking());
    conformance::open_loop::a_connection_lost_while_waiting_is_replaced(PROGRAM, &blocking());
}

/// Requests of a test of closes.
const CLOSES: u64 = 20;

fn closes(manner: Manner, close: &str, more: &[Knob<'_>]) -> (Outcome, u64) {
    let server = Server::start(manner);
    let mut knobs = vec![
        ("keep_alive", Value::Bool(false)),
        ("options.close", Value::Text(close.into())),
        // The number fits.
        ("iterations", Value::Int(CLOSES as i64)),
        ("expect.body_bytes", Value::Int(5)),
    ];
    knobs.extend_from_slice(more);
    let o = run(PROGRAM, &format!("http://{}/", server.address), &knobs);
    conformance::is_consistent(&o);
    let got = (o.total.good, o.total.connections, server.counts());
    assert_eq!(got, (CLOSES, CLOSES, (CLOSES, CLOSES)), "{close}: {o:?}");
    // Its threads have then seen the ends of their connections.
    let seen = Arc::clone(&server.seen);
    drop(server);
    (o, seen.late_to_close.load(Ordering::SeqCst))
}

#[test]
fn who_closes_first_can_be_chosen() {
    // The server takes 20 ms to close, so a client that closes at once is nearly always first.
    assert!(closes(Manner::SlowClose, "now", &[]).1 > 0);
    let (o, late) = closes(Manner::SlowClose, "after_peer", &[]);
    assert_eq!(late, 0, "the client was never first");
    // The pause is no part of a latency, but of the time that the requests take.
    let spent = o.window_end_ns - o.window_start_ns;
    assert!(
        spent >= PAUSE.as_nanos() as u64 * (CLOSES - 1),
        "{spent} ns"
    );
    assert!(o.latency.decode().unwrap().min() < PAUSE.as_nanos() as u64);
    // A peer that never closes holds a user for request_timeout, and that is no failure.
    let short = ("request_timeout", Value::Duration(Nanos::from_millis(50)));
    closes(Manner::KeepOpen, "after_peer", &[short]);
}

#[test]
fn window() {
    conformance::window(PROGRAM, &[], 5);
    conformance::window(PROGRAM, &blocking(), 1);
}

#[test]
fn protocol() {
    conformance::protocol(PROGRAM);
}

#[test]
fn jobs_it_cannot_do() {
    // each row: options, start of the answer
    let table = [
        (
            ("options.io", Value::Text("kqueue".into())),
            "option \"io\": expected one of",
        ),
        (("options.oi", Value::Int(1)), "unknown option \"oi\""),
    ];
    for (knob, want) in table {
        let answer = Client::start(PROGRAM).offer(job("http://127.0.0.1:1/", &[knob]));
        assert!(
            matches!(&answer, FromProgram::Failed { reason } if reason.starts_with(want)),
            "{answer:?}"
        );
    }
    // One blocking thread is one user.
    let [io] = blocking();
    let two = ("users_per_thread", Value::Int(2));
    let answer = Client::start(PROGRAM).offer(job("http://127.0.0.1:1/", &[io, two]));
    assert!(
        matches!(&answer, FromProgram::Unsupported { reason } if reason.contains("users_per_thread")),
        "{answer:?}"
    );
}

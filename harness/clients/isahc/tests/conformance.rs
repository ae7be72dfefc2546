//! The program against real sockets.

#[path = "../../core/test-support/conformance.rs"]
mod conformance;

use conformance::client::run;
use conformance::server::{Manner, Server};
use yieldpoint_terms::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_yieldpoint-client-isahc");

#[test]
fn counts() {
    conformance::counts(PROGRAM, &[], 1);
}

#[test]
fn closes_before_it_opens() {
    conformance::closes_before_it_opens(PROGRAM, &[]);
}

#[test]
fn bodies() {
    conformance::bodies(PROGRAM, &[]);
}

#[test]
fn failures() {
    conformance::failures(PROGRAM, &[]);
    conformance::refused(PROGRAM, &[]);
    conformance::silent_closes_are_honest(PROGRAM, &[]);
}

#[test]
fn limits_of_the_kernel() {
    conformance::full_accept_queue(PROGRAM, &[]);
    conformance::no_descriptor(PROGRAM, &[]);
}

#[test]
fn ports_run_out() {
    conformance::ports_run_out("ports_run_out", PROGRAM, &[]);
}

#[test]
fn window() {
    conformance::window(PROGRAM, &[], 1);
}

#[test]
fn open_loop() {
    conformance::open_loop::keeps_its_rate(PROGRAM, &[], 1);
    conformance::open_loop::a_stall_is_seen(PROGRAM, &[]);
    conformance::open_loop::a_connection_lost_while_waiting_is_replaced(PROGRAM, &[]);
}

#[test]
fn protocol() {
    conformance::protocol(PROGRAM);
}

#[test]
fn source_addresses() {
    conformance::source_addresses_multiply_ports("source_addresses", PROGRAM, &[]);
}

/// As many users as it takes find a descriptor that curl can wait for, also after a new start.
#[test]
fn most_users() {
    let server = Server::start(Manner::Good);
    let knobs = [
        ("threads", Value::Int(120)),
        ("iterations", Value::Int(3)),
        ("same_user", Value::Bool(false)),
        ("expect.body_bytes", Value::Int(5)),
    ];
    let outcome = run(PROGRAM, &format!("http://{}/", server.address), &knobs);
    assert_eq!((outcome.total.good, outcome.total.errors), (360, 0));
}

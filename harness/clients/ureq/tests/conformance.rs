//! The program against real sockets.

#[path = "../../core/test-support/conformance.rs"]
mod conformance;

const PROGRAM: &str = env!("CARGO_BIN_EXE_yieldpoint-client-ureq");

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
fn source_addresses_are_refused() {
    use conformance::client::{Client, job};
    use yieldpoint_protocol::FromProgram;
    use yieldpoint_terms::Value;

    let sources = ("source_addresses", Value::Text("127.0.0.2".into()));
    let answer = Client::start(PROGRAM).offer(job("http://127.0.0.1:1/", &[sources]));
    assert!(
        matches!(&answer, FromProgram::Unsupported { reason } if reason.contains("source_addresses")),
        "{answer:?}"
    );
}

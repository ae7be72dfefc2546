//! The program against real sockets.

#[path = "../../core/test-support/conformance.rs"]
mod conformance;

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

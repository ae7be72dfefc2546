//! The program against real sockets, in both of its modes.

#[path = "../../core/test-support/conformance.rs"]
mod conformance;

use conformance::client::{Client, Knob, job};
use yieldpoint_protocol::FromProgram;
use yieldpoint_terms::Value;

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

//! The open loop, checked by counts, order and what no clock can break: nothing starts early.

use yieldpoint_protocol::Outcome;
use yieldpoint_terms::{Nanos, Value};

use super::client::{Knob, run};
use super::server::{Manner, STALL, Server};
use super::{is_consistent, url, with};

const MS: u64 = 1_000_000;

/// Each latency from the intended start is at least that from the actual start, so every
/// percentile is, too.
fn intended_dominates(o: &Outcome) {
    let (actual, intended) = (
        o.latency.decode().unwrap(),
        o.latency_intended.decode().unwrap(),
    );
    assert_eq!(intended.len(), actual.len());
    for quantile in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
        let (i, a) = (
            intended.value_at_quantile(quantile),
            actual.value_at_quantile(quantile),
        );
        assert!(
            i >= a,
            "quantile {quantile}: {i} from the intended start, {a} from the actual"
        );
    }
}

/// A server that keeps up gets the requests that were due, and no more. `users` a thread.
pub fn keeps_its_rate(program: &str, options: &[Knob<'_>], users: i64) {
    // Starts at 0, 1/3, … 5/3 s: the last one has 233 ms to happen in.
    for (arrival, same_user) in [("constant", true), ("constant", false), ("poisson", true)] {
        let server = Server::start(Manner::Good);
        let knobs = with(
            options,
            &[
                ("rate", Value::Float(3.0)),
                ("arrival", Value::Text(arrival.into())),
                ("threads", Value::Int(2)),
                ("users_per_thread", Value::Int(users)),
                ("same_user", Value::Bool(same_user)),
                ("duration", Value::Duration(Nanos::from_millis(1_900))),
                ("expect.body_bytes", Value::Int(5)),
            ],
        );
        let o = run(program, &url(&server), &knobs);
        is_consistent(&o);
        intended_dominates(&o);
        assert_eq!(server.counts().1, o.total.attempts, "{o:?}");
        assert_eq!(o.total.errors, 0, "{o:?}");
        if arrival == "constant" {
            assert_eq!(o.total.attempts, 6, "{o:?}");
        } else {
            // Mean 5.7: beyond 40 is a chance of 1 in 10^20, and a closed loop makes thousands.
            assert!(o.total.attempts < 40, "{o:?}");
        }
        if !same_user {
            assert_eq!(o.total.connections, 6, "{o:?}");
        }
    }
}

/// A server that closes while the users wait for their next starts costs a connection, no request.
pub fn a_connection_lost_while_waiting_is_replaced(program: &str, options: &[Knob<'_>]) {
    let server = Server::start(Manner::SilentLimitTwo);
    let knobs = with(
        options,
        &[
            // Half a second for the end of a connection to arrive.
            ("rate", Value::Float(2.0)),
            ("iterations", Value::Int(4)),
            ("expect.body_bytes", Value::Int(5)),
        ],
    );
    let o = run(program, &url(&server), &knobs);
    is_consistent(&o);
    let got = (o.total.good, o.total.errors, o.total.connections);
    assert_eq!(got, (4, 0, 2), "{o:?}");
}

/// The server stalls on the first request: the user is late for the next ones, makes them all,
/// and their latency from the intended start shows the wait that the actual one hides.
pub fn a_stall_is_seen(program: &str, options: &[Knob<'_>]) {
    const REQUESTS: u64 = 40;
    const PERIOD_NS: u64 = 10 * MS;
    let server = Server::start(Manner::StallFirst);
    let knobs = with(
        options,
        &[
            ("rate", Value::Float(100.0)),
            ("requests_per_iteration", Value::Int(4)),
            ("iterations", Value::Int(REQUESTS as i64 / 4)),
            ("expect.body_bytes", Value::Int(5)),
        ],
    );
    let o = run(program, &url(&server), &knobs);
    is_consistent(&o);
    intended_dominates(&o);
    assert_eq!((o.total.good, o.total.errors), (REQUESTS, 0), "{o:?}");
    let spent = o.window_end_ns - o.window_start_ns;
    assert!(spent >= (REQUESTS - 1) * PERIOD_NS, "early: {spent} ns");
    // A request that was due x before the stall's end waited for at least x: of those due in the
    // first half of the stall, every one waited for the other half.
    let stall = STALL.as_nanos() as u64;
    let intended = o.latency_intended.decode().unwrap();
    let waited = intended.count_between(stall / 2, u64::MAX);
    assert!(waited >= stall / 2 / PERIOD_NS, "{waited} waited: {o:?}");
    // The stalled request is one whose own latency says so.
    assert!(o.latency.decode().unwrap().count_between(stall, u64::MAX) >= 1);
    // Without rate there is no second histogram (is_consistent holds it to the number of good ones).
    let closed = with(options, &[("iterations", Value::Int(1))]);
    let o = run(program, &url(&server), &closed);
    assert_eq!(o.latency_intended, Default::default());
}

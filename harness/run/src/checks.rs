//! Consistency of a trial: what the client says against itself and against what the target saw.
//!
//! Pure functions of the two reports; only what no counted cause explains makes a check fail.

use yieldpoint_protocol::{Counts, ErrorKind, Outcome, Second, Testimony};
use yieldpoint_record::Check;

mod little;
mod time_wait;

pub use little::check_little;
pub use time_wait::{Balance, check_time_wait};

/// Compares what the client says with itself: sums, order of times between `go` and the moment at
/// which its outcome was heard.
#[must_use]
pub fn check_outcome(o: &Outcome, start_at_ns: u64, heard_at_ns: u64) -> Vec<Check> {
    // Sums saturate: a client that lies may name numbers that no sum can hold.
    let total = |of: fn(&Second) -> u64| o.series.iter().map(of).fold(0, u64::saturating_add);
    let by_kind = o.errors.iter().map(|e| e.count);
    let by_kind = by_kind.fold(0, u64::saturating_add);
    let series = Counts {
        attempts: total(|s| s.attempts),
        good: total(|s| s.good),
        errors: total(|s| s.errors),
        ..Counts::default()
    };
    let sums = |c: &Counts| c.good.checked_add(c.errors) == Some(c.attempts);
    let first = o.errors.iter().map(|e| e.first_ns);
    let (earliest, latest) = (first.clone().min(), first.max());
    let inside = o.window.attempts <= o.total.attempts
        && o.window.good <= o.total.good
        && o.window.connections <= o.total.connections;
    vec![
        Check {
            name: "client_sums".into(),
            ok: sums(&o.window) && sums(&o.total) && by_kind == o.total.errors && inside,
            detail: format!(
                "attempts = good + errors: window {} = {} + {}, total {} = {} + {}; errors by kind {by_kind} = {}",
                o.window.attempts,
                o.window.good,
                o.window.errors,
                o.total.attempts,
                o.total.good,
                o.total.errors,
                o.total.errors,
            ),
        },
        Check {
            name: "client_series".into(),
            ok: series.attempts == o.window.attempts && series.good == o.window.good,
            detail: format!(
                "seconds add up to the window: attempts {} = {}, good {} = {}",
                series.attempts, o.window.attempts, series.good, o.window.good
            ),
        },
        Check {
            name: "client_times".into(),
            ok: o.window_start_ns >= start_at_ns
                && o.window_end_ns > o.window_start_ns
                && o.window_end_ns <= heard_at_ns
                && earliest.is_none_or(|t| t >= start_at_ns)
                && latest.is_none_or(|t| t <= heard_at_ns),
            detail: format!(
                "go {start_at_ns} ≤ window start {} < window end {} ≤ outcome heard {heard_at_ns}; first errors from {} to {}",
                o.window_start_ns,
                o.window_end_ns,
                earliest.map_or_else(|| "none".to_owned(), |t| t.to_string()),
                latest.map_or_else(|| "none".to_owned(), |t| t.to_string()),
            ),
        },
    ]
}

/// Compares both ends. `listen_drops` are connections the kernel dropped at the accept queue.
#[must_use]
pub fn check_ends(o: &Outcome, t: &Testimony, listen_drops: u64) -> Vec<Check> {
    let count = |wanted: &dyn Fn(ErrorKind) -> bool| -> u64 {
        o.errors
            .iter()
            .filter(|e| wanted(e.kind))
            .map(|e| e.count)
            .fold(0, u64::saturating_add)
    };
    // A complete answer was certainly served; a request that broke off may or may not have been.
    let answered = o.total.good.saturating_add(count(&ErrorKind::answered));
    let broken_off = count(&|k| !k.before_sending() && !k.answered());
    // The kernel may complete a handshake that the client gave up on; the time of the whole request, a connect
    // included, may be up first.
    let in_connect = count(&|k| k == ErrorKind::Timeout).min(o.total.connect_failures);
    let given_up = count(&|k| k == ErrorKind::ConnectTimeout).saturating_add(in_connect);
    let requests = between(t.requests, answered, broken_off);
    let low = o
        .total
        .connections
        .saturating_sub(listen_drops.saturating_add(broken_off));
    let connections = between(
        t.connections,
        low,
        (o.total.connections - low).saturating_add(given_up),
    );
    vec![
        Check {
            name: "requests".into(),
            ok: requests == 0,
            detail: format!(
                "client: {answered} answered, {broken_off} broken off; target: {} served; unexplained: {requests}",
                t.requests
            ),
        },
        Check {
            name: "connections".into(),
            ok: connections == 0,
            detail: format!(
                "client: {} opened, {given_up} given up; target: {} accepted, {listen_drops} dropped; unexplained: {connections}",
                o.total.connections, t.connections
            ),
        },
    ]
}

/// How far `value` lies outside of [low, low + room].
fn between(value: u64, low: u64, room: u64) -> i64 {
    let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    if value < low {
        -signed(low - value)
    } else {
        signed(value.saturating_sub(low.saturating_add(room)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use yieldpoint_protocol::{ErrorCount, Histogram};

    pub(crate) fn outcome(good: u64, errors: &[(ErrorKind, u64)], connections: u64) -> Outcome {
        let failed = errors.iter().map(|e| e.1).sum();
        let counts = Counts {
            attempts: good + failed,
            good,
            errors: failed,
            connections,
            ..Counts::default()
        };
        Outcome {
            window_start_ns: 1_000,
            window_end_ns: 2_000,
            window: counts,
            total: counts,
            errors: errors
                .iter()
                .filter(|e| e.1 > 0)
                .map(|&(kind, count)| ErrorCount {
                    kind,
                    count,
                    first_ns: 1_500,
                    example: String::new(),
                })
                .collect(),
            series: vec![yieldpoint_protocol::Second {
                attempts: good + failed,
                good,
                errors: failed,
                ..Default::default()
            }],
            latency: Histogram::default(),
            latency_intended: Histogram::default(),
            connect: Histogram::default(),
            iteration: Histogram::default(),
            saturated: 0,
            users: 1,
            latency_sum_ns: 0,
        }
    }

    #[test]
    fn only_the_unexplained_fails() {
        use ErrorKind::{AddressNotAvailable, BadStatus, ConnectTimeout, Reset, Timeout};
        // good, errors, opened; requests served, accepted, drops; requests ok, connections ok
        type Row<'a> = (u64, &'a [(ErrorKind, u64)], u64, u64, u64, u64, bool, bool);
        let table: [Row; 10] = [
            (100, &[], 10, 100, 10, 0, true, true),
            (100, &[], 10, 99, 10, 0, false, true), // the client claims one too many
            (100, &[], 10, 101, 10, 0, false, true), // or hides a retry
            (
                100,
                &[(AddressNotAvailable, 500)],
                100,
                100,
                100,
                0,
                true,
                true,
            ), // never left the client
            (100, &[(BadStatus, 5)], 10, 105, 10, 0, true, true), // the target answered those
            (100, &[(Timeout, 5)], 10, 103, 10, 0, true, true), // served or not: both are possible
            (100, &[(Timeout, 5)], 10, 106, 10, 0, false, true), // but not more than were sent
            (100, &[(Reset, 2)], 12, 100, 10, 0, true, true), // reset before they were accepted
            (100, &[], 12, 100, 10, 2, true, true), // dropped at the accept queue
            (100, &[(ConnectTimeout, 3)], 10, 100, 13, 0, true, true), // accepted after the client gave up
        ];
        for (i, (good, errors, opened, served, accepted, drops, req_ok, conn_ok)) in
            table.into_iter().enumerate()
        {
            let t = Testimony {
                requests: served,
                connections: accepted,
                ..Testimony::default()
            };
            let checks = check_ends(&outcome(good, errors, opened), &t, drops);
            assert_eq!(
                (checks[0].ok, checks[1].ok),
                (req_ok, conn_ok),
                "row {i}: {checks:?}"
            );
        }
    }

    #[test]
    fn a_request_may_time_out_while_it_connects() {
        // timeouts, of those in connect; connections the target accepted beyond those the client opened; ok?
        let table = [
            (3, 3, 3, true),  // the handshakes were completed after all
            (3, 3, 4, false), // one that nobody asked for
            (3, 1, 2, false), // the others had their connection, and it is counted
        ];
        for (timeouts, in_connect, more, want) in table {
            let mut o = outcome(100, &[(ErrorKind::Timeout, timeouts)], 10);
            o.total.connect_failures = in_connect;
            let t = Testimony {
                requests: 100,
                connections: 10 + more,
                ..Testimony::default()
            };
            assert_eq!(check_ends(&o, &t, 0)[1].ok, want, "{in_connect} {more}");
        }
    }

    #[test]
    fn a_client_that_contradicts_itself_is_caught() {
        let good = outcome(5, &[], 1);
        assert!(check_outcome(&good, 1_000, 3_000).iter().all(|c| c.ok));
        let failing = |change: &dyn Fn(&mut Outcome)| -> Vec<String> {
            let mut o = good.clone();
            change(&mut o);
            check_outcome(&o, 1_000, 3_000)
                .into_iter()
                .filter(|c| !c.ok)
                .map(|c| c.name)
                .collect()
        };
        assert_eq!(failing(&|o| o.total.good = 6), ["client_sums"]);
        assert_eq!(failing(&|o| o.series[0].good = 4), ["client_series"]);
        assert_eq!(failing(&|o| o.window_end_ns = 0), ["client_times"]);
        assert_eq!(
            failing(&|o| o.window_start_ns = 999),
            ["client_times"],
            "before go"
        );
        assert_eq!(
            failing(&|o| o.window_end_ns = 3_001),
            ["client_times"],
            "in the future"
        );
        // Numbers that no sum can hold are caught, too, and do not stop the runner.
        let huge = failing(&|o| o.window.errors = u64::MAX);
        assert_eq!(huge, ["client_sums"]);
        let mut late = outcome(5, &[(ErrorKind::Timeout, 1)], 1);
        late.errors[0].first_ns = 3_001;
        let checks = check_outcome(&late, 1_000, 3_000);
        assert!(
            checks.iter().any(|c| c.name == "client_times" && !c.ok),
            "an error in the future: {checks:?}"
        );
    }
}

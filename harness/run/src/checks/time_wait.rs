//! The balance of TIME_WAIT entries at the client's end.
//!
//! The end that closes first keeps the entry, for 60 s (`TCP_TIMEWAIT_LEN` of Linux, include/net/tcp.h). So the
//! entries that the client holds after the window are the connections that it closed first within the last 60 s,
//! as the target counted them. At the target's end there is no such law: a SYN may recycle an entry there.

use yieldpoint_protocol::{ErrorKind, Outcome, Testimony};
use yieldpoint_record::Check;

use super::between;

/// An entry lives at least this long.
const LIFE_NS: u64 = 60_000_000_000;
/// … and at most this much longer: its timer is rounded up to 512 jiffies of the timer wheel at HZ 100, which is
/// the coarsest (5.12 s; kernel/time/timer.c); the target's course is read some ms late, and both ends may be
/// held up by a busy machine.
const LATE_NS: u64 = 7_000_000_000;

/// What the balance is made of.
#[derive(Clone, Copy, Debug)]
pub struct Balance<'a> {
    /// TIME_WAIT entries at the client's end
    pub entries: u64,
    /// when the walk over the table began, CLOCK_MONOTONIC ns
    pub read_from_ns: u64,
    /// … and when it ended
    pub read_to_ns: u64,
    /// what the client says
    pub outcome: &'a Outcome,
    /// what the target says
    pub testimony: &'a Testimony,
    /// entries whose port was taken again early (TWRecycled; `tcp_tw_reuse`)
    pub recycled: u64,
    /// entries dropped at once, above `tcp_max_tw_buckets` (TCPTimeWaitOverflow)
    pub overflow: u64,
    /// resets sent by either end: each may have ended a connection, or its entry (OutRsts)
    pub resets: u64,
    /// segments sent again: a FIN that comes again starts the life of its entry anew (RetransSegs)
    pub sent_again: u64,
    /// whether a packet arrives at once; over a link with a rate or a delay the target's FIN may be under way
    pub at_once: bool,
}

/// Compares the entries with the closes that the target saw. Only what no counted cause explains fails.
///
/// - At most: every connection that the client closed first; those that the target counts as closed by itself,
///   since the client's FIN may have crossed its own or have arrived unread (entries at both ends, or
///   at the client's alone); those that still closed, or were not accepted yet, when the target testified.
/// - At least: those that the client closed first, less each that may have left no entry: still open at the
///   target, ended by a reset, recycled, dropped as too many, or given up by the client in the middle of a request.
/// - In a trial beyond 60 s only the last 60 s count, which the target's course tells for all connections alike, not
///   by side: then all that the target closed first may have been closed in that time. Between 60 and 67 s an entry
///   may still be there or not.
///
/// Where the target closes first on most connections this bounds little, and nothing from below over a link with
/// a rate or a delay: theory does not decide there.
#[must_use]
pub fn check_time_wait(b: Balance) -> Check {
    let t = b.testimony;
    let add = |terms: &[u64]| terms.iter().copied().fold(0, u64::saturating_add);
    let unclear = add(&[t.closed_by_target, t.reset]);
    let unaccepted = b.outcome.total.connections.saturating_sub(t.connections);
    let short = b.read_to_ns.saturating_sub(t.series.start_ns) < LIFE_NS;
    let (surely, perhaps) = if short {
        (t.closed_by_client, add(&[t.closed_by_client, unclear]))
    } else {
        let young = closes(t, b.read_to_ns.saturating_sub(LIFE_NS));
        let living = closes(t, b.read_from_ns.saturating_sub(LIFE_NS + LATE_NS));
        // Closed after the last slot.
        let closed = t.connections.saturating_sub(t.active);
        let after = closed.saturating_sub(closes(t, 0));
        (
            young.saturating_sub(unclear),
            add(&[living, after, b.sent_again]),
        )
    };
    let broken_off = b.outcome.errors.iter().filter(|e| {
        e.kind == ErrorKind::ConnectTimeout || !e.kind.before_sending() && !e.kind.answered()
    });
    let broken_off = broken_off.map(|e| e.count).fold(0, u64::saturating_add);
    let lost = add(&[t.active, b.resets, b.recycled, b.overflow, broken_off]);
    let low = if b.at_once {
        surely.saturating_sub(lost)
    } else {
        0
    };
    let high = add(&[perhaps, t.active, unaccepted]).max(low);
    let unexplained = between(b.entries, low, high - low);
    Check {
        name: "time_wait_balance".into(),
        ok: unexplained == 0,
        detail: format!(
            "the client's end holds {} TIME_WAIT entries, expected {low} to {high}; target: {} closed by the client, {} by itself, {} reset, {} open; {} recycled, {} overflowed, {} resets sent, {broken_off} requests broken off; unexplained: {unexplained}",
            b.entries,
            t.closed_by_client,
            t.closed_by_target,
            t.reset,
            t.active,
            b.recycled,
            b.overflow,
            b.resets,
        ),
    }
}

/// Connections whose end the target saw in slots that began at `since_ns` or later. A slot that was read late has
/// closes of after its end, never of before its begin: what it holds may be younger, not older.
fn closes(t: &Testimony, since_ns: u64) -> u64 {
    let s = &t.series;
    let mut open = 0u64;
    let mut sum = 0u64;
    let slots = s.connections.iter().zip(&s.active);
    for (i, (opened, active)) in slots.enumerate() {
        let closed = open.saturating_add(*opened).saturating_sub(*active);
        open = *active;
        let begin = (i as u64).saturating_mul(s.slot_ns);
        if s.start_ns.saturating_add(begin) >= since_ns {
            sum = sum.saturating_add(closed);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::tests::outcome;
    use yieldpoint_protocol::TargetSeries;

    const S: u64 = 1_000_000_000;

    /// A target whose course has slots of a second from second 0: connections opened, and open at the end.
    fn target(
        by_client: u64,
        by_target: u64,
        active: u64,
        reset: u64,
        course: &[(u64, u64)],
    ) -> Testimony {
        Testimony {
            connections: by_client + by_target + reset + active,
            closed_by_client: by_client,
            closed_by_target: by_target,
            reset,
            active,
            series: TargetSeries {
                slot_ns: S,
                connections: course.iter().map(|c| c.0).collect(),
                active: course.iter().map(|c| c.1).collect(),
                ..TargetSeries::default()
            },
            ..Testimony::default()
        }
    }

    fn balance<'a>(entries: u64, at_s: u64, o: &'a Outcome, t: &'a Testimony) -> Balance<'a> {
        Balance {
            entries,
            read_from_ns: at_s * S,
            read_to_ns: at_s * S,
            outcome: o,
            testimony: t,
            recycled: 0,
            overflow: 0,
            resets: 0,
            sent_again: 0,
            at_once: true,
        }
    }

    #[test]
    fn within_a_life_every_close_counts() {
        let o = outcome(100, &[], 100);
        let late = outcome(100, &[], 103);
        let off = outcome(95, &[(ErrorKind::Timeout, 5)], 100);
        let full = outcome(100, &[(ErrorKind::AddressNotAvailable, 50)], 100);
        let client = target(100, 0, 0, 0, &[]);
        let mixed = target(60, 40, 0, 0, &[]);
        let open = target(90, 0, 10, 0, &[]);
        let reset = target(90, 0, 0, 10, &[]);
        let of = |entries, o, t| balance(entries, 5, o, t);
        let table = [
            (of(100, &o, &client), 0), // the client closed all
            (of(99, &o, &client), -1), // where is the other one?
            (of(101, &o, &client), 1), // where is it from?
            (of(60, &o, &mixed), 0),   // the target closed 40 first
            (of(100, &o, &mixed), 0),  // … while the client's FIN was under way
            (of(59, &o, &mixed), -1),
            (of(101, &o, &mixed), 1),
            (of(80, &o, &open), 0), // what is open at the target has no entry yet
            (of(100, &o, &open), 0), // or closed before the table was read
            (of(79, &o, &open), -1),
            (of(90, &o, &reset), 0), // a reset leaves none
            (of(89, &o, &reset), -1),
            (of(103, &late, &client), 0), // three were not accepted yet when the target testified
            (of(104, &late, &client), 1),
            (of(95, &off, &client), 0), // a user that gave up may have left data, and so a reset
            (of(94, &off, &client), -1),
            (of(99, &full, &client), -1), // who found no port lost no entry
            (
                Balance {
                    recycled: 30,
                    ..of(70, &o, &client)
                },
                0,
            ),
            (
                Balance {
                    recycled: 30,
                    ..of(69, &o, &client)
                },
                -1,
            ),
            (
                Balance {
                    overflow: 30,
                    ..of(70, &o, &client)
                },
                0,
            ),
            (
                Balance {
                    resets: 30,
                    ..of(70, &o, &client)
                },
                0,
            ),
            (
                Balance {
                    at_once: false,
                    ..of(0, &o, &client)
                },
                0,
            ), // FINs under way
            (
                Balance {
                    at_once: false,
                    ..of(101, &o, &client)
                },
                1,
            ),
        ];
        for (i, (b, want)) in table.into_iter().enumerate() {
            let check = check_time_wait(b);
            assert_eq!(check.ok, want == 0, "row {i}: {check:?}");
            assert!(
                check.detail.ends_with(&format!("unexplained: {want}")),
                "row {i}: {check:?}"
            );
        }
    }

    #[test]
    fn beyond_a_life_only_the_last_minute_counts() {
        // 100 connections in second 0, 10 in second 5 of which 4 stay until second 6, 30 in second 80.
        let mut course = vec![(0, 0); 90];
        course[0] = (100, 0);
        course[5] = (10, 4);
        course[80] = (30, 0);
        let o = outcome(140, &[], 140);
        let client = target(140, 0, 0, 0, &course);
        let mixed = target(120, 20, 0, 0, &course);
        let of = |entries, at_s, t| balance(entries, at_s, &o, t);
        let table = [
            (of(30, 90, &client), true),  // the others' 60 s have passed
            (of(31, 90, &client), false), // and 67 s too: none can be left
            (of(29, 90, &client), false),
            (of(140, 66, &client), true), // at second 66 an entry of second 0 may still be there
            (of(141, 66, &client), false), // but no more than there were closes
            (of(40, 65, &client), true),  // those of second 5 are not yet 60 s old
            (of(39, 65, &client), false),
            (of(34, 66, &client), true), // of second 5 only the 4 that were closed in second 6 are young
            (of(33, 66, &client), false),
            (of(10, 90, &mixed), true), // 20 were the target's, perhaps all of them of the last minute
            (of(9, 90, &mixed), false),
            (
                Balance {
                    sent_again: 2,
                    ..of(32, 90, &client)
                },
                true,
            ), // a FIN that comes again makes an entry young
        ];
        for (i, (b, want)) in table.into_iter().enumerate() {
            let check = check_time_wait(b);
            assert_eq!(check.ok, want, "row {i}: {check:?}");
        }
    }
}

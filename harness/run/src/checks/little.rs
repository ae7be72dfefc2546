//! Little's law: users are busy with requests at most all of the time.
//!
//! Source: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961). Summed up
//! over a window it needs no steady state: a user is in one request at a time, so that the times of the
//! requests that lie within the window add up to at most users × window, whatever the load.

use yieldpoint_protocol::Outcome;
use yieldpoint_record::Check;

/// How far below 0 the residual may lie: clocks are read a moment apart, and no more.
const TOLERANCE: f64 = 0.02;

/// Compares the time that a client says its requests took with the time that its users had.
///
/// `residual = 1 − sum ÷ (users × window)` is what response time does not explain: work of the client, ramp-up,
/// users that stopped. Below −2 % it is impossible. A request that ended in the window may have begun in the
/// warm-up, one a user; it hangs over by no more than the warm-up, nor by more than the longest request, which
/// is known where none failed. Of users the client cannot have had more than were asked for.
///
/// `None`: the client does not tell the sum, or its window is none, which `client_times` says.
#[must_use]
pub fn check_little(o: &Outcome, start_at_ns: u64, asked_users: u64) -> Option<Check> {
    let window_ns = o.window_end_ns.checked_sub(o.window_start_ns)?;
    if o.latency_sum_ns == 0 || window_ns == 0 {
        return None;
    }
    let warmup_ns = o.window_start_ns.saturating_sub(start_at_ns);
    let longest = o.series.iter().filter_map(|s| s.max_ns).max();
    let overhang_ns = match longest.filter(|_| o.window.errors == 0) {
        Some(longest) => longest.min(warmup_ns),
        None => warmup_ns,
    };
    let users = o.users.min(asked_users);
    let room_ns = users as f64 * (window_ns as f64 + overhang_ns as f64);
    Some(Check {
        name: "little".into(),
        ok: o.latency_sum_ns as f64 <= room_ns * (1.0 + TOLERANCE),
        detail: format!(
            "requests took {:.3} s in all, {users} users had {:.3} s ({:.3} s of window, {:.3} s of warm-up under way)",
            o.latency_sum_ns as f64 / 1e9,
            room_ns / 1e9,
            window_ns as f64 / 1e9,
            overhang_ns as f64 / 1e9,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::tests::outcome;
    use yieldpoint_protocol::ErrorKind;

    #[test]
    fn users_have_no_more_time_than_passes() {
        const S: u64 = 1_000_000_000;
        // warm-up s, sum s, users said, users asked, longest good request s, errors; holds? None: no check
        type Row = (u64, f64, u64, u64, Option<u64>, u64, Option<bool>);
        let table: [Row; 12] = [
            (0, 0.0, 2, 2, Some(1), 0, None),         // the client does not tell
            (0, 19.9, 2, 2, Some(1), 0, Some(true)),  // 2 users × 10 s, busy throughout
            (0, 1.0, 2, 2, Some(1), 0, Some(true)),   // the rest is the client's own work
            (0, 20.3, 2, 2, Some(1), 0, Some(true)),  // clocks: within 2 %
            (0, 20.5, 2, 2, Some(1), 0, Some(false)), // more time than the users had
            (0, 20.5, 2, 2, Some(1), 9, Some(false)), // failed ones make no exception
            (0, 20.5, 9, 2, Some(1), 0, Some(false)), // nor do users that nobody asked for
            (0, 11.0, 1, 2, Some(1), 0, Some(false)), // those that ran are what counts
            (5, 21.9, 2, 2, Some(1), 0, Some(true)), // one request a user began in the warm-up: 1 s
            (5, 23.0, 2, 2, Some(1), 0, Some(false)), // but not more than the longest
            (5, 29.0, 2, 2, Some(1), 9, Some(true)), // a failed one may have been longer: the warm-up
            (5, 29.0, 2, 2, None, 0, Some(true)), // the client does not say how long the longest was
        ];
        for (i, (warmup, sum, users, asked, longest, errors, want)) in table.into_iter().enumerate()
        {
            let mut o = outcome(1_000, &[(ErrorKind::Timeout, errors)], 1);
            (o.window_start_ns, o.window_end_ns) = ((3 + warmup) * S, (13 + warmup) * S);
            o.latency_sum_ns = (sum * 1e9) as u64;
            o.users = users;
            o.series[0].max_ns = longest.map(|s| s * S);
            let got = check_little(&o, 3 * S, asked);
            assert_eq!(got.as_ref().map(|c| c.ok), want, "row {i}: {got:?}");
        }
        let mut backwards = outcome(5, &[], 1);
        backwards.latency_sum_ns = 1;
        backwards.window_end_ns = backwards.window_start_ns - 1;
        assert_eq!(check_little(&backwards, 0, 1), None, "client_times says so");
    }
}

//! How often something costly may be read.

use rustix::time::{ClockId, clock_gettime};

/// A moment at which a row is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// CLOCK_MONOTONIC, ns
    pub now_ns: u64,
    /// the first row, the last, or one that was asked for: everything is read, so that what a counter
    /// grew by between the edges of a window is known
    pub edge: bool,
}

/// At most once a second, and so seldom that it takes at most a thousandth of one CPU.
///
/// What a reading costs depends on what is read (a walk of the kernel's socket table grows with its
/// TIME_WAIT entries, a list of threads with the threads), so the distance follows the cost: after a
/// reading of 4 ms the next comes 4 s later. Rows in between have no value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    due_ns: u64,
}

/// A little below 1 s: a tenth deadline that comes early by some µs must not be missed for it.
const SHORTEST_NS: u64 = 950_000_000;
/// Distance of two readings by what one costs.
const COST_SHARE: u64 = 1000;

impl Pace {
    /// Whether it is time.
    pub(crate) fn due(self, moment: Moment) -> bool {
        moment.edge || moment.now_ns >= self.due_ns
    }

    /// Reads if it is time, and sets the next time by what the reading cost.
    pub(crate) fn read<T>(
        &mut self,
        moment: Moment,
        read: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        if !self.due(moment) {
            return None;
        }
        let before = thread_cpu_ns();
        let value = read();
        let cost = thread_cpu_ns().zip(before).map_or(0, |(b, a)| b - a);
        self.due_ns = next(moment.now_ns, cost.unsigned_abs());
        value
    }
}

fn next(now_ns: u64, cost_ns: u64) -> u64 {
    now_ns.saturating_add(cost_ns.saturating_mul(COST_SHARE).max(SHORTEST_NS))
}

/// CPU time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> Option<i64> {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec.checked_mul(1_000_000_000)?.checked_add(t.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_distance_follows_the_cost() {
        let table = [
            (0, 950 * MS),        // free: once a second
            (50_000, 950 * MS),   // 0.05 ms: still once a second
            (4 * MS, 4_000 * MS), // 4 ms: a thousandth is 4 s
            (u64::MAX, u64::MAX), // no wrap
        ];
        for (cost, distance) in table {
            assert_eq!(next(0, cost), distance, "{cost}");
        }
    }

    #[test]
    fn between_two_readings_there_is_no_value_but_at_an_edge() {
        let mut pace = Pace::default();
        let mut at = |ms: u64, edge| {
            let moment = Moment {
                now_ns: ms * MS,
                edge,
            };
            pace.read(moment, || Some(ms))
        };
        let table = [
            (5, false, true),      // the first time
            (105, false, false),   // too early
            (205, true, true),     // an edge
            (1_005, false, false), // a second since the first, but not since the last
            (1_205, false, true),
        ];
        for (ms, edge, read) in table {
            assert_eq!(at(ms, edge).is_some(), read, "{ms}");
        }
    }
}

//! The course of a run, second by second, in memory that is reserved before it starts.
//!
//! Percentiles cannot be averaged over threads, so every thread keeps the histogram of every
//! second: dense while the second runs, as its non-empty slots afterwards.

use std::collections::TryReserveError;
use std::ops::Range;

use yieldpoint_protocol::{Histogram, Second};

/// Length of a row of the series, ns.
pub const SECOND_NS: u64 = 1_000_000_000;
/// Slots of an octave; half a slot is at most 1/64 of its value, so a percentile is within 1.6 %.
const PER_OCTAVE: u64 = 32;
/// 32 slots for each octave below 2^36 ns, which is above the greatest recorded time.
const SLOTS: usize = 1024;
const _: () = assert!(Histogram::HIGH_NS < 1 << 36);

/// The slot of a time of at most [`Histogram::HIGH_NS`]: exact below 64 ns, then 32 an octave.
fn slot(ns: u64) -> usize {
    let shift = (ns | PER_OCTAVE).ilog2() - PER_OCTAVE.ilog2();
    // At most 30·32 + 63, the last of SLOTS.
    (u64::from(shift) * PER_OCTAVE + (ns >> shift)) as usize
}

/// The middle of a slot, ns.
fn middle(slot: usize) -> u64 {
    let slot = slot as u64;
    let shift = (slot / PER_OCTAVE).saturating_sub(1);
    ((slot - shift * PER_OCTAVE) << shift) + (1 << shift) / 2
}

/// A slot of a past second and how many times it was met.
#[derive(Clone, Copy, Debug)]
struct Pair {
    slot: u16,
    count: u32,
}

/// What one thread counted in one second; the percentiles lie in its slots.
#[derive(Clone, Debug, Default)]
struct Row {
    counts: Second,
    slots: Range<usize>,
}

/// The seconds of one thread.
pub struct Seconds {
    rows: Vec<Row>,
    pairs: Vec<Pair>,
    // The second that runs now.
    current: usize,
    dense: Box<[u32; SLOTS]>,
}

impl Seconds {
    /// Reserves memory for a window of `duration_ns`: the worst case, 8 KiB a second and thread.
    /// It is touched only as far as it is used (about 1 KiB a second).
    pub fn new(duration_ns: u64) -> Result<Self, TryReserveError> {
        // A window has at most 86,400 s, see the knob `duration`.
        let seconds = duration_ns.div_ceil(SECOND_NS) as usize;
        let (mut rows, mut pairs) = (Vec::new(), Vec::new());
        rows.try_reserve_exact(seconds)?;
        rows.resize(seconds, Row::default());
        pairs.try_reserve_exact(seconds.saturating_mul(SLOTS))?;
        Ok(Self {
            rows,
            pairs,
            current: 0,
            dense: Box::new([0; SLOTS]),
        })
    }

    /// A request that ended `at_ns` after the window's start; `latency_ns` of a good one.
    /// Times of one thread do not run backwards.
    pub fn request(&mut self, at_ns: u64, latency_ns: Option<u64>) {
        let second = self.index(at_ns);
        let row = &mut self.rows[second].counts;
        row.attempts += 1;
        let Some(latency) = latency_ns else {
            row.errors += 1;
            return;
        };
        let latency = latency.min(Histogram::HIGH_NS);
        row.good += 1;
        row.max_ns = row.max_ns.max(Some(latency));
        if second > self.current {
            self.roll();
            self.current = second;
        }
        self.dense[slot(latency)] += 1;
    }

    /// A connection that was opened `at_ns` after the window's start.
    pub fn connection(&mut self, at_ns: u64) {
        let second = self.index(at_ns);
        self.rows[second].counts.connections += 1;
    }

    fn index(&self, at_ns: u64) -> usize {
        // The caller asks within the window only, so the second has its row.
        (at_ns / SECOND_NS) as usize
    }

    /// Keeps what the running second holds as pairs: at most SLOTS of them, and every second
    /// rolls at most once, so the reserved memory is enough.
    fn roll(&mut self) {
        let from = self.pairs.len();
        for (slot, count) in self.dense.iter_mut().enumerate() {
            if *count > 0 {
                self.pairs.push(Pair {
                    // SLOTS fits.
                    slot: slot as u16,
                    count: std::mem::take(count),
                });
            }
        }
        self.rows[self.current].slots = from..self.pairs.len();
    }

    /// Merges the threads' seconds: one row for each of the first `seconds` seconds.
    pub fn merge(threads: &mut [Self], seconds: usize) -> Vec<Second> {
        for thread in threads.iter_mut().filter(|t| !t.rows.is_empty()) {
            thread.roll();
        }
        let mut dense = [0u64; SLOTS];
        (0..seconds)
            .map(|i| {
                dense.fill(0);
                let mut sum = Second::default();
                for (thread, row) in threads.iter().filter_map(|t| Some((t, t.rows.get(i)?))) {
                    let c = &row.counts;
                    sum.attempts += c.attempts;
                    sum.good += c.good;
                    sum.errors += c.errors;
                    sum.connections += c.connections;
                    sum.max_ns = sum.max_ns.max(c.max_ns);
                    for pair in &thread.pairs[row.slots.clone()] {
                        dense[usize::from(pair.slot)] += u64::from(pair.count);
                    }
                }
                let percentile = |per_cent| {
                    let max = sum.max_ns?;
                    Some(middle(slot_at(&dense, sum.good, per_cent)).min(max))
                };
                Second {
                    p50_ns: percentile(50),
                    p90_ns: percentile(90),
                    p99_ns: percentile(99),
                    ..sum
                }
            })
            .collect()
    }

    /// Reserved bytes: what must not change while a run goes on.
    #[cfg(test)]
    pub fn reserved(&self) -> (usize, usize) {
        (self.rows.capacity(), self.pairs.capacity())
    }
}

/// The first slot at which `per_cent` of `total` times are reached (nearest rank).
fn slot_at(dense: &[u64; SLOTS], total: u64, per_cent: u64) -> usize {
    let rank = (total * per_cent).div_ceil(100).max(1);
    let mut seen = 0;
    dense
        .iter()
        .position(|count| {
            seen += count;
            seen >= rank
        })
        // Only if counts were lost, which the tests of the sums would show.
        .unwrap_or(SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_cover_every_time_in_order_and_within_a_64th() {
        let mut times: Vec<u64> = (0..4096).collect();
        times.extend((12..36).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + (1 << (e - 1))]));
        times.retain(|t| *t <= Histogram::HIGH_NS);
        times.push(Histogram::HIGH_NS);
        for pair in times.windows(2) {
            assert!(slot(pair[0]) <= slot(pair[1]), "{pair:?}");
        }
        for t in times {
            assert!(slot(t) < SLOTS, "{t}");
            let off = middle(slot(t)).abs_diff(t);
            assert!(off * 64 <= t, "{t} is off by {off}");
        }
        // each row: time, slot; the edges of the first octaves
        for (t, want) in [(0, 0), (31, 31), (32, 32), (63, 63), (64, 64), (127, 95)] {
            assert_eq!(slot(t), want, "{t}");
        }
    }

    #[test]
    fn two_threads_make_one_row_with_percentiles_of_all() {
        // Thread 1 is fast, thread 2 slow: a mean of percentiles would say 50 µs everywhere.
        let mut threads = [1_000u64, 100_000].map(|latency| {
            let mut s = Seconds::new(2 * SECOND_NS).unwrap();
            for i in 0..100 {
                s.request(i, Some(latency));
            }
            s.connection(SECOND_NS);
            s
        });
        threads[0].request(SECOND_NS, None);
        let rows = Seconds::merge(&mut threads, 2);
        assert_eq!(
            (rows[0].attempts, rows[0].good, rows[0].errors),
            (200, 200, 0)
        );
        let near = |got: Option<u64>, want: u64| got.unwrap().abs_diff(want) * 50 <= want;
        assert!(near(rows[0].p50_ns, 1_000), "{rows:?}");
        assert!(near(rows[0].p90_ns, 100_000), "{rows:?}");
        assert_eq!(rows[0].max_ns, Some(100_000), "the greatest is exact");
        // A second without a good request has no percentile.
        assert_eq!(
            rows[1],
            Second {
                attempts: 1,
                errors: 1,
                connections: 2,
                ..Second::default()
            }
        );
    }

    #[test]
    fn a_worst_case_fits_what_was_reserved() {
        let mut s = Seconds::new(3 * SECOND_NS).unwrap();
        let before = s.reserved();
        for second in 0..3 {
            for i in 0..=slot(Histogram::HIGH_NS) {
                s.request(
                    second * SECOND_NS + i as u64,
                    Some(middle(i).min(Histogram::HIGH_NS)),
                );
            }
        }
        s.roll();
        assert_eq!(s.reserved(), before);
        assert_eq!(s.pairs.len(), 3 * (slot(Histogram::HIGH_NS) + 1));
    }
}

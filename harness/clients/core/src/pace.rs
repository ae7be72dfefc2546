//! When requests are meant to start: at once when their user is free (closed loop), or at the
//! times of a schedule that no answer can delay (open loop).
//!
//! The intended start of a constant rate is a function of the request's index alone, so that no
//! error adds up; that of Poisson arrivals is the sum of the gaps that a seed gives.

use std::num::NonZeroU64;

use crate::{Setup, Window};

/// How the starts of an open loop are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// equal gaps; the threads take turns
    Constant,
    /// independent exponential gaps, so that the whole is a Poisson process
    Poisson,
}

/// The rule by which the users of one thread start their requests. They share it: whoever is
/// free takes the next start.
#[derive(Clone, Debug)]
pub enum Pace {
    /// whenever a user is free
    Closed,
    /// at intended times
    Open(Schedule),
}

impl Pace {
    /// The pace of the thread number `thread` of a job.
    #[must_use]
    pub fn new(setup: &Setup, window: Window, thread: usize) -> Self {
        match setup.rate {
            None => Self::Closed,
            Some(per_s) => Self::Open(Schedule {
                start_ns: window.go_ns,
                per_s,
                threads: setup.threads as u64,
                thread: thread as u64,
                index: 0,
                arrival: setup.arrival,
                // Not the same in two processes or trials, else the Poisson bursts of all
                // processes would coincide and every round would repeat one pattern.
                seed: window.go_ns ^ (u64::from(std::process::id()) << 32) ^ thread as u64,
                elapsed_ns: 0.0,
            }),
        }
    }

    /// The next intended start, ns; `None` in a closed loop. Starts of one pace do not run backwards.
    pub fn take(&mut self) -> Option<u64> {
        match self {
            Self::Closed => None,
            Self::Open(schedule) => Some(schedule.next_start_ns()),
        }
    }
}

/// The intended starts of one thread's requests.
#[derive(Clone, Debug)]
pub struct Schedule {
    start_ns: u64,
    // Of the whole process.
    per_s: f64,
    threads: u64,
    thread: u64,
    // Of the thread's next request.
    index: u64,
    arrival: Arrival,
    seed: u64,
    // Poisson: the last start since start_ns. A float holds a day of ns to 1/64 ns.
    elapsed_ns: f64,
}

impl Schedule {
    fn next_start_ns(&mut self) -> u64 {
        let index = self.index;
        self.index += 1;
        let after_ns = match self.arrival {
            Arrival::Constant => constant_ns(index * self.threads + self.thread, self.per_s),
            Arrival::Poisson => {
                let mean_ns = 1e9 * self.threads as f64 / self.per_s;
                self.elapsed_ns += gap_ns(random(self.seed, index), mean_ns);
                self.elapsed_ns
            }
        };
        // Never negative; what is beyond 2^64 ns saturates and is after every window.
        self.start_ns.saturating_add(after_ns as u64)
    }
}

/// Start of the request number `index` of the whole process after the common start, ns.
fn constant_ns(index: u64, per_s: f64) -> f64 {
    index as f64 * 1e9 / per_s
}

/// An exponential gap of the given mean, by inversion of its distribution function; ns.
fn gap_ns(random: u64, mean_ns: f64) -> f64 {
    // The 53 bits of a float: from 0 inclusive to 1 exclusive, so that the logarithm is finite.
    let share = (random >> 11) as f64 / (1u64 << 53) as f64;
    -(-share).ln_1p() * mean_ns
}

/// The number `index` of the sequence that a seed gives (splitmix64: Steele, Lea, Flood 2014).
fn random(seed: u64, index: u64) -> u64 {
    let z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Lets this thread's sleeps end when they should: the kernel may otherwise end them 50 µs late
/// to save wake-ups. Threads started by this one inherit it, so a closed loop does not ask for it.
pub fn sharpen_sleeps(setup: &Setup) {
    if setup.rate.is_some() {
        // The kernel refuses nothing here; without it, sleeps are 50 µs worse and nothing else.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::tests::setup;

    fn starts(per_s: f64, threads: usize, thread: usize, arrival: Arrival, n: usize) -> Vec<u64> {
        let setup = Setup {
            rate: Some(per_s),
            threads,
            arrival,
            ..setup()
        };
        let mut pace = Pace::new(&setup, Window::new(&setup, 1_000), thread);
        (0..n).map(|_| pace.take().unwrap()).collect()
    }

    #[test]
    fn constant_starts_are_a_function_of_the_index() {
        type Row = (f64, usize, usize, [u64; 3]);
        // each row: rate, threads, thread, its first starts after the common start at 1,000 ns
        let table: [Row; 6] = [
            (1_000.0, 1, 0, [1_000, 1_001_000, 2_001_000]),
            // two threads take turns, so that the process has the rate and not each thread
            (1_000.0, 2, 0, [1_000, 2_001_000, 4_001_000]),
            (1_000.0, 2, 1, [1_001_000, 3_001_000, 5_001_000]),
            // a period that is no whole number of ns does not add up its error
            (3.0, 1, 0, [1_000, 333_334_333, 666_667_666]),
            // slower than one a second
            (0.5, 1, 0, [1_000, 2_000_001_000, 4_000_001_000]),
            // faster than the clock can tell: starts coincide, none is lost
            (4e9, 1, 0, [1_000, 1_000, 1_000]),
        ];
        for (per_s, threads, thread, want) in table {
            let got = starts(per_s, threads, thread, Arrival::Constant, 3);
            assert_eq!(got, want, "{per_s}/s, thread {thread} of {threads}");
        }
        // The millionth start of a third of a ns period error is still exact.
        assert_eq!(constant_ns(3_000_000, 3.0), 1e15);
    }

    #[test]
    fn gaps_are_exponential() {
        // each row: random number, gap in means; the quantile function of the exponential
        let table = [
            (0, 0.0),
            (1 << 63, std::f64::consts::LN_2),         // the median
            (3 << 62, 2.0 * std::f64::consts::LN_2),   // the upper quartile
            (u64::MAX, 53.0 * std::f64::consts::LN_2), // the greatest is finite
        ];
        for (random, want) in table {
            let got = gap_ns(random, 1.0);
            assert!(
                (got - want).abs() < 1e-9,
                "{random}: {got}, expected {want}"
            );
        }
    }

    #[test]
    fn a_seed_gives_a_poisson_process() {
        const N: u64 = 200_000;
        let gaps: Vec<f64> = (0..N).map(|i| gap_ns(random(42, i), 1_000.0)).collect();
        let mean = gaps.iter().sum::<f64>() / N as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / N as f64;
        // Standard error of the mean: 1,000/√N = 2.2; of the deviation 1,000·√(2/N) = 3.2.
        assert!((mean - 1_000.0).abs() < 12.0, "mean {mean}");
        assert!((variance.sqrt() - 1_000.0).abs() < 16.0, "{variance}");
        assert_ne!(random(1, 0), random(2, 0), "seeds differ");
    }

    #[test]
    fn poisson_starts_do_not_run_backwards_and_keep_the_rate_of_all_threads() {
        for threads in [1, 4] {
            let got = starts(10_000.0, threads, 0, Arrival::Poisson, 100_000);
            assert!(got.is_sorted());
            let mean = got[99_999] as f64 / 1e5;
            let want = 1e5 * threads as f64;
            assert!((mean / want - 1.0).abs() < 0.02, "mean gap {mean}, {want}");
        }
    }

    #[test]
    fn a_closed_loop_has_no_intended_start() {
        let setup = setup();
        let mut pace = Pace::new(&setup, Window::new(&setup, 0), 0);
        assert_eq!(pace.take(), None);
    }
}

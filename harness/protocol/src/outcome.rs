//! What a client says it did.

use serde::{Deserialize, Serialize};

use crate::{ErrorKind, Histogram, HistogramError};

/// The result of one client process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// First moment of the window (after warm-up), CLOCK_MONOTONIC ns.
    pub window_start_ns: u64,
    /// Last moment of the window: its planned end, or the last response where a count of iterations ended it.
    pub window_end_ns: u64,
    /// What happened in the window. A request belongs to the window in which it *ended*; `attempts = good + errors`.
    pub window: Counts,
    /// What happened from `go` to the last close, warm-up and the requests in flight at the end included.
    pub total: Counts,
    /// Failed requests from `go` to the last close by kind; the counts add up to `total.errors`.
    pub errors: Vec<ErrorCount>,
    /// One entry a second of the window, [start + i s, start + (i+1) s). Its counts add up to `window`.
    pub series: Vec<Second>,
    /// Time from the start of a good request to its last byte in ns; a connect that it needed is included.
    pub latency: Histogram,
    /// Open loop: the same from the intended start of a request, a wait for a busy user included, ns;
    /// empty in a closed loop, where both starts are one.
    #[serde(default)]
    pub latency_intended: Histogram,
    /// Time of connect() of opened connections in ns; empty where the library hides it.
    pub connect: Histogram,
    /// Time of complete iterations without an error in ns.
    pub iteration: Histogram,
    /// Recorded times beyond the histogram's range; they were recorded as its greatest value.
    #[serde(default)]
    pub saturated: u64,
    /// Virtual users that ran.
    pub users: u64,
    /// Sum of the times of all requests of the window, failed ones included, each from its actual start to its
    /// end, ns; 0: the client does not tell. No user is in two requests at once, so it is at most users × window
    /// (and what a warm-up left under way).
    #[serde(default)]
    pub latency_sum_ns: u64,
}

impl Outcome {
    /// The outcome of several processes as if they were one; exact, and the order does not matter
    /// but for examples of errors that are equally early.
    ///
    /// Counts and users add up, the window reaches from the first start to the last end, histograms
    /// are added slot by slot. The seconds of the series are those of each process's own window,
    /// which all begin with `go`. Percentiles of a second in which several processes had good
    /// requests are not known from their percentiles: they become null, the greatest stays.
    ///
    /// # Errors
    /// A histogram that is none, or whose range is wider than [`Histogram::recorder`]'s.
    pub fn merge(&self, other: &Self) -> Result<Self, HistogramError> {
        let seconds = self.series.len().max(other.series.len());
        let second = |o: &Self, i: usize| o.series.get(i).copied().unwrap_or_default();
        Ok(Self {
            window_start_ns: self.window_start_ns.min(other.window_start_ns),
            window_end_ns: self.window_end_ns.max(other.window_end_ns),
            window: self.window.add(other.window),
            total: self.total.add(other.total),
            errors: merge_errors(&self.errors, &other.errors),
            series: (0..seconds)
                .map(|i| second(self, i).add(second(other, i)))
                .collect(),
            latency: self.latency.add(&other.latency)?,
            latency_intended: self.latency_intended.add(&other.latency_intended)?,
            connect: self.connect.add(&other.connect)?,
            iteration: self.iteration.add(&other.iteration)?,
            saturated: self.saturated.saturating_add(other.saturated),
            users: self.users.saturating_add(other.users),
            // A process that does not tell leaves the sum of all unknown.
            latency_sum_ns: match (self.latency_sum_ns, other.latency_sum_ns) {
                (0, _) | (_, 0) => 0,
                (a, b) => a.saturating_add(b),
            },
        })
    }

    /// Whether every histogram can be read; else the name of the first that cannot, and why.
    pub fn check_histograms(&self) -> Result<(), (&'static str, HistogramError)> {
        let all = [
            ("latency", &self.latency),
            ("latency_intended", &self.latency_intended),
            ("connect", &self.connect),
            ("iteration", &self.iteration),
        ];
        for (name, histogram) in all {
            histogram.decode().map_err(|e| (name, e))?;
        }
        Ok(())
    }
}

/// Counts of each kind add up; the earlier first failure gives time and example.
fn merge_errors(a: &[ErrorCount], b: &[ErrorCount]) -> Vec<ErrorCount> {
    let mut merged: Vec<ErrorCount> = Vec::new();
    for e in a.iter().chain(b) {
        match merged.iter_mut().find(|m| m.kind == e.kind) {
            None => merged.push(e.clone()),
            Some(m) => {
                m.count = m.count.saturating_add(e.count);
                if e.first_ns < m.first_ns {
                    m.first_ns = e.first_ns;
                    m.example.clone_from(&e.example);
                }
            }
        }
    }
    merged.sort_by_key(|e| e.kind);
    merged
}

/// Counts over a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// requests that ended, well or not
    pub attempts: u64,
    /// complete responses of expected status and length
    pub good: u64,
    /// the others
    pub errors: u64,
    /// iterations that ran to their end without an error
    pub iterations: u64,
    /// connections opened
    pub connections: u64,
    /// connections asked for and not got
    pub connect_failures: u64,
    /// bytes of bodies received
    pub body_bytes: u64,
}

impl Counts {
    /// The sum. It stops at the greatest number rather than wrap: a client that lies is found by the checks.
    fn add(self, other: Self) -> Self {
        Self {
            attempts: self.attempts.saturating_add(other.attempts),
            good: self.good.saturating_add(other.good),
            errors: self.errors.saturating_add(other.errors),
            iterations: self.iterations.saturating_add(other.iterations),
            connections: self.connections.saturating_add(other.connections),
            connect_failures: self.connect_failures.saturating_add(other.connect_failures),
            body_bytes: self.body_bytes.saturating_add(other.body_bytes),
        }
    }
}

/// Failed requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorCount {
    /// the kind
    pub kind: ErrorKind,
    /// how many
    pub count: u64,
    /// when the first ended, CLOCK_MONOTONIC ns
    pub first_ns: u64,
    /// text of the first, at most 200 characters
    pub example: String,
}

/// One second of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// requests that ended
    pub attempts: u64,
    /// good ones
    pub good: u64,
    /// failed ones
    pub errors: u64,
    /// connections opened
    pub connections: u64,
    /// latency percentiles of the good ones, ns, within 2 %; null where there was none
    pub p50_ns: Option<u64>,
    /// 90th
    pub p90_ns: Option<u64>,
    /// 99th
    pub p99_ns: Option<u64>,
    /// greatest
    pub max_ns: Option<u64>,
}

impl Second {
    fn add(self, other: Self) -> Self {
        let percentile = |of: fn(&Self) -> Option<u64>| match (self.good, other.good) {
            (_, 0) => of(&self),
            (0, _) => of(&other),
            _ => None,
        };
        Self {
            attempts: self.attempts.saturating_add(other.attempts),
            good: self.good.saturating_add(other.good),
            errors: self.errors.saturating_add(other.errors),
            connections: self.connections.saturating_add(other.connections),
            p50_ns: percentile(|s| s.p50_ns),
            p90_ns: percentile(|s| s.p90_ns),
            p99_ns: percentile(|s| s.p99_ns),
            // `None` is less than any time.
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(times: &[u64]) -> Histogram {
        let mut h = Histogram::recorder();
        times.iter().for_each(|t| h.record(*t).unwrap());
        Histogram::encode(&h)
    }

    fn counts(good: u64, errors: u64) -> Counts {
        Counts {
            attempts: good + errors,
            good,
            errors,
            iterations: good,
            connections: good,
            connect_failures: errors,
            body_bytes: good * 12,
        }
    }

    fn second(good: u64, p50_ns: u64) -> Second {
        let time = (good > 0).then_some(p50_ns);
        Second {
            attempts: good,
            good,
            p50_ns: time,
            p90_ns: time,
            p99_ns: time,
            max_ns: time,
            ..Second::default()
        }
    }

    fn error(kind: ErrorKind, count: u64, first_ns: u64) -> ErrorCount {
        ErrorCount {
            kind,
            count,
            first_ns,
            example: format!("at {first_ns}"),
        }
    }

    fn outcome(start: u64, good: u64, errors: Vec<ErrorCount>, series: Vec<Second>) -> Outcome {
        let failed = errors.iter().map(|e| e.count).sum();
        Outcome {
            window_start_ns: start,
            window_end_ns: start + good,
            window: counts(good, failed),
            total: counts(good + 1, failed),
            errors,
            series,
            latency: histogram(&[1_000 * good]),
            latency_intended: Histogram::default(),
            connect: Histogram::default(),
            iteration: histogram(&[5_000, 7_000]),
            saturated: 1,
            users: good,
            latency_sum_ns: 1_000 * good,
        }
    }

    #[test]
    fn two_processes_are_one_with_the_sum_of_both() {
        use ErrorKind::{Reset, Timeout};
        let a = outcome(
            100,
            3,
            vec![error(Timeout, 2, 50), error(Reset, 1, 9)],
            vec![second(2, 10), second(1, 20)],
        );
        let b = outcome(
            90,
            40,
            vec![error(Timeout, 5, 40)],
            vec![second(4, 30), second(0, 0), second(1, 7)],
        );
        let sum = a.merge(&b).unwrap();
        assert_eq!((sum.window_start_ns, sum.window_end_ns), (90, 130));
        assert_eq!(sum.window, counts(43, 8));
        assert_eq!(sum.total, counts(45, 8));
        assert_eq!((sum.saturated, sum.users), (2, 43));
        assert_eq!(sum.latency_sum_ns, 43_000);
        let silent = Outcome {
            latency_sum_ns: 0,
            ..b.clone()
        };
        assert_eq!(
            a.merge(&silent).unwrap().latency_sum_ns,
            0,
            "half a sum is none"
        );
        // The kinds in the order of a request's life; the earlier example.
        assert_eq!(sum.errors, [error(Reset, 1, 9), error(Timeout, 7, 40)]);
        // Both had good ones: no percentile but the greatest. One had: its own. One had ended: the other's.
        let both = Second {
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            ..second(6, 30)
        };
        assert_eq!(sum.series, [both, second(1, 20), second(1, 7)]);
        assert_eq!(sum.latency, histogram(&[3_000, 40_000]));
        assert_eq!(sum.iteration, histogram(&[5_000, 5_000, 7_000, 7_000]));
        assert_eq!(sum.connect, Histogram::default(), "hidden stays hidden");
        assert_eq!(sum, b.merge(&a).unwrap(), "the order does not matter");
    }

    #[test]
    fn a_histogram_that_is_none_is_named() {
        let mut broken = outcome(1, 2, vec![], vec![]);
        assert!(broken.check_histograms().is_ok());
        broken.connect = Histogram("bm8=".into());
        assert_eq!(broken.check_histograms().unwrap_err().0, "connect");
        assert!(broken.merge(&outcome(1, 2, vec![], vec![])).is_err());
    }
}

//! What a client says it did.

use serde::{Deserialize, Serialize};

use crate::{ErrorKind, Histogram};

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

//! One line of the journal: everything that is known of one trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yieldpoint_protocol::{Outcome, Testimony};
use yieldpoint_terms::{Knobs, SampleSeries, Value};

/// Why a trial was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// a cell of the matrix
    Cell,
    /// the A/A twin of a cell
    Control,
    /// the reference client, for a ceiling
    Ceiling,
}

impl Role {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cell => "cell",
            Self::Control => "control",
            Self::Ceiling => "ceiling",
        }
    }
}

/// Whether a trial counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// measured; failed *requests* leave a trial ok
    Ok,
    /// the trial could not be measured, or its two ends contradict each other
    Error,
    /// the client cannot do this cell
    Unsupported,
}

impl Status {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Unsupported => "unsupported",
        }
    }
}

/// Remarks that leave a trial ok.
pub mod flag {
    /// Declares each flag once: its meaning, its constant, its name in a row.
    macro_rules! flags {
        ($($(#[doc = $doc:literal])+ $flag:ident = $name:literal,)+) => {
            $($(#[doc = $doc])+ pub const $flag: &str = $name;)+
            /// Every flag with its meaning.
            pub const ALL: &[(&str, &str)] = &[$(($name, concat!($($doc),+).trim_ascii())),+];
        };
    }
    flags! {
        /// The trial saw the port burst only: shorter than a TIME_WAIT cycle (125 s), and its ports ran
        /// short or would have; its throughput is not sustained.
        BURST_ONLY = "burst_only",
        /// Beyond its limit was one of: steal, other programs on the CPUs of client or target while tasks waited,
        /// time lost to a CPU quota, a gap between samples.
        NOISY = "noisy",
        /// Only the client testifies (foreign URL).
        ONE_ENDED = "one_ended",
        /// TIME_WAIT entries were dropped at `tcp_max_tw_buckets`, which frees ports.
        TIME_WAIT_OVERFLOW = "time_wait_overflow",
        /// Client and target shared a core.
        SHARED_CPUS = "shared_cpus",
        /// The client did not put the asked load on: fewer users ran, or requests began at less than the asked
        /// rate, whatever the cause. Such a trial never wins a comparison.
        STARVED = "starved",
        /// A CPU quota of the client's control groups ran out at least once.
        THROTTLED = "throttled",
    }
}

/// TIME_WAIT entries of the lab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeWait {
    /// before `go`; 0 in a fresh namespace
    pub start: u64,
    /// after the window, held by the client's end
    pub client: Option<u64>,
    /// after the window, held by the target's end
    pub target: Option<u64>,
}

/// One consistency check of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// "client_sums", "little", "requests", "time_wait_start" and so on
    pub name: String,
    /// whether it holds
    pub ok: bool,
    /// both sides in figures
    pub detail: String,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// [`crate::FORMAT`]
    pub format: u32,
    /// id of the cell ("keepalive/client=ureq,threads=2")
    pub cell: String,
    /// 1, 2, …
    pub round: u32,
    /// why it ran
    pub role: Role,
    /// place in the run's order, from 0
    pub order: u32,
    /// value on every axis, in the matrix' order of axes
    pub coordinates: Vec<(String, Value)>,
    /// every knob, defaults included; durations in ns
    pub knobs: Knobs,
    /// whether it counts
    pub status: Status,
    /// why it does not
    pub error: Option<String>,
    /// see [`flag`]
    pub flags: Vec<String>,
    /// UTC, RFC 3339
    pub started: String,
    /// CLOCK_MONOTONIC of `go` in ns: zero of every time axis; absent if the trial never started
    pub start_at_ns: Option<u64>,
    /// whole time of the trial, lab and programs included, ns
    pub elapsed_ns: u64,
    /// "private" or "host"
    pub lab_mode: Option<String>,
    /// sysctls as they were read back inside
    pub sysctls: BTreeMap<String, String>,
    /// what the client says
    pub outcome: Option<Outcome>,
    /// what the target says
    pub testimony: Option<Testimony>,
    /// what was sampled
    pub samples: Option<SampleSeries>,
    /// TIME_WAIT by end
    pub time_wait: Option<TimeWait>,
    /// the consistency checks
    pub checks: Vec<Check>,
}

//! The messages themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yieldpoint_terms::{Knob, Knobs};

use crate::{Outcome, Testimony};

/// What the runner says to a client or a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToProgram {
    /// What to do. Answered by `ready`, `unsupported` or `failed`.
    Job(Job),
    /// Start: the window (warm-up first, if any) begins at this time of CLOCK_MONOTONIC.
    Go {
        /// ns, at most some ms ahead
        start_at_ns: u64,
    },
    /// To a target: tell what you saw. Answered by `testimony`.
    Report,
    /// Exit now; memory and CPU have been read.
    Bye,
}

/// What a client or a target says to the runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromProgram {
    /// The first line: who I am.
    Hello(Hello),
    /// Everything is allocated, threads stand at the start (a target: it listens).
    Ready {
        /// A target: "address:port" it listens on; a client: empty.
        #[serde(default)]
        listens: String,
    },
    /// This client cannot do this job: a row with this reason, not an error.
    Unsupported {
        /// one sentence
        reason: String,
    },
    /// This program wanted to do the job and could not (port in use, no descriptor left).
    Failed {
        /// one sentence: what, expected, got, fix
        reason: String,
    },
    /// A target's sign of life, once a second after `go`; totals since then.
    Tick {
        /// requests served
        requests: u64,
        /// connections accepted
        connections: u64,
    },
    /// The client's last request has ended and every connection is closed.
    End {
        /// when
        at_ns: u64,
    },
    /// A client's result, after `end`.
    Outcome(Box<Outcome>),
    /// A target's result, after `report`.
    Testimony(Box<Testimony>),
}

/// Whether a program makes load or serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// makes load
    Client,
    /// serves it
    Target,
}

/// Who a program is. Started with `--describe` it prints its `hello` message and exits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`crate::VERSION`]
    pub protocol: u32,
    /// client or target
    pub role: Role,
    /// its name as in a matrix ("ureq", "static")
    pub name: String,
    /// its own version
    pub version: String,
    /// name and version of the HTTP library underneath ("ureq 3.5.2")
    #[serde(default)]
    pub library: String,
    /// One sentence for `yieldpoint clients`.
    #[serde(default)]
    pub about: String,
    /// Names of the common knobs it obeys; a cell that sets another knob away from its default is unsupported.
    #[serde(default)]
    pub honours: Vec<String>,
    /// Greatest values of knobs it can do ("users_per_thread" → 1).
    #[serde(default)]
    pub limits: BTreeMap<String, i64>,
    /// Knobs of its own, with short names ("tcp_nodelay"); the matrix knows them as
    /// "options.<client>.tcp_nodelay" or "target.<name>".
    #[serde(default)]
    pub knobs: Vec<Knob>,
}

/// What to do: knobs as a map.
///
/// A client gets the common knobs by name and its own as "options.<name>"
/// (without the client's name); a target gets its knobs by their short names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// [`crate::VERSION`]
    pub protocol: u32,
    /// knobs by name; durations in ns
    pub knobs: Knobs,
}

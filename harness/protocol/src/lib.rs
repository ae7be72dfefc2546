//! Messages across a process boundary: one JSON object a line.
//!
//! ```text
//! program → runner   hello                ready        end, outcome
//! runner  → program          job                 go                  bye
//! ```
//! A client and a target speak the same protocol over their stdin and stdout (one inherited
//! socket pair); only the report differs: a client sends `end` and `outcome` by itself, a
//! target sends a `tick` every second and its `testimony` when it is asked with `report`.
//! All times are CLOCK_MONOTONIC in ns; a duration knob is an integer of nanoseconds.

mod channel;
mod error_kind;
mod histogram;
mod messages;
mod outcome;
mod testimony;

pub use channel::{ChannelError, LineReader, MAX_LINE, MAX_SHORT_LINE, send};
pub use error_kind::ErrorKind;
pub use histogram::{Histogram, HistogramError};
pub use messages::{FromProgram, Hello, Job, Role, ToProgram};
pub use outcome::{Counts, ErrorCount, Outcome, Second};
pub use testimony::{TargetSeries, Testimony};

/// The version of this protocol; both ends must have the same.
pub const VERSION: u32 = 1;

//! Layout of `results/`: names, versions, the manifest, the journal and its append-only writer.
//!
//! Nothing recorded is ever overwritten: a run makes its own folder, a journal only grows,
//! and one line is one trial, flushed before the next begins.

mod folder;
mod journal;
mod manifest;
mod trial;

pub use folder::{RecordError, RunFolder, file};
pub use journal::{Journal, read_journal};
pub use manifest::{
    Asked, AxisFact, LabFact, Machine, Manifest, MetricFact, ProgramFact, Resume, SequentialFact,
};
pub use trial::{Check, Role, Status, TimeWait, Trial, flag};

/// The version of manifest and journal; a reader refuses another one.
pub const FORMAT: u32 = 1;

//! Journal → Polars tables → figures. Every statistic is computed here.
//!
//! ```text
//! manifest, trials → tables() → Tables ─┬→ Tables::write → tables/*.parquet, *.csv
//!                                       └→ report() → figures::Report → summary()
//! ```
//! A figure takes the numbers of its trials from the tables, so that a report never shows a number
//! that its tables do not hold.

mod columns;
mod errors;
mod figures;
mod grid;
mod histograms;
mod keys;
mod samples;
mod stats;
mod summary;
#[cfg(test)]
mod synthetic;
mod text;
mod timeline;
mod trials;
mod values;
mod write;

use anyhow::Context as _;
use polars::prelude::DataFrame;
use yieldpoint_record::{Manifest, Trial};

pub use columns::{ColumnFact, columns, words};
pub use figures::report;
pub use summary::summary;

/// The tables of a run. Rows of `trials` stand in the order of the journal.
#[derive(Clone, Debug)]
pub struct Tables {
    /// one row a trial
    pub trials: DataFrame,
    /// one row a slot of a trial: 100 ms as the target saw it, 1 s as the client saw it
    pub timeline: DataFrame,
    /// one row a sample of a trial, one column a metric
    pub samples: DataFrame,
    /// one row a trial and kind of failed request
    pub errors: DataFrame,
    /// one row a trial, histogram and occupied slot
    pub histograms: DataFrame,
}

/// Makes the tables. What a trial does not have is null in its row.
pub fn tables(manifest: &Manifest, trials: &[Trial]) -> anyhow::Result<Tables> {
    Ok(Tables {
        trials: trials::table(manifest, trials).context("table \"trials\"")?,
        timeline: timeline::table(trials).context("table \"timeline\"")?,
        samples: samples::table(manifest, trials).context("table \"samples\"")?,
        errors: errors::table(trials).context("table \"errors\"")?,
        histograms: histograms::table(trials).context("table \"histograms\"")?,
    })
}

#[cfg(test)]
mod contract;

//! Journal → Polars tables → figures. Every statistic is computed here.
//!
//! ```text
//! manifest, trials → tables() → Tables ─┬→ Tables::write → tables/*.parquet, *.csv
//!                                       └→ report() → figures::Report → summary()
//! ```
//! A figure takes the numbers of its trials from the tables, so that a report never shows a number
//! that its tables do not hold.

mod breakpoints;
mod bulk;
mod ceilings;
mod columns;
mod confusion;
mod controls;
mod effects;
mod errors;
mod figures;
mod grid;
mod histograms;
mod keys;
mod phases;
mod repeated;
mod samples;
mod scaling;
mod stats;
mod summary;
#[cfg(test)]
mod synthetic;
mod text;
mod timeline;
mod trials;
mod values;
mod why;
mod write;

use anyhow::Context as _;
use polars::prelude::DataFrame;
use yieldpoint_record::{Manifest, Trial};

pub use columns::{ColumnFact, columns, words};
pub use figures::report;
pub use summary::summary;

/// The tables of a run that grow with its trials and not with their length; the others are made while they are
/// written. Rows of `trials` stand in the order of the journal.
#[derive(Clone, Debug)]
pub struct Tables {
    /// one row a trial
    pub trials: DataFrame,
    /// one row a trial and kind of failed request
    pub errors: DataFrame,
    /// one row a trial and phase
    pub phases: DataFrame,
    /// one row a place along a numeric axis where throughput stops rising or falls
    pub breakpoints: DataFrame,
    /// one row an effect of one knob, or of two on each other
    pub effects: DataFrame,
    /// one row a control: its throughput beside that of its cell in the same round
    pub controls: DataFrame,
    /// one row a target, lab and use of connections: what the reference client reached on it
    pub ceilings: DataFrame,
    /// one row an injected cause and verdict, of a run that proves verdicts by fault injection
    pub confusion: DataFrame,
}

/// Makes the tables. What a trial does not have is null in its row.
pub fn tables(manifest: &Manifest, trials: &[Trial]) -> anyhow::Result<Tables> {
    let read = trials::Read::all(trials);
    let times: Vec<why::Times> = read.iter().map(trials::Read::times).collect();
    let (whys, references) = why::explain(manifest, trials, &times);
    let of_trials = trials::table(manifest, trials, &read, &whys).context("table \"trials\"")?;
    let grid = grid::Grid::of_rows(manifest, trials, &of_trials)?;
    let breaks = breakpoints::find(&grid);
    let effects = effects::find(&grid);
    Ok(Tables {
        phases: phases::table(trials, &whys).context("table \"phases\"")?,
        breakpoints: breakpoints::table(&grid, &breaks).context("table \"breakpoints\"")?,
        effects: effects::table(&grid, &effects).context("table \"effects\"")?,
        controls: controls::table(&grid.controls).context("table \"controls\"")?,
        confusion: confusion::table(&confusion::count(manifest, trials, &whys))
            .context("table \"confusion\"")?,
        ceilings: ceilings::table(&references).context("table \"ceilings\"")?,
        trials: of_trials,
        errors: errors::table(trials).context("table \"errors\"")?,
    })
}

#[cfg(test)]
mod contract;

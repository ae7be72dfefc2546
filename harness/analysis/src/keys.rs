//! The columns that open every table below the trials: cell, round, role.

use polars::prelude::{Column, DataFrame, IdxCa, IdxSize, NamedFrom as _, PolarsResult};
use yieldpoint_record::Trial;

/// The key of every trial, and which trial each row of a table belongs to.
///
/// Rows refer to trials by index and the texts are gathered at the end: Polars then shares one text
/// between all rows of a trial, where a text a row would take the memory of the whole run.
pub(crate) struct Keys {
    of_trials: DataFrame,
    rows: Vec<IdxSize>,
}

impl Keys {
    pub fn new(trials: &[Trial]) -> PolarsResult<Self> {
        Ok(Self {
            of_trials: DataFrame::new(trials.len(), columns(trials))?,
            rows: Vec::new(),
        })
    }

    /// The next `n` rows belong to the trial at `index`.
    pub fn push(&mut self, index: usize, n: usize) -> anyhow::Result<()> {
        let index = IdxSize::try_from(index)?;
        self.rows.resize(self.rows.len() + n, index);
        Ok(())
    }

    /// The table: keys first, then the other columns.
    pub fn table(self, columns: &[Column]) -> PolarsResult<DataFrame> {
        self.of_trials
            .take(&IdxCa::new("trial".into(), self.rows))?
            .hstack(columns)
    }
}

/// Cell, round and role of every trial.
pub(crate) fn columns(trials: &[Trial]) -> Vec<Column> {
    let text = |of: fn(&Trial) -> &str| trials.iter().map(of).collect::<Vec<_>>();
    let rounds: Vec<i64> = trials.iter().map(|t| i64::from(t.round)).collect();
    vec![
        Column::new("cell".into(), text(|t| &t.cell)),
        Column::new("round".into(), rounds),
        Column::new("role".into(), text(|t| t.role.name())),
    ]
}

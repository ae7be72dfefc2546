//! What the sampler saw in one trial, column by column.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Samples of one trial: one time a row, one column a metric. Missing is null, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleSeries {
    /// CLOCK_MONOTONIC of each row in ns (absolute; subtract the trial's start for display).
    pub t_ns: Vec<u64>,
    /// metric name → one value a row
    pub columns: BTreeMap<String, Vec<Option<i64>>>,
}

impl SampleSeries {
    /// The greatest value of a column, if any was read.
    #[must_use]
    pub fn peak(&self, metric: &str) -> Option<i64> {
        self.columns.get(metric)?.iter().flatten().copied().max()
    }
    /// The last value of a column that was read.
    #[must_use]
    pub fn last(&self, metric: &str) -> Option<i64> {
        self.columns
            .get(metric)?
            .iter()
            .rev()
            .flatten()
            .copied()
            .next()
    }
}

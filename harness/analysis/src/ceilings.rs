//! The table `ceilings`: what the reference client reached on each target, lab and use of connections.

use polars::prelude::{Column, DataFrame};

use crate::why::Reference;

/// Makes the table, in the order of the ids.
pub(crate) fn table(references: &[Reference]) -> anyhow::Result<DataFrame> {
    let floats = |name: &str, of: &dyn Fn(&Reference) -> Option<f64>| {
        Column::new(name.into(), references.iter().map(of).collect::<Vec<_>>())
    };
    let cells: Vec<&str> = references.iter().map(|r| r.cell.as_str()).collect();
    // Without a rate no round counted.
    let rounds = |r: &Reference| r.rate().map_or(0, |rate| rate.rounds);
    let rounds: Vec<_> = references
        .iter()
        .map(|r| i64::try_from(rounds(r)).ok())
        .collect();
    let early: Vec<bool> = references.iter().map(|r| r.early).collect();
    let saturated: Vec<_> = references
        .iter()
        .map(|r| r.saturated().map(|s| s.name()))
        .collect();
    let columns = vec![
        Column::new("cell".into(), cells),
        Column::new("rounds".into(), rounds),
        floats("reached_per_s", &|r| Some(r.rate()?.per_s)),
        floats("reached_low", &|r| Some(r.rate()?.range.0)),
        floats("reached_high", &|r| Some(r.rate()?.range.1)),
        floats("target_cpu", &Reference::target_cpu),
        floats("client_cpu", &Reference::client_cpu),
        Column::new("early".into(), early),
        Column::new("saturated".into(), saturated),
    ];
    Ok(DataFrame::new(references.len(), columns)?)
}

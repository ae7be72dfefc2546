//! The table of failed requests: one row a cell and kind, all its rounds together.

use std::collections::BTreeMap;

use yieldpoint_figures::{Column, Row, Table};
use yieldpoint_protocol::ErrorKind;

use super::cells::coordinates;
use crate::grid::{Cell, Grid};
use crate::text;
use crate::timeline::zero;

/// (name, unit, is a number, meaning)
const COLUMNS: [(&str, &str, bool, &str); 5] = [
    ("kind", "", false, "Why the requests failed."),
    (
        "count",
        "requests",
        true,
        "Failed requests of this kind, from go to exit, all rounds together.",
    ),
    (
        "share",
        "of requests",
        true,
        "Of all requests from go to exit, all rounds together.",
    ),
    (
        "first",
        "from go",
        true,
        "When the first of any round ended.",
    ),
    ("example", "", false, "Text of the first error."),
];

/// Failures of one kind in a cell.
#[derive(Default)]
struct Failures<'a> {
    count: u64,
    first_ns: Option<u64>,
    example: &'a str,
}

/// Makes the table, cells in the order of the matrix, kinds in the order of a request's life.
pub(super) fn table(grid: &Grid) -> Table {
    let mut columns = vec![Column {
        name: "client".to_owned(),
        ..Column::default()
    }];
    columns.extend(grid.axes.iter().map(|axis| Column {
        name: axis.name.clone(),
        number: axis.numeric,
        ..Column::default()
    }));
    columns.extend(COLUMNS.iter().map(|(name, unit, number, doc)| Column {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        number: *number,
        doc: (*doc).to_owned(),
    }));
    Table {
        caption: String::new(),
        columns,
        rows: grid
            .cells
            .iter()
            .flat_map(|cell| rows(grid, cell))
            .collect(),
        sorted_by: None,
    }
}

fn rows(grid: &Grid, cell: &Cell) -> Vec<Row> {
    let mut kinds: BTreeMap<usize, Failures> = BTreeMap::new();
    let mut requests = 0.0;
    for round in cell.ok() {
        let Some(outcome) = &round.trial.outcome else {
            continue;
        };
        requests += outcome.total.attempts as f64;
        for error in outcome.errors.iter().filter(|e| e.count > 0) {
            let Some(kind) = ErrorKind::ALL.iter().position(|k| *k == error.kind) else {
                continue;
            };
            let failures = kinds.entry(kind).or_default();
            failures.count += error.count;
            let after = zero(round.trial).map(|zero| error.first_ns.saturating_sub(zero));
            failures.first_ns = failures.first_ns.into_iter().chain(after).min();
            if failures.example.is_empty() {
                failures.example = &error.example;
            }
        }
    }
    let row = |(kind, f): (usize, Failures)| {
        let first = f.first_ns.map(|ns| ns as f64);
        let count = f.count as f64;
        let mut entries = coordinates(grid, cell);
        entries.extend([
            (ErrorKind::ALL[kind].name().to_owned(), None),
            (text::count(f.count), Some(count)),
            (
                text::percent(count, requests).unwrap_or_default(),
                Some(count / requests).filter(|s| s.is_finite()),
            ),
            (first.map(text::time).unwrap_or_default(), first),
            (f.example.to_owned(), None),
        ]);
        let (cells, keys) = entries.into_iter().unzip();
        Row {
            cells,
            keys,
            mark: None,
        }
    };
    kinds.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};

    #[test]
    fn rounds_of_a_cell_are_added_up_and_the_first_error_is_the_earliest() {
        let early = synthetic::ran_out(synthetic::trial("ureq", 1), 2_000);
        let mut late = early.clone();
        late.round = 2;
        late.outcome.as_mut().unwrap().errors[0].first_ns += 1_000_000_000;
        let mut timeouts = early.outcome.clone().unwrap().errors;
        timeouts[0].kind = ErrorKind::Timeout;
        timeouts[0].count = 1;
        let trials = [late, early];
        let mut trials = trials.to_vec();
        trials[0].outcome.as_mut().unwrap().errors.extend(timeouts);
        let manifest = synthetic::manifest(&[]);
        let made = tables(&manifest, &trials).unwrap();
        let table = table(&Grid::new(&manifest, &trials, &made).unwrap());
        let rows: Vec<_> = table.rows.iter().map(|r| r.cells[..5].join("|")).collect();
        assert_eq!(
            rows,
            [
                "ureq|address_not_available|1,000|20.0 %|300 ms",
                "ureq|timeout|1|0.0200 %|300 ms",
            ]
        );
    }
}

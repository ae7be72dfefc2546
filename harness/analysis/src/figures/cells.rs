//! The table of cells: one row a cell, all its rounds together.

use yieldpoint_figures::{Column, Row, Table};
use yieldpoint_record::Status;

use crate::grid::{Cell, Grid, Numbers, STARVED, Said};
use crate::{histograms, text};

/// Heading of the throughput column; those before it are coordinates.
pub(crate) const GOOD: &str = "good/s";
/// Heading of what bound the cell.
pub(crate) const VERDICT: &str = "verdict";
const EVIDENCE: &str = "evidence";
/// Heading of the last column.
pub(crate) const NOTE: &str = "note";
/// Columns beside the coordinates that a terminal shows.
pub(crate) const SHORT: [&str; 5] = [GOOD, "errors", "connections", VERDICT, NOTE];

/// (name, unit, meaning)
const NUMBERS: [(&str, &str, &str); 14] = [
    (
        GOOD,
        "median (least–greatest)",
        "Good requests per second of the window: complete response, expected status and length.",
    ),
    (
        "ceiling",
        "good requests/s, by",
        "The least bound that is known and what sets it, of a round of the verdict: from laws of the kernel, from what was asked and from other cells.",
    ),
    (
        "errors",
        "of attempts",
        "Share of the requests that ended in the window and failed; all rounds together.",
    ),
    (
        "connections",
        "go to exit",
        "Connections the client opened from go to its exit; median of the rounds.",
    ),
    (
        "p50",
        "latency",
        "Half of the good requests took no longer, a connect that they needed included; histograms of all rounds merged.",
    ),
    (
        "p99",
        "latency",
        "99 of 100 good requests took no longer; histograms of all rounds merged.",
    ),
    (
        "CPU per good",
        "µs",
        "CPU time of the client ÷ good requests, from go to exit; median of the rounds.",
    ),
    (
        "memory",
        "MiB, peak",
        "Peak resident memory of the client; median of the rounds.",
    ),
    (
        "TIME_WAIT client",
        "entries",
        "TIME_WAIT entries held by the client's end after the window; median of the rounds.",
    ),
    (
        "TIME_WAIT target",
        "entries",
        "TIME_WAIT entries held by the target's end after the window; median of the rounds.",
    ),
    (
        "rounds",
        "measured",
        "Rounds that count, of those that ran.",
    ),
    (
        VERDICT,
        "",
        "What bound most of the rounds; two causes where two stand side by side.",
    ),
    (
        EVIDENCE,
        "",
        "What the verdict rests on, from the first round that it bound.",
    ),
    (NOTE, "", "What to know before believing the row."),
];

/// Makes the table, in the order of the matrix; a page sorts it by throughput first.
pub(super) fn table(grid: &Grid) -> Table {
    let mut columns = vec![Column {
        name: "client".to_owned(),
        doc: "The load client.".to_owned(),
        ..Column::default()
    }];
    columns.extend(grid.axes.iter().map(|axis| Column {
        name: axis.name.clone(),
        number: axis.numeric,
        doc: super::glossary::of_knob(grid.manifest, &axis.name),
        ..Column::default()
    }));
    columns.extend(NUMBERS.iter().map(|(name, unit, doc)| Column {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        number: ![VERDICT, EVIDENCE, NOTE].contains(name),
        doc: (*doc).to_owned(),
    }));
    Table {
        caption: String::new(),
        sorted_by: columns.iter().position(|c| c.name == GOOD),
        columns,
        rows: grid.cells.iter().map(|cell| row(grid, cell)).collect(),
    }
}

/// A text and the number that sorts it.
type Entry = (String, Option<f64>);

fn row(grid: &Grid, cell: &Cell) -> Row {
    let mut entries = coordinates(grid, cell);
    entries.extend([good(cell), ceiling(cell), errors(cell)]);
    entries.push(median(cell, |n| n.connections_total, text::counted));
    entries.extend(latency(cell));
    entries.extend([
        median(cell, |n| n.cpu_us_per_good, text::significant),
        median(
            cell,
            |n| n.rss_peak_kib.map(|kib| kib / 1024.0),
            text::significant,
        ),
        median(cell, |n| n.time_wait_client, text::counted),
        median(cell, |n| n.time_wait_target, text::counted),
        rounds(cell),
        said(cell, |s| &s.verdict),
        said(cell, |s| &s.evidence),
        (note(cell), None),
    ]);
    let (cells, keys) = entries.into_iter().unzip();
    Row {
        cells,
        keys,
        mark: mark(cell),
    }
}

/// Client and axes, before every other column of a table.
pub(super) fn coordinates(grid: &Grid, cell: &Cell) -> Vec<Entry> {
    let mut entries = vec![(grid.clients[cell.client].clone(), Some(cell.client as f64))];
    entries.extend(
        grid.axes
            .iter()
            .zip(&cell.place)
            .map(|(axis, at)| match at {
                // The position sorts words and numbers alike in the order of the axis.
                Some(i) => (axis.labels[*i].clone(), Some(*i as f64)),
                None => (String::new(), None),
            }),
    );
    entries
}

fn good(cell: &Cell) -> Entry {
    let Some(s) = cell.spread(|n| n.good_per_s) else {
        return (String::new(), None);
    };
    let [mid, low, high] = [s.mid, s.low, s.high].map(text::significant);
    // One round, or rounds that read the same, have no spread to show.
    let shown = if low == high {
        mid
    } else {
        format!("{mid} ({low}–{high})")
    };
    (shown, Some(s.mid))
}

/// What was predicted, beside what was measured.
fn ceiling(cell: &Cell) -> Entry {
    let known = cell.said.as_ref().and_then(|s| s.ceiling.as_ref());
    known.map_or((String::new(), None), |(per_s, kind)| {
        (
            format!("{} {kind}", text::significant(*per_s)),
            Some(*per_s),
        )
    })
}

fn errors(cell: &Cell) -> Entry {
    let windows = || {
        cell.ok()
            .filter_map(|r| r.trial.outcome.as_ref())
            .map(|o| o.window)
    };
    let failed = windows().map(|w| w.errors as f64).sum::<f64>();
    let attempts = windows().map(|w| w.attempts as f64).sum::<f64>();
    let shown = text::percent(failed, attempts);
    let key = shown.is_some().then(|| failed / attempts);
    (shown.unwrap_or_default(), key)
}

fn median(cell: &Cell, of: fn(&Numbers) -> Option<f64>, show: fn(f64) -> String) -> Entry {
    let mid = cell.spread(of).map(|s| s.mid);
    (mid.map(show).unwrap_or_default(), mid)
}

/// p50 and p99 of all rounds together.
fn latency(cell: &Cell) -> [Entry; 2] {
    let outcomes = cell.ok().filter_map(|r| r.trial.outcome.as_ref());
    let all = histograms::merged(outcomes.map(|o| &o.latency));
    [0.5, 0.99].map(|q| {
        let ns = histograms::percentile(&all, q).map(|ns| ns as f64);
        (ns.map(text::time).unwrap_or_default(), ns)
    })
}

fn rounds(cell: &Cell) -> Entry {
    let (ok, all) = (cell.ok().count(), cell.all.len());
    let shown = if ok == all {
        ok.to_string()
    } else {
        format!("{ok} of {all}")
    };
    (shown, Some(ok as f64))
}

fn said(cell: &Cell, of: fn(&Said) -> &str) -> Entry {
    (
        cell.said
            .as_ref()
            .map_or_else(String::new, |s| of(s).to_owned()),
        None,
    )
}

/// Marks, flags and the reasons of trials that do not count.
fn note(cell: &Cell) -> String {
    let mut notes: Vec<String> = cell.mark().into_iter().collect();
    let flags = cell.ok().flat_map(|r| &r.trial.flags);
    let marked = |f: &&String| [yieldpoint_record::flag::BURST_ONLY, STARVED].contains(&f.as_str());
    for flag in flags.filter(|f| !marked(f)) {
        notes.push(flag.replace('_', " "));
    }
    for round in cell.all.iter().filter(|r| r.trial.status != Status::Ok) {
        let why = round.trial.error.as_deref().unwrap_or("no reason recorded");
        notes.push(format!("{}: {why}", round.trial.status.name()));
    }
    let mut once: Vec<String> = Vec::new();
    for note in notes {
        if !once.contains(&note) {
            once.push(note);
        }
    }
    once.join("; ")
}

/// A row without a measured trial is named by the worst that happened; others by their mark.
fn mark(cell: &Cell) -> Option<String> {
    if cell.ok().next().is_some() {
        return cell.mark();
    }
    let error = cell.all.iter().any(|r| r.trial.status == Status::Error);
    let status = if error {
        Status::Error
    } else {
        Status::Unsupported
    };
    Some(status.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_record::Trial;

    fn only_row(trials: &[Trial]) -> (Vec<(String, String)>, Row) {
        let manifest = synthetic::manifest(&[]);
        let made = tables(&manifest, trials).unwrap();
        let table = table(&Grid::new(&manifest, trials, &made).unwrap());
        assert_eq!(table.rows.len(), 1);
        let row = table.rows[0].clone();
        let names = table.columns.into_iter().map(|c| c.name);
        (names.zip(row.cells.clone()).collect(), row)
    }

    fn cell<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
        &row.iter().find(|(n, _)| n == name).unwrap().1
    }

    #[test]
    fn a_row_holds_all_rounds_of_its_cell() {
        let mut slow = synthetic::good(synthetic::trial("ureq", 2), 1_000);
        // One round of 10 slow requests among 2,000 fast ones: the p99 of all is fast, the mean of two p99 is not.
        slow.outcome.as_mut().unwrap().latency = synthetic::histogram(&[1_000_000_000; 10]);
        let (row, raw) = only_row(&[synthetic::trial("ureq", 1), slow]);
        assert_eq!(cell(&row, GOOD), "750 (500–1,000)");
        assert_eq!(cell(&row, "errors"), "0 %");
        assert_eq!(cell(&row, "connections"), "20");
        assert_eq!(cell(&row, "p50"), "20.0 µs");
        assert_eq!(cell(&row, "p99"), "20.0 µs");
        assert_eq!(cell(&row, "CPU per good"), "30.0");
        assert_eq!(cell(&row, "memory"), "6.00");
        assert_eq!(cell(&row, "rounds"), "2");
        assert_eq!(cell(&row, NOTE), "");
        assert_eq!((raw.keys[1], raw.mark), (Some(750.0), None));
    }

    #[test]
    fn what_happened_is_noted_once() {
        let bad = |round| synthetic::ran_out(synthetic::trial("ureq", round), 2_000);
        let failed = synthetic::failed(synthetic::trial("ureq", 3), Status::Error, "hung");
        let mut noisy = bad(2);
        noisy.flags.push("noisy".into());
        let (row, raw) = only_row(&[bad(1), noisy, failed]);
        assert_eq!(
            cell(&row, NOTE),
            "ran out of ports, burst only; noisy; error: hung"
        );
        assert_eq!(cell(&row, "errors"), "20.0 %");
        assert_eq!(cell(&row, "TIME_WAIT client"), "2,000");
        assert_eq!(cell(&row, "rounds"), "2 of 3");
        assert_eq!(cell(&row, VERDICT), "ports_exhausted");
        assert!(cell(&row, EVIDENCE).contains("2,000 connections with 2,000 ports"));
        assert_eq!(raw.mark.as_deref(), Some("ran out of ports, burst only"));
    }

    #[test]
    fn what_was_not_measured_is_empty() {
        let cannot = synthetic::failed(
            synthetic::trial("ureq", 1),
            Status::Unsupported,
            "no threads",
        );
        let (row, raw) = only_row(&[cannot]);
        assert!(
            row[1..]
                .iter()
                .all(|(name, text)| text.is_empty() || ["rounds", NOTE].contains(&name.as_str()))
        );
        assert_eq!(cell(&row, NOTE), "unsupported: no threads");
        assert_eq!(raw.mark.as_deref(), Some("unsupported"));
        assert!(raw.keys[1..9].iter().all(Option::is_none));
    }
}

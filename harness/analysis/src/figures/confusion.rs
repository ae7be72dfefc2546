//! What was injected against what was said: shares, a matrix as a picture, and as a table.

use std::collections::BTreeMap;

use polars::prelude::DataFrame;
use yieldpoint_figures::{Column, Confusion, HeatCell, HeatGroup, HeatMap, HeatRow, Row, Table};

use crate::confusion::{Count, UNEXPLAINED, Worth, counts};
use crate::text;

/// Said of a trial that has no verdict.
const NOT_MEASURED: &str = "not measured";

/// Makes the figures from the table `confusion`; `None` of a run that injects nothing.
pub(super) fn confusion(table: &DataFrame) -> anyhow::Result<Option<Confusion>> {
    let counts = counts(table)?;
    if counts.is_empty() {
        return Ok(None);
    }
    let matrix = Matrix::new(&counts);
    Ok(Some(Confusion {
        shares: shares(&counts),
        map: matrix.map(),
        table: matrix.table(),
    }))
}

fn of(counts: &[Count], worth: Worth) -> u64 {
    let such = counts.iter().filter(|c| c.worth() == Some(worth));
    such.map(|c| c.trials).sum()
}

/// The shares with what their words mean.
fn shares(counts: &[Count]) -> Vec<String> {
    let measured: u64 = counts
        .iter()
        .filter(|c| c.verdict.is_some())
        .map(|c| c.trials)
        .sum();
    let all: u64 = counts.iter().map(|c| c.trials).sum();
    let unexplained = of(counts, Worth::Unexplained);
    let decided = measured - unexplained;
    let share = |n: u64, of: u64| {
        // Counts of trials, far below 2^53.
        let percent = text::percent(n as f64, of as f64);
        percent.map_or_else(String::new, |p| format!(" ({p})"))
    };
    let line = |word: &str, worth: Worth, means: &str| {
        let n = of(counts, worth);
        format!(
            "{word}: {} of {} decided{}: {means}.",
            text::count(n),
            text::count(decided),
            share(n, decided)
        )
    };
    let mut out = vec![
        format!(
            "Causes were injected into {}; {} measured, and {} decided: the verdict is not \"unexplained\".",
            text::plural(usize::try_from(all).unwrap_or(usize::MAX), "trial"),
            text::count(measured),
            text::count(decided)
        ),
        line(
            "Right",
            Worth::Right,
            "the verdict names exactly the causes that were injected",
        ),
        line(
            "Incomplete",
            Worth::Incomplete,
            "it names some of the injected causes and no other",
        ),
        line(
            "Wrong",
            Worth::Wrong,
            "it names a cause that was not injected",
        ),
    ];
    out.push(format!(
        "Unexplained: {} of {} measured{}: the evidence did not decide.",
        text::count(unexplained),
        text::count(measured),
        share(unexplained, measured)
    ));
    out
}

/// Injected causes × verdicts.
struct Matrix<'c> {
    injected: Vec<&'c str>,
    /// those that were injected first, in the same order; what decides nothing last
    verdicts: Vec<&'c str>,
    cells: BTreeMap<(&'c str, &'c str), &'c Count>,
}

impl<'c> Matrix<'c> {
    fn new(counts: &'c [Count]) -> Self {
        let verdict = |c: &'c Count| c.verdict.as_deref().unwrap_or(NOT_MEASURED);
        let mut injected: Vec<&str> = counts.iter().map(|c| c.injected.as_str()).collect();
        injected.dedup();
        let mut verdicts: Vec<&str> = counts.iter().map(verdict).collect();
        let place = |v: &str| {
            let last = match v {
                NOT_MEASURED => 2,
                UNEXPLAINED => 1,
                _ => 0,
            };
            let row = injected.iter().position(|i| i.replace('+', ",") == v);
            (last, row.unwrap_or(usize::MAX), v.to_owned())
        };
        verdicts.sort_by_key(|v| place(v));
        verdicts.dedup();
        Self {
            cells: counts
                .iter()
                .map(|c| ((c.injected.as_str(), verdict(c)), c))
                .collect(),
            injected,
            verdicts,
        }
    }

    fn map(&self) -> HeatMap {
        let cell = |injected: &str, verdict: &str| {
            let count = self.cells.get(&(injected, verdict))?;
            Some(HeatCell {
                // Counts of trials, far below 2^53.
                value: Some(count.trials as f64),
                text: text::count(count.trials),
                mark: (count.worth() == Some(Worth::Right)).then(|| "right".to_owned()),
            })
        };
        let row = |injected: &&str| HeatRow {
            label: injected.replace('+', " + "),
            cells: self.verdicts.iter().map(|v| cell(injected, v)).collect(),
        };
        HeatMap {
            id: "confusion".to_owned(),
            title: "Verdicts by injected cause".to_owned(),
            caption: "Rows: what was injected. Columns: what the verdict says. An empty place means no trial; only a \
                      marked corner is right."
                .to_owned(),
            x_label: "verdict".to_owned(),
            x_values: self.verdicts.iter().map(|v| v.replace(',', ", ")).collect(),
            y_label: "injected".to_owned(),
            value_label: "trials".to_owned(),
            log: false,
            range: None,
            groups: vec![HeatGroup {
                title: String::new(),
                rows: self.injected.iter().map(row).collect(),
            }],
        }
    }

    fn table(&self) -> Table {
        let column = |name: &str, unit: &str, doc: &str| Column {
            name: name.to_owned(),
            unit: unit.to_owned(),
            number: name != "injected",
            doc: doc.to_owned(),
        };
        let worths = [
            (Worth::Right, "right"),
            (Worth::Incomplete, "incomplete"),
            (Worth::Unexplained, UNEXPLAINED),
            (Worth::Wrong, "wrong"),
        ];
        let mut columns = vec![
            column("injected", "", "Causes that were injected."),
            column("trials", "measured", "Trials that have a verdict."),
        ];
        columns.extend(
            worths
                .iter()
                .map(|(_, name)| column(name, "trials", "As defined above.")),
        );
        let said = self.verdicts.iter().filter(|v| **v != UNEXPLAINED);
        let said: Vec<&str> = said.copied().collect();
        columns.extend(
            said.iter()
                .map(|v| column(&v.replace(',', ", "), "said", "Trials of this verdict.")),
        );
        let row = |injected: &&str| {
            let own = || {
                let of_row = self.cells.iter().filter(|((i, _), _)| i == injected);
                of_row.map(|(_, count)| *count)
            };
            let sum = |keep: &dyn Fn(&Count) -> bool| -> u64 {
                own().filter(|c| keep(c)).map(|c| c.trials).sum()
            };
            let number = |n: u64| (text::count(n), Some(n as f64));
            let mut entries = vec![
                (injected.replace('+', " + "), None),
                number(sum(&|c| c.verdict.is_some())),
            ];
            let of_worth = |(worth, _): &(Worth, _)| number(sum(&|c| c.worth() == Some(*worth)));
            entries.extend(worths.iter().map(of_worth));
            entries.extend(said.iter().map(|v| match self.cells.get(&(*injected, *v)) {
                Some(c) if c.worth() == Some(Worth::Right) => (
                    format!("{} ✓", text::count(c.trials)),
                    Some(c.trials as f64),
                ),
                Some(c) => number(c.trials),
                None => ("0".to_owned(), Some(0.0)),
            }));
            let (cells, keys) = entries.into_iter().unzip();
            Row {
                cells,
                keys,
                mark: None,
            }
        };
        Table {
            caption: "A verdict that names exactly what was injected has a check mark.".to_owned(),
            columns,
            rows: self.injected.iter().map(row).collect(),
            sorted_by: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{report, summary, synthetic, tables};
    use yieldpoint_record::Status;
    use yieldpoint_terms::Value;

    #[test]
    fn what_was_injected_stands_against_what_was_said() {
        let labels = [
            "ports_exhausted-1",
            "ports_exhausted+pacing-1",
            "client_cpu-1",
            "client_cpu-2",
        ]
        .map(|l| Value::Text(l.into()));
        let manifest = synthetic::manifest(&[("injected", &labels)]);
        let at = |i: usize, round| {
            let mut trial = synthetic::trial("ureq", round);
            trial.cell = format!("{},injected={}", trial.cell, labels[i]);
            trial
                .coordinates
                .push(("injected".into(), labels[i].clone()));
            trial
        };
        let trials = [
            synthetic::ran_out(at(0, 1), 2_000), // right
            synthetic::ran_out(at(0, 2), 2_000), // right
            synthetic::ran_out(at(1, 1), 2_000), // one of two causes
            synthetic::ran_out(at(2, 1), 2_000), // another cause
            at(3, 1),                            // nothing stands out
            synthetic::failed(at(3, 2), Status::Error, "no"),
            synthetic::control(synthetic::ran_out(at(0, 3), 2_000)), // a control is no injection
        ];
        let made = tables(&manifest, &trials).unwrap();
        assert_eq!(
            synthetic::names(&made.confusion),
            ["injected", "verdict", "trials"]
        );
        let shown = report(&manifest, &trials, &made).unwrap();
        let confusion = shown.confusion.as_ref().unwrap();
        assert_eq!(
            confusion.shares,
            [
                "Causes were injected into 6 trials; 5 measured, and 4 decided: the verdict is not \"unexplained\".",
                "Right: 2 of 4 decided (50.0 %): the verdict names exactly the causes that were injected.",
                "Incomplete: 1 of 4 decided (25.0 %): it names some of the injected causes and no other.",
                "Wrong: 1 of 4 decided (25.0 %): it names a cause that was not injected.",
                "Unexplained: 1 of 5 measured (20.0 %): the evidence did not decide.",
            ]
        );
        let map = &confusion.map;
        assert_eq!(
            map.x_values,
            ["ports_exhausted", "unexplained", "not measured"]
        );
        let rows: Vec<_> = map.groups[0]
            .rows
            .iter()
            .map(|r| r.label.as_str())
            .collect();
        assert_eq!(
            rows,
            ["client_cpu", "pacing + ports_exhausted", "ports_exhausted"]
        );
        let right = map.groups[0].rows[2].cells[0].as_ref().unwrap();
        assert_eq!(
            (right.text.as_str(), right.mark.as_deref()),
            ("2", Some("right"))
        );
        assert_eq!(map.groups[0].rows[2].cells[1], None);
        let rows: Vec<_> = confusion
            .table
            .rows
            .iter()
            .map(|r| r.cells.join("|"))
            .collect();
        assert_eq!(
            rows,
            [
                // injected, measured, right, incomplete, unexplained, wrong, said ports_exhausted, not measured
                "client_cpu|2|0|0|1|1|1|1",
                "pacing + ports_exhausted|1|0|1|0|0|1|0",
                "ports_exhausted|2|2|0|0|0|2 ✓|0",
            ]
        );
        assert!(summary(&shown, 200, false).contains("Right: 2 of 4 decided"));
    }

    #[test]
    fn a_run_that_injects_nothing_has_none() {
        let manifest = synthetic::manifest(&[]);
        let trials = [synthetic::trial("ureq", 1)];
        let made = tables(&manifest, &trials).unwrap();
        assert_eq!(made.confusion.height(), 0);
        assert_eq!(report(&manifest, &trials, &made).unwrap().confusion, None);
    }
}

//! What was injected against what was said.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use crate::runs::Row;
use crate::statement::Statement;

/// At least this share of the decided must be right.
const RIGHT: f64 = 0.95;
/// At most this share of all may be unexplained.
const UNEXPLAINED: f64 = 0.30;
/// At most this share of all may name a cause that was not injected.
const WRONG: f64 = 0.02;

/// How a verdict relates to what was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// the same causes
    Right,
    /// some of the causes, and no other
    Incomplete,
    /// a cause that was not injected
    Wrong,
    /// no cause
    Unexplained,
    /// not measured, and no verdict
    Error,
}

/// Counts of (injected, verdict), both as causes in alphabetical order joined by "+".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Confusion {
    counts: BTreeMap<(String, String), usize>,
    // What did not come out as injected: cell, verdict, evidence or error.
    astray: Vec<[String; 3]>,
}

const NO_VERDICT: &str = "error";

impl Confusion {
    /// Counts the cells in a run's table of trials.
    pub fn of(rows: &[Row]) -> Self {
        let mut all = Self::default();
        for row in rows {
            let text = |column: &str| row.get(column).map_or("", String::as_str);
            // Trials that a run makes for its own comparisons are no injections.
            if !matches!(text("role"), "" | "cell") {
                continue;
            }
            let Some((injected, _)) = text("injected").rsplit_once('-') else {
                continue;
            };
            let verdict = match text("verdict") {
                "" => NO_VERDICT.to_owned(),
                causes => sorted(causes.split(',')),
            };
            let injected = sorted(injected.split('+'));
            if fate(&injected, &verdict) != Fate::Right {
                let why = match text("evidence") {
                    "" => text("error"),
                    evidence => evidence,
                };
                all.astray
                    .push([text("cell").to_owned(), verdict.clone(), why.to_owned()]);
            }
            *all.counts.entry((injected, verdict)).or_default() += 1;
        }
        all
    }

    fn total(&self) -> usize {
        self.counts.values().sum()
    }

    fn count(&self, is: Fate) -> usize {
        let of =
            |((injected, verdict), _): &(&(String, String), &usize)| fate(injected, verdict) == is;
        self.counts.iter().filter(of).map(|(_, n)| n).sum()
    }

    /// The three bounds.
    pub fn statements(&self) -> Vec<Statement> {
        let (right, wrong, unexplained) = (
            self.count(Fate::Right),
            self.count(Fate::Wrong),
            self.count(Fate::Unexplained),
        );
        let decided = right + wrong + self.count(Fate::Incomplete);
        let line =
            |about: &str, expected: String, n: usize, of: usize, holds: &dyn Fn(f64) -> bool| {
                // Counts of trials, far below 2^53.
                let share = n as f64 / of.max(1) as f64;
                let got = format!("{n} of {of} ({:.1} %)", share * 100.0);
                Statement::new(about, expected, got, of > 0 && holds(share))
            };
        let percent = |x: f64| format!("{:.0} %", x * 100.0);
        vec![
            line(
                "right, of the decided",
                format!("at least {}", percent(RIGHT)),
                right,
                decided,
                &|s| s >= RIGHT,
            ),
            line(
                "unexplained, of all",
                format!("at most {}", percent(UNEXPLAINED)),
                unexplained,
                self.total(),
                &|s| s <= UNEXPLAINED,
            ),
            line(
                "a wrong cause, of all",
                format!("at most {}", percent(WRONG)),
                wrong,
                self.total(),
                &|s| s <= WRONG,
            ),
        ]
    }

    /// One line for each thing injected: how often what was said.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let injected: BTreeSet<&String> = self.counts.keys().map(|(i, _)| i).collect();
        let width = injected.iter().map(|i| i.len()).max().unwrap_or(0);
        for i in injected {
            let said: Vec<String> = self
                .counts
                .iter()
                .filter(|((injected, _), _)| injected == i)
                .map(|((_, verdict), n)| format!("{verdict} {n}"))
                .collect();
            // Writing to a text cannot fail.
            let _ = writeln!(out, "{i:<width$}  → {}", said.join(", "));
        }
        out
    }

    /// Writes `confusion.csv` and `confusion.md` into a run's folder.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join("confusion.csv");
        let mut csv = csv::Writer::from_path(&path).with_context(|| path.display().to_string())?;
        csv.write_record(["injected", "verdict", "trials"])?;
        for ((injected, verdict), n) in &self.counts {
            csv.write_record([injected, verdict, &n.to_string()])?;
        }
        csv.flush()?;
        let path = folder.join("confusion.md");
        std::fs::write(&path, self.markdown()).with_context(|| path.display().to_string())
    }

    fn markdown(&self) -> String {
        let mut out =
            String::from("# Injected causes (rows) and verdicts (columns), in trials\n\n");
        let verdicts: BTreeSet<&String> = self.counts.keys().map(|(_, v)| v).collect();
        let injected: BTreeSet<&String> = self.counts.keys().map(|(i, _)| i).collect();
        let mut line = |cells: Vec<String>| {
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        };
        let head = verdicts.iter().map(|v| format!("`{v}`"));
        line([String::new()].into_iter().chain(head).collect());
        line(vec!["---".to_owned(); verdicts.len() + 1]);
        for i in &injected {
            let cell = |v: &&String| {
                let n = self.counts.get(&((*i).clone(), (*v).clone()));
                n.map_or_else(String::new, ToString::to_string)
            };
            let counts = verdicts.iter().map(cell);
            line([format!("`{i}`")].into_iter().chain(counts).collect());
        }
        out.push('\n');
        for s in self.statements() {
            let holds = if s.holds { "holds" } else { "DOES NOT HOLD" };
            let _ = writeln!(
                out,
                "- {}: {}, expected {}: {holds}",
                s.about, s.got, s.expected
            );
        }
        if !self.astray.is_empty() {
            out.push_str("\n## Not as injected\n\n");
            for [cell, verdict, why] in &self.astray {
                let _ = writeln!(out, "- `{cell}`: **{verdict}**: {why}");
            }
        }
        out
    }
}

fn sorted<'a>(causes: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = causes.map(str::trim).collect();
    all.sort_unstable();
    all.join("+")
}

fn fate(injected: &str, verdict: &str) -> Fate {
    let injected: BTreeSet<&str> = injected.split('+').collect();
    let said: BTreeSet<&str> = verdict.split('+').collect();
    if verdict == NO_VERDICT {
        Fate::Error
    } else if said.contains("unexplained") {
        Fate::Unexplained
    } else if said == injected {
        Fate::Right
    } else if said.is_subset(&injected) {
        Fate::Incomplete
    } else {
        Fate::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_right_incomplete_or_wrong() {
        for (injected, said, want) in [
            ("pacing", "pacing", Fate::Right),
            ("a+b", "a+b", Fate::Right),
            ("a+b", "a", Fate::Incomplete),
            ("a+b", "a+c", Fate::Wrong), // one of them was not injected
            ("a", "a+b", Fate::Wrong),
            ("a", "b", Fate::Wrong),
            ("a", "unexplained", Fate::Unexplained),
            ("a", NO_VERDICT, Fate::Error),
        ] {
            assert_eq!(fate(injected, said), want, "{injected} → {said}");
        }
    }

    fn rows(of: &[(&str, &str, usize)]) -> Vec<Row> {
        let row = |(injected, verdict): (&str, &str)| -> Row {
            let pair = |(k, v): (&str, &str)| (k.to_owned(), v.to_owned());
            [("injected", injected), ("verdict", verdict)]
                .map(pair)
                .into()
        };
        of.iter()
            .flat_map(|(i, v, n)| vec![row((i, v)); *n])
            .collect()
    }

    #[test]
    fn bounds_are_of_the_decided_and_of_all() {
        let holds = |of: &[(&str, &str, usize)]| -> Vec<bool> {
            let all = Confusion::of(&rows(of)).statements();
            all.iter().map(|s| s.holds).collect()
        };
        // All right; the order of two causes and the number of the draw do not matter.
        assert_eq!(holds(&[("a+b-1", "b,a", 1), ("a-2", "a", 1)]), [true; 3]);
        // 19 of 20 decided are right, one is incomplete, 8 of 28 are unexplained.
        let most = [
            ("a-1", "a", 19),
            ("a+b-1", "a", 1),
            ("a-2", "unexplained", 8),
        ];
        assert_eq!(holds(&most), [true; 3]);
        // 3 of 100 are wrong.
        assert_eq!(
            holds(&[("a-1", "a", 97), ("a-1", "b", 3)]),
            [true, true, false]
        );
        // 18 of 20 are right.
        assert_eq!(
            holds(&[("a-1", "a", 18), ("a+b-1", "b", 2)]),
            [false, true, true]
        );
        // 4 of 10 are unexplained.
        assert_eq!(
            holds(&[("a-1", "a", 6), ("a-1", "unexplained", 4)]),
            [true, false, true]
        );
        // Nothing was decided: nothing is proven.
        assert_eq!(holds(&[("a-1", "", 5)]), [false, true, true]);
        assert_eq!(holds(&[]), [false; 3]);
    }

    #[test]
    fn the_matrix_has_a_row_for_each_injection() {
        let text = Confusion::of(&rows(&[("a-1", "a", 2), ("a+b-1", "a", 1)])).markdown();
        assert!(
            text.contains("|  | `a` |\n| --- | --- |\n| `a` | 2 |\n| `a+b` | 1 |\n"),
            "{text}"
        );
        assert!(text.contains("## Not as injected"), "{text}");
    }
}

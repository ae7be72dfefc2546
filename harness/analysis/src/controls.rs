//! A/A controls: how much the same cell differs from itself, and the table `controls`.
//!
//! A control is a second trial of a cell in the same round, under the same knobs, at another place in the
//! order. Whatever sets the two apart is noise, so their spread is what a difference must exceed before it
//! means anything: the noise floor. If the ratios do not hold 1 in their mean, the place in the order matters,
//! and pairing by round does not do what every interval here relies on (Box, Hunter and Hunter, "Statistics
//! for experimenters" (1978), chapter 4: exchangeable trials are what randomization is for).

use std::collections::HashMap;

use polars::prelude::{Column, DataFrame};
use yieldpoint_record::{Role, Status, Trial};

use crate::grid::Numbers;
use crate::stats::{Ratio, paired_ratio};
use crate::text;

/// One control beside its cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    pub cell: String,
    pub round: u32,
    /// good requests per second of the cell and of its control; `None` where one of them was not measured,
    /// or had no good request
    pub rates: Option<(f64, f64)>,
}

/// How much a cell differs from itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Floor {
    /// cells that were run twice
    pub twins: usize,
    /// pairs of a round that have a ratio
    pub pairs: usize,
    /// root mean square of the log ratios
    pub rms_log: f64,
    /// the greatest of them, either way
    pub largest_log: f64,
    /// control ÷ cell over all pairs
    pub mean: Ratio,
}

/// Every control of a run with the trial of its cell in the same round, in the order of the journal.
/// `numbers` are those of the same trials.
pub(crate) fn pairs(trials: &[Trial], numbers: &[Numbers]) -> Vec<Pair> {
    let rate = |(trial, numbers): (&Trial, &Numbers)| {
        let positive = numbers.good_per_s.filter(|x| x.is_finite() && *x > 0.0);
        positive.filter(|_| trial.status == Status::Ok)
    };
    let all = || trials.iter().zip(numbers);
    let cells: HashMap<(&str, u32), Option<f64>> = all()
        .filter(|(t, _)| t.role == Role::Cell)
        .map(|(t, n)| ((t.cell.as_str(), t.round), rate((t, n))))
        .collect();
    all()
        .filter(|(t, _)| t.role == Role::Control)
        .map(|(t, n)| {
            let of_cell = cells.get(&(t.cell.as_str(), t.round)).copied().flatten();
            Pair {
                cell: t.cell.clone(),
                round: t.round,
                rates: of_cell.zip(rate((t, n))),
            }
        })
        .collect()
}

impl Floor {
    /// Pools twins and rounds; `None` without a pair.
    pub fn of(pairs: &[Pair]) -> Option<Self> {
        let rates: Vec<(f64, f64)> = pairs.iter().filter_map(|p| p.rates).collect();
        let logs: Vec<f64> = rates
            .iter()
            .map(|(cell, twin)| (twin / cell).ln())
            .collect();
        let measured = pairs.iter().filter(|p| p.rates.is_some());
        let mut twins: Vec<&str> = measured.map(|p| p.cell.as_str()).collect();
        twins.sort_unstable();
        twins.dedup();
        let squares: f64 = logs.iter().map(|l| l * l).sum();
        Some(Self {
            twins: twins.len(),
            pairs: logs.len(),
            rms_log: (squares / logs.len() as f64).sqrt(),
            largest_log: logs.iter().fold(0.0, |most, l| l.abs().max(most)),
            mean: paired_ratio(&rates)?,
        })
    }

    /// Whether a ratio is no further from 1 than a cell is from itself.
    pub fn holds(&self, ratio: f64) -> bool {
        ratio > 0.0 && ratio.ln().abs() <= self.rms_log
    }

    /// Whether the mean of all pairs holds 1; `None` of too few pairs to say.
    pub fn same(&self) -> Option<bool> {
        let (low, high) = self.mean.interval?;
        Some(low <= 1.0 && high >= 1.0)
    }

    /// "Noise floor: the same cell run twice in a round differs by 2.1 % (rms of 24 pairs …)".
    pub fn sentence(&self) -> String {
        let pairs = match (self.pairs, self.twins) {
            (1, _) => "the one pair".to_owned(),
            (n, 1) => format!("rms of {n} pairs of one cell"),
            (n, twins) => format!("rms of {n} pairs of {twins} cells"),
        };
        let largest = if self.pairs > 1 {
            format!("; largest {}", difference(self.largest_log))
        } else {
            String::new()
        };
        let check = match (self.same(), self.mean.interval) {
            (Some(same), Some((low, high))) => format!(
                " Over all pairs the control gives {} of its cell (95 % interval {}–{}), which {} 1, as a thing \
                 compared with itself must.",
                ratio_text(self.mean.mean),
                ratio_text(low),
                ratio_text(high),
                if same { "holds" } else { "does not hold" }
            ),
            _ => String::new(),
        };
        format!(
            "Noise floor: the same cell run twice in a round differs by {} ({pairs}{largest}).{check}",
            difference(self.rms_log)
        )
    }

    /// What a reader must know where a thing differs from itself.
    pub fn warning(&self) -> Option<String> {
        let (low, high) = self.mean.interval.filter(|_| self.same() == Some(false))?;
        Some(format!(
            "The A/A check failed: a cell compared with itself gives {} (95 % interval {}–{} over {} pairs), which \
             does not hold 1. The trials of a round are not exchangeable, so differences of this size may be the \
             machine's and not the clients'. One run in twenty fails by chance; run it again, on a quieter machine, \
             before believing a small ratio.",
            ratio_text(self.mean.mean),
            ratio_text(low),
            ratio_text(high),
            self.pairs
        ))
    }
}

/// Said of a run without a pair.
pub(crate) const NO_FLOOR: &str = "No noise floor was measured: no cell was run twice in a round, so a small difference may be noise.";

/// Said of a ratio that a cell compared with itself could give.
pub(crate) const WITHIN: &str = "within the noise floor";

/// A logarithm as a difference in per cent of the lesser.
fn difference(log: f64) -> String {
    text::percent(log.exp_m1(), 1.0).unwrap_or_default()
}

/// Near 1 the third decimal is what matters: "1.002×".
fn ratio_text(ratio: f64) -> String {
    format!("{ratio:.3}×")
}

/// Makes the table.
pub(crate) fn table(pairs: &[Pair]) -> anyhow::Result<DataFrame> {
    let cells: Vec<&str> = pairs.iter().map(|p| p.cell.as_str()).collect();
    let rounds: Vec<i64> = pairs.iter().map(|p| i64::from(p.round)).collect();
    let ratios: Vec<Option<f64>> = pairs
        .iter()
        .map(|p| p.rates.map(|(cell, control)| control / cell))
        .collect();
    let columns = vec![
        Column::new("cell".into(), cells),
        Column::new("round".into(), rounds),
        Column::new("ratio".into(), ratios),
    ];
    Ok(DataFrame::new(pairs.len(), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report, summary, synthetic, tables};

    /// Made-up trials of two cells; each pair is the good requests of cell and control in one round.
    fn run(pairs: &[(&str, u32, u64, u64)]) -> Vec<Trial> {
        let mut trials = Vec::new();
        for (client, round, cell, control) in pairs {
            trials.push(synthetic::good(synthetic::trial(client, *round), *cell));
            let twin = synthetic::good(synthetic::trial(client, *round), *control);
            trials.push(synthetic::control(twin));
        }
        trials
    }

    fn floor(trials: &[Trial]) -> Option<Floor> {
        let manifest = synthetic::manifest(&[]);
        let made = tables(&manifest, trials).unwrap();
        let grid = crate::grid::Grid::new(&manifest, trials, &made).unwrap();
        grid.floor
    }

    #[test]
    fn twins_are_paired_by_cell_and_round_and_pooled() {
        let mut trials = run(&[
            ("a", 1, 1_000, 1_100),
            ("b", 1, 2_000, 2_000),
            ("a", 2, 1_000, 500),
        ]);
        // A control whose cell was not measured in its round has no pair.
        trials.push(synthetic::control(synthetic::trial("a", 3)));
        let got = floor(&trials).unwrap();
        assert_eq!((got.twins, got.pairs), (2, 3));
        // √((ln 1.1)² + 0 + (ln 2)²) ÷ √3, by hand.
        let want = ((1.1f64.ln().powi(2) + 2.0f64.ln().powi(2)) / 3.0).sqrt();
        assert!((got.rms_log - want).abs() < 1e-12);
        assert!(
            (got.largest_log - 2.0f64.ln()).abs() < 1e-12,
            "half is as far as double"
        );
        assert_eq!(got.same(), None, "three pairs carry no interval");
        // Both ends of the floor are in it, and what failed altogether never is.
        assert!(
            got.holds((want * 0.99).exp()) && got.holds((-want * 0.99).exp()) && got.holds(1.0)
        );
        assert!(!got.holds((want * 1.01).exp()) && !got.holds(0.0));

        let made = tables(&synthetic::manifest(&[]), &trials).unwrap().controls;
        assert_eq!(synthetic::names(&made), ["cell", "round", "ratio"]);
        let ratios = made.column("ratio").unwrap().f64().unwrap().to_vec();
        assert_eq!(ratios, [Some(1.1), Some(1.0), Some(0.5), None]);
    }

    #[test]
    fn what_failed_has_no_ratio() {
        let bad = synthetic::failed(synthetic::trial("a", 1), Status::Error, "no");
        for trials in [
            vec![synthetic::trial("a", 1)], // no control at all
            vec![bad, synthetic::control(synthetic::trial("a", 1))], // its cell failed
            run(&[("a", 1, 0, 10)]),        // nothing good: no logarithm
            run(&[("a", 1, 10, 0)]),
        ] {
            assert_eq!(floor(&trials), None);
        }
    }

    #[test]
    fn the_floor_is_said_and_a_failed_check_is_a_warning() {
        let manifest = synthetic::manifest(&[]);
        let made = |trials: &[Trial]| {
            let made = tables(&manifest, trials).unwrap();
            report(&manifest, trials, &made).unwrap()
        };
        let none = made(&[synthetic::trial("a", 1)]);
        assert_eq!(none.noise, NO_FLOOR);
        let alternating = |round: u32| {
            (
                "a",
                round,
                1_000,
                if round.is_multiple_of(2) { 1_020 } else { 980 },
            )
        };
        let quiet: Vec<_> = (1..=8).map(alternating).collect();
        let quiet = made(&run(&quiet));
        assert!(
            quiet.noise.starts_with(
                "Noise floor: the same cell run twice in a round differs by 2.02 % (rms of 8 pairs of one cell; \
                 largest 2.04 %). Over all pairs the control gives 1.000× of its cell"
            ),
            "{}",
            quiet.noise
        );
        assert!(quiet.noise.contains("which holds 1"));
        assert!(!quiet.warnings.iter().any(|w| w.contains("A/A")));
        assert!(summary(&quiet, 200, false).contains("Noise floor: "));
        // The second trial is always better: the order of trials shows.
        let drift: Vec<_> = (1..=8)
            .map(|r| ("a", r, 1_000, 1_100 + u64::from(r)))
            .collect();
        let drift = made(&run(&drift));
        assert!(drift.noise.contains("which does not hold 1"));
        let warned = drift
            .warnings
            .iter()
            .find(|w| w.contains("A/A check failed"));
        assert!(warned.unwrap().contains("not exchangeable"));
        // Seven pairs say nothing of their mean.
        let few: Vec<_> = (1..=7)
            .map(|r| ("a", r, 1_000, 1_100 + u64::from(r)))
            .collect();
        assert!(!made(&run(&few)).warnings.iter().any(|w| w.contains("A/A")));
    }
}

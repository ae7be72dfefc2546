//! False alarms: one thing compared with itself, over and over. At the 95 % level one comparison in 20 may find a
//! difference that is none; a harness whose intervals are too narrow finds more.

use std::collections::BTreeMap;

use yieldpoint_record::{Role, Status, Trial};
use yieldpoint_statistics::{Comparison, ROUNDS_FOR_A_VERDICT, Ratio, compare, paired_ratio};

use crate::runs::Source;
use crate::statement::Statement;

/// Of 200 comparisons, each with a false alarm in 20, more than this many alarm once in 200 such proofs
/// (binomial distribution).
const MOST_OF_200: usize = 18;
/// A comparison of which a round could not be measured is none; fewer than this many are no proof.
const FEWEST: usize = 190;

/// Runs the matrix, or reads a run of it, and compares.
pub fn prove(source: &Source) -> anyhow::Result<Vec<Statement>> {
    let run = source.get("matrices/alarms.toml")?;
    Ok(same(&comparisons(&pairs(&run.trials))))
}

/// Good requests of the two cells, in the order of their ids, of each round that was measured.
pub fn pairs(trials: &[Trial]) -> Vec<(f64, f64)> {
    let mut cells: Vec<&str> = trials.iter().map(|t| t.cell.as_str()).collect();
    cells.sort_unstable();
    cells.dedup();
    let mut rounds: BTreeMap<u32, BTreeMap<&str, f64>> = BTreeMap::new();
    for trial in trials {
        let counts = trial.role == Role::Cell && trial.status == Status::Ok;
        if let Some(outcome) = trial.outcome.as_ref().filter(|_| counts) {
            let good = outcome.window.good as f64;
            rounds
                .entry(trial.round)
                .or_default()
                .insert(&trial.cell, good);
        }
    }
    let pair = |round: &BTreeMap<&str, f64>| {
        let [first, second] = cells[..] else {
            return None;
        };
        Some((*round.get(first)?, *round.get(second)?))
    };
    rounds.values().filter_map(pair).collect()
}

/// Groups of as many rounds as a verdict needs, one after the other, each with its ratio; what is left over, and a
/// group in which nothing was good once, are no comparison.
fn comparisons(pairs: &[(f64, f64)]) -> Vec<Ratio> {
    let groups = pairs.chunks_exact(ROUNDS_FOR_A_VERDICT);
    groups.filter_map(paired_ratio).collect()
}

/// How many comparisons of equal things find a difference.
fn same(comparisons: &[Ratio]) -> Vec<Statement> {
    let differ = comparisons
        .iter()
        .filter(|r| matches!(compare(r), Comparison::Greater | Comparison::Less));
    let (n, alarms) = (comparisons.len(), differ.count());
    let mean = comparisons.iter().map(|r| r.ratio.ln()).sum::<f64>() / n.max(1) as f64;
    let width = |r: &Ratio| (r.high / r.low).ln() / 2.0;
    let mut widths: Vec<f64> = comparisons.iter().map(width).collect();
    widths.sort_by(f64::total_cmp);
    let median = widths.get(n / 2).copied().unwrap_or(f64::NAN);
    vec![Statement::new(
        "one thing twice",
        format!(
            "differences in at most {MOST_OF_200} of 200 comparisons of {ROUNDS_FOR_A_VERDICT} rounds"
        ),
        format!(
            "{alarms} of {n}; mean ratio {:.4}, median interval ± {:.1} %",
            mean.exp(),
            median * 100.0
        ),
        n >= FEWEST && alarms * 200 <= MOST_OF_200 * n,
    )]
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Rounds of noise of the given spread, the second `slower` than the first.
    pub fn noise(rounds: usize, spread: f64, slower: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut random = yieldpoint_statistics::Random::new(seed);
        let mut value = |mean: f64| mean * (spread * random.normal()).exp();
        (0..rounds)
            .map(|_| (value(1_000.0), value(1_000.0 * (1.0 - slower))))
            .collect()
    }

    fn alarms(pairs: &[(f64, f64)]) -> bool {
        !same(&comparisons(pairs))[0].holds
    }

    #[test]
    fn equal_things_pass_and_different_ones_do_not() {
        assert!(!alarms(&noise(1_600, 0.02, 0.0, 1)), "equal");
        assert!(
            !alarms(&noise(1_600, 0.3, 0.0, 2)),
            "equal, with much noise"
        );
        // A bias of 2 % under a noise of 2 % is found in about half of the comparisons.
        assert!(alarms(&noise(1_600, 0.02, 0.02, 3)), "a bias");
    }

    #[test]
    fn rounds_that_are_missing_are_no_proof() {
        let all = noise(1_600, 0.02, 0.0, 1);
        assert!(alarms(&all[..1_500]), "187 comparisons");
        // A round in which nothing was good has no ratio, and neither has its group.
        let mut dead = all;
        for group in dead.chunks_mut(ROUNDS_FOR_A_VERDICT).take(11) {
            group[0].1 = 0.0;
        }
        assert_eq!(comparisons(&dead).len(), 189);
        assert!(alarms(&dead));
    }

    #[test]
    fn the_bound_is_that_of_the_binomial_distribution() {
        // P(X > 18) of 200 draws with p = 0.05, term by term.
        let mut term = 0.95_f64.powi(200);
        let mut below = term;
        for k in 1..=MOST_OF_200 {
            term *= (201 - k) as f64 / k as f64 * (0.05 / 0.95);
            below += term;
        }
        let above = 1.0 - below;
        assert!((0.002..0.01).contains(&above), "{above}");
    }
}

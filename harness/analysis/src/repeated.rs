//! The comparisons that end a run with `rounds = "auto"`, decided again from its trials.
//!
//! Such a run looks at one axis after planned rounds and stops as soon as it is decided. The plain interval of
//! the rounds that it then has promises too much; the repeated one (`yieldpoint_statistics::Sequential`) holds
//! at every look together. It is computed as the runner did: of each round the geometric mean of the ratios,
//! over the combinations of the other axes that have a rate in every round so far.

use std::collections::BTreeMap;

use yieldpoint_record::Manifest;
use yieldpoint_statistics::{Decision, Repeated, Sequential};

use crate::text;

/// The stop rule of a run.
pub(crate) struct Rule {
    /// the axis that is compared
    pub axis: String,
    /// its value that all others are compared with, as text
    pub base: String,
    looks: Vec<usize>,
    sequential: Sequential,
}

/// Good requests per second of two cells by round: of the base, and of what is compared with it.
pub(crate) type Rates = (BTreeMap<u32, f64>, BTreeMap<u32, f64>);

impl Rule {
    /// `None` of a run whose number of rounds was given.
    pub fn of(manifest: &Manifest) -> Option<Self> {
        let fact = manifest.sequential.as_ref()?;
        let looks: Vec<usize> = fact.looks.iter().map(|look| *look as usize).collect();
        Some(Self {
            base: text::knob(&manifest.knobs, &fact.axis, &fact.base),
            axis: fact.axis.clone(),
            // A plan that is none has stopped nothing.
            sequential: Sequential::new(&looks, fact.alpha).ok()?,
            looks,
        })
    }

    /// The ratio at the first look that decided, and its rounds; `None` where none did, or a side gave nothing.
    pub fn decided(&self, combinations: &[Rates]) -> Option<(Repeated, usize)> {
        let rounds = combinations
            .iter()
            .flat_map(|(a, b)| a.keys().chain(b.keys()));
        let rounds = rounds.max().map_or(0, |last| *last as usize);
        for look in self.looks.iter().filter(|look| **look <= rounds) {
            match self.sequential.look(&pooled(combinations, *look)) {
                Decision::Different(repeated) | Decision::NotDifferent(repeated) => {
                    return Some((repeated, *look));
                }
                Decision::Continue { .. } => {}
                Decision::NoRatio => return None,
            }
        }
        None
    }
}

/// `(1, ratio)` of each of the first `rounds`; (1, 0), which is no ratio, where no combination is whole.
fn pooled(combinations: &[Rates], rounds: usize) -> Vec<(f64, f64)> {
    // A look is at most some hundred rounds.
    let rounds = 1..=u32::try_from(rounds).unwrap_or(u32::MAX);
    let log = |(base, changed): &Rates, round: u32| {
        let of = |rates: &BTreeMap<u32, f64>| rates.get(&round).copied().filter(|x| *x > 0.0);
        Some((of(changed)? / of(base)?).ln())
    };
    let whole = |c: &&Rates| rounds.clone().all(|round| log(c, round).is_some());
    let kept: Vec<&Rates> = combinations.iter().filter(whole).collect();
    let ratio = |round| {
        if kept.is_empty() {
            return 0.0;
        }
        let sum: f64 = kept.iter().filter_map(|c| log(c, round)).sum();
        (sum / kept.len() as f64).exp()
    };
    rounds.clone().map(|round| (1.0, ratio(round))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report, synthetic, tables};
    use yieldpoint_record::{SequentialFact, Trial};
    use yieldpoint_terms::Value;

    fn rates(of: &[f64]) -> BTreeMap<u32, f64> {
        (1..).zip(of.iter().copied()).collect()
    }

    #[test]
    fn rounds_are_pooled_over_the_combinations_that_are_whole() {
        let whole = (rates(&[1.0, 1.0]), rates(&[2.0, 8.0]));
        let other = (rates(&[4.0, 1.0]), rates(&[2.0, 2.0]));
        let mean = pooled(&[whole.clone(), other], 2);
        // √(2 · ½), √(8 · 2).
        assert!((mean[0].1 - 1.0).abs() < 1e-12 && (mean[1].1 - 4.0).abs() < 1e-12);
        // What lacks a round, or gave nothing in one, is left out of all.
        for broken in [&[2.0][..], &[2.0, 0.0]] {
            let broken = (rates(&[1.0, 1.0]), rates(broken));
            let alone = pooled(&[whole.clone(), broken.clone()], 2);
            assert_eq!(alone, pooled(std::slice::from_ref(&whole), 2));
            assert_eq!(pooled(&[broken], 2), [(1.0, 0.0); 2]);
        }
    }

    /// Made-up rounds: the second value of `threads` gives `percent` of the first, with 1 % of noise either way.
    fn run(rounds: u32, percent: u64) -> (Manifest, Vec<Trial>) {
        let threads = [2, 1].map(Value::Int);
        let keep = [false, true].map(Value::Bool);
        let mut manifest = synthetic::manifest(&[("threads", &threads), ("keep_alive", &keep)]);
        manifest.sequential = Some(SequentialFact {
            axis: "threads".into(),
            base: Value::Int(2),
            looks: vec![8, 12],
            alpha: 0.05,
        });
        let mut trials = Vec::new();
        for round in 1..=rounds {
            for k in &keep {
                for t in &threads {
                    let noise = if round.is_multiple_of(2) { 99 } else { 101 };
                    let good = if *t == threads[1] {
                        percent * noise
                    } else {
                        10_000
                    };
                    let trial = synthetic::trial("ureq", round);
                    let trial = synthetic::at(trial, "threads", t.clone());
                    let trial = synthetic::at(trial, "keep_alive", k.clone());
                    trials.push(synthetic::good(trial, good));
                }
            }
        }
        (manifest, trials)
    }

    #[test]
    fn the_compared_axis_has_the_repeated_interval_and_the_others_say_what_theirs_ignore() {
        let (manifest, trials) = run(8, 50);
        let made = tables(&manifest, &trials).unwrap();
        let texts = |name: &str| -> Vec<String> {
            let column = made.effects.column(name).unwrap().str().unwrap();
            column.iter().map(|t| t.unwrap_or("–").to_owned()).collect()
        };
        // The base is the one that was compared with, not the least.
        assert_eq!(texts("knobs")[0], "threads=2→1");
        assert_eq!(
            texts("interval"),
            ["repeated", "ignores_stopping", "ignores_stopping"]
        );
        let low = made
            .effects
            .column("ratio_low")
            .unwrap()
            .f64()
            .unwrap()
            .get(0);
        let plain = crate::stats::paired_ratio(&pooled(
            &[(rates(&[100.0; 8]), rates(&[50.5, 49.5].repeat(4)))],
            8,
        ));
        let plain = plain.unwrap().interval.unwrap().0;
        assert!(
            low.unwrap() < plain,
            "looking twice costs width: {low:?}, {plain}"
        );
        let shown = report(&manifest, &trials, &made).unwrap();
        assert!(
            shown.findings[0].starts_with("threads=2→1: throughput 0.500× (95 % interval ")
                && shown.findings[0].contains("stopped by rule after 8 rounds"),
            "{:#?}",
            shown.findings
        );
        assert!(
            shown
                .warnings
                .iter()
                .any(|w| w.contains("ignore the stopping"))
        );
    }

    #[test]
    fn what_no_look_decided_keeps_its_plain_interval_and_says_so() {
        let interval = |rounds, percent| {
            let (manifest, trials) = run(rounds, percent);
            let made = tables(&manifest, &trials).unwrap();
            let column = made.effects.column("interval").unwrap().str().unwrap();
            column.get(0).map(str::to_owned)
        };
        // Interrupted before the first look; after it, undecided; the last look ends it, decided or not.
        assert_eq!(interval(7, 50), None, "seven rounds carry no interval");
        assert_eq!(interval(8, 100).as_deref(), Some("ignores_stopping"));
        assert_eq!(interval(12, 100).as_deref(), Some("repeated"));
    }
}

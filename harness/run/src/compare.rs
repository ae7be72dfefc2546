//! When a run with `rounds = "auto"` has enough rounds: as soon as each of its comparisons is decided. Pure.
//!
//! A comparison is one value of an axis against the axis' first, all other axes equal, pooled over the
//! combinations of the others: of each round the geometric mean of the ratios. It is decided by alpha spending
//! (`yieldpoint_statistics::Sequential`), so that looking several times does not make more false alarms.

use std::collections::BTreeMap;
use std::fmt;

use yieldpoint_matrix::{Axis, Cell};
use yieldpoint_statistics::{Decision, Sequential};
use yieldpoint_terms::Value;

/// After so many rounds a comparison is looked at. 8 are the fewest for a verdict; the last ends the run.
pub const LOOKS: [u32; 6] = [8, 12, 16, 20, 30, 40];
/// False alarms of one comparison, over all looks together.
pub const ALPHA: f64 = 0.05;

/// One value of an axis against its first.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// "client=hyper→ureq"
    pub name: String,
    /// cells of the first value and of this one that are otherwise equal: indices into the plan's cells
    pub pairs: Vec<(usize, usize)>,
}

/// The comparisons of an axis among the cells that can be run, in the order of its values; one without a pair
/// is none.
pub(crate) fn comparisons(axis: &Axis, cells: &[Cell], can_run: &[usize]) -> Vec<Comparison> {
    let Some(first) = axis.values.first() else {
        return vec![];
    };
    // Cells by the rest of their coordinates, then by the value of this axis.
    let mut rests: BTreeMap<Vec<&(String, Value)>, BTreeMap<&Value, usize>> = BTreeMap::new();
    for at in can_run {
        let coordinates = &cells[*at].coordinates;
        let own = coordinates.iter().find(|(name, _)| *name == axis.name);
        if let Some((_, value)) = own {
            let rest = coordinates.iter().filter(|(name, _)| *name != axis.name);
            rests.entry(rest.collect()).or_default().insert(value, *at);
        }
    }
    let pairs = |value: &Value| {
        let mut pairs: Vec<(usize, usize)> = rests
            .values()
            .filter_map(|by| Some((*by.get(first)?, *by.get(value)?)))
            .collect();
        pairs.sort_unstable();
        pairs
    };
    let others = axis.values.iter().skip(1).map(|value| Comparison {
        name: format!("{}={first}→{value}", axis.name),
        pairs: pairs(value),
    });
    others.filter(|c| !c.pairs.is_empty()).collect()
}

/// Where a comparison stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// as [`Comparison::name`]
    pub name: String,
    /// rounds it rests on
    pub rounds: u32,
    /// [`Decision::Continue`]: not decided yet
    pub decision: Decision,
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, rounds, .. } = self;
        match self.decision {
            Decision::Continue { .. } => write!(f, "{name}: not decided after {rounds} rounds"),
            Decision::NoRatio => write!(
                f,
                "{name}: no ratio after {rounds} rounds, since a side failed or gave nothing"
            ),
            Decision::Different(r) => write!(
                f,
                "{name}: {:.3} [{:.3}, {:.3}] after {rounds} rounds",
                r.ratio, r.low, r.high
            ),
            Decision::NotDifferent(r) => write!(
                f,
                "{name}: no difference found, {:.3} [{:.3}, {:.3}] after {rounds} rounds",
                r.ratio, r.low, r.high
            ),
        }
    }
}

/// Every comparison of a run, as far as its rounds tell.
pub(crate) struct Decisions {
    rule: Sequential,
    comparisons: Vec<Comparison>,
    decided: Vec<Option<Compared>>,
    /// finished rounds: good requests per second of each cell, where it was measured
    rounds: Vec<BTreeMap<usize, f64>>,
    /// the round that is under way
    current: BTreeMap<usize, f64>,
}

impl Decisions {
    pub fn new(rule: Sequential, comparisons: Vec<Comparison>) -> Self {
        Self {
            rule,
            decided: vec![None; comparisons.len()],
            comparisons,
            rounds: vec![],
            current: BTreeMap::new(),
        }
    }

    /// A cell was measured in the round under way.
    pub fn measured(&mut self, cell: usize, good_per_s: f64) {
        self.current.insert(cell, good_per_s);
    }

    /// The round is complete. Whether no more rounds are needed.
    pub fn round_ended(&mut self) -> bool {
        self.rounds.push(std::mem::take(&mut self.current));
        for (comparison, decided) in self.comparisons.iter().zip(&mut self.decided) {
            if decided.is_some() {
                continue;
            }
            let compared = look(&self.rule, comparison, &self.rounds);
            if !matches!(compared.decision, Decision::Continue { .. }) {
                *decided = Some(compared);
            }
        }
        self.decided.iter().all(Option::is_some)
    }

    /// Where each stands now.
    pub fn all(&self) -> Vec<Compared> {
        let each = self.comparisons.iter().zip(&self.decided);
        each.map(|(comparison, decided)| {
            let now = || look(&self.rule, comparison, &self.rounds);
            decided.clone().unwrap_or_else(now)
        })
        .collect()
    }
}

fn look(rule: &Sequential, comparison: &Comparison, rounds: &[BTreeMap<usize, f64>]) -> Compared {
    Compared {
        name: comparison.name.clone(),
        // A run has at most as many rounds as the last look, 40.
        rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
        decision: rule.look(&pooled(&comparison.pairs, rounds)),
    }
}

/// `(1, ratio)` of each round. A combination that lacks a side in some round, or gave nothing in it, is left
/// out of all rounds: otherwise rounds would compare different things. (1, 0), no ratio, where none is left.
fn pooled(pairs: &[(usize, usize)], rounds: &[BTreeMap<usize, f64>]) -> Vec<(f64, f64)> {
    let log = |round: &BTreeMap<usize, f64>, pair: &(usize, usize)| {
        let of = |cell| round.get(&cell).copied().filter(|x| *x > 0.0);
        Some((of(pair.1)? / of(pair.0)?).ln())
    };
    let whole = |pair: &&(usize, usize)| rounds.iter().all(|round| log(round, pair).is_some());
    let kept: Vec<&(usize, usize)> = pairs.iter().filter(whole).collect();
    let ratio = |round| {
        if kept.is_empty() {
            return 0.0;
        }
        let sum: f64 = kept.iter().filter_map(|pair| log(round, pair)).sum();
        (sum / kept.len() as f64).exp()
    };
    rounds.iter().map(|round| (1.0, ratio(round))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use yieldpoint_terms::Knobs;

    fn cell(coordinates: &[(&str, i64)]) -> Cell {
        let coordinates = coordinates.iter();
        Cell {
            id: String::new(),
            coordinates: coordinates
                .map(|(name, v)| ((*name).to_owned(), Value::Int(*v)))
                .collect(),
            knobs: Knobs::default(),
        }
    }

    #[test]
    fn a_value_is_compared_where_everything_else_is_equal() {
        let axis = Axis {
            name: "a".into(),
            values: [3, 1, 2].map(Value::Int).to_vec(),
            bundle: false,
            knobs: vec!["a".into()],
        };
        let cells = [
            cell(&[("a", 3), ("b", 1)]),
            cell(&[("a", 3), ("b", 2)]),
            cell(&[("a", 1), ("b", 1)]),
            cell(&[("a", 1), ("b", 2)]),
            cell(&[("a", 2), ("b", 3)]), // excluded elsewhere: nothing to compare with
            cell(&[("b", 1)]),           // the axis does not touch it
        ];
        let of = |can_run: &[usize]| -> Vec<(String, Vec<(usize, usize)>)> {
            let all = comparisons(&axis, &cells, can_run);
            all.into_iter().map(|c| (c.name, c.pairs)).collect()
        };
        // The first value of the file is the base, not the least.
        assert_eq!(
            of(&[0, 1, 2, 3, 4, 5]),
            [("a=3→1".to_owned(), vec![(0, 2), (1, 3)])]
        );
        // Cells that no client can do have no throughput.
        assert_eq!(of(&[0, 1, 3, 4]), [("a=3→1".to_owned(), vec![(1, 3)])]);
        assert_eq!(of(&[0, 3]), []);
    }

    #[test]
    fn rounds_are_pooled_over_the_combinations_that_are_whole() {
        let pairs = [(0, 1), (2, 3)];
        let round = |rates: [f64; 4]| -> BTreeMap<usize, f64> {
            let all = rates.into_iter().enumerate();
            all.filter(|(_, x)| x.is_finite()).collect()
        };
        let none = f64::NAN;
        // rates of the four cells in each round, the ratio of each round
        let table = [
            // halves in one combination, doubles in the other: nothing on the whole
            (vec![[8.0, 4.0, 1.0, 2.0]], vec![1.0]),
            // the geometric mean of 2 and 8, not the mean
            (vec![[1.0, 2.0, 1.0, 8.0]], vec![4.0]),
            // a failure in the second round takes its combination out of the first as well
            (
                vec![[1.0, 2.0, 1.0, 8.0], [1.0, 2.0, none, 8.0]],
                vec![2.0, 2.0],
            ),
            // so does a round of nothing
            (
                vec![[1.0, 2.0, 1.0, 8.0], [0.0, 2.0, 1.0, 8.0]],
                vec![8.0, 8.0],
            ),
            // no combination is left
            (
                vec![[1.0, none, 1.0, 8.0], [1.0, 2.0, 1.0, 0.0]],
                vec![0.0, 0.0],
            ),
        ];
        for (rates, want) in table {
            let rounds: Vec<_> = rates.into_iter().map(round).collect();
            let got = pooled(&pairs, &rounds);
            assert_eq!(got.len(), want.len());
            for ((base, ratio), want) in got.into_iter().zip(want) {
                assert!((ratio / base - want).abs() < 1e-12, "{ratio}, not {want}");
            }
        }
    }

    /// Runs to the end; the rounds it took, and what was decided.
    fn until_decided(rates: impl Fn(u32) -> Vec<Option<f64>>) -> (u32, Vec<Compared>) {
        let looks = LOOKS.map(|l| l as usize);
        let others = [1, 2].map(|i| Comparison {
            name: format!("a=0→{i}"),
            pairs: vec![(0, i)],
        });
        let mut decisions = Decisions::new(Sequential::new(&looks, ALPHA).unwrap(), others.into());
        for round in 1..=1_000 {
            for (cell, rate) in rates(round).into_iter().enumerate() {
                if let Some(rate) = rate {
                    decisions.measured(cell, rate);
                }
            }
            if decisions.round_ended() {
                return (round, decisions.all());
            }
        }
        panic!("never decided");
    }

    #[test]
    fn a_run_ends_with_its_last_decision() {
        // Differences between rounds that are no difference between cells.
        let noise = |round: u32| 1.0 + f64::from(round % 2) * 0.01;
        let different = |d: &Compared| matches!(d.decision, Decision::Different(_));
        // both are clear: the first look ends the run
        let (rounds, all) =
            until_decided(|r| vec![Some(1.0), Some(0.5 * noise(r)), Some(2.0 * noise(r + 1))]);
        assert!(rounds == 8 && all.iter().all(different), "{all:?}");
        assert!(all[0].to_string().starts_with("a=0→1: 0.50"), "{}", all[0]);
        // one is none: the run goes on to the last look, the other stays decided at the first
        let (rounds, all) =
            until_decided(|r| vec![Some(1.0), Some(0.5 * noise(r)), Some(noise(r) / 1.005)]);
        assert_eq!(rounds, 40);
        assert!(different(&all[0]) && all[0].rounds == 8, "{all:?}");
        assert!(matches!(all[1].decision, Decision::NotDifferent(_)));
        // a side that failed once: no ratio, said at the next look
        let (rounds, all) =
            until_decided(|r| vec![Some(1.0), Some(0.5), (r != 3).then(|| 2.0 * noise(r))]);
        assert_eq!(rounds, 8);
        assert_eq!(all[1].decision, Decision::NoRatio);
        assert!(all[1].to_string().contains("no ratio after 8 rounds"));
        // one that fails late ends what was still open at the look after it
        let (rounds, all) = until_decided(|r| {
            let second = noise(r) / 1.005;
            vec![Some(1.0), Some(0.5), (r != 13).then_some(second)]
        });
        assert_eq!((rounds, all[1].rounds), (16, 16));
    }

    #[test]
    fn a_run_that_is_cut_short_says_so() {
        let looks = LOOKS.map(|l| l as usize);
        let one = Comparison {
            name: "a=0→1".into(),
            pairs: vec![(0, 1)],
        };
        let mut decisions = Decisions::new(Sequential::new(&looks, ALPHA).unwrap(), vec![one]);
        decisions.measured(0, 1.0);
        decisions.measured(1, 2.0);
        assert!(!decisions.round_ended());
        assert_eq!(
            decisions.all()[0].to_string(),
            "a=0→1: not decided after 1 rounds"
        );
    }
}

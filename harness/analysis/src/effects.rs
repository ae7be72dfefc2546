//! The table `effects`: what each knob does to throughput, and each two together.
//!
//! The effect of a value is its throughput ÷ that of the first value of its axis, all other knobs equal:
//! the geometric mean over the combinations of the others, paired by round (Box, Hunter and Hunter,
//! "Statistics for experimenters" (1978), chapter 10, in logarithms). The effect of two knobs on each other
//! is a ratio of ratios between the first and the last values: 1 means that each does what it does whatever
//! the other is. A combination that gave nothing has no logarithm and is left out whole.

use std::collections::BTreeMap;

use polars::prelude::{Column, DataFrame};

use crate::breakpoints::by_round;
use crate::grid::{Cell, Grid};
use crate::repeated::Rule;
use crate::stats::{Ratio, paired_ratio};

/// One effect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    /// "threads=1→3", or two joined by " × "
    pub knobs: String,
    pub ratio: Ratio,
    pub interval: Interval,
}

/// What an interval allows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interval {
    /// the number of rounds was given
    Fixed,
    /// it holds at every look of the stop rule together
    Repeated,
    /// the number of rounds depends on another comparison, of which it knows nothing
    IgnoresStopping,
}

impl Interval {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Repeated => REPEATED,
            Self::IgnoresStopping => IGNORES_STOPPING,
        }
    }
}

/// Names of intervals in the table.
pub(crate) const REPEATED: &str = "repeated";
pub(crate) const IGNORES_STOPPING: &str = "ignores_stopping";

/// The client and the axes as one list of factors.
struct Factor<'g> {
    name: &'g str,
    labels: &'g [String],
    /// `None`: the client
    axis: Option<usize>,
    /// the value that others are compared with: the first, or that of the stop rule
    base: usize,
    /// the stop rule, where it compares this factor
    rule: Option<&'g Rule>,
}

impl Factor<'_> {
    fn new<'g>(
        name: &'g str,
        labels: &'g [String],
        axis: Option<usize>,
        rule: Option<&'g Rule>,
    ) -> Factor<'g> {
        let rule = rule.filter(|r| r.axis == name);
        let base = rule.and_then(|r| labels.iter().position(|l| *l == r.base));
        Factor {
            name,
            labels,
            axis,
            base: base.unwrap_or(0),
            rule: rule.filter(|_| base.is_some()),
        }
    }

    fn level(&self, cell: &Cell) -> Option<usize> {
        match self.axis {
            Some(i) => cell.place[i],
            None => Some(cell.client),
        }
    }

    /// The value furthest from the base: the last, or the first where the base is the last.
    fn far(&self) -> usize {
        let last = self.labels.len() - 1;
        if self.base == last { 0 } else { last }
    }

    fn change(&self, to: usize) -> String {
        format!(
            "{}={}→{}",
            self.name, self.labels[self.base], self.labels[to]
        )
    }
}

/// The coordinates of a cell without those of some factors.
type Rest = (Option<usize>, Vec<Option<usize>>);

fn rest(cell: &Cell, without: &[&Factor]) -> Rest {
    let mut rest = (Some(cell.client), cell.place.clone());
    for factor in without {
        match factor.axis {
            Some(i) => rest.1[i] = None,
            None => rest.0 = None,
        }
    }
    rest
}

/// Finds them: one knob after the other, then every two.
pub(crate) fn find(grid: &Grid) -> Vec<Effect> {
    let rule = Rule::of(grid.manifest);
    let rule = rule.as_ref();
    let mut factors = Vec::new();
    if grid.clients.len() > 1 {
        factors.push(Factor::new("client", &grid.clients, None, rule));
    }
    let axes = grid.axes.iter().enumerate();
    factors.extend(axes.map(|(i, axis)| Factor::new(&axis.name, &axis.labels, Some(i), rule)));
    // Logarithms once; a cell with a round of nothing has none.
    let logs: Vec<Option<BTreeMap<u32, f64>>> = grid.cells.iter().map(log_rates).collect();
    let mut found: Vec<Effect> = factors
        .iter()
        .flat_map(|f| of_one(grid, &logs, f))
        .collect();
    for (i, a) in factors.iter().enumerate() {
        for b in &factors[i + 1..] {
            found.extend(of_two(grid, &logs, a, b));
        }
    }
    if rule.is_some() {
        let others = found.iter_mut().filter(|e| e.interval == Interval::Fixed);
        others.for_each(|e| e.interval = Interval::IgnoresStopping);
    }
    found
}

fn log_rates(cell: &Cell) -> Option<BTreeMap<u32, f64>> {
    let rates = by_round(cell);
    let positive = !rates.is_empty() && rates.values().all(|x| *x > 0.0);
    positive.then(|| rates.into_iter().map(|(r, x)| (r, x.ln())).collect())
}

type Logs = [Option<BTreeMap<u32, f64>>];

/// Every value of a factor against its base.
fn of_one(grid: &Grid, logs: &Logs, factor: &Factor) -> Vec<Effect> {
    let mut combinations: BTreeMap<Rest, BTreeMap<usize, usize>> = BTreeMap::new();
    for (i, cell) in grid.cells.iter().enumerate() {
        if let Some(level) = factor.level(cell) {
            combinations
                .entry(rest(cell, &[factor]))
                .or_default()
                .insert(level, i);
        }
    }
    let mut of_levels: BTreeMap<usize, Means> = BTreeMap::new();
    let mut pairs: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for cells in combinations.values() {
        let Some(base) = cells.get(&factor.base) else {
            continue;
        };
        for (level, cell) in cells.iter().filter(|(level, _)| **level != factor.base) {
            let signed = [(*cell, 1.0), (*base, -1.0)];
            of_levels.entry(*level).or_default().add(logs, &signed);
            pairs.entry(*level).or_default().push((*base, *cell));
        }
    }
    let effect = |(level, means): (usize, Means)| {
        let decided = factor.rule.and_then(|rule| {
            let pairs = pairs.get(&level)?.iter();
            let rates = |i: usize| by_round(&grid.cells[i]);
            let rates: Vec<_> = pairs
                .map(|(base, cell)| (rates(*base), rates(*cell)))
                .collect();
            rule.decided(&rates)
        });
        let knobs = factor.change(level);
        Some(match decided {
            Some((repeated, rounds)) => Effect {
                knobs,
                ratio: Ratio {
                    mean: repeated.ratio,
                    interval: Some((repeated.low, repeated.high)),
                    rounds,
                },
                interval: Interval::Repeated,
            },
            None => Effect {
                knobs,
                ratio: means.ratio()?,
                interval: Interval::Fixed,
            },
        })
    };
    of_levels.into_iter().filter_map(effect).collect()
}

/// The effect of two factors on each other, between their first and last values.
fn of_two(grid: &Grid, logs: &Logs, a: &Factor, b: &Factor) -> Option<Effect> {
    let (last_a, last_b) = (a.far(), b.far());
    // The corners by combination of the others: which ends of a and b.
    let mut combinations: BTreeMap<Rest, BTreeMap<(bool, bool), usize>> = BTreeMap::new();
    let end = |level: usize, base: usize, far: usize| match level {
        l if l == base => Some(false),
        l if l == far => Some(true),
        _ => None,
    };
    for (i, cell) in grid.cells.iter().enumerate() {
        let ends = a.level(cell).zip(b.level(cell));
        let corner =
            ends.and_then(|(x, y)| Some((end(x, a.base, last_a)?, end(y, b.base, last_b)?)));
        if let Some(corner) = corner {
            combinations
                .entry(rest(cell, &[a, b]))
                .or_default()
                .insert(corner, i);
        }
    }
    let mut means = Means::default();
    for corners in combinations.values() {
        let at = |x, y| corners.get(&(x, y)).copied();
        let all = (
            at(true, true),
            at(true, false),
            at(false, true),
            at(false, false),
        );
        if let (Some(both), Some(of_a), Some(of_b), Some(neither)) = all {
            means.add(
                logs,
                &[(both, 1.0), (of_a, -1.0), (of_b, -1.0), (neither, 1.0)],
            );
        }
    }
    Some(Effect {
        knobs: format!("{} × {}", a.change(last_a), b.change(last_b)),
        ratio: means.ratio()?,
        interval: Interval::Fixed,
    })
}

/// Sums of signed logarithms by round, over combinations.
#[derive(Default)]
struct Means {
    by_round: BTreeMap<u32, (f64, f64)>,
}

impl Means {
    /// Adds the signed sum of some cells, in each round that all of them have.
    fn add(&mut self, logs: &Logs, signed: &[(usize, f64)]) {
        let all: Option<Vec<(&BTreeMap<u32, f64>, f64)>> = signed
            .iter()
            .map(|(cell, sign)| Some((logs[*cell].as_ref()?, *sign)))
            .collect();
        let Some(all) = all else { return };
        for round in all[0].0.keys() {
            let sum: Option<f64> = all
                .iter()
                .map(|(logs, sign)| Some(sign * logs.get(round)?))
                .sum();
            if let Some(sum) = sum {
                let entry = self.by_round.entry(*round).or_default();
                *entry = (entry.0 + sum, entry.1 + 1.0);
            }
        }
    }

    fn ratio(&self) -> Option<Ratio> {
        let mean = |(sum, n): &(f64, f64)| (1.0, (sum / n).exp());
        let pairs: Vec<_> = self.by_round.values().map(mean).collect();
        paired_ratio(&pairs)
    }
}

/// Makes the table.
pub(crate) fn table(grid: &Grid, found: &[Effect]) -> anyhow::Result<DataFrame> {
    let floats = |name: &str, of: &dyn Fn(&Ratio) -> Option<f64>| {
        let cells: Vec<_> = found.iter().map(|e| of(&e.ratio)).collect();
        Column::new(name.into(), cells)
    };
    let knobs: Vec<&str> = found.iter().map(|e| e.knobs.as_str()).collect();
    let columns = vec![
        Column::new("knobs".into(), knobs),
        floats("ratio", &|r| Some(r.mean)),
        floats("ratio_low", &|r| Some(r.interval?.0)),
        floats("ratio_high", &|r| Some(r.interval?.1)),
        Column::new(
            "within_noise".into(),
            found
                .iter()
                .map(|e| Some(grid.floor.as_ref()?.holds(e.ratio.mean)))
                .collect::<Vec<_>>(),
        ),
        Column::new(
            "interval".into(),
            found
                .iter()
                .map(|e| e.ratio.interval.map(|_| e.interval.name()))
                .collect::<Vec<_>>(),
        ),
        Column::new(
            "rounds".into(),
            found
                .iter()
                .map(|e| i64::try_from(e.ratio.rounds).ok())
                .collect::<Vec<_>>(),
        ),
    ];
    Ok(DataFrame::new(found.len(), columns)?)
}

#[cfg(test)]
mod tests {
    use crate::{synthetic, tables};
    use yieldpoint_record::Trial;
    use yieldpoint_terms::Value;

    #[test]
    fn main_effects_and_interactions_are_told_apart() {
        // Made up: two threads are twice as fast, keep-alive three times, both together four times (not
        // six), and every round has a drift of its own.
        let keep = [Value::Bool(false), Value::Bool(true)];
        let threads = [Value::Int(1), Value::Int(2)];
        let manifest = synthetic::manifest(&[("keep_alive", &keep), ("threads", &threads)]);
        let mut trials: Vec<Trial> = Vec::new();
        for round in 1..=8 {
            for (k, t, times) in [(false, 1, 1), (false, 2, 2), (true, 1, 3), (true, 2, 4)] {
                let trial = synthetic::at(
                    synthetic::trial("ureq", round),
                    "keep_alive",
                    Value::Bool(k),
                );
                let trial = synthetic::at(trial, "threads", Value::Int(t));
                trials.push(synthetic::good(trial, 1_000 * times * u64::from(round)));
            }
        }
        let table = tables(&manifest, &trials).unwrap().effects;
        assert_eq!(
            synthetic::names(&table),
            [
                "knobs",
                "ratio",
                "ratio_low",
                "ratio_high",
                "within_noise",
                "interval",
                "rounds"
            ]
        );
        let knobs: Vec<_> = table
            .column("knobs")
            .unwrap()
            .str()
            .unwrap()
            .iter()
            .flatten()
            .collect();
        assert_eq!(
            knobs,
            [
                "keep_alive=false→true",
                "threads=1→2",
                "keep_alive=false→true × threads=1→2"
            ]
        );
        let ratios = table.column("ratio").unwrap().f64().unwrap().to_vec();
        // √(3 · 2), √(2 · 4/3), and 4 ÷ (3 · 2).
        let want = [6f64.sqrt(), (8.0f64 / 3.0).sqrt(), 2.0 / 3.0];
        for (got, want) in ratios.iter().zip(want) {
            assert!((got.unwrap() - want).abs() < 1e-9, "{ratios:?}");
        }
        let low = table.column("ratio_low").unwrap().f64().unwrap().get(0);
        assert!((low.unwrap() - 6f64.sqrt()).abs() < 1e-9, "drift cancels");
    }

    #[test]
    fn a_combination_that_gave_nothing_is_left_out_whole() {
        let threads = [Value::Int(1), Value::Int(2)];
        let clients = ["ureq", "hyper"].map(|c| Value::Text(c.into()));
        let manifest = synthetic::manifest(&[("client", &clients), ("threads", &threads)]);
        let mut trials = Vec::new();
        for round in 1..=2 {
            for (client, threads, good) in [
                ("ureq", 1, 100),
                ("ureq", 2, 0),
                ("hyper", 1, 100),
                ("hyper", 2, 300),
            ] {
                let t = synthetic::at(
                    synthetic::trial(client, round),
                    "threads",
                    Value::Int(threads),
                );
                trials.push(synthetic::good(t, good));
            }
        }
        let table = tables(&manifest, &trials).unwrap().effects;
        let knobs: Vec<_> = table
            .column("knobs")
            .unwrap()
            .str()
            .unwrap()
            .iter()
            .flatten()
            .collect();
        // No interaction: one of its four corners is missing.
        assert_eq!(knobs, ["client=ureq→hyper", "threads=1→2"]);
        let ratios = table.column("ratio").unwrap().f64().unwrap().to_vec();
        assert!((ratios[1].unwrap() - 3.0).abs() < 1e-9, "{ratios:?}");
    }
}

//! The table `breakpoints`: where along a numeric axis throughput stops rising (knee) or falls (cliff).
//!
//! All other knobs are held. A cliff lies between two neighbours of which the upper one has at least a tenth
//! less in every round. A knee lies between the last level that rises and the first that does not; from
//! five levels and eight rounds on, where two lines joined fit better, with an interval over rounds.
//!
//! A run with `find = "breakpoint"` measured some of the levels, unequally often and never two in one round:
//! there the levels on both sides are those that the search itself closed in on, and its n-th trials of the
//! two, which ran one soon after the other, are paired.

use std::collections::BTreeMap;

use polars::prelude::{Column, DataFrame};
use yieldpoint_statistics::{Level, ROUNDS_FOR_A_VERDICT, Step, breaks, knee, step};

use crate::grid::{Cell, Grid};
use crate::stats::paired_ratio;

pub(crate) const KNEE: &str = "knee";
pub(crate) const CLIFF: &str = "cliff";

/// One breakpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Breakpoint {
    /// index into the axes of the grid
    pub axis: usize,
    /// indices into the cells of the grid: the last level before it, the first after it
    pub cells: (usize, usize),
    pub kind: &'static str,
    /// throughput above ÷ below, paired by round; of the means where a trial has none, 0 where nothing is left
    pub ratio: f64,
    /// 95 % interval, from eight rounds on
    pub interval: Option<(f64, f64)>,
}

/// Finds them, axis by axis, in the order of the matrix.
pub(crate) fn find(grid: &Grid) -> Vec<Breakpoint> {
    let mut found = Vec::new();
    for (axis, facts) in grid.axes.iter().enumerate() {
        if !facts.numeric {
            continue;
        }
        // Cells that differ on this axis only, by level.
        let mut lines: BTreeMap<(usize, Vec<Option<usize>>), Vec<usize>> = BTreeMap::new();
        for (i, cell) in grid.cells.iter().enumerate() {
            let mut rest = cell.place.clone();
            // A load that was not reached says nothing about what lies beyond it.
            let compared = cell.comparable().next().is_some();
            if rest[axis].take().is_some() && compared {
                lines.entry((cell.client, rest)).or_default().push(i);
            }
        }
        for line in lines.values_mut() {
            line.sort_by_key(|i| grid.cells[*i].place[axis]);
            if grid.manifest.along.as_ref() == Some(&facts.name) {
                found.extend(searched(grid, axis, line));
            } else {
                found.extend(along(grid, axis, line));
            }
        }
    }
    found
}

/// The breakpoints that a search closed in on.
fn searched(grid: &Grid, axis: usize, line: &[usize]) -> Vec<Breakpoint> {
    let at = |i: &usize| grid.axes[axis].numbers[grid.cells[*i].place[axis]?];
    let Some(values) = line.iter().map(at).collect::<Option<Vec<f64>>>() else {
        return vec![];
    };
    let trials = |i: usize| by_round(&grid.cells[line[i]]).into_values();
    let of_level = |i: usize| trials(i).map(move |y| (i, Some(y)));
    let measured: Vec<(usize, Option<f64>)> = (0..line.len()).flat_map(of_level).collect();
    let found = breaks(&values, &measured);
    let kinds = [(KNEE, found.knee), (CLIFF, found.cliff)];
    let breakpoint = |(kind, place): (&'static str, Option<(usize, usize)>)| {
        let (below, above) = place?;
        let pairs: Vec<(f64, f64)> = trials(below).zip(trials(above)).collect();
        breakpoint(axis, (line[below], line[above]), kind, &pairs)
    };
    kinds.into_iter().filter_map(breakpoint).collect()
}

/// The breakpoints of one line of cells, whose levels ascend.
fn along(grid: &Grid, axis: usize, line: &[usize]) -> Vec<Breakpoint> {
    let at = |i: usize| -> Option<f64> { grid.axes[axis].numbers[grid.cells[i].place[axis]?] };
    let mut found = Vec::new();
    let mut rose = false;
    let fitted = fitted_knee(grid, line, at);
    let mut bent = fitted.is_some();
    if let Some(cells) = fitted {
        let pairs = rounds_of_both(&grid.cells[cells.0], &grid.cells[cells.1]);
        found.extend(breakpoint(axis, cells, KNEE, &pairs));
    }
    for pair in line.windows(2) {
        let (below, above) = (pair[0], pair[1]);
        let pairs = rounds_of_both(&grid.cells[below], &grid.cells[above]);
        let seen = at(below)
            .zip(at(above))
            .and_then(|(a, b)| step(a, b, &pairs));
        match seen {
            Some(Step::Falls) => {
                found.extend(breakpoint(axis, (below, above), CLIFF, &pairs));
                // What falls no longer rises: no knee beside its own cliff.
                bent = true;
            }
            Some(Step::Flat) if rose && !bent => {
                found.extend(breakpoint(axis, (below, above), KNEE, &pairs));
                bent = true;
            }
            Some(Step::Rises) => rose = true,
            _ => {}
        }
    }
    found
}

/// The levels around the joint of two lines, where the rounds carry one.
fn fitted_knee(
    grid: &Grid,
    line: &[usize],
    at: impl Fn(usize) -> Option<f64>,
) -> Option<(usize, usize)> {
    let levels: Option<Vec<Level>> = line
        .iter()
        .map(|i| {
            let rounds: Vec<f64> = by_round(&grid.cells[*i]).into_values().collect();
            Some(Level {
                at: at(*i)?,
                rounds,
            })
        })
        .collect();
    let levels = levels.filter(|l| l.iter().all(|l| l.rounds.len() >= ROUNDS_FOR_A_VERDICT))?;
    let joint = knee(&levels, grid.manifest.seed)?;
    // A tenth of a per cent of slack, so that a joint on a level is not moved to the next by rounding.
    let below = levels.iter().rposition(|l| l.at <= joint.low * 1.001)?;
    let above = levels.iter().position(|l| l.at >= joint.high * 0.999)?;
    let above = above.max(below + 1).min(line.len() - 1);
    (below < above).then(|| (line[below], line[above]))
}

/// `pairs`: throughput below and above.
fn breakpoint(
    axis: usize,
    cells: (usize, usize),
    kind: &'static str,
    pairs: &[(f64, f64)],
) -> Option<Breakpoint> {
    let ratio = paired_ratio(pairs);
    Some(Breakpoint {
        axis,
        cells,
        kind,
        ratio: ratio.map(|r| r.mean).or_else(|| of_means(pairs))?,
        interval: ratio.and_then(|r| r.interval),
    })
}

/// Beyond a cliff some trials have a few good requests and others none. A ratio to none has no logarithm; that of
/// the means still says how much is left.
fn of_means(pairs: &[(f64, f64)]) -> Option<f64> {
    let (below, above) = pairs.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    (below > 0.0).then_some(above / below)
}

/// Throughput of each round that counts and may be compared.
pub(crate) fn by_round(cell: &Cell) -> BTreeMap<u32, f64> {
    let of = |r: &crate::grid::Round| Some((r.trial.round, r.numbers.good_per_s?));
    cell.comparable().filter_map(of).collect()
}

/// Throughput of both cells in each round that both have.
pub(crate) fn rounds_of_both(below: &Cell, above: &Cell) -> Vec<(f64, f64)> {
    let above = by_round(above);
    let pair = |(round, x)| Some((x, *above.get(&round)?));
    by_round(below).into_iter().filter_map(pair).collect()
}

/// Makes the table.
pub(crate) fn table(grid: &Grid, found: &[Breakpoint]) -> anyhow::Result<DataFrame> {
    let texts = |name: &str, of: &dyn Fn(&Breakpoint) -> Option<String>| {
        Column::new(name.into(), found.iter().map(of).collect::<Vec<_>>())
    };
    let floats = |name: &str, of: &dyn Fn(&Breakpoint) -> Option<f64>| {
        Column::new(name.into(), found.iter().map(of).collect::<Vec<_>>())
    };
    let verdict = |i: usize| grid.cells[i].said.as_ref().map(|s| s.verdict.clone());
    let columns = vec![
        texts("axis", &|b| Some(grid.axes[b.axis].name.clone())),
        texts("fixed", &|b| Some(fixed(grid, b))),
        texts("kind", &|b| Some(b.kind.to_owned())),
        texts("below", &|b| level(grid, b, b.cells.0)),
        texts("above", &|b| level(grid, b, b.cells.1)),
        floats("ratio", &|b| Some(b.ratio)),
        floats("ratio_low", &|b| Some(b.interval?.0)),
        floats("ratio_high", &|b| Some(b.interval?.1)),
        texts("verdict_below", &|b| verdict(b.cells.0)),
        texts("verdict_above", &|b| verdict(b.cells.1)),
    ];
    Ok(DataFrame::new(found.len(), columns)?)
}

/// The value on the axis.
pub(crate) fn level(grid: &Grid, b: &Breakpoint, cell: usize) -> Option<String> {
    let place = grid.cells[cell].place[b.axis]?;
    Some(grid.axes[b.axis].labels[place].clone())
}

/// The client and every other axis: "client=ureq,keep_alive=true".
fn fixed(grid: &Grid, b: &Breakpoint) -> String {
    let cell = &grid.cells[b.cells.0];
    let mut parts = vec![format!("client={}", grid.clients[cell.client])];
    for (i, axis) in grid.axes.iter().enumerate().filter(|(i, _)| *i != b.axis) {
        if let Some(value) = cell.place[i] {
            parts.push(format!("{}={}", axis.name, axis.labels[value]));
        }
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_record::Trial;
    use yieldpoint_terms::Value;

    /// Made-up throughput (in 2 s) at 1, 2, 4 … threads, the same in all rounds but for a drift of all.
    fn run(levels: &[u64], rounds: u32) -> DataFrame {
        let values: Vec<Value> = (0..levels.len()).map(|i| Value::Int(1 << i)).collect();
        let manifest = synthetic::manifest(&[("threads", &values)]);
        let mut trials: Vec<Trial> = Vec::new();
        for round in 1..=rounds {
            for (value, good) in values.iter().zip(levels) {
                let trial =
                    synthetic::at(synthetic::trial("ureq", round), "threads", value.clone());
                trials.push(synthetic::good(trial, good * u64::from(10 + round)));
            }
        }
        tables(&manifest, &trials).unwrap().breakpoints
    }

    fn rows(table: &DataFrame) -> Vec<(String, String, String)> {
        let column = |name: &str| {
            let column = table.column(name).unwrap().str().unwrap();
            column
                .iter()
                .map(|t| t.unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        let (kinds, below, above) = (column("kind"), column("below"), column("above"));
        kinds
            .into_iter()
            .zip(below)
            .zip(above)
            .map(|((k, b), a)| (k, b, a))
            .collect()
    }

    #[test]
    fn knees_and_cliffs_are_found_between_their_levels() {
        let row = |kind: &str, below: &str, above: &str| {
            (kind.to_owned(), below.to_owned(), above.to_owned())
        };
        for (levels, want) in [
            // In proportion to its end: no breakpoint.
            (&[100, 200, 400][..], vec![]),
            // Flat from the start: it never rose, so it never stops.
            (&[100, 101, 100], vec![]),
            // Rises, then flat.
            (&[100, 200, 205, 206], vec![row(KNEE, "2", "4")]),
            // Rises, then falls: a cliff, and no knee beside it.
            (&[100, 200, 50], vec![row(CLIFF, "2", "4")]),
            // Flat for a while before it falls.
            (
                &[100, 200, 201, 20],
                vec![row(KNEE, "2", "4"), row(CLIFF, "4", "8")],
            ),
            // Nothing is left.
            (&[100, 0], vec![row(CLIFF, "1", "2")]),
            // A twentieth less is no cliff.
            (&[100, 95], vec![]),
        ] {
            assert_eq!(rows(&run(levels, 2)), want, "{levels:?}");
        }
    }

    /// A made-up search along 40 rates with a capacity of 2,020/s: one trial a round. 1,900 is 94 % of it.
    #[test]
    fn a_search_is_read_between_the_levels_it_measured() {
        use yieldpoint_statistics::Search;
        let rates: Vec<i64> = (1..=40).map(|i| 100 * i).collect();
        let axis: Vec<Value> = rates.iter().copied().map(Value::Int).collect();
        let mut manifest = synthetic::manifest(&[("rate", &axis)]);
        manifest.along = Some("rate".into());
        let values: Vec<f64> = rates.iter().map(|r| *r as f64).collect();
        // A fifth of 40 levels in 5 rounds.
        let search = Search::new(&values, 40);
        let both = || vec![(KNEE, "1900", "2000"), (CLIFF, "2900", "3000")];
        let quarter = |good: i64, _: usize| good / 4;
        // One trial leaves a single good request, the next none.
        let hardly_any = |_: i64, trial: usize| i64::from(trial.is_multiple_of(2));
        for (cliff, left, want) in [
            (
                4_100,
                &quarter as &dyn Fn(i64, usize) -> i64,
                vec![(KNEE, "1900", "2000")],
            ),
            (3_000, &quarter, both()),
            (3_000, &hardly_any, both()),
        ] {
            let (mut measured, mut trials) = (vec![], vec![]);
            while let Some(level) = search.next(&measured) {
                let good = rates[level].min(2_020);
                let good = if rates[level] < cliff {
                    good
                } else {
                    left(good, trials.len())
                };
                let round = u32::try_from(trials.len() + 1).unwrap();
                let trial = synthetic::trial("reference", round);
                let trial = synthetic::at(trial, "rate", axis[level].clone());
                trials.push(synthetic::good(trial, u64::try_from(good).unwrap()));
                measured.push((level, Some(good as f64)));
            }
            assert!(trials.len() <= 40);
            let table = tables(&manifest, &trials).unwrap().breakpoints;
            let want: Vec<_> = want
                .into_iter()
                .map(|(k, b, a)| (k.to_owned(), b.to_owned(), a.to_owned()))
                .collect();
            assert_eq!(rows(&table), want);
        }
    }

    #[test]
    fn beyond_a_cliff_some_rounds_may_have_nothing_at_all() {
        let values = [Value::Int(1), Value::Int(2)];
        let manifest = synthetic::manifest(&[("threads", &values)]);
        let trial = |threads: i64, round: u32, good: u64| {
            let t = synthetic::trial("ureq", round);
            let t = synthetic::at(t, "threads", Value::Int(threads));
            synthetic::good(t, good)
        };
        let trials = [
            trial(1, 1, 100),
            trial(2, 1, 0),
            trial(1, 2, 100),
            trial(2, 2, 8),
        ];
        let table = tables(&manifest, &trials).unwrap().breakpoints;
        assert_eq!(
            rows(&table),
            [(CLIFF.to_owned(), "1".to_owned(), "2".to_owned())]
        );
        // 4 of 100 on average; with a round of nothing there is no interval.
        let number = |name: &str| table.column(name).unwrap().f64().unwrap().get(0);
        assert_eq!(number("ratio"), Some(0.04));
        assert_eq!(number("ratio_low"), None);
    }

    #[test]
    fn eight_rounds_carry_an_interval() {
        let low = |table: &DataFrame| table.column("ratio_low").unwrap().f64().unwrap().get(0);
        assert_eq!(low(&run(&[100, 200, 50], 7)), None);
        let eight = run(&[100, 200, 50], 8);
        assert!((low(&eight).unwrap() - 0.25).abs() < 1e-9);
        let ratio = eight
            .column("ratio")
            .unwrap()
            .f64()
            .unwrap()
            .get(0)
            .unwrap();
        assert!((ratio - 0.25).abs() < 1e-9, "drift of the rounds cancels");
        // Five levels too: the joint of two lines.
        let five = run(&[100, 200, 400, 400, 400], 8);
        assert_eq!(
            rows(&five),
            [(KNEE.to_owned(), "4".to_owned(), "8".to_owned())]
        );
    }

    #[test]
    fn the_other_knobs_are_held() {
        let values = [Value::Int(1), Value::Int(2)];
        let clients = ["ureq", "hyper"].map(|c| Value::Text(c.into()));
        let manifest = synthetic::manifest(&[("client", &clients), ("threads", &values)]);
        let trial = |client: &str, threads: i64, good: u64| {
            let t = synthetic::at(synthetic::trial(client, 1), "threads", Value::Int(threads));
            synthetic::good(t, good)
        };
        // One falls, the other rises: together they would look flat.
        let trials = [
            trial("ureq", 1, 1_000),
            trial("ureq", 2, 500),
            trial("hyper", 1, 500),
            trial("hyper", 2, 1_000),
        ];
        let table = tables(&manifest, &trials).unwrap().breakpoints;
        assert_eq!(table.height(), 1);
        let fixed = table.column("fixed").unwrap().str().unwrap().get(0);
        assert_eq!(fixed, Some("client=ureq"));
        assert_eq!(
            synthetic::names(&table),
            [
                "axis",
                "fixed",
                "kind",
                "below",
                "above",
                "ratio",
                "ratio_low",
                "ratio_high",
                "verdict_below",
                "verdict_above"
            ]
        );
    }
}

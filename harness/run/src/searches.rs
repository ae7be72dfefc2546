//! A run with `find = "breakpoint"`: what each pass over the combinations of the other axes measures. Pure.
//!
//! Every combination has a search of its own (`yieldpoint_statistics::Search`) over its levels of the axis,
//! and a fifth of the trials that a grid of them would take. A pass, which the rows call a round, asks every
//! search that is not done for one level.

use std::collections::{BTreeMap, BTreeSet};

use yieldpoint_matrix::Shuffled;
use yieldpoint_record::Role;
use yieldpoint_statistics::Search;
use yieldpoint_terms::{Rounds, Value};

use crate::plan::Plan;

/// A search takes at most one trial for so many of the grid's.
const SHARE: usize = 5;
/// One A/A twin for so many cells of a pass, as in a grid.
const TWINS: usize = 8;

/// All searches of a run.
pub(crate) struct Searches {
    lines: Vec<Line>,
    seed: u64,
    /// controls and ceilings run in the first of so many passes, so that there are as many as in a grid
    every: u32,
    controls: bool,
}

/// One combination of the other axes.
struct Line {
    /// indices into the plan's cells, by rising value of the axis
    cells: Vec<usize>,
    search: Search,
    /// index into `cells`, good requests per second
    measured: Vec<(usize, Option<f64>)>,
}

impl Searches {
    /// `None` without a search.
    pub fn new(plan: &Plan) -> Option<Self> {
        let run = &plan.matrix.run;
        let (along, Rounds::Fixed(rounds)) = (run.along.as_ref()?, run.rounds) else {
            return None;
        };
        let lines: Vec<Line> = lines(plan, along)
            .into_values()
            .map(|levels| {
                let (values, cells): (Vec<f64>, Vec<usize>) = levels.into_iter().unzip();
                let budget = cells.len() * rounds as usize / SHARE;
                Line {
                    search: Search::new(&values, budget),
                    cells,
                    measured: vec![],
                }
            })
            .collect();
        let passes = lines.iter().map(|l| l.search.budget()).max().unwrap_or(0);
        Some(Self {
            lines,
            seed: run.seed,
            // A budget beyond 32 bits would be a grid of as many cells; 10,000 are the most.
            every: u32::try_from(passes)
                .unwrap_or(u32::MAX)
                .div_ceil(rounds.max(1))
                .max(1),
            controls: run.controls,
        })
    }

    /// Why they cannot be run: a line whose fifth does not hold its bisections.
    pub fn refusal(plan: &Plan) -> Option<String> {
        let searches = Self::new(plan)?;
        let along = plan.matrix.run.along.as_ref()?;
        let lacks = |line: &&Line| line.search.budget() < Search::needs(line.cells.len());
        let line = searches.lines.iter().find(lacks)?;
        let (levels, budget) = (line.cells.len(), line.search.budget());
        let needs = Search::needs(levels);
        Some(format!(
            "search along \"{along}\": expected at least {needs} trials for {levels} values, got {budget}, a fifth of the grid's; give {} rounds, or more values",
            (needs * SHARE).div_ceil(levels)
        ))
    }

    /// The trials of a pass, shuffled; none where every search is done.
    pub fn pass(&self, plan: &Plan, round: u32) -> Vec<(Role, usize)> {
        let asked = self.lines.iter();
        let cells: Vec<usize> = asked
            .filter_map(|line| Some(line.cells[line.search.next(&line.measured)?]))
            .collect();
        let mut trials: Vec<(Role, usize)> = cells.iter().map(|c| (Role::Cell, *c)).collect();
        if !cells.is_empty() && (round - 1).is_multiple_of(self.every) {
            let turn = ((round - 1) / self.every) as usize;
            let twins = if self.controls {
                cells.len().div_ceil(TWINS)
            } else {
                0
            };
            let twin = |i: usize| (Role::Control, cells[(turn + i * TWINS) % cells.len()]);
            trials.extend((0..twins).map(twin));
            let asked: BTreeSet<usize> = cells.iter().filter_map(|c| ceiling(plan, *c)).collect();
            trials.extend(asked.into_iter().map(|c| (Role::Ceiling, c)));
        }
        let order = Shuffled::new(trials.len(), self.seed.wrapping_add(round.into())).round();
        order.into_iter().map(|i| trials[i]).collect()
    }

    /// A cell was measured, or failed.
    pub fn measured(&mut self, cell: usize, good_per_s: Option<f64>) {
        for line in &mut self.lines {
            if let Some(level) = line.cells.iter().position(|c| *c == cell) {
                line.measured.push((level, good_per_s));
            }
        }
    }

    /// Passes at most.
    pub fn passes(&self) -> u32 {
        let most = self.lines.iter().map(|l| l.search.budget()).max();
        u32::try_from(most.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// Trials at most: of cells, and of controls and ceilings beside them.
    pub fn most(&self, plan: &Plan) -> (usize, usize) {
        let cells = self.lines.iter().map(|l| l.search.budget()).sum();
        let turns = self.passes().div_ceil(self.every) as usize;
        let twins = if self.controls {
            self.lines.len().div_ceil(TWINS)
        } else {
            0
        };
        let ceilings = plan.ceilings.len().min(self.lines.len());
        (cells, turns * (twins + ceilings))
    }

    /// Time at most, ns.
    pub fn time(&self, plan: &Plan) -> u64 {
        let slowest = |role, cells: &mut dyn Iterator<Item = usize>| {
            cells.map(|c| plan.cost(role, c)).max().unwrap_or(0)
        };
        let line =
            |l: &Line| slowest(Role::Cell, &mut l.cells.iter().copied()) * l.search.budget() as u64;
        let cells: u64 = self.lines.iter().map(line).sum();
        let (_, beside) = self.most(plan);
        let one = slowest(Role::Control, &mut plan.runnable().into_iter())
            .max(slowest(Role::Ceiling, &mut (0..plan.ceilings.len())));
        cells + beside as u64 * one
    }
}

/// The coordinates that a line's cells share.
type Others<'a> = Vec<&'a (String, Value)>;

/// The cells that can be run by the rest of their coordinates, each with its value on the axis, rising. A cell
/// that the axis does not touch is a line of its own.
fn lines<'a>(plan: &'a Plan, along: &str) -> BTreeMap<Others<'a>, Vec<(f64, usize)>> {
    let mut lines: BTreeMap<Others, Vec<(f64, usize)>> = BTreeMap::new();
    for cell in plan.runnable() {
        let coordinates = &plan.cells[cell].cell.coordinates;
        let at = coordinates.iter().find(|(name, _)| name == along);
        let at = at.and_then(|(_, value)| value.as_f64()).unwrap_or(0.0);
        let rest = coordinates.iter().filter(|(name, _)| name != along);
        lines.entry(rest.collect()).or_default().push((at, cell));
    }
    for levels in lines.values_mut() {
        levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

/// The ceiling of a cell: the one whose coordinates are all among the cell's.
fn ceiling(plan: &Plan, cell: usize) -> Option<usize> {
    let own = &plan.cells[cell].cell.coordinates;
    let of_cell = |c: &crate::PlannedCell| c.cell.coordinates.iter().all(|pair| own.contains(pair));
    plan.ceilings.iter().position(of_cell)
}

#[cfg(test)]
mod tests {
    use yieldpoint_matrix::{Axis, Cell, Matrix, RunSettings};
    use yieldpoint_terms::Knobs;

    use super::*;
    use crate::plan::fake;
    use crate::schedule::{Schedule, Slot};

    fn settings(rounds: u32) -> RunSettings {
        RunSettings {
            rounds: Rounds::Fixed(rounds),
            along: Some("a".into()),
            ..RunSettings::default()
        }
    }

    /// Runs all of it. Throughput rises to the cell 20 and stays.
    fn slots(plan: &Plan, good: impl Fn(usize) -> Option<f64>) -> Vec<Slot> {
        let mut schedule = Schedule::new(plan);
        let mut slots = Vec::new();
        while let Some(slot) = schedule.next() {
            slots.push(slot);
            let is_cell = slot.role == Role::Cell;
            schedule.done(is_cell.then(|| good(slot.cell)).flatten());
            assert!(slots.len() < 10_000, "without end");
        }
        let ran = slots
            .iter()
            .filter(|s| plan.cell(**s).unsupported.is_none());
        assert_eq!(*schedule.extent().trials.end(), ran.count());
        slots
    }

    fn of(slots: &[Slot], role: Role) -> Vec<(u32, usize)> {
        let of_role = slots.iter().filter(|s| s.role == role);
        of_role.map(|s| (s.round, s.cell)).collect()
    }

    #[test]
    fn a_search_takes_a_fifth_of_the_grid_and_a_round_is_a_pass() {
        let plan = fake::plan(fake::matrix(40, settings(5)), &[7]);
        assert_eq!(
            plan.searched(),
            Some((39, 195)),
            "a fifth of 39 cells in 5 rounds"
        );
        let all = slots(&plan, |cell| Some(cell.min(20) as f64 + 1.0));
        let cells = of(&all, Role::Cell);
        // What cannot be run is one row in all, the first.
        assert_eq!(cells[0], (1, 7));
        assert_eq!(cells.len(), 40);
        // One combination: one cell a pass.
        let rounds: Vec<u32> = cells[1..].iter().map(|(round, _)| *round).collect();
        assert_eq!(rounds, (1..=39).collect::<Vec<_>>());
        // Ends and middle first, the knee most often.
        assert_eq!([cells[1].1, cells[2].1], [0, 39]);
        let times = |cell: usize| cells.iter().filter(|(_, c)| *c == cell).count();
        // At the cell 19 it is 20 of 21, more than 95 %.
        assert!(times(18) >= 5 && times(19) >= 5, "{cells:?}");
        // Twins and ceilings as in a grid of five rounds, each twin beside its cell.
        let twins = of(&all, Role::Control);
        assert_eq!(twins.len(), 5);
        assert!(twins.iter().all(|twin| cells.contains(twin)), "{twins:?}");
        assert_eq!(of(&all, Role::Ceiling).len(), 5);
        assert_eq!(plan.extent().trials, 49..=49, "at most");
    }

    #[test]
    fn a_flat_line_ends_early_and_failures_end() {
        let plan = fake::plan(fake::matrix(40, settings(5)), &[]);
        let cells = of(&slots(&plan, |_| Some(1.0)), Role::Cell);
        assert_eq!(cells.len(), 5, "{cells:?}");
        let cells = of(&slots(&plan, |_| None), Role::Cell);
        assert_eq!(cells.len(), 40, "{cells:?}");
    }

    /// An axis `a` of 20 levels in falling order, and another of two.
    fn two_lines() -> Matrix {
        let mut matrix = fake::matrix(0, settings(5));
        let text = |t: &str| Value::Text(t.to_owned());
        matrix.axes = vec![
            Axis {
                name: "b".into(),
                values: ["x", "y"].map(text).into(),
                bundle: false,
                knobs: vec!["b".into()],
            },
            Axis {
                name: "a".into(),
                values: (1..=20).rev().map(Value::Int).collect(),
                bundle: false,
                knobs: vec!["a".into()],
            },
        ];
        for b in ["x", "y"] {
            for a in (1..=20).rev() {
                matrix.cells.push(Cell {
                    id: format!("m/b={b},a={a}"),
                    coordinates: vec![("b".into(), text(b)), ("a".into(), Value::Int(a))],
                    knobs: Knobs::default(),
                });
            }
        }
        matrix
    }

    #[test]
    fn each_combination_has_a_search_of_its_own() {
        let plan = fake::plan(two_lines(), &[]);
        // "x" has a knee, "y" is flat: done after five passes.
        let good = |cell: usize| {
            let level = 20 - cell % 20;
            Some(if cell < 20 { level.min(10) as f64 } else { 3.0 })
        };
        let all = slots(&plan, good);
        let cells = of(&all, Role::Cell);
        let of_line = |line: usize| cells.iter().filter(|(_, c)| c / 20 == line).count();
        assert_eq!((of_line(0), of_line(1)), (20, 5));
        // The first pass asks both for the least value of the axis, which is the last of the file.
        let mut first: Vec<usize> = cells[..2].iter().map(|(_, cell)| *cell).collect();
        first.sort_unstable();
        assert_eq!(first, [19, 39]);
        assert_eq!(all, slots(&plan, good), "the same again");
        let mut other = two_lines();
        other.run.seed = 2;
        let other = fake::plan(other, &[]);
        assert_ne!(all, slots(&other, good), "the seed shuffles a pass");
    }

    #[test]
    fn too_small_a_grid_is_refused_with_what_would_do() {
        // values, rounds, the rounds that the error asks for
        for (values, rounds, wanted) in [
            (20, 2, Some("give 3 rounds")), // 8 of 11 trials
            (20, 3, None),
            (10, 3, Some("give 5 rounds")),
            (10, 5, None),
            (2, 4, Some("give 5 rounds")),
            (2, 5, None),
        ] {
            let plan = fake::plan(fake::matrix(values, settings(rounds)), &[]);
            let refusal = Searches::refusal(&plan);
            match wanted {
                None => assert_eq!(refusal, None, "{values} × {rounds}"),
                Some(fix) => assert!(
                    refusal.as_ref().is_some_and(|r| r.contains(fix)),
                    "{refusal:?}"
                ),
            }
        }
    }
}

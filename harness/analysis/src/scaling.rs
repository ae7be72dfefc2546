//! Whether throughput along an axis of users follows the Universal Scalability Law.
//!
//! Only where one mechanism binds the whole axis: if the verdict changes along it, another resource took
//! over, and three fitted numbers would describe neither.

use std::collections::BTreeMap;

use yieldpoint_statistics::{LEVELS_FOR_A_FIT, Scalability, scalability};

use crate::grid::Grid;

/// Axes that multiply the virtual users.
const OF_USERS: [&str; 3] = ["threads", "users_per_thread", "processes"];

/// Verdicts under which throughput is a matter of how many users share what.
const OF_SCALING: [&str; 5] = [
    "client_cpu",
    "target_cpu",
    "client_cpu,target_cpu",
    "target_latency",
    "unexplained",
];

/// One line of cells along an axis of users.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scaling {
    /// index into the axes of the grid
    pub axis: usize,
    /// index into the cells of the grid: the first of the line
    pub first: usize,
    /// the law, or why there is none
    pub law: Result<Scalability, String>,
}

/// Every line that has levels enough, in the order of the matrix.
pub(crate) fn find(grid: &Grid) -> Vec<Scaling> {
    let mut found = Vec::new();
    for (axis, facts) in grid.axes.iter().enumerate() {
        let of_users = facts.numeric && OF_USERS.contains(&facts.name.as_str());
        if !of_users || facts.labels.len() < LEVELS_FOR_A_FIT {
            continue;
        }
        let mut lines: BTreeMap<(usize, Vec<Option<usize>>), Vec<usize>> = BTreeMap::new();
        for (i, cell) in grid.cells.iter().enumerate() {
            let mut rest = cell.place.clone();
            if rest[axis].take().is_some() && cell.ok().next().is_some() && !cell.starved() {
                lines.entry((cell.client, rest)).or_default().push(i);
            }
        }
        for line in lines.into_values().filter(|l| l.len() >= LEVELS_FOR_A_FIT) {
            found.push(Scaling {
                axis,
                first: line[0],
                law: law(grid, axis, &line),
            });
        }
    }
    found
}

fn law(grid: &Grid, axis: usize, line: &[usize]) -> Result<Scalability, String> {
    let verdict = |i: usize| grid.cells[i].said.as_ref().map(|s| s.verdict.as_str());
    // A line has at least the levels of a fit, so it has a first.
    if let Some(other) = line.iter().find(|i| verdict(**i) != verdict(line[0])) {
        let name = |i: usize| verdict(i).unwrap_or("nothing measured").to_owned();
        return Err(format!(
            "the verdict changes along the axis, from {} to {}",
            name(line[0]),
            name(*other)
        ));
    }
    // Elsewhere the figures are those of a limit, not of users that get in each other's way.
    if let Some(limit) = verdict(line[0]).filter(|v| !OF_SCALING.contains(v)) {
        return Err(format!("{limit} binds at every level"));
    }
    let level = |i: &usize| -> Option<(f64, f64)> {
        let cell = &grid.cells[*i];
        let n = grid.axes[axis].numbers[cell.place[axis]?]?;
        Some((n, cell.spread(|n| n.good_per_s)?.mid))
    };
    let levels: Vec<(f64, f64)> = line.iter().filter_map(level).collect();
    scalability(&levels).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_terms::Value;

    /// Made-up throughput (in 2 s) at 1 to 6 threads; from `broken` on the ports run out.
    fn law_of(levels: [u64; 6], broken: usize) -> Result<Scalability, String> {
        let values: Vec<Value> = (1..=6).map(Value::Int).collect();
        let manifest = synthetic::manifest(&[("threads", &values)]);
        let trials: Vec<_> = (values.iter().zip(levels).enumerate())
            .map(|(i, (value, good))| {
                let t = synthetic::at(synthetic::trial("ureq", 1), "threads", value.clone());
                if i < broken {
                    synthetic::good(t, good)
                } else {
                    synthetic::ran_out(t, good)
                }
            })
            .collect();
        let made = tables(&manifest, &trials).unwrap();
        let grid = Grid::new(&manifest, &trials, &made).unwrap();
        let mut found = find(&grid);
        assert_eq!(found.len(), 1);
        found.remove(0).law
    }

    #[test]
    fn a_law_is_fitted_where_one_cause_binds_and_refused_elsewhere() {
        // Amdahl with a tenth: n ÷ (1 + 0.1 (n − 1)), of 10,000.
        let amdahl = [10_000, 18_182, 25_000, 30_769, 35_714, 40_000];
        let law = law_of(amdahl, 6).unwrap();
        assert!((law.contention - 0.1).abs() < 1e-3, "{law:?}");
        // The same figures, but the ports ran out from 4 on.
        let refused = law_of(amdahl, 3).unwrap_err();
        assert_eq!(
            refused,
            "the verdict changes along the axis, from unexplained to ports_exhausted"
        );
        // They ran out at every level.
        assert_eq!(
            law_of(amdahl, 0).unwrap_err(),
            "ports_exhausted binds at every level"
        );
        // A fall to a tenth is no law of scaling.
        let refused = law_of([10_000, 20_000, 30_000, 40_000, 5_000, 5_000], 6).unwrap_err();
        assert!(refused.contains("misses the scalability law"), "{refused}");
    }
}

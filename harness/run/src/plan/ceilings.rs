//! Ceilings: what the reference client gets out of each distinct target, lab and use of connections.
//!
//! A bound must not come from the trial that it judges, so it has trials of its own: as many users as the
//! cells have, everything else about the load the reference client's own.

use yieldpoint_matrix::{Cell, Matrix, cell_id};
use yieldpoint_terms::{Knob, Knobs, Nanos, Value};

use super::PlannedCell;
use super::cell::Planner;
use super::limits::{SPARE_DESCRIPTORS, hard_limit};

/// Who measures them.
const CLIENT: &str = "reference";
/// Fewer users might wait more than they load.
const FEWEST_USERS: u64 = 32;
/// The most that one thread may have (the knob's range).
const MOST_USERS: u64 = 10_000;
/// A rate is known after so long; cells may need longer for what happens later.
const LONGEST: Nanos = Nanos::from_secs(2);
/// How connections are used; with the target, the lab and what a good response is, all that a ceiling keeps.
const CONNECTIONS: [&str; 3] = ["keep_alive", "same_user", "requests_per_iteration"];
const PREFIXES: [&str; 3] = ["target.", "lab.", "expect."];

/// Whether a knob is of what is loaded, not of the load.
fn is_kept(knob: &str) -> bool {
    CONNECTIONS.contains(&knob) || PREFIXES.iter().any(|p| knob.starts_with(p))
}

/// One cell for every distinct projection of the cells that can be run, and what a reader must know of those
/// that are missing.
pub(super) fn ceilings(
    matrix: &Matrix,
    cells: &[PlannedCell],
    planner: &Planner,
) -> (Vec<PlannedCell>, Vec<String>) {
    if !matrix.run.ceilings {
        return (vec![], vec![]);
    }
    // Nobody asked for more load on a server of the user's.
    let cells = cells
        .iter()
        .filter(|c| c.unsupported.is_none() && c.target.is_some());
    let projections = projections(matrix, cells.map(|c| &c.cell));
    let Some(client) = planner.programs.client(CLIENT) else {
        let note = format!(
            "no ceilings: client \"{CLIENT}\" is not built, so no bound of the targets is measured"
        );
        return (vec![], vec![note; usize::from(!projections.is_empty())]);
    };
    let mut planned = Vec::new();
    let mut notes = Vec::new();
    for projection in projections {
        let cell = projection.cell(
            &matrix.name,
            planner.common,
            &client.hello.knobs,
            hard_limit(),
        );
        match planner.cell(&cell) {
            Ok(PlannedCell {
                unsupported: Some(why),
                ..
            }) => notes.push(format!("no ceiling \"{}\": {why}", cell.id)),
            Ok(ceiling) => planned.push(ceiling),
            Err(why) => notes.push(format!("no ceiling \"{}\": {}", cell.id, why.join("; "))),
        }
    }
    (planned, notes)
}

/// What cells of one target, lab and use of connections have in common.
#[derive(Clone, Debug, PartialEq)]
struct Projection {
    knobs: Knobs,
    coordinates: Vec<(String, Value)>,
    /// the most of its cells
    users: u64,
    /// the shortest window of its cells
    window: Nanos,
}

/// In the order of the file.
fn projections<'c>(matrix: &Matrix, cells: impl Iterator<Item = &'c Cell>) -> Vec<Projection> {
    // An axis belongs to them if one of its values sets something that is kept. Two projections then differ
    // on such an axis, so that the ids of their ceilings do.
    let belongs = |name: &str| {
        let axis = matrix.axes.iter().find(|a| a.name == name);
        axis.is_some_and(|a| a.knobs.iter().any(|k| is_kept(k)))
    };
    let mut all: Vec<Projection> = Vec::new();
    for cell in cells {
        let k = &cell.knobs;
        let kept = k.0.iter().filter(|(name, _)| is_kept(name));
        let knobs = Knobs(kept.map(|(n, v)| (n.clone(), v.clone())).collect());
        // The catalog has filled in defaults.
        let number = |name: &str| k.uint(name).unwrap_or(1);
        let users = number("processes") * number("threads") * number("users_per_thread");
        let window = k.duration("duration").unwrap_or(LONGEST);
        match all.iter_mut().find(|p| p.knobs == knobs) {
            Some(known) => {
                known.users = known.users.max(users);
                known.window = known.window.min(window);
            }
            None => {
                let of_axes = cell.coordinates.iter().filter(|(axis, _)| belongs(axis));
                all.push(Projection {
                    knobs,
                    coordinates: of_axes.cloned().collect(),
                    users,
                    window,
                });
            }
        }
    }
    all
}

impl Projection {
    /// The cell of its ceiling. `common` and `own`: knobs of every client and of the reference client, whose
    /// defaults hold; `hard_limit`: descriptors, where `lab.nofile` does not say.
    fn cell(&self, matrix: &str, common: &[Knob], own: &[Knob], hard_limit: u64) -> Cell {
        let mut knobs = self.knobs.clone();
        let own = own.iter().cloned();
        let own = own.map(|knob| knob.below(&format!("options.{CLIENT}.")));
        for knob in common.iter().cloned().chain(own) {
            if let (None, Some(default)) = (knobs.get(&knob.name), knob.default_value()) {
                knobs.set(knob.name, default);
            }
        }
        let descriptors = knobs.uint("lab.nofile").unwrap_or(hard_limit);
        let most = descriptors
            .saturating_sub(SPARE_DESCRIPTORS)
            .min(MOST_USERS);
        let users = self.users.max(FEWEST_USERS).min(most).max(1);
        knobs.set("client", Value::Text(CLIENT.to_owned()));
        // At most 10,000.
        let users = i64::try_from(users).unwrap_or(1);
        knobs.set("users_per_thread", Value::Int(users));
        knobs.set("duration", Value::Duration(self.window.min(LONGEST)));
        let client = ("ceiling".to_owned(), Value::Text(CLIENT.to_owned()));
        let id: Vec<_> = [client]
            .into_iter()
            .chain(self.coordinates.clone())
            .collect();
        Cell {
            id: cell_id(matrix, &id),
            coordinates: self.coordinates.clone(),
            knobs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fake;
    use yieldpoint_matrix::{Axis, RunSettings};

    /// An axis, its label, and the knobs that this sets.
    type Choice<'a> = (&'a str, &'a str, &'a [(&'a str, Value)]);

    /// A matrix of cells, each with its coordinates and what they set.
    fn matrix(axes: &[(&str, &[&str])], cells: &[&[Choice]]) -> Matrix {
        let mut m = fake::matrix(0, RunSettings::default());
        m.axes = axes
            .iter()
            .map(|(name, knobs)| Axis {
                name: (*name).into(),
                values: vec![],
                bundle: true,
                knobs: knobs.iter().map(ToString::to_string).collect(),
            })
            .collect();
        m.cells = cells
            .iter()
            .map(|choices| {
                let mut knobs = Knobs::default();
                knobs.set("duration", Value::Duration(Nanos::from_secs(10)));
                knobs.set("threads", Value::Int(1));
                knobs.set("target.workers", Value::Int(1));
                for (name, value) in choices.iter().flat_map(|(_, _, set)| set.iter()) {
                    knobs.set(*name, value.clone());
                }
                let coordinates = choices
                    .iter()
                    .map(|(axis, label, _)| ((*axis).to_owned(), Value::Text((*label).into())));
                Cell {
                    id: String::new(),
                    coordinates: coordinates.collect(),
                    knobs,
                }
            })
            .collect();
        m
    }

    fn all(m: &Matrix) -> Vec<Projection> {
        projections(m, m.cells.iter())
    }

    #[test]
    fn cells_that_load_one_target_differently_share_a_ceiling() {
        let many = [
            ("threads", Value::Int(3)),
            ("users_per_thread", Value::Int(20)),
        ];
        let short = [("duration", Value::Duration(Nanos::from_secs(1)))];
        let late = [("target.delay", Value::Duration(Nanos::from_millis(1)))];
        let m = matrix(
            &[
                ("load", &["threads", "users_per_thread", "duration"]),
                ("fault", &["target.delay"]),
            ],
            &[
                &[("load", "many", &many), ("fault", "none", &[])],
                &[("load", "short", &short), ("fault", "none", &[])],
                &[("load", "many", &many), ("fault", "late", &late)],
            ],
        );
        let got = all(&m);
        assert_eq!(got.len(), 2);
        let coordinate = |label: &str| vec![("fault".to_owned(), Value::Text(label.into()))];
        // The most users and the shortest window of its cells; the load is none of its coordinates.
        assert_eq!((got[0].users, got[0].window), (60, Nanos::from_secs(1)));
        assert_eq!(got[0].coordinates, coordinate("none"));
        assert_eq!((got[1].users, got[1].window), (60, Nanos::from_secs(10)));
        assert_eq!(got[1].coordinates, coordinate("late"));
    }

    #[test]
    fn its_load_is_the_reference_client_s_own() {
        let asked = [
            ("client", Value::Text("ureq".into())),
            ("options.ureq.x", Value::Int(1)),
            ("rate", Value::Float(5.0)),
            ("processes", Value::Int(4)),
            ("warmup", Value::Duration(Nanos::from_secs(9))),
            ("keep_alive", Value::Bool(false)),
            ("lab.sysctl.x", Value::Int(0)),
        ];
        let m = matrix(&[], &[&[("b", "only", &asked)]]);
        let common = [
            Knob::int("processes", 1, 1, 64, ""),
            Knob::bool("keep_alive", true, ""),
            Knob::duration("warmup", Nanos(0), Nanos(0), Nanos::from_secs(9), ""),
        ];
        let own = [Knob::bool("fast", true, "")];
        let cell = all(&m)[0].cell("m", &common, &own, 1_000_000);
        assert_eq!(cell.id, "m/ceiling=reference");
        let knobs: Vec<String> = cell
            .knobs
            .0
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        assert_eq!(
            knobs,
            [
                "client=reference",
                "duration=2s",
                "keep_alive=false",
                "lab.sysctl.x=0",
                "options.reference.fast=true",
                "processes=1",
                "target.workers=1",
                "users_per_thread=32",
                "warmup=0s",
            ]
        );
    }

    #[test]
    fn it_has_as_many_users_as_its_cells_and_descriptors_allow() {
        // users of the cells, lab.nofile, the caller's hard limit, users of the ceiling
        let table = [
            (1, None, 1_000_000, 32),          // a few users may not load it
            (100, None, 1_000_000, 100),       // as many as the cells
            (100, Some(128), 1_000_000, 64),   // as its descriptors allow
            (100, None, 128, 64),              // the same by the hard limit
            (50_000, None, 1_000_000, 10_000), // as a thread can have
            (1, Some(32), 1_000_000, 1),       // refused when it is planned, as its cells are
        ];
        for (users, nofile, hard, want) in table {
            let mut knobs = Knobs::default();
            if let Some(nofile) = nofile {
                knobs.set("lab.nofile", Value::Int(nofile));
            }
            let projection = Projection {
                knobs,
                coordinates: vec![],
                users,
                window: Nanos::from_secs(1),
            };
            let cell = projection.cell("m", &[], &[], hard);
            assert_eq!(
                cell.knobs.uint("users_per_thread"),
                Ok(want),
                "{users} {nofile:?}"
            );
        }
    }
}

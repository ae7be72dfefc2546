//! A plan becomes cells: every combination of the axes, less the excluded and the equal ones.

use std::collections::{BTreeMap, BTreeSet};

use yieldpoint_terms::{Catalog, Knobs, Value};

use crate::arguments::shown;
use crate::plan::{Plan, PlannedAxis};
use crate::problem::{Place, Problem};
use crate::selections::Coordinates;
use crate::values::owner;
use crate::{Cell, Claim};

/// Greatest number of combinations. At a second a trial, one round of them is three hours.
const MAX_CELLS: usize = 10_000;

/// All cells in the order of the file, the last axis turning fastest, and what happened on the way.
pub(crate) fn expand(
    matrix: &str,
    plan: &Plan,
    excludes: &[(Place, Coordinates)],
    claims: &[Claim],
    catalog: &Catalog,
) -> Result<(Vec<Cell>, Vec<String>), Box<Problem>> {
    let combinations = count(&plan.axes)?;
    let defaults = defaults(catalog);
    let mut matched = vec![0_usize; excludes.len()];
    let (mut excluded, mut collapsed) = (0_usize, 0_usize);
    let mut seen: BTreeSet<Knobs> = BTreeSet::new();
    let mut cells = Vec::new();
    for index in 0..combinations {
        let (coordinates, knobs) = combine(plan, &defaults, index);
        let mut out = false;
        for ((_, exclude), matched) in excludes.iter().zip(&mut matched) {
            if selects(exclude, &coordinates) {
                *matched += 1;
                out = true;
            }
        }
        if out {
            excluded += 1;
        } else if seen.insert(knobs.clone()) {
            cells.push(Cell {
                id: cell_id(matrix, &coordinates),
                coordinates,
                knobs,
            });
        } else {
            collapsed += 1;
        }
    }
    if let (true, Some((place, _))) = (cells.is_empty(), excludes.first()) {
        let got = format!("{combinations}, all of them excluded");
        let fix = "remove an [[exclude]], or keep more values with --only";
        return Err(Box::new(Problem::new(
            place,
            "no cell is left",
            "at least one cell",
            got,
            fix,
        )));
    }
    let mut notes = Vec::new();
    if excluded > 0 {
        notes.push(format!("{} excluded", cells_of(excluded)));
    }
    if collapsed > 0 {
        let why = "equal to another, such as where an axis is an option of another client";
        notes.push(format!("{} collapsed: {why}", cells_of(collapsed)));
    }
    notes.extend(idle_excludes(plan, excludes, &matched));
    notes.extend(idle_options(plan, &cells));
    notes.extend(idle_claims(claims, &cells));
    Ok((cells, notes))
}

fn cells_of(n: usize) -> String {
    format!("{n} cell{}", if n == 1 { "" } else { "s" })
}

/// Number of combinations, if it is not too great.
fn count(axes: &[PlannedAxis]) -> Result<usize, Box<Problem>> {
    let all = axes.iter().map(|axis| axis.choices.len());
    let product = all.fold(1_usize, usize::saturating_mul);
    let longest = axes.iter().max_by_key(|axis| axis.choices.len());
    match longest {
        Some(axis) if product > MAX_CELLS => {
            let fix = format!(
                "keep fewer values: \"{}\" alone has {}, see --only",
                axis.name,
                axis.choices.len()
            );
            let expected = format!("at most {MAX_CELLS}");
            Err(Box::new(Problem::new(
                &axis.place,
                "too many cells",
                expected,
                product.to_string(),
                fix,
            )))
        }
        _ => Ok(product),
    }
}

fn defaults(catalog: &Catalog) -> BTreeMap<&str, Value> {
    let set = catalog.iter().filter(|knob| !knob.name.ends_with('*'));
    set.filter_map(|knob| Some((knob.name.as_ref(), knob.default_value()?)))
        .collect()
}

/// The combination of a number, read as digits whose bases are the lengths of the axes.
fn combine(plan: &Plan, defaults: &BTreeMap<&str, Value>, index: usize) -> (Coordinates, Knobs) {
    let mut rest = index;
    let mut choices = Vec::new();
    for axis in plan.axes.iter().rev() {
        // `index` is below the product of all lengths, so no length is 0.
        let choice = &axis.choices[rest % axis.choices.len()];
        rest /= axis.choices.len();
        choices.push((axis, choice));
    }
    choices.reverse();

    // A bundle's knobs come after the settings: they are what it is there for.
    let mut knobs = Knobs(plan.settings.clone());
    for (name, value) in choices.iter().flat_map(|(_, choice)| &choice.knobs) {
        knobs.set(name, value.clone());
    }
    let client = knobs
        .get("client")
        .map(Value::to_string)
        .unwrap_or_default();
    let exists = |name: &str| owner(name).is_none_or(|owner| owner == client);
    knobs.0.retain(|name, _| exists(name));
    for (name, value) in defaults {
        if exists(name) && knobs.get(name).is_none() {
            knobs.set(*name, value.clone());
        }
    }
    let coordinates = choices
        .iter()
        .filter(|(axis, _)| axis.bundle || exists(&axis.name))
        .map(|(axis, choice)| (axis.name.clone(), choice.value.clone()))
        .collect();
    (coordinates, knobs)
}

fn selects(selection: &Coordinates, coordinates: &Coordinates) -> bool {
    selection.iter().all(|wanted| coordinates.contains(wanted))
}

/// The id of a cell: the matrix, then axis=value; a value that holds a comma stands in quotes.
#[must_use]
pub fn cell_id(matrix: &str, coordinates: &[(String, Value)]) -> String {
    if coordinates.is_empty() {
        return matrix.to_owned();
    }
    let parts: Vec<String> = coordinates
        .iter()
        .map(|(axis, value)| format!("{axis}={}", shown(&value.to_string())))
        .collect();
    format!("{matrix}/{}", parts.join(","))
}

/// An exclusion that matches nothing though all its values take part is a slip.
fn idle_excludes(plan: &Plan, excludes: &[(Place, Coordinates)], matched: &[usize]) -> Vec<String> {
    let takes_part = |(name, value): &(String, Value)| {
        let axis = plan.axes.iter().find(|axis| axis.name == *name);
        axis.is_some_and(|axis| axis.choices.iter().any(|c| c.value == *value))
    };
    let idle = excludes
        .iter()
        .zip(matched)
        .enumerate()
        .filter(|(_, ((_, exclude), matched))| **matched == 0 && exclude.iter().all(takes_part));
    idle.map(|(at, ((_, exclude), _))| {
        let shown = cell_id("", exclude);
        format!(
            "[[exclude]] number {} matches no cell: {}",
            at + 1,
            &shown[1..]
        )
    })
    .collect()
}

/// An option of a client that no cell has is set in vain.
fn idle_options(plan: &Plan, cells: &[Cell]) -> Vec<String> {
    let bundled = plan
        .axes
        .iter()
        .flat_map(|axis| &axis.choices)
        .flat_map(|c| &c.knobs);
    let set: BTreeSet<&str> = bundled
        .map(|(name, _)| name.as_str())
        .chain(plan.settings.keys().map(String::as_str))
        .filter(|name| owner(name).is_some())
        .collect();
    let used = |name: &&str| cells.iter().any(|cell| cell.knobs.get(name).is_some());
    set.into_iter()
        .filter(|name| !used(name))
        .map(|name| format!("\"{name}\" has no effect: no cell has its client"))
        .collect()
}

fn idle_claims(claims: &[Claim], cells: &[Cell]) -> Option<String> {
    let some = |s: &Coordinates| cells.iter().any(|cell| selects(s, &cell.coordinates));
    let idle = claims
        .iter()
        .filter(|c| !(some(&c.base) && some(&c.changed)))
        .count();
    (idle > 0).then(|| {
        format!(
            "{idle} of {} claims cannot be judged: their cells are not in this plan",
            claims.len()
        )
    })
}

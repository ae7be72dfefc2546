//! Exclusions and claims: sets of axis = value that must exist.

use std::collections::BTreeMap;

use yieldpoint_terms::{Value, nearest};

use crate::Claim;
use crate::plan::PlannedAxis;
use crate::problem::{Place, Problem};
use crate::reader::quoted;
use crate::values::Names;
use crate::wire::{Selection, Wire, Written};

/// Axis = value, in the order of the file; a cell is selected if all of them are its own.
pub(crate) type Coordinates = Vec<(String, Value)>;

/// `[[exclude]]` tables, each with its place.
pub(crate) fn excludes(
    wire: &Wire,
    axes: &[PlannedAxis],
    names: &Names<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<(Place, Coordinates)> {
    let mut out = Vec::new();
    for exclude in &wire.excludes {
        if exclude.entries.is_empty() {
            let (what, fix) = (
                "\"exclude\" is empty",
                "name an axis and a value, or remove it",
            );
            problems.push(Problem::new(
                &exclude.place,
                what,
                "axis = value",
                "nothing",
                fix,
            ));
            continue;
        }
        if let Some(coordinates) = resolve(exclude, "exclude", axes, names, problems) {
            out.push((exclude.place.clone(), coordinates));
        }
    }
    out
}

/// `[[claim]]` tables.
pub(crate) fn claims(
    wire: &Wire,
    axes: &[PlannedAxis],
    names: &Names<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Claim> {
    let mut out = Vec::new();
    let mut ids: BTreeMap<&str, &Place> = BTreeMap::new();
    for claim in &wire.claims {
        if let Some(first) = ids.get(claim.id.as_str()) {
            let what = format!("id {} of a claim is used twice", quoted(&claim.id));
            let problem = Problem::new(
                &claim.place,
                what,
                "an id of its own",
                "the same",
                "rename one of them",
            );
            problems.push(problem.beside(first, "the first is"));
        }
        ids.entry(&claim.id).or_insert(&claim.place);
        let base = resolve(&claim.base, "claim", axes, names, problems);
        let changed = resolve(&claim.changed, "claim", axes, names, problems);
        let (Some(base), Some(changed)) = (base, changed) else {
            continue;
        };
        if base == changed {
            let what = format!("claim {} compares a cell with itself", quoted(&claim.id));
            let fix = "say in which axis the two differ";
            problems.push(Problem::new(
                &claim.changed.place,
                what,
                "another cell than base",
                "the same",
                fix,
            ));
            continue;
        }
        out.push(Claim {
            id: claim.id.clone(),
            base,
            changed,
            published_ratio: claim.published_ratio,
            note: claim.note.clone(),
            source: claim.source.clone(),
        });
    }
    out
}

fn resolve(
    selection: &Selection,
    kind: &str,
    axes: &[PlannedAxis],
    names: &Names<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Coordinates> {
    let before = problems.len();
    let mut coordinates = Vec::new();
    for entry in &selection.entries {
        let Some(axis) = axes.iter().find(|axis| axis.name == entry.name) else {
            problems.push(no_such_axis(&entry.place, kind, &entry.name, axes, names));
            continue;
        };
        let scalar = match &entry.value {
            Written::One(scalar) => scalar,
            Written::Many(_) => {
                let what = format!("{} of \"{kind}\"", quoted(&entry.name));
                let fix = format!("write one [[{kind}]] for each value");
                problems.push(Problem::new(&entry.place, what, "one value", "a list", fix));
                continue;
            }
        };
        // A value that is none was reported where it was read; the selection is lost with it.
        let written = scalar.value.as_ref()?;
        let value = if axis.bundle {
            written.clone()
        } else {
            match names.accept(&scalar.place, &entry.name, written) {
                Ok(value) => value,
                Err(problem) => {
                    problems.push(*problem);
                    continue;
                }
            }
        };
        if !axis.damaged && !axis.has(&value) {
            let what = format!(
                "\"{kind}\" names a value that axis {} does not have",
                quoted(&axis.name)
            );
            let (expected, fix) = axis.offer(&value);
            problems.push(Problem::new(
                &scalar.place,
                what,
                expected,
                quoted(&value.to_string()),
                fix,
            ));
        }
        coordinates.push((entry.name.clone(), value));
    }
    (problems.len() == before).then_some(coordinates)
}

fn no_such_axis(
    place: &Place,
    kind: &str,
    name: &str,
    axes: &[PlannedAxis],
    names: &Names<'_>,
) -> Problem {
    let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    let fix = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if names.get(name).is_some() => {
            format!(
                "{} has one value here; a list in [knobs] makes it an axis",
                quoted(name)
            )
        }
        None => "name one of its axes".to_owned(),
    };
    let what = format!("\"{kind}\" names {}, which is no axis", quoted(name));
    let expected = if known.is_empty() {
        "an axis, and this matrix has none".to_owned()
    } else {
        format!("an axis of this matrix ({})", known.join(", "))
    };
    Problem::new(place, what, expected, quoted(name), fix)
}

//! `[run]`: how often, in which order, with which trials beside the cells. The command line wins.

use serde::{Deserialize, Serialize};
use yieldpoint_terms::{Rounds, nearest};

use crate::arguments::Changes;
use crate::document::MAX_ROUNDS;
use crate::find;
use crate::plan::PlannedAxis;
use crate::problem::{Place, Problem};
use crate::reader::quoted;
use crate::wire::WireRun;

/// How often and in which order; never axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    /// passes over all cells, 1 to 10,000, or as many as the comparisons need
    pub rounds: Rounds,
    /// decides the order within every round
    pub seed: u64,
    /// with `rounds = "auto"`, the axis whose values are compared: one of the matrix, with two values or more
    pub compare: Option<String>,
    /// with `find = "breakpoint"`, the axis along which it is searched: one of the matrix, of two numbers or
    /// more
    pub along: Option<String>,
    /// whether some cells have an A/A twin in every round
    pub controls: bool,
    /// whether the reference client shows in every round what the targets can do
    pub ceilings: bool,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            rounds: Rounds::Fixed(3),
            seed: 1,
            compare: None,
            along: None,
            controls: true,
            ceilings: true,
        }
    }
}

/// Checks and applies everything; what is wrong is added to `problems`.
pub(crate) fn settings(
    wire: &WireRun,
    changes: &Changes,
    axes: &[PlannedAxis],
    problems: &mut Vec<Problem>,
) -> RunSettings {
    let default = RunSettings::default();
    let written = wire.rounds.as_ref();
    let typed = changes
        .rounds
        .map(|r| (r, Place::Argument(format!("--rounds {r}"))));
    let (rounds, place) = match typed.as_ref().or(written) {
        Some((rounds, place)) => (*rounds, place.clone()),
        None => (default.rounds, Place::File),
    };
    problems.extend(out_of_range(rounds, &place));
    let compare = match axis(wire, changes, rounds, &place, axes) {
        Ok(axis) => axis,
        Err(problem) => {
            problems.extend(problem.map(|p| *p));
            None
        }
    };
    let along = match find::along(wire, changes, rounds, axes) {
        Ok(axis) => axis,
        Err(problem) => {
            problems.extend(problem.map(|p| *p));
            None
        }
    };
    RunSettings {
        rounds,
        seed: changes.seed.or(wire.seed).unwrap_or(default.seed),
        compare,
        along,
        controls: !changes.no_controls && wire.controls.unwrap_or(default.controls),
        ceilings: !changes.no_ceilings && wire.ceilings.unwrap_or(default.ceilings),
    }
}

fn out_of_range(rounds: Rounds, place: &Place) -> Option<Problem> {
    let Rounds::Fixed(n) = rounds else {
        return None;
    };
    if (1..=MAX_ROUNDS).contains(&u64::from(n)) {
        return None;
    }
    let expected = format!("a whole number from 1 to {MAX_ROUNDS}");
    let fix = "give a number in that range";
    Some(Problem::new(
        place,
        "\"rounds\"",
        expected,
        n.to_string(),
        fix,
    ))
}

/// The axis that is compared. `Err(None)`: what is wrong was reported where the axis was read.
fn axis(
    wire: &WireRun,
    changes: &Changes,
    rounds: Rounds,
    place_of_rounds: &Place,
    axes: &[PlannedAxis],
) -> Result<Option<String>, Option<Box<Problem>>> {
    let typed = changes
        .compare
        .as_ref()
        .map(|name| (name, Place::Argument(format!("--compare {name}"))));
    let written = || wire.compare.as_ref().map(|(name, at)| (name, at.clone()));
    // A file that compares may be run with a number of rounds for once; an axis beside a number is a slip.
    let asked = |r: Option<Rounds>| r == Some(Rounds::Auto);
    let file_says_auto = asked(wire.rounds.as_ref().map(|(r, _)| *r));
    let in_vain = match &typed {
        Some(_) => rounds != Rounds::Auto,
        None => rounds != Rounds::Auto && !file_says_auto,
    };
    let named = typed.or_else(written);
    let problem = |place: &Place, what: String, expected: &str, got: &str, fix: &str| {
        Err(Some(Box::new(Problem::new(
            place, what, expected, got, fix,
        ))))
    };
    let Some((name, at)) = named else {
        if rounds != Rounds::Auto {
            return Ok(None);
        }
        return match axes.iter().find(|a| a.choices.len() > 1) {
            Some(first) => Ok(Some(first.name.clone())),
            None if axes.iter().any(|a| a.damaged) => Err(None),
            None => problem(
                place_of_rounds,
                "\"rounds\" is \"auto\"".to_owned(),
                "an axis with two values or more, which are compared",
                "none",
                "make a knob an axis, or give a number of rounds",
            ),
        };
    };
    let Some(axis) = axes.iter().find(|a| a.name == *name) else {
        let all: Vec<&str> = axes.iter().map(|a| a.name.as_str()).collect();
        let expected = match all.is_empty() {
            true => "an axis, and this matrix has none".to_owned(),
            false => format!("an axis of this matrix ({})", all.join(", ")),
        };
        let fix = match nearest(name, all.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "name one of its axes".to_owned(),
        };
        let what = format!("\"compare\" names {}", quoted(name));
        return problem(&at, what, &expected, &quoted(name), &fix);
    };
    if in_vain {
        let what = "\"compare\" beside a number of rounds".to_owned();
        let fix = "write rounds = \"auto\" (--rounds auto), or remove compare";
        return problem(&at, what, "rounds \"auto\"", &rounds.to_string(), fix);
    }
    if rounds != Rounds::Auto {
        return Ok(None);
    }
    match axis.choices.len() {
        _ if axis.damaged => Err(None),
        0 | 1 => problem(
            &at,
            format!("\"compare\" names {}", quoted(name)),
            "an axis with two values or more",
            "one value",
            "keep more of its values, or compare another axis",
        ),
        _ => Ok(Some(name.clone())),
    }
}

//! `find = "breakpoint"` and `along`: the axis that is searched in place of being measured whole.

use yieldpoint_terms::{Rounds, nearest};

use crate::arguments::Changes;
use crate::plan::PlannedAxis;
use crate::problem::{Place, Problem};
use crate::reader::quoted;
use crate::wire::WireRun;

/// The only thing that can be found so far.
pub(crate) const BREAKPOINT: &str = "breakpoint";

/// The axis that is searched, `None` without a search. `Err(None)`: what is wrong was reported where the axis
/// was read.
pub(crate) fn along(
    wire: &WireRun,
    changes: &Changes,
    rounds: Rounds,
    axes: &[PlannedAxis],
) -> Result<Option<String>, Option<Box<Problem>>> {
    let problem = |place: &Place, what: &str, expected: String, got: String, fix: &str| {
        Err(Some(Box::new(Problem::new(
            place, what, expected, got, fix,
        ))))
    };
    let typed = changes
        .find
        .as_ref()
        .map(|what| (what, Place::Argument(format!("--find {what}"))));
    let find = typed.or_else(|| wire.find.as_ref().map(|(what, at)| (what, at.clone())));
    let typed = changes
        .along
        .as_ref()
        .map(|axis| (axis, Place::Argument(format!("--along {axis}"))));
    let along = typed.or_else(|| wire.along.as_ref().map(|(axis, at)| (axis, at.clone())));
    let Some((what, place)) = find else {
        return match along {
            None => Ok(None),
            Some((axis, at)) => problem(
                &at,
                "\"along\" without \"find\"",
                "find = \"breakpoint\"".to_owned(),
                quoted(axis),
                "write find = \"breakpoint\" (--find breakpoint), or remove along",
            ),
        };
    };
    if what != BREAKPOINT {
        let expected = quoted(BREAKPOINT);
        let fix = "write find = \"breakpoint\", or remove it";
        return problem(&place, "\"find\"", expected, quoted(what), fix);
    }
    if rounds == Rounds::Auto {
        return problem(
            &place,
            "\"find\" together with rounds = \"auto\"",
            "a number of rounds, from which the trials of the search come".to_owned(),
            "\"auto\"".to_owned(),
            "write rounds = 5, or remove find",
        );
    }
    let numeric: Vec<&PlannedAxis> = axes.iter().filter(|axis| is_numeric(axis)).collect();
    let names = |axes: &[&PlannedAxis]| -> Vec<String> {
        axes.iter().map(|axis| axis.name.clone()).collect()
    };
    let Some((name, at)) = along else {
        return match numeric.as_slice() {
            [one] => Ok(Some(one.name.clone())),
            // A value that could not be read may have been the number.
            [] if axes.iter().any(|axis| axis.damaged) => Err(None),
            [] => problem(
                &place,
                "\"find\" has no axis to search",
                "an axis of two numbers or durations or more".to_owned(),
                "none".to_owned(),
                "write a list of values for a knob that is a number",
            ),
            several => problem(
                &place,
                "\"find\" has several axes it could search",
                format!("along = one of {}", names(several).join(", ")),
                "nothing".to_owned(),
                "name the axis: along = \"…\" (--along …)",
            ),
        };
    };
    match axes.iter().find(|axis| axis.name == *name) {
        Some(axis) if is_numeric(axis) => Ok(Some(name.clone())),
        Some(axis) if axis.damaged => Err(None),
        found => {
            let all = names(&numeric);
            let expected = match all.is_empty() {
                true => "an axis of numbers or durations, and this matrix has none".to_owned(),
                false => format!("an axis of numbers or durations ({})", all.join(", ")),
            };
            let near = nearest(name, all.iter().map(String::as_str));
            let fix = match near.filter(|_| found.is_none()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "name one whose values are numbers, two or more of them".to_owned(),
            };
            problem(&at, "\"along\"", expected, quoted(name), &fix)
        }
    }
}

/// Whether there is an order to search along.
fn is_numeric(axis: &PlannedAxis) -> bool {
    let number = |value: &yieldpoint_terms::Value| value.as_f64().is_some_and(f64::is_finite);
    !axis.bundle && axis.choices.len() > 1 && axis.choices.iter().all(|c| number(&c.value))
}

//! `yieldpoint plan MATRIX`: what would be run, and for how long.

use std::fmt::{Display, Write as _};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::HumanDuration;
use yieldpoint_run::Plan;
use yieldpoint_terms::Nanos;

use crate::args::PlanArgs;
use crate::installation::{Wanted, prepare};

/// Prints the plan.
pub fn plan(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let prepared = prepare(&Wanted::typed(&args.matrix, &args.selection)?)?;
    println!("{}", overview(&prepared.plan));
    if args.cells {
        for cell in &prepared.plan.cells {
            match &cell.unsupported {
                None => println!("{}", cell.cell.id),
                Some(why) => println!("{}  (unsupported: {why})", cell.cell.id),
            }
        }
        for ceiling in &prepared.plan.ceilings {
            println!("{}  (ceiling)", ceiling.cell.id);
        }
    } else {
        println!("every cell: --cells    less: --only AXIS=VALUE,…  --rounds N  --set duration=…");
    }
    Ok(ExitCode::SUCCESS)
}

/// The plan in a few lines.
pub fn overview(plan: &Plan) -> String {
    let m = &plan.matrix;
    let mut text = format!("{}\n", m.question.trim());
    for axis in &m.axes {
        let values: Vec<_> = axis.values.iter().map(ToString::to_string).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {} = {}", axis.name, values.join(", "));
    }
    let extent = plan.extent();
    let trials = [
        (plan.runnable().len(), "cell"),
        (plan.controls.len(), "control"),
        (plan.ceilings.len(), "ceiling"),
    ];
    let trials: Vec<String> = trials
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| count(n, what))
        .collect();
    let time = |t: &Nanos| HumanDuration(Duration::from_nanos(t.0));
    let expected = match (extent.time.start(), extent.time.end()) {
        (least, most) if least == most => format!("about {}", time(most)),
        (least, most) => format!("about {} to {}", time(least), time(most)),
    };
    let each = trials.join(" + ");
    let each = if trials.len() > 1 {
        format!("({each})")
    } else {
        each
    };
    if let (Some(along), Some((most, grid))) = (&m.run.along, plan.searched()) {
        let beside = extent.trials.end() - most;
        let _ = write!(
            text,
            "search along {along}: at most {most} of the grid's {grid} trials, and {} of controls and ceilings; seed {}: {expected}",
            count(beside, "trial"),
            m.run.seed
        );
    } else {
        let _ = write!(
            text,
            "{each} × {} = {}, seed {}: {expected}",
            range(&extent.rounds, "round"),
            range(&extent.trials, "trial"),
            m.run.seed
        );
    }
    if let Some(auto) = &plan.auto {
        let changes: Vec<&str> = auto.comparisons.iter().map(|c| c.name.as_str()).collect();
        let _ = write!(text, "\nuntil decided: {}", changes.join(", "));
    }
    for note in plan.notes.iter().chain(&plan.advice) {
        let _ = write!(text, "\nnote: {note}");
    }
    text
}

fn count(n: usize, what: &str) -> String {
    range(&(n..=n), what)
}

/// "8 rounds", "8 to 40 rounds"
fn range<N: PartialEq + Display>(n: &RangeInclusive<N>, what: &str) -> String {
    let (least, most) = (n.start(), n.end());
    if least != most {
        return format!("{least} to {most} {what}s");
    }
    let many = if most.to_string() == "1" { "" } else { "s" };
    format!("{most} {what}{many}")
}

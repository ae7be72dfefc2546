//! `yieldpoint plan MATRIX`: what would be run, and for how long.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::HumanDuration;
use yieldpoint_run::Plan;

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
    let supported = plan
        .cells
        .iter()
        .filter(|c| c.unsupported.is_none())
        .count();
    let expected = HumanDuration(Duration::from_nanos(plan.expected.0));
    let _ = write!(
        text,
        "{} × {} = {}, seed {}: about {expected}",
        count(supported, "cell"),
        count(plan.rounds.len(), "round"),
        count(plan.trials(), "trial"),
        m.run.seed
    );
    for note in plan.notes.iter().chain(&plan.advice) {
        let _ = write!(text, "\nnote: {note}");
    }
    text
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

//! What recording a request costs, and what the client core costs beyond its library: by the example `cost`
//! of harness/clients/core, which prints a name and nanoseconds a line.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;

use crate::bench::Bench;
use crate::figures::say_round;
use crate::row::Row;
use crate::surroundings::Surroundings;

const PROGRAM: &str = "yieldpoint-cost-clients-core";
const PATIENCE: Duration = Duration::from_secs(120);
/// The program repeats within itself; a few runs show what is left of chance.
const ROUNDS: usize = 10;
/// What it prints, what that is, and its limit in ns.
const COSTS: [(&str, &str, f64); 3] = [
    ("record_ns", "recording a request, ns", 100.0),
    ("step_and_record_ns", "core: a request, ns", 1000.0),
    (
        "step_record_and_clock_ns",
        "core: a request with a clock read, ns",
        1000.0,
    ),
];

/// One row for each line.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let argv = vec![bench.program(PROGRAM)?.to_string_lossy().into_owned()];
    let mut s = Surroundings::up(bench)?;
    let rounds = bench.at_most_rounds(ROUNDS);
    let mut costs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        say_round("recording", round + 1, rounds);
        let ended = s.run(argv.clone(), Some(&bench.client_cpus), Vec::new(), PATIENCE)?;
        for line in ended.stdout.lines() {
            let (what, ns) = cost(line).with_context(|| format!("{PROGRAM} printed {line:?}"))?;
            costs.entry(what).or_default().push(ns);
        }
    }
    let row = |(name, figure, limit): (&str, &str, f64)| match costs.remove(name) {
        Some(ns) => Row::at_most(figure, ns, limit, String::new()),
        None => Row::unmeasured(figure, &format!("{PROGRAM} does not print \"{name}\"")),
    };
    Ok(COSTS.map(row).into())
}

fn cost(line: &str) -> anyhow::Result<(String, f64)> {
    let (name, ns) = line.split_once(' ').context("no name and number")?;
    Ok((name.to_owned(), ns.trim().parse()?))
}

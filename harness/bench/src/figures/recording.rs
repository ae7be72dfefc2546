//! What recording a request costs, and what the client core costs beyond its library: by the example `cost`
//! of harness/clients/core, which prints a line `{"what": …, "ns": …}` for each.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use crate::bench::Bench;
use crate::figures::say_round;
use crate::row::Row;
use crate::surroundings::Surroundings;

const PROGRAM: &str = "yieldpoint-cost-clients-core";
const PATIENCE: Duration = Duration::from_secs(120);
/// The program repeats within itself; a few runs show what is left of chance.
const ROUNDS: usize = 10;
/// Limits by a word of what is measured, ns; anything else is for information.
const LIMITS: [(&str, f64); 2] = [("record", 100.0), ("core", 1000.0)];

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
    let mut rows: Vec<Row> = costs
        .iter()
        .map(
            |(what, ns)| match LIMITS.iter().find(|(word, _)| what.contains(word)) {
                Some((_, limit)) => {
                    Row::at_most(&format!("{what}, ns"), ns.clone(), *limit, String::new())
                }
                None => Row::measured(&format!("{what}, ns"), ns.clone()),
            },
        )
        .collect();
    for (word, limit) in LIMITS {
        if !costs.keys().any(|what| what.contains(word)) {
            let figure = format!("{word}, at most {limit} ns");
            rows.push(Row::unmeasured(
                &figure,
                &format!("{PROGRAM} does not print it"),
            ));
        }
    }
    Ok(rows)
}

fn cost(line: &str) -> anyhow::Result<(String, f64)> {
    let cost: Value = serde_json::from_str(line)?;
    let what = cost["what"].as_str().context("no \"what\"")?;
    Ok((what.to_owned(), cost["ns"].as_f64().context("no \"ns\"")?))
}

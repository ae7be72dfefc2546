//! What the sampler costs at ten rows a second while 28,000 TIME_WAIT entries stand: by the example `cost`
//! of harness/sample.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use crate::bench::Bench;
use crate::figures::say_round;
use crate::row::Row;
use crate::surroundings::Surroundings;

const PROGRAM: &str = "yieldpoint-cost-sample";
const PATIENCE: Duration = Duration::from_secs(120);
const LIMIT_PERCENT: f64 = 1.0;
const ROUNDS: usize = 6;

/// The share of one CPU.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let argv = vec![
        bench.program(PROGRAM)?.to_string_lossy().into_owned(),
        "--json".to_owned(),
    ];
    let rounds = bench.at_most_rounds(ROUNDS);
    // On the host: it makes a namespace of its own, so that no entry is left from the last round.
    let mut s = Surroundings::up_on_host(bench)?;
    let mut shares = Vec::new();
    let mut note = String::new();
    for round in 0..rounds {
        say_round("sampler", round + 1, rounds);
        let ended = s.run(argv.clone(), None, Vec::new(), PATIENCE)?;
        let line = ended.stdout.lines().last().unwrap_or_default();
        let cost: Value =
            serde_json::from_str(line).with_context(|| format!("{PROGRAM} printed {line:?}"))?;
        shares.push(
            cost["share_percent"]
                .as_f64()
                .context("no \"share_percent\"")?,
        );
        note = format!(
            "{} TIME_WAIT entries; a row takes {} µs of CPU time",
            cost["time_wait"], cost["row_us_mean"]
        );
    }
    Ok(vec![Row::at_most(
        "sampler at 10 Hz, % of a core",
        shares,
        LIMIT_PERCENT,
        note,
    )])
}

//! What a trial of a native client costs beyond its window: whole time of the trial, from the journal of a
//! real run, less its duration.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::bench::Bench;
use crate::loads;
use crate::row::Row;
use crate::surroundings::Surroundings;

const LIMIT_MS: f64 = 250.0;
const WINDOW_MS: u32 = 50;
const TRIALS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(300);

/// The median of 40 trials.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let clients = loads::clients(bench)?;
    let trials = if bench.quick { TRIALS / 5 } else { TRIALS };
    let rounds = trials.div_ceil(clients.len().max(1));
    let mut s = Surroundings::up_on_host(bench)?;
    let matrix = s.file("trials.toml");
    std::fs::write(&matrix, text(&clients, rounds))?;
    let path = |p: &Path| p.to_string_lossy().into_owned();
    let out = s.file("results");
    let argv = vec![
        path(&bench.program("yieldpoint")?),
        "run".to_owned(),
        path(&matrix),
        "--strict".to_owned(),
        "--out".to_owned(),
        path(&out),
        "--report".to_owned(),
        path(&s.file("report")),
    ];
    let ended = s.run(argv, None, environment(bench), PATIENCE)?;
    // The last line is the folder of the run.
    let run = ended
        .stdout
        .lines()
        .last()
        .context("the run printed nothing")?;
    let journal = std::fs::read_to_string(Path::new(run).join("journal.jsonl"))
        .with_context(|| format!("journal of \"{run}\""))?;
    let costs = costs_ms(&journal)?;
    let note = format!(
        "{} trials of {WINDOW_MS} ms: {}",
        costs.len(),
        clients.join(", ")
    );
    Ok(vec![Row::at_most(
        "trial beyond its window, ms",
        costs,
        LIMIT_MS,
        note,
    )])
}

fn text(clients: &[String], rounds: usize) -> String {
    format!(
        "format = 1
question = \"What does a trial cost beyond its window?\"
run = {{ rounds = {rounds} }}
[knobs]
client = {clients:?}
duration = \"{WINDOW_MS}ms\"
"
    )
}

/// Time of each trial beyond its window, ms.
fn costs_ms(journal: &str) -> anyhow::Result<Vec<f64>> {
    let mut costs = Vec::new();
    for line in journal.lines() {
        let trial: Value = serde_json::from_str(line).context("a line of the journal")?;
        if trial["role"] != "cell" {
            continue;
        }
        if trial["status"] != "ok" {
            bail!("a trial is not ok: {}", trial["error"]);
        }
        let number = |v: &Value, what: &str| v.as_f64().with_context(|| format!("no \"{what}\""));
        let elapsed = number(&trial["elapsed_ns"], "elapsed_ns")?;
        costs.push((elapsed - number(&trial["knobs"]["duration"], "duration")?) / 1e6);
    }
    Ok(costs)
}

/// What a command of ours needs to know.
pub fn environment(bench: &Bench) -> Vec<(String, String)> {
    let programs = bench.programs.to_string_lossy().into_owned();
    let mut env = vec![("YIELDPOINT_PROGRAMS".to_owned(), programs)];
    for name in ["PATH", "HOME", "TMPDIR"] {
        if let Ok(value) = std::env::var(name) {
            env.push((name.to_owned(), value));
        }
    }
    env
}

/// A matrix of the project, looked for where the command is started.
pub fn matrix_file(name: &str) -> anyhow::Result<String> {
    let path = std::path::absolute(Path::new("matrices").join(name))?;
    if !path.is_file() {
        bail!(
            "\"{}\" is missing: start it in the project's folder, as scripts/bench does",
            path.display()
        );
    }
    Ok(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_costs_what_it_took_beyond_its_window() {
        let line = |status: &str| {
            format!(
                "{{\"role\":\"cell\",\"status\":\"{status}\",\"error\":null,\"elapsed_ns\":120000000,\"knobs\":{{\"duration\":50000000}}}}\n"
            )
        };
        assert_eq!(costs_ms(&line("ok").repeat(2)).unwrap(), [70.0, 70.0]);
        assert!(costs_ms(&line("error")).is_err());
        let control = line("ok").replace("cell", "control");
        assert!(
            costs_ms(&control).unwrap().is_empty(),
            "an A/A twin is no cell"
        );
    }
}

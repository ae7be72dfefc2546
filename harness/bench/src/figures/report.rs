//! How long `yieldpoint report` takes for a run of 216 trials: a generated journal, for this benchmark only.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use yieldpoint_terms::clock::now_ns;

use crate::bench::Bench;
use crate::figures::say_round;
use crate::figures::trials::environment;
use crate::row::Row;
use crate::surroundings::Surroundings;

const GENERATOR: &str = "yieldpoint-generate";
/// 72 cells in as many rounds, each of as many seconds: the size of matrices/keepalive.toml.
const ROUNDS_AND_SECONDS: [&str; 2] = ["3", "130"];
const LIMIT_S: f64 = 10.0;
const PATIENCE: Duration = Duration::from_secs(300);
const ROUNDS: usize = 6;

/// The whole command: journal, tables, charts, page.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let path = |p: &Path| p.to_string_lossy().into_owned();
    let generator = bench.program(GENERATOR).context(
        "no journal of 216 trials: the example `generate` of harness/analysis is not built",
    )?;
    let mut s = Surroundings::up_on_host(bench)?;
    let mut argv = vec![path(&generator), path(&s.file(""))];
    argv.extend(ROUNDS_AND_SECONDS.map(str::to_owned));
    let generated = s.run(argv, None, Vec::new(), PATIENCE)?;
    let run = generated.stdout.trim().to_owned();
    let rounds = bench.at_most_rounds(ROUNDS);
    let mut times = Vec::new();
    for round in 0..rounds {
        say_round("report", round + 1, rounds);
        let argv = vec![
            path(&bench.program("yieldpoint")?),
            "report".to_owned(),
            run.clone(),
            "--out".to_owned(),
            path(&s.file("report")),
        ];
        let start = now_ns();
        s.run(argv, None, environment(bench), PATIENCE)?;
        times.push((now_ns() - start) as f64 / 1e9);
    }
    let note = "dev build; generated journal".to_owned();
    Ok(vec![Row::at_most(
        "report of 216 trials, s",
        times,
        LIMIT_S,
        note,
    )])
}

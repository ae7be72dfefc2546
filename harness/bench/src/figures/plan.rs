//! How long `yieldpoint plan` takes for the 72 cells of matrices/keepalive.toml.

use std::time::Duration;

use anyhow::bail;
use yieldpoint_terms::clock::now_ns;

use crate::bench::Bench;
use crate::figures::trials::{environment, matrix_file};
use crate::row::Row;
use crate::surroundings::Surroundings;

const LIMIT_MS: f64 = 100.0;
const CELLS: &str = "72 cells";
const PATIENCE: Duration = Duration::from_secs(60);
/// One run shows that it can be measured, the rest give the interval.
const ROUNDS: usize = 20;

/// The whole command, programs asked for their knobs included.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let argv = [
        bench.program("yieldpoint")?.to_string_lossy().into_owned(),
        "plan".to_owned(),
        matrix_file("keepalive.toml")?,
    ];
    let mut s = Surroundings::up_on_host(bench)?;
    let mut times = Vec::new();
    for _ in 0..bench.at_most_rounds(ROUNDS) {
        let start = now_ns();
        let ended = s.run(argv.to_vec(), None, environment(bench), PATIENCE)?;
        times.push((now_ns() - start) as f64 / 1e6);
        if !ended.stdout.contains(CELLS) {
            bail!("expected \"{CELLS}\" in the plan, got {:?}", ended.stdout);
        }
    }
    let note = "dev build; start of the programs included".to_owned();
    Ok(vec![Row::at_most(
        "plan of 72 cells, ms",
        times,
        LIMIT_MS,
        note,
    )])
}

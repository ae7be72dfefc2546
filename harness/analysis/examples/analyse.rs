//! Journal → tables, and nothing else: how long it takes and how much memory, on a journal of any length.
//!
//! ```sh
//! cargo run --release -p yieldpoint-analysis --example generate -- DIR 139 1   # 10,008 trials of 1 s, never run
//! cargo run --release -p yieldpoint-analysis --example analyse -- DIR/<run>
//! ```
//! On two cores 10,008 generated trials of 1 s take 8 s and 0.4 GiB, of 10 s (as many samples each as a real one, 100
//! of 40 metrics) 10 s and 1.0 GiB; both grow linearly with the trials.
//!
//! Prints the trials, the seconds of each step and the peak of resident memory (VmHWM of proc_pid_status(5)).

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use yieldpoint_record::{RunFolder, read_journal};

fn main() -> anyhow::Result<()> {
    let run = std::env::args()
        .nth(1)
        .context("expected the folder of a run")?;
    let folder = RunFolder::open(Path::new(&run))?;
    let start = Instant::now();
    let manifest = folder.manifest()?;
    let (trials, _) = read_journal(&folder.journal())?;
    let read = start.elapsed();
    let tables = yieldpoint_analysis::tables(&manifest, &trials)?;
    let analysed = start.elapsed();
    tables.write(&manifest, &trials, &folder.tables())?;
    let written = start.elapsed();
    println!(
        "{} trials: {:.2} s (read {:.2}, analyse {:.2}, write {:.2}), peak {} MiB",
        trials.len(),
        written.as_secs_f64(),
        read.as_secs_f64(),
        (analysed - read).as_secs_f64(),
        (written - analysed).as_secs_f64(),
        peak_kib()? / 1024,
    );
    Ok(())
}

fn peak_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let number = line.and_then(|l| l.split_whitespace().next());
    Ok(number.context("no VmHWM in /proc/self/status")?.parse()?)
}

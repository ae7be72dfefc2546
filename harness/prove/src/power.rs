//! Power: a slowdown of known size in the target, looked for with `rounds = "auto"` over and over. A harness that
//! never alarms falsely because it never finds anything would fail here.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use yieldpoint_record::RunFolder;
use yieldpoint_statistics::{Decision, Repeated, Sequential};

use crate::alarms::pairs;
use crate::runs::{self, Finished};
use crate::statement::Statement;

/// Throughput after the slowdown ÷ before, by construction of `matrices/slowdown.toml`.
const RATIO: f64 = 0.95;
/// The mean of all measured ratios may be off by so much: what was looked for was there.
const OFF: f64 = 0.01;
/// In so many of 50 runs it must be found.
const FOUND_OF_50: usize = 45;

/// Look for a known slowdown
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder that holds runs of matrices/slowdown.toml; without one, they are made (5 to 25 minutes)
    #[arg(long, value_name = "DIR")]
    of: Option<PathBuf>,
    /// Runs
    #[arg(long, default_value_t = 50)]
    runs: u32,
    /// Folder in which the runs' own folders are made
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

/// Makes the runs, or reads those that are there, and counts.
pub fn prove(args: &Args) -> anyhow::Result<Vec<Statement>> {
    let finished = match &args.of {
        Some(folder) => all_of(folder)?,
        None => (1..=args.runs)
            .map(|seed| {
                let seed = seed.to_string();
                let arguments = ["--seed", &seed];
                runs::run("matrices/slowdown.toml".as_ref(), &args.out, &arguments)
            })
            .collect::<anyhow::Result<_>>()?,
    };
    let ends: Vec<End> = finished.iter().map(end).collect::<anyhow::Result<_>>()?;
    Ok(statements(&ends))
}

fn all_of(folder: &Path) -> anyhow::Result<Vec<Finished>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.to_string_lossy().ends_with("-slowdown"));
    paths.sort();
    paths.iter().map(|p| runs::read(p)).collect()
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct End {
    rounds: usize,
    decision: Decision,
}

/// What the rule of the run decides of its rounds.
fn end(run: &Finished) -> anyhow::Result<End> {
    let manifest = RunFolder::open(&run.folder)?.manifest()?;
    let rule = manifest
        .sequential
        .with_context(|| format!("\"{}\": expected a run of rounds = \"auto\"", manifest.run))?;
    let looks: Vec<usize> = rule.looks.iter().map(|l| *l as usize).collect();
    decide(&Sequential::new(&looks, rule.alpha)?, &pairs(&run.trials))
}

/// The run may not have gone on after a decision, nor ended without one.
fn decide(rule: &Sequential, pairs: &[(f64, f64)]) -> anyhow::Result<End> {
    for rounds in 1..=pairs.len() {
        let decision = rule.look(&pairs[..rounds]);
        if !matches!(decision, Decision::Continue { .. }) {
            anyhow::ensure!(
                rounds == pairs.len(),
                "decided after {rounds} rounds, and {} were run",
                pairs.len()
            );
            return Ok(End { rounds, decision });
        }
    }
    anyhow::bail!("{} rounds were run, and nothing is decided", pairs.len())
}

fn statements(ends: &[End]) -> Vec<Statement> {
    let slower = |e: &&End| matches!(e.decision, Decision::Different(r) if r.high < 1.0);
    let found = ends.iter().filter(slower).count();
    let mut rounds: Vec<usize> = ends.iter().map(|e| e.rounds).collect();
    rounds.sort_unstable();
    let ratios: Vec<f64> = ends.iter().filter_map(|e| Some(ratio(e)?.ratio)).collect();
    let logs: f64 = ratios.iter().map(|r| r.ln()).sum();
    let mean = (logs / ratios.len() as f64).exp();
    vec![
        Statement::new(
            "slowdown",
            format!("{RATIO} ± {OFF} of the throughput, by construction"),
            format!("{mean:.4}, mean of {} runs", ratios.len()),
            (mean - RATIO).abs() <= OFF,
        ),
        Statement::new(
            "slowdown",
            format!("found in {FOUND_OF_50} of 50 runs of rounds = \"auto\" or more"),
            format!(
                "{found} of {}, after {} rounds (median; at most {})",
                ends.len(),
                rounds.get(rounds.len() / 2).unwrap_or(&0),
                rounds.last().unwrap_or(&0)
            ),
            !ends.is_empty() && found * 50 >= FOUND_OF_50 * ends.len(),
        ),
    ]
}

fn ratio(end: &End) -> Option<Repeated> {
    match end.decision {
        Decision::Different(r) | Decision::NotDifferent(r) => Some(r),
        Decision::Continue { .. } | Decision::NoRatio => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarms::tests::noise;

    fn rule() -> Sequential {
        Sequential::new(&[8, 12, 16, 20, 30, 40], 0.05).unwrap()
    }

    /// Fifty runs of a slowdown under noise, ended by the rule.
    fn ends(spread: f64, slower: f64) -> Vec<End> {
        let rule = rule();
        let run = |seed: u64| {
            let all = noise(40, spread, slower, seed);
            let decided = |n: &usize| !matches!(rule.look(&all[..*n]), Decision::Continue { .. });
            let last = (1..=40).find(decided).unwrap();
            decide(&rule, &all[..last]).unwrap()
        };
        (1..=50).map(run).collect()
    }

    fn hold(ends: &[End]) -> [bool; 2] {
        let statements = statements(ends);
        [statements[0].holds, statements[1].holds]
    }

    #[test]
    fn a_slowdown_is_found_unless_it_drowns_or_is_not_there() {
        // A noise of 2 %: found. One of 30 %: the size is uncertain, too.
        assert_eq!(hold(&ends(0.02, 0.05)), [true, true]);
        assert!(!hold(&ends(0.3, 0.05))[1], "it drowns");
        assert_eq!(hold(&ends(0.02, 0.0)), [false, false], "it is not there");
        // Found, and in the wrong direction.
        assert_eq!(hold(&ends(0.02, -0.05)), [false, false]);
        assert_eq!(hold(&[]), [false, false], "no run proves nothing");
    }

    #[test]
    fn a_run_ends_with_its_decision() {
        let clear: Vec<(f64, f64)> = (0..8)
            .map(|i| (100.0, 90.0 + f64::from(i) / 10.0))
            .collect();
        assert_eq!(decide(&rule(), &clear).unwrap().rounds, 8);
        assert!(decide(&rule(), &clear[..7]).is_err(), "no look yet");
        let on = [&clear[..], &clear[..4]].concat();
        assert!(decide(&rule(), &on).is_err(), "it went on");
    }
}

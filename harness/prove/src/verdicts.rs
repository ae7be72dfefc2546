//! Fault injection proves the verdicts: causes are put in on purpose, with parameters drawn from a seed, and what
//! `yieldpoint` says is compared with what was done.

mod confusion;
mod draw;
mod matrix;
mod scenarios;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use yieldpoint_statistics::Random;

use crate::runs;
use crate::statement::Statement;
use confusion::Confusion;

/// Check the verdicts on injected causes
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Seed of all parameters, printed; by default one of the clock
    #[arg(long)]
    seed: Option<u64>,
    /// Load clients; each injection meets two of them where its scenario allows
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "reference,hyper,ureq,isahc"
    )]
    clients: Vec<String>,
    /// Draws of each scenario
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Only these scenarios: a verdict, or two joined by "+"
    #[arg(long, value_name = "VERDICTS", value_delimiter = ',')]
    only: Vec<String>,
    /// Folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Folder of a finished run of this proof: compared again, nothing is run
    #[arg(long, value_name = "RUN", conflicts_with_all = ["seed", "only"])]
    of: Option<PathBuf>,
}

/// Runs the injections, writes the confusion matrix beside the tables, and compares.
pub fn prove(args: &Args) -> anyhow::Result<Vec<Statement>> {
    let folder = match &args.of {
        Some(folder) => folder.clone(),
        None => inject(args)?,
    };
    let rows = runs::table(&folder, "trials")?;
    let confusion = Confusion::of(&rows);
    confusion.write(&folder)?;
    println!("{}", confusion.text());
    println!("{}", folder.join("confusion.md").display());
    Ok(confusion.statements())
}

/// Runs the injections, and returns the run's folder.
fn inject(args: &Args) -> anyhow::Result<PathBuf> {
    let seed = args.seed.unwrap_or_else(|| {
        // A clock before 1970 gives seed 0, which is as good as any.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |d| d.as_secs())
    });
    eprintln!("seed {seed}");
    let injections =
        scenarios::draw_all(&mut Random::new(seed), args.repeats, &args.clients, |s| {
            args.only.is_empty() || args.only.contains(&s.name())
        });
    ensure!(
        !injections.is_empty(),
        "no scenario is left: expected --only to be one of {} and --clients two or more that can do it, got \"{}\" and {}",
        scenarios::names().join(", "),
        args.only.join(","),
        args.clients.join(",")
    );
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("verdicts.toml");
    std::fs::write(&file, matrix::text(&injections, seed))
        .with_context(|| file.display().to_string())?;
    Ok(runs::run(&file, &args.out, &[])?.folder)
}

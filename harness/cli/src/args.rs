//! What can be typed.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use yieldpoint_terms::Rounds;

/// Find the load at which an HTTP load client breaks, and say what broke it.
#[derive(Parser, Debug)]
#[command(
    version,
    max_term_width = 100,
    after_help = "A first run:\n  yieldpoint doctor                          what works on this machine\n  yieldpoint plan matrices/quickstart.toml   what would be run, and for how long\n  yieldpoint run matrices/quickstart.toml    run it; tables and an HTML page are left behind\n\nExit codes: 0 done, 1 an error that is printed, 2 wrong arguments, 3 with --strict when a row is not ok, 130 interrupted."
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Run a matrix: every cell, every round; write tables and a report
    Run(RunArgs),
    /// Show what a matrix would run, and for how long; run nothing
    Plan(PlanArgs),
    /// Write tables, charts and the HTML page of a run (again) from its journal
    Report(ReportArgs),
    /// List load clients and targets, with their libraries, limits and own options
    Clients(ClientsArgs),
    /// Try everything that a trial needs on this machine, and say how to mend what fails
    Doctor,
    /// Explain a knob, metric, column, flag, error or word by its name; without one, list all
    Explain(ExplainArgs),
    /// Print the JSON Schema of a matrix file, with which editors complete and check it
    Schema,
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// Which cells of a matrix, and how often.
#[derive(Args, Debug)]
pub struct SelectionArgs {
    /// Passes over all cells, each in a new seeded order; auto: until every comparison is decided (8 to 40)
    #[arg(long, value_name = "N|auto")]
    pub rounds: Option<Rounds>,
    /// With rounds auto: the axis whose values are compared with its first [default: the first axis with several]
    #[arg(long, value_name = "AXIS")]
    pub compare: Option<String>,
    /// Search along an axis of numbers for where throughput stops rising or falls, in at most a fifth of the trials
    #[arg(long, value_name = "WHAT", value_parser = ["breakpoint"])]
    pub find: Option<String>,
    /// With find: the axis that is searched [default: the only one of numbers]
    #[arg(long, value_name = "AXIS")]
    pub along: Option<String>,
    /// Keep only these values of an axis: --only client=ureq,hyper (repeatable)
    #[arg(long, value_name = "AXIS=VALUE,…")]
    pub only: Vec<String>,
    /// Set a knob; an axis becomes this one value: --set duration=5s (repeatable)
    #[arg(long, value_name = "KNOB=VALUE")]
    pub set: Vec<String>,
    /// Seed of the order of trials
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Leave out the A/A twins, one trial a round for every 8 cells; no noise floor will be known
    #[arg(long)]
    pub no_controls: bool,
    /// Leave out the trials of the reference client that show what each target can do
    #[arg(long)]
    pub no_ceilings: bool,
    /// Allow load on this address beyond loopback: a machine of yours, that may be loaded (repeatable)
    #[arg(long, value_name = "ADDRESS")]
    pub allow_address: Vec<IpAddr>,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// Matrix file (matrices/README.md documents the format)
    #[arg(required_unless_present = "resume")]
    pub matrix: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Go on with a run that was interrupted: its matrix and selections are those it began with
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "matrix", "rounds", "compare", "find", "along", "only", "set", "seed", "no_controls", "no_ceilings", "allow_address", "out"
        ]
    )]
    pub resume: Option<PathBuf>,
    /// Folder of the report [default: reports/<run>]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Exit with 3 if a row is not ok
    #[arg(long)]
    pub strict: bool,
}

#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Matrix file (matrices/README.md documents the format)
    pub matrix: PathBuf,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// List every cell with its id, and every ceiling
    #[arg(long)]
    pub cells: bool,
}

#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Folder of a run, such as results/2026-12-01.1-quickstart
    pub run: PathBuf,
    /// Folder of the report [default: reports/<run>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ClientsArgs {
    /// Ask the clients of this matrix, too
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// One JSON object a program
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Its name: threads, lab.sysctl.net.ipv4.tcp_tw_reuse, client_rss_kib, p99_ns, burst_only, fd_limit …
    pub name: Option<String>,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        super::Cli::command().debug_assert();
    }
}

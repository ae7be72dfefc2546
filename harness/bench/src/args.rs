//! What can be typed.

use std::path::PathBuf;

use clap::Parser;

/// Measure the instrument itself, side by side with its peers.
#[derive(Parser, Debug)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 every figure is reached, 1 one is not (or not shown to be), 2 wrong arguments, 130 interrupted."
)]
pub struct Args {
    /// Paired rounds; a verdict "at least" needs 20
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub rounds: u32,
    /// Length of one load in whole seconds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub seconds: u32,
    /// Only these figures (repeatable): clients, servers, recording, memory, sampler, trials, plan, report
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Three rounds of everything: whether it can be measured at all; verdicts do not count
    #[arg(long)]
    pub quick: bool,
    /// Write the rows as JSON, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// CPU of the load
    #[arg(long, value_name = "CPU", default_value_t = 0)]
    pub client_cpu: usize,
    /// CPU of the server
    #[arg(long, value_name = "CPU", default_value_t = 1)]
    pub server_cpu: usize,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        super::Args::command().debug_assert();
    }
}

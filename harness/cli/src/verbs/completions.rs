//! `yieldpoint completions SHELL`

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};

/// Prints the script.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "yieldpoint",
        &mut std::io::stdout(),
    );
    Ok(ExitCode::SUCCESS)
}

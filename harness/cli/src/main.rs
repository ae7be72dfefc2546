//! `yieldpoint`: find the load at which a load client breaks, and say what broke it.

mod args;
mod installation;
mod progress;
mod stop;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Verb};

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Run(a) => verbs::run::run(&a),
        Verb::Plan(a) => verbs::plan::plan(&a),
        Verb::Report(a) => verbs::report::report(&a),
        Verb::Clients(a) => verbs::clients::clients(&a),
        Verb::Doctor => verbs::doctor::doctor(),
        Verb::Explain(a) => verbs::explain::explain(&a),
        Verb::Schema => verbs::schema::schema(),
        Verb::Completions(a) => verbs::completions::completions(&a),
    };
    done.unwrap_or_else(|e| {
        let error = console::style("error:").red().bold().for_stderr();
        eprintln!("{error} {e:#}");
        ExitCode::FAILURE
    })
}

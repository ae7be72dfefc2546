//! Breaks things on purpose, and compares what yieldpoint says with what is known (see README.md).

mod alarms;
mod latency;
mod ports;
mod power;
mod runs;
mod statement;
mod verdicts;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use statement::Statement;

/// Compare what yieldpoint says with what is known
#[derive(Parser, Debug)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    proof: Proof,
}

#[derive(Subcommand, Debug)]
enum Proof {
    /// The law of local ports: connections a cycle, length of a cycle, sustained rate, phases (17 minutes)
    Ports(runs::Source),
    /// Latency: log-normal delays and a stall, told by every client as theory has it (4 minutes)
    Latency(runs::Source),
    /// False alarms: one thing compared with itself 200 times (20 minutes)
    Alarms(runs::Source),
    /// Power: a target that got 5 % slower, looked for 50 times
    Power(power::Args),
    /// The verdicts: causes are injected, with parameters drawn from a seed
    Verdicts(verdicts::Args),
}

impl Proof {
    fn prove(&self) -> anyhow::Result<Vec<Statement>> {
        match self {
            Self::Ports(args) => ports::prove(args),
            Self::Latency(args) => latency::prove(args),
            Self::Alarms(args) => alarms::prove(args),
            Self::Power(args) => power::prove(args),
            Self::Verdicts(args) => verdicts::prove(args),
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().proof.prove() {
        Ok(statements) => {
            print!("{}", statement::text(&statements));
            ExitCode::from(u8::from(!statements.iter().all(|s| s.holds)))
        }
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

//! `mutate-protocol N SEED`: N mutated conversations and histograms through the parsers; the short form is
//! `tests/mutated.rs`.

#[allow(dead_code)]
#[path = "../tests/mutated.rs"]
mod mutated;

use std::process::ExitCode;

fn main() -> ExitCode {
    match yieldpoint_mutate::arguments() {
        Ok((inputs, seed)) => {
            let histograms = inputs / 4;
            println!("{}", mutated::conversations(inputs - histograms, seed));
            println!("{}", mutated::histograms(histograms, seed));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

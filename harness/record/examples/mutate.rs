//! `mutate-record N SEED`: N mutated journals and manifests through the readers; the short form is
//! `tests/mutated.rs`.

#[allow(dead_code)]
#[path = "../tests/mutated.rs"]
mod mutated;

use std::process::ExitCode;

fn main() -> ExitCode {
    match yieldpoint_mutate::arguments() {
        Ok((inputs, seed)) => {
            let manifests = inputs / 4;
            println!("{}", mutated::journals(inputs - manifests, seed));
            println!("{}", mutated::manifests(manifests, seed));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

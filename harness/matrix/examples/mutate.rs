//! `mutate-matrix N SEED`: N mutated matrices through the parser; the short form is `tests/mutated.rs`.

// The tests use more of the catalog than this does.
#[allow(dead_code)]
#[path = "../tests/matrix/catalog.rs"]
mod catalog;
#[allow(dead_code)]
#[path = "../tests/mutated.rs"]
mod mutated;

use std::process::ExitCode;

fn main() -> ExitCode {
    match yieldpoint_mutate::arguments() {
        Ok((inputs, seed)) => {
            println!("{}", mutated::matrices(inputs, seed));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

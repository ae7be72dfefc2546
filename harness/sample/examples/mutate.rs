//! Feeds damaged input to every parser: `mutate COUNT SEED`. Prints what became of it; a panic or a hang
//! is an error that names the input.

use std::process::ExitCode;

#[path = "../tests/mutator/mod.rs"]
mod mutator;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let numbers: Vec<_> = words.iter().map(|word| word.parse::<u64>()).collect();
    let [Ok(count), Ok(seed)] = numbers[..] else {
        eprintln!(
            "error: expected COUNT SEED, two whole numbers, got \"{}\"",
            words.join(" ")
        );
        return ExitCode::from(2);
    };
    match mutator::run(seed, count) {
        Ok(summaries) => {
            println!(
                "{:14} {:>10} {:>10} {:>12}",
                "parser", "inputs", "understood", "slowest µs"
            );
            for s in &summaries {
                let slowest = s.slowest.as_micros();
                println!(
                    "{:14} {:>10} {:>10} {slowest:>12}",
                    s.parser, s.inputs, s.understood
                );
            }
            let inputs: u64 = summaries.iter().map(|s| s.inputs).sum();
            println!("{inputs} inputs of seed {seed}: no panic, no hang");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

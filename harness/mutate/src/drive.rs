//! Runs a parser over inputs, and names the one that broke it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Mutator;

/// An input that takes longer hangs. Wall time, so it is generous: the machine may be busy.
const HANG: Duration = Duration::from_secs(60);
/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// the parser
    pub name: String,
    /// seed of the mutator
    pub seed: u64,
    /// inputs tried
    pub inputs: u64,
    /// inputs that the parser took as sound
    pub accepted: u64,
    /// CPU time of all, making of the inputs included, ns
    pub total_ns: u64,
    /// CPU time of the slowest, ns
    pub slowest_ns: u64,
    /// its number, for [`Mutator::input`]
    pub slowest: u64,
    /// its length in bytes
    pub slowest_bytes: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} inputs of seed {}: {} accepted, {} refused, no panic, no hang; {:.1} s of CPU, slowest {:.2} ms (input {}, {} bytes)",
            self.name,
            self.inputs,
            self.seed,
            self.accepted,
            self.inputs - self.accepted,
            self.total_ns as f64 / 1e9,
            self.slowest_ns as f64 / 1e6,
            self.slowest,
            self.slowest_bytes
        )
    }
}

/// Calls `parse` with inputs 0 to `inputs`; it says whether it took one as sound.
///
/// A panic goes on as it is, after a line that names the input. An input that takes more than a
/// minute ends the program with such a line, since nothing else stops a loop.
pub fn drive(
    name: &str,
    mutator: &Mutator,
    inputs: u64,
    mut parse: impl FnMut(&[u8]) -> bool,
) -> Report {
    let at = Arc::new(AtomicU64::new(0));
    // Its end, by return or by panic, is the end of the watchdog.
    let (_working, ended) = channel();
    watch(name.to_owned(), mutator.clone(), at.clone(), ended);
    let _witness = Witness {
        name,
        mutator,
        at: &at,
    };
    let mut report = Report {
        name: name.to_owned(),
        seed: mutator.seed(),
        inputs,
        accepted: 0,
        total_ns: 0,
        slowest_ns: 0,
        slowest: 0,
        slowest_bytes: 0,
    };
    let start = cpu_ns();
    for n in 0..inputs {
        at.store(n, Ordering::Relaxed);
        let input = mutator.input(n);
        let before = cpu_ns();
        report.accepted += u64::from(parse(&input));
        let took = cpu_ns() - before;
        if took > report.slowest_ns {
            (report.slowest_ns, report.slowest, report.slowest_bytes) = (took, n, input.len());
        }
    }
    report.total_ns = cpu_ns() - start;
    report
}

/// Names the input when a panic unwinds through the loop.
struct Witness<'a> {
    name: &'a str,
    mutator: &'a Mutator,
    at: &'a AtomicU64,
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let n = self.at.load(Ordering::Relaxed);
            eprintln!("{}", describe(self.name, "panicked at", self.mutator, n));
        }
    }
}

fn describe(name: &str, what: &str, mutator: &Mutator, n: u64) -> String {
    format!(
        "{name}: {what} input {n} of seed {}: {}",
        mutator.seed(),
        mutator.input(n).escape_ascii()
    )
}

fn watch(name: String, mutator: Mutator, at: Arc<AtomicU64>, ended: Receiver<()>) {
    thread::spawn(move || {
        loop {
            let before = at.load(Ordering::Relaxed);
            match ended.recv_timeout(HANG) {
                Err(RecvTimeoutError::Timeout) if at.load(Ordering::Relaxed) == before => {
                    eprintln!("{}", describe(&name, "hangs at", &mutator, before));
                    std::process::abort();
                }
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    });
}

/// CPU time of this thread: what a busy machine does beside it does not count.
fn cpu_ns() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    // CPU time is never negative.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// `N SEED` of an example's command line; 100,000 and 1 where they are not given.
///
/// # Errors
/// With an argument that is no number.
pub fn arguments() -> Result<(u64, u64), String> {
    let mut given = std::env::args().skip(1);
    let mut number = |name: &str, default: u64| match given.next() {
        None => Ok(default),
        Some(text) => text.replace('_', "").parse().map_err(|_| {
            format!("\"{text}\": expected {name}, a whole number; use: mutate N SEED")
        }),
    };
    Ok((
        number("the number of inputs", 100_000)?,
        number("a seed", 1)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_was_tried_and_names_the_slowest() {
        let mutator = Mutator::new(5, &[b"abc = 1"], &[]);
        let slow = mutator.input(70);
        let mut seen = 0;
        let report = drive("x", &mutator, 100, |input| {
            seen += 1;
            if input == slow && seen == 71 {
                // CPU time, not sleep: at least 20 ms of this thread's clock.
                let end = cpu_ns() + 20_000_000;
                while cpu_ns() < end {}
            }
            seen % 2 == 0
        });
        assert_eq!((report.inputs, report.accepted, seen), (100, 50, 100));
        assert_eq!(report.slowest, 70);
        assert!(report.slowest_ns >= 20_000_000 && report.total_ns >= report.slowest_ns);
        assert!(report.to_string().contains("50 refused"), "{report}");
    }

    #[test]
    fn a_panic_reaches_the_test() {
        let mutator = Mutator::new(5, &[b"abc = 1"], &[]);
        let broken = std::panic::catch_unwind(|| drive("x", &mutator, 100, |_| panic!("no")));
        assert!(broken.is_err());
    }

    #[test]
    fn an_input_is_described_so_that_it_can_be_found_again() {
        let mutator = Mutator::new(5, &[b"abc = 1"], &[]);
        let line = describe("x", "hangs at", &mutator, 3);
        assert!(
            line.starts_with("x: hangs at input 3 of seed 5: "),
            "{line}"
        );
    }
}

//! A busy process that disturbs a trial on purpose (`lab.disturb`).

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Turns between two looks at the clock: about 100 µs.
const TURNS: u32 = 100_000;

/// Uses a CPU for so many seconds, unless the lab ends before. It touches neither memory nor network, so that
/// time is all that it takes from others.
pub fn spin(seconds: &str) -> ExitCode {
    let Ok(seconds) = seconds.parse() else {
        eprintln!("spin: expected whole seconds, got \"{seconds}\"");
        return ExitCode::from(2);
    };
    let (begun, limit) = (Instant::now(), Duration::from_secs(seconds));
    while begun.elapsed() < limit {
        (0..TURNS).for_each(|_| std::hint::spin_loop());
    }
    ExitCode::SUCCESS
}

//! The one clock of a run: CLOCK_MONOTONIC, in nanoseconds, the same in every process of a machine.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC now. Costs about 25 ns.
#[must_use]
pub fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot and is never negative.
    (t.tv_sec as u64) * 1_000_000_000 + t.tv_nsec as u64
}

/// Sleeps until the monotonic clock reads `deadline_ns` (absolute, so that no drift adds up).
pub fn sleep_until(deadline_ns: u64) {
    let deadline = rustix::time::Timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as i64,
        tv_nsec: (deadline_ns % 1_000_000_000) as _,
    };
    while now_ns() < deadline_ns {
        // An interrupted sleep is started again by the loop.
        let _ =
            rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &deadline);
    }
}

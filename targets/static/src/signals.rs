//! Signals as a descriptor that can be waited for.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Blocks these signals and gives the descriptor that tells of them. Call it before any thread
/// starts, so that every thread inherits the block.
pub fn catch(which: &[Signal]) -> std::io::Result<SignalFd> {
    let set: SigSet = which.iter().copied().collect();
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?)
}

//! Ctrl-C and termination, as a descriptor that becomes readable.

use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context;

/// Readable from the first SIGINT or SIGTERM on.
pub struct Stop {
    signalled: PipeReader,
}

impl Stop {
    /// Catches SIGINT and SIGTERM from now on. A second one ends the process at once: its lab sees the
    /// end of the control socket and leaves nothing behind.
    pub fn install() -> anyhow::Result<Self> {
        let (signalled, to) = std::io::pipe().context("a pipe for signals")?;
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let again = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            // Order matters: the second signal must find the flag that the first one set.
            signal_hook::flag::register_conditional_shutdown(signal, 130, again.clone())?;
            signal_hook::flag::register(signal, again)?;
            signal_hook::low_level::pipe::register(signal, to.try_clone()?)?;
        }
        Ok(Self { signalled })
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.signalled.as_fd()
    }
}

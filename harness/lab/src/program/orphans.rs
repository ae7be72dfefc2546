//! Ends all processes below this one, in host mode, where no PID namespace does it.
//!
//! This process is a child subreaper: whatever loses its parent becomes its child. So killing
//! direct children, round after round, reaches everything; and a direct child's pid cannot become
//! another's before it is reaped here. Walking the tree and killing from afar could hit a stranger.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use nix::sys::signalfd::SignalFd;

/// Kills and reaps until no child is left, or for ten seconds (a process the kernel cannot kill).
pub fn end_all(sigchld: &SignalFd) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if reap_all() {
            return;
        }
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        // A killed child's own children arrive here when it is reaped; the short timeout covers
        // one that arrives without a signal of its own.
        let soon = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        let _ = poll(&mut [PollFd::new(sigchld, PollFlags::IN)], Some(&soon));
        while let Ok(Some(_)) = sigchld.read_signal() {}
    }
}

/// Reaps what has ended; true: no child is left, ended or not.
fn reap_all() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// The direct children of this process. From every process's parent, since
/// /proc/…/children is not in every kernel.
fn children() -> Vec<Pid> {
    let me = getpid().as_raw_nonzero().get();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            (parent_of(&stat)? == me).then(|| Pid::from_raw(pid))?
        })
        .collect()
}

/// The parent in a line of /proc/<pid>/stat: "pid (name) state ppid …".
fn parent_of(stat: &str) -> Option<i32> {
    // A name may hold blanks and parentheses, so the last one closes it.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parent() {
        let table = [
            ("42 (sleep) S 7 42 42 0", Some(7)),
            ("42 (a) b) (c) R 7 42", Some(7)), // a hostile name
            ("42 (sleep", None),
            ("", None),
        ];
        for (stat, want) in table {
            assert_eq!(parent_of(stat), want, "{stat}");
        }
    }
}

//! What is due later, good to some microseconds: a heap of absolute deadlines over one timerfd.
//! epoll's own timeout has whole milliseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// The deadlines of one worker, by token.
pub struct Timers {
    fd: OwnedFd,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// what the timerfd is set to, ns; 0: off
    set_ns: u64,
}

impl Timers {
    /// None is set.
    pub fn new() -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            fd: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            heap: BinaryHeap::new(),
            set_ns: 0,
        })
    }

    /// `token` is due at `due_ns` of CLOCK_MONOTONIC. There is no way to take it back: whoever
    /// is told later must know whether it still matters.
    pub fn push(&mut self, due_ns: u64, token: u64) {
        self.heap.push(Reverse((due_ns, token)));
    }

    /// The earliest token that is due by now; those due at the same moment in the order of tokens.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<u64> {
        let due = self.heap.peek().is_some_and(|r| r.0.0 <= now_ns);
        due.then(|| self.heap.pop().map(|r| r.0.1))?
    }

    /// Sets the timerfd to the earliest deadline, if that is another than it was set to.
    pub fn arm(&mut self) -> Result<(), Errno> {
        let next_ns = self.heap.peek().map_or(0, |r| r.0.0);
        if next_ns != self.set_ns {
            // Setting it clears what has expired; 0 turns it off.
            let spec = Itimerspec {
                it_interval: timespec(0),
                it_value: timespec(next_ns),
            };
            timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec)?;
            self.set_ns = next_ns;
        }
        Ok(())
    }
}

impl AsFd for Timers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Nanoseconds as the kernel takes them.
pub fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yieldpoint_terms::clock::now_ns;

    #[test]
    fn what_is_due_comes_in_the_order_of_time() {
        let mut timers = Timers::new().unwrap();
        for (due, token) in [(30, 1), (10, 2), (20, 3), (10, 4)] {
            timers.push(due, token);
        }
        assert_eq!(timers.pop_due(9), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(20)).collect();
        assert_eq!(due, [2, 4, 3]);
        assert_eq!(timers.pop_due(29), None);
        assert_eq!(timers.pop_due(30), Some(1));
    }

    #[test]
    fn the_descriptor_wakes_at_the_deadline_and_not_before() {
        let mut timers = Timers::new().unwrap();
        let due_ns = now_ns() + 3_000_000;
        timers.push(due_ns, 7);
        timers.arm().unwrap();
        let mut fds = [rustix::event::PollFd::new(
            &timers,
            rustix::event::PollFlags::IN,
        )];
        rustix::event::poll(&mut fds, None).unwrap();
        assert!(now_ns() >= due_ns);
        assert_eq!(timers.pop_due(now_ns()), Some(7));
    }
}

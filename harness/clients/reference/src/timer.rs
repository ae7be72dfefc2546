//! A timer of the kernel on an epoll instance: exact to the ns, where the timeout of epoll_wait()
//! has whole milliseconds.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer that ends a wait of its epoll instance with the event [`Timer::TOKEN`].
pub struct Timer {
    timer: OwnedFd,
    // What it is set to, ns; 0: never set.
    at_ns: u64,
}

impl Timer {
    /// Its events' token; users have small ones.
    pub const TOKEN: u64 = u64::MAX;

    /// A timer that is not set.
    pub fn on(epoll: &OwnedFd) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Edge-triggered: one event each time it expires, and nobody has to read it.
        let interest = EventFlags::IN | EventFlags::ET;
        epoll::add(epoll, &timer, EventData::new_u64(Self::TOKEN), interest)?;
        Ok(Self { timer, at_ns: 0 })
    }

    /// Expires when the monotonic clock reads `at_ns`; at once if it already does.
    pub fn set(&mut self, at_ns: u64) -> io::Result<()> {
        if self.at_ns == at_ns {
            return Ok(());
        }
        let at = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                // Times of the monotonic clock are far below 2^63.
                tv_sec: (at_ns / 1_000_000_000) as i64,
                tv_nsec: (at_ns % 1_000_000_000) as _,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &at)?;
        self.at_ns = at_ns;
        Ok(())
    }
}

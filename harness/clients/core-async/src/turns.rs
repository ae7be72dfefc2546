//! Waiting for intended starts: the runtime's own timers have a resolution of 1 ms, which would
//! be most of a latency, so a thread has one timer of the kernel, which has ns.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;
use yieldpoint_terms::clock;

/// The timer of a thread, used by one waiting user at a time.
///
/// Users take their starts from one pace in ascending order and wait here in the order in which
/// they came, so whoever holds the timer waits for the earliest start: the others miss nothing.
pub struct Turns {
    timer: Mutex<AsyncFd<OwnedFd>>,
}

impl Turns {
    /// Takes one descriptor. To be called in the context of a runtime.
    // AsyncFd asks for a promise that no safe type can give in general.
    #[allow(unsafe_code)]
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the timer is owned by the AsyncFd alone and has one descriptor until its end.
        let timer = unsafe { AsyncFd::register(timer)? };
        Ok(Self {
            timer: Mutex::new(timer),
        })
    }

    /// Returns when the monotonic clock has reached `until_ns`.
    pub async fn sleep_until(&self, until_ns: u64) {
        let timer = self.timer.lock().await;
        if clock::now_ns() >= until_ns {
            return;
        }
        // Setting and reading a timer of one's own have no error but a wrong argument; if there
        // is one, the load would be wrong, and the thread's end says so.
        wait(&timer, until_ns)
            .await
            .unwrap_or_else(|e| panic!("the timer of intended starts failed: {e}"));
    }
}

async fn wait(timer: &AsyncFd<OwnedFd>, until_ns: u64) -> io::Result<()> {
    let at = Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: Timespec {
            // Times of the monotonic clock are far below 2^63.
            tv_sec: (until_ns / 1_000_000_000) as i64,
            tv_nsec: (until_ns % 1_000_000_000) as _,
        },
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &at)?;
    loop {
        let mut ready = timer.readable().await?;
        // The read takes the expiry away, so the next user starts from nothing.
        let read = ready.try_io(|fd| Ok(rustix::io::read(fd, &mut [0; 8])?));
        if let Ok(result) = read {
            return result.map(|_| ());
        }
    }
}

//! The thread that takes a row every period.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use yieldpoint_terms::SampleSeries;
use yieldpoint_terms::clock::now_ns;

use crate::metrics::{COUNT, METRICS, TABLE};
use crate::pace::Moment;
use crate::readers::{Readers, Subject};

/// The sampler's thread has ended before it was told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sampler's thread has ended: expected it to run until it is finished")]
pub struct SamplerGone;

/// A running sampler. Dropped without [`Sampler::finish`], it stops at once as well.
///
/// While it lives it keeps the lab's network namespace alive, too: finish it before the lab goes down.
#[derive(Debug)]
pub struct Sampler {
    thread: Option<JoinHandle<Vec<Row>>>,
    /// `None` tells the thread to stop
    requests: Option<Sender<Request>>,
    wake: Arc<OwnedFd>,
    live: Arc<[AtomicI64; COUNT]>,
}

/// A wish for a row now; answered when it is taken.
type Request = SyncSender<()>;

/// One row: a time, and a value a metric in the order of [`METRICS`].
#[derive(Debug)]
struct Row {
    t_ns: u64,
    values: [Option<i64>; COUNT],
}

/// Rows for which room is made beforehand: almost 7 minutes at 10 a second. Later ones double
/// the room, which is one copy of some MB.
const ROOM: usize = 4096;
/// No metric is negative, so this stands for a missing value.
const MISSING: i64 = i64::MIN;

impl Sampler {
    /// Opens all that is to be watched, and starts the thread: the first row at `start_at_ns`
    /// (CLOCK_MONOTONIC; at once if it has passed), then one every `period_ns` by absolute
    /// deadlines. Rows whose deadline was missed are skipped, not made up for. What is costly to
    /// read has a value once a second at most; the first row, the last, and those asked for have all.
    ///
    /// # Errors
    /// A process is gone already, or one of the files that every Linux has cannot be opened.
    pub fn start(subject: Subject, start_at_ns: u64, period_ns: u64) -> io::Result<Self> {
        if period_ns == 0 {
            let what = "the sampler's period: expected 1 ns or more, got 0";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let readers = Readers::open(subject)?;
        let timer = timer(start_at_ns, period_ns)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let live = Arc::new([const { AtomicI64::new(MISSING) }; COUNT]);
        let (requests, asked) = channel();
        let thread = std::thread::Builder::new().name("sampler".into()).spawn({
            let worker = Worker {
                readers,
                rows: Vec::with_capacity(ROOM),
                live: Arc::clone(&live),
            };
            let wake = Arc::clone(&wake);
            move || worker.run(&timer, &wake, &asked)
        })?;
        Ok(Self {
            thread: Some(thread),
            requests: Some(requests),
            wake,
            live,
        })
    }

    /// Takes a row between the others, at an edge of the window say; returns when it is taken.
    ///
    /// # Errors
    /// The thread has ended, which is a bug.
    pub fn row_now(&self) -> Result<(), SamplerGone> {
        let (done, wait) = sync_channel(1);
        self.requests
            .as_ref()
            .and_then(|requests| requests.send(done).ok())
            .ok_or(SamplerGone)?;
        self.wake();
        wait.recv().map_err(|_| SamplerGone)
    }

    /// The value of a metric in the last row, for a progress bar; `None` if it is missing or unknown. Reads memory only.
    #[must_use]
    pub fn live(&self, metric: &str) -> Option<i64> {
        let at = METRICS.iter().position(|m| m.name == metric)?;
        let value = self.live[at].load(Ordering::Relaxed);
        (value != MISSING).then_some(value)
    }

    /// Takes a last row, stops at once, and returns all rows. The processes should still live,
    /// so that their peak memory is in that row.
    #[must_use]
    pub fn finish(mut self) -> SampleSeries {
        match self.stop() {
            Some(Ok(rows)) => series(&rows),
            // The thread panicked: a bug of ours, which must not pass for a trial without samples.
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => SampleSeries::default(),
        }
    }

    fn stop(&mut self) -> Option<std::thread::Result<Vec<Row>>> {
        self.requests = None;
        self.wake();
        self.thread.take().map(JoinHandle::join)
    }

    fn wake(&self) {
        // A write of 1 to an eventfd fails only if 2^64 − 2 wakes have piled up: then it is awake anyway.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// A timer that expires at an absolute time and every period after it.
fn timer(start_at_ns: u64, period_ns: u64) -> io::Result<OwnedFd> {
    let timer = timerfd_create(
        TimerfdClockId::Monotonic,
        TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
    )?;
    let time = |ns: u64| Timespec {
        // At most 2^64 / 10^9, and below 10^9: both fit.
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    let setting = Itimerspec {
        it_interval: time(period_ns),
        // A first time of 0 would switch the timer off.
        it_value: time(start_at_ns.max(1)),
    };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &setting)?;
    Ok(timer)
}

/// What the thread owns.
struct Worker {
    readers: Readers,
    rows: Vec<Row>,
    live: Arc<[AtomicI64; COUNT]>,
}

impl Worker {
    /// Sleeps until the timer or a wish; the end of the channel is the wish to stop.
    fn run(mut self, timer: &OwnedFd, wake: &OwnedFd, asked: &Receiver<Request>) -> Vec<Row> {
        loop {
            let mut waits = [
                PollFd::new(timer, PollFlags::IN),
                PollFd::new(wake, PollFlags::IN),
            ];
            match poll(&mut waits, None) {
                Ok(_) | Err(Errno::INTR) => {}
                // Not with two open descriptors; without a wait the loop would spin, so it ends.
                Err(_) => return self.rows,
            }
            // Several expirations of the timer are one row: missed ones are skipped.
            let mut due = take(timer);
            // Emptied before the wishes are looked at: one that comes later wakes again.
            take(wake);
            loop {
                match asked.try_recv() {
                    Ok(done) => {
                        self.row(true);
                        due = false;
                        // The asker may have gone; the row is taken all the same.
                        let _ = done.send(());
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        self.row(true);
                        return self.rows;
                    }
                }
            }
            if due {
                self.row(self.rows.is_empty());
            }
        }
    }

    fn row(&mut self, edge: bool) {
        let t_ns = now_ns();
        let seen = self.readers.read(Moment { now_ns: t_ns, edge });
        let values = std::array::from_fn(|i| TABLE[i].1(&seen));
        for (live, value) in self.live.iter().zip(values) {
            live.store(value.unwrap_or(MISSING), Ordering::Relaxed);
        }
        self.rows.push(Row { t_ns, values });
    }
}

/// Empties a timer or an eventfd; true if something was in it.
fn take(fd: &OwnedFd) -> bool {
    // Both give 8 bytes, or EAGAIN where there is nothing.
    rustix::io::read(fd, &mut [0u8; 8]).is_ok()
}

/// Rows turned into columns.
fn series(rows: &[Row]) -> SampleSeries {
    let column = |i: usize| rows.iter().map(|row| row.values[i]).collect();
    SampleSeries {
        t_ns: rows.iter().map(|row| row.t_ns).collect(),
        columns: METRICS
            .iter()
            .enumerate()
            .map(|(i, metric)| (metric.name.to_owned(), column(i)))
            .collect(),
    }
}

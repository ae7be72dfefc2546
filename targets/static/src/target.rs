//! The whole server as its control thread sees it: listener, workers, what they counted.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};
use yieldpoint_protocol::Testimony;
use yieldpoint_terms::clock::now_ns;

use crate::access_log::AccessLog;
use crate::counters::{Counters, Totals};
use crate::course::Course;
use crate::knobs::Settings;
use crate::listen::{self, ListenError, Queue};
use crate::reply::{self, Replies};
use crate::worker::Worker;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("cannot start a worker: {0}")]
    Worker(#[from] std::io::Error),
}

/// Who reads the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogReader {
    Nobody,
    Person,
}

/// A running server.
pub struct Target {
    pub listens: SocketAddrV4,
    listener: Arc<OwnedFd>,
    counters: Vec<Arc<Counters>>,
    unix_s: Arc<AtomicU64>,
    complained: bool,
}

/// CPU time of this process, user and system, ns.
pub fn cpu_ns() -> u64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    // A CPU clock is never negative.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Target {
    /// Listens and starts the workers.
    pub fn start(settings: &Settings, reader: LogReader) -> Result<Self, StartError> {
        let address = SocketAddrV4::new(settings.address, settings.port);
        let (listener, listens) = listen::open(address, settings.backlog)?;
        let mut target = Self {
            listens,
            listener: Arc::new(listener),
            counters: Vec::new(),
            unix_s: Arc::default(),
            complained: false,
        };
        target.set_clock();
        let page = reply::page(settings.body_bytes);
        for i in 0..settings.workers {
            let log = match reader {
                _ if !settings.access_log => None,
                LogReader::Nobody => Some(AccessLog::in_memory()?),
                LogReader::Person => Some(AccessLog::on_stderr()),
            };
            let replies = Replies::new(page.clone());
            let (listener, unix_s) = (target.listener.clone(), target.unix_s.clone());
            let worker = Worker::new(settings, listener, unix_s, replies, log)?;
            target.counters.push(worker.counters());
            let name = format!("worker-{i}");
            std::thread::Builder::new().name(name).spawn(move || {
                // Returns only when its epoll fails; a panic has said why by itself.
                if let Ok(Err(e)) = catch_unwind(AssertUnwindSafe(|| worker.run())) {
                    eprintln!("a worker ended: {e}");
                }
                // Better no target than half of one.
                std::process::exit(1);
            })?;
        }
        let limit = target.queue().limit;
        if limit > 0 && limit < settings.backlog as u64 {
            let asked = settings.backlog;
            eprintln!("backlog: asked for {asked}, got {limit}; raise net.core.somaxconn");
        }
        Ok(target)
    }

    /// What was counted since the start.
    pub fn totals(&self) -> Totals {
        Totals::read(&self.counters)
    }

    /// The accept queue now.
    pub fn queue(&self) -> Queue {
        listen::queue(&self.listener).unwrap_or_default()
    }

    /// What the control thread does at least ten times a second: the wall clock for the Date
    /// header, a closed slot, a word where connections cannot be accepted.
    pub fn look(&mut self, course: Option<&mut Course>) {
        self.set_clock();
        let totals = self.totals();
        if let Some(course) = course {
            course.advance(now_ns(), totals, self.queue().length);
        }
        if totals.accept_failures > 0 && !self.complained {
            self.complained = true;
            eprintln!(
                "accept failed for want of descriptors or memory; raise the limit with --set lab.nofile=N"
            );
        }
    }

    fn set_clock(&self) {
        // A clock before 1970 shows as 1970.
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.unix_s
            .store(since_1970.map_or(0, |d| d.as_secs()), Relaxed);
    }

    /// What was seen since `course` began; `cpu_start_ns` is [`cpu_ns`] of that moment.
    pub fn testimony(&self, course: &mut Course, cpu_start_ns: u64) -> Testimony {
        let now = self.totals();
        course.finish(now, self.queue().length);
        let t = course.totals();
        Testimony {
            connections: t.accepted,
            requests: t.requests,
            responses: t.by_status(),
            bytes_in: t.bytes_in,
            bytes_out: t.bytes_out,
            closed_by_client: t.closed_by_client,
            closed_by_target: t.closed_by_target,
            reset: t.reset,
            active: now.active(),
            listen_queue_peak: course.queue_peak(),
            cpu_ns: cpu_ns() - cpu_start_ns,
            series: course.series().clone(),
        }
    }
}

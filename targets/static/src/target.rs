//! The whole server as its control thread sees it: listener, workers, what they counted.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use rustix::net::{Shutdown, shutdown};
use rustix::time::{ClockId, clock_gettime};
use yieldpoint_protocol::Testimony;
use yieldpoint_terms::clock::{now_ns, sleep_until};

use crate::access_log::AccessLog;
use crate::counters::{Counters, Totals};
use crate::course::Course;
use crate::files::FilesError;
use crate::listen::{self, ListenError, Queue};
use crate::pages::Pages;
use crate::reply::Replies;
use crate::settings::Settings;
use crate::worker::{Shared, Worker};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("cannot start a worker: {0}")]
    Worker(#[from] std::io::Error),
}

/// Who reads the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogReader {
    Nobody,
    Person,
}

/// How long the end waits for answers that are under way, ns.
const STOP_NS: u64 = 5_000_000_000;
const STOP_STEP_NS: u64 = 2_000_000;

/// A running server.
pub struct Target {
    pub listens: SocketAddrV4,
    listener: Arc<OwnedFd>,
    counters: Vec<Arc<Counters>>,
    shared: Arc<Shared>,
    stop_signals: Vec<Arc<OwnedFd>>,
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
        let pages = Arc::new(match &settings.files {
            Some(folder) => Pages::of_folder(folder)?,
            None => Pages::one(settings.body_bytes),
        });
        let address = SocketAddrV4::new(settings.address, settings.port);
        let (listener, listens) = listen::open(address, settings.backlog)?;
        let mut target = Self {
            listens,
            listener: Arc::new(listener),
            counters: Vec::new(),
            shared: Arc::default(),
            stop_signals: Vec::new(),
            complained: false,
        };
        target.set_clock();
        for i in 0..settings.workers {
            let log = match reader {
                _ if !settings.access_log => None,
                LogReader::Nobody => Some(AccessLog::in_memory()?),
                LogReader::Person => Some(AccessLog::on_stderr()),
            };
            let replies = Replies::new(pages.clone());
            let (listener, shared) = (target.listener.clone(), target.shared.clone());
            let worker = Worker::new(settings, i, listener, shared, replies, log)?;
            target.counters.push(worker.counters());
            target.stop_signals.push(worker.stop_signal());
            let name = format!("worker-{i}");
            std::thread::Builder::new().name(name).spawn(move || {
                match catch_unwind(AssertUnwindSafe(|| worker.run())) {
                    // It was told to stop.
                    Ok(Ok(())) => return,
                    Ok(Err(e)) => eprintln!("a worker ended: {e}"),
                    // A panic has said why by itself.
                    Err(_) => {}
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

    /// The run begins at this time of CLOCK_MONOTONIC: behaviours count from it.
    pub fn begin(&self, start_ns: u64) {
        self.shared.go_ns.store(start_ns, Relaxed);
    }

    /// Ends well: accepts nobody any more, closes who asks nothing, and waits a while for the
    /// answers to whoever has begun a request.
    pub fn stop(&self) {
        self.shared.stop.store(true, Relaxed);
        for signal in &self.stop_signals {
            // The counter of an eventfd that nobody else writes to has room for 1.
            let _ = rustix::io::write(&**signal, &1u64.to_ne_bytes());
        }
        let patience_ends_ns = now_ns() + STOP_NS;
        // A worker first accepts who is queued; only then is the door shut.
        sleep_until(now_ns() + STOP_STEP_NS);
        let _ = shutdown(&*self.listener, Shutdown::Read);
        while self.totals().active() > 0 && now_ns() < patience_ends_ns {
            sleep_until(now_ns() + STOP_STEP_NS);
        }
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
        self.shared
            .unix_s
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

//! The common start of the load threads, and their common end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use yieldpoint_terms::clock;

use crate::pace::sharpen_sleeps;
use crate::{Recorder, Setup, Window};

/// Time that a thread gets beyond all timeouts before the process gives up on it.
const GRACE: Duration = Duration::from_secs(5);

/// Where a load thread stands once everything of its own is allocated.
pub struct Gate {
    thread: usize,
    events: Sender<Event>,
    go: Receiver<Window>,
}

enum Event {
    Ready,
    Ended(Box<Result<Recorder, String>>),
}

impl Gate {
    /// The number of this thread in its process, from 0.
    #[must_use]
    pub const fn thread(&self) -> usize {
        self.thread
    }

    /// Reports that this thread is ready and waits for `go`. The window's start may lie ahead:
    /// the virtual user says when to begin. The error means that there will be no load.
    pub fn wait(self) -> Result<Window, String> {
        // A receiver that is gone shows in the next line.
        let _ = self.events.send(Event::Ready);
        self.go.recv().map_err(|_| "no go".to_owned())
    }
}

/// The threads of one job, all of them at their gates.
pub struct Threads {
    go: Vec<Sender<Window>>,
    events: Receiver<Event>,
}

impl Threads {
    /// Starts the job's threads on `body` and waits until each is ready. If one fails, the
    /// others are sent home. Dropping the result does that too.
    pub fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        setup: &'env Setup,
        body: &'env (impl Fn(&Setup, Gate) -> Result<Recorder, String> + Sync),
    ) -> Result<Self, String> {
        let (to_us, events) = channel();
        let mut go = Vec::with_capacity(setup.threads);
        for i in 0..setup.threads {
            let (to_thread, at_gate) = channel();
            go.push(to_thread);
            let gate = Gate {
                thread: i,
                events: to_us.clone(),
                go: at_gate,
            };
            let to_us = to_us.clone();
            let run = move || {
                sharpen_sleeps(setup);
                let ended =
                    catch_unwind(AssertUnwindSafe(|| body(setup, gate))).unwrap_or_else(|panic| {
                        Err(format!("a load thread panicked: {}", words(&*panic)))
                    });
                // After a failure elsewhere nobody listens any more.
                let _ = to_us.send(Event::Ended(Box::new(ended)));
            };
            std::thread::Builder::new()
                .name(format!("load-{i}"))
                .spawn_scoped(scope, run)
                .map_err(|e| {
                    format!(
                        "thread {} of {} could not be started: {e}; take fewer threads or raise the limit of processes",
                        i + 1,
                        setup.threads
                    )
                })?;
        }
        for _ in 0..setup.threads {
            match events.recv() {
                Ok(Event::Ready) => {}
                Ok(Event::Ended(ended)) => {
                    return Err(ended
                        .err()
                        .unwrap_or_else(|| "a load thread ended before go".to_owned()));
                }
                Err(_) => return Err("the load threads are gone".to_owned()),
            }
        }
        Ok(Self { go, events })
    }

    /// Opens the gates and waits for all recorders. A thread that is not back when every
    /// timeout has passed is given up: the caller must exit the process.
    pub fn run(self, setup: &Setup, window: Window) -> Result<Vec<Recorder>, Lost> {
        for thread in &self.go {
            // A thread that is gone has sent, or will not send, its end: seen below.
            let _ = thread.send(window);
        }
        let timeouts = setup
            .connect_timeout
            .0
            .saturating_add(setup.request_timeout.0);
        let deadline_ns = window.end_ns.saturating_add(timeouts);
        let mut recorders = Vec::with_capacity(setup.threads);
        while recorders.len() < setup.threads {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(clock::now_ns()));
            match self.events.recv_timeout(left + GRACE) {
                Ok(Event::Ready) => {}
                Ok(Event::Ended(ended)) => recorders.push(ended.map_err(Lost)?),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Lost(format!(
                        "{} of {} load threads did not stop after the window, connect_timeout and request_timeout had passed",
                        setup.threads - recorders.len(),
                        setup.threads
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Lost("the load threads are gone".to_owned()));
                }
            }
        }
        Ok(recorders)
    }
}

/// A load thread failed or hangs, so there is no outcome.
#[derive(Debug)]
pub struct Lost(pub String);

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("(no message)")
}

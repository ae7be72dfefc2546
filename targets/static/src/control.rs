//! Under a runner: the protocol on stdin and stdout. This thread only talks and looks; it sleeps otherwise.

use std::fs::File;
use std::io::{StdoutLock, stdin, stdout};
use std::os::fd::AsFd;

use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use yieldpoint_protocol::{ChannelError, FromProgram, Hello, LineReader, Role, ToProgram, send};
use yieldpoint_terms::clock::{now_ns, sleep_until};

use crate::counters::Totals;
use crate::course::{Course, SLOT_NS};
use crate::knobs::KNOBS;
use crate::settings::Settings;
use crate::signals;
use crate::target::{LogReader, Target, cpu_ns};
use crate::timers::timespec;

/// How long a testimony waits for the last connections to close, ns.
const PATIENCE_NS: u64 = 250_000_000;
const PATIENCE_STEP_NS: u64 = 2_000_000;

/// Why the conversation broke.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("cannot write to the runner: {0}")]
    Write(#[from] std::io::Error),
    /// The runner has been told with `failed`.
    #[error("{0}")]
    Told(String),
}

/// Who we are.
pub fn hello() -> Hello {
    Hello {
        protocol: yieldpoint_protocol::VERSION,
        role: Role::Target,
        name: "static".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        library: "httparse over epoll".to_owned(),
        about: "HTTP/1.1 server like nginx with everything in memory; testifies, and misbehaves if asked".to_owned(),
        honours: Vec::new(),
        limits: Default::default(),
        knobs: KNOBS.to_vec(),
    }
}

/// Talks to the runner until `bye` or its end-of-file.
pub fn run() -> Result<(), ControlError> {
    // Not std's Stdin, whose hidden buffer a poll would not see.
    let input = File::from(stdin().as_fd().try_clone_to_owned()?);
    let mut lines = LineReader::new(input);
    let mut out = stdout().lock();
    send(&mut out, &FromProgram::Hello(hello()))?;
    let job = match lines.next::<ToProgram>("job") {
        Ok(ToProgram::Job(job)) => job,
        Ok(ToProgram::Bye) | Err(ChannelError::Closed { .. }) => return Ok(()),
        Ok(other) => return Err(fail(&mut out, format!("expected job, got {other:?}"))),
        Err(e) => return Err(fail(&mut out, e.to_string())),
    };
    // Before any thread starts.
    let signals = signals::catch(&[Signal::SIGTERM])?;
    let settings = Settings::from_job(&job).map_err(|e| fail(&mut out, e.to_string()))?;
    let target =
        Target::start(&settings, LogReader::Nobody).map_err(|e| fail(&mut out, e.to_string()))?;
    let before = Before::read(&target);
    let listens = target.listens.to_string();
    send(&mut out, &FromProgram::Ready { listens })?;
    Session {
        target,
        before,
        lines,
        out,
        signals,
        window: None,
    }
    .converse()
}

fn fail(out: &mut StdoutLock<'_>, reason: String) -> ControlError {
    let failed = FromProgram::Failed {
        reason: reason.clone(),
    };
    // If the runner is gone too, nobody is left to be told.
    let _ = send(out, &failed);
    ControlError::Told(reason)
}

/// Since `go`.
struct Window {
    course: Course,
    cpu_start_ns: u64,
    ticks: u64,
}

/// The last reading before `go`.
struct Before {
    totals: Totals,
    cpu_ns: u64,
}

impl Before {
    fn read(target: &Target) -> Self {
        Self {
            totals: target.totals(),
            cpu_ns: cpu_ns(),
        }
    }
}

struct Session {
    target: Target,
    before: Before,
    lines: LineReader<File>,
    out: StdoutLock<'static>,
    signals: SignalFd,
    window: Option<Window>,
}

impl Session {
    fn converse(mut self) -> Result<(), ControlError> {
        let mut next_look_ns = now_ns();
        loop {
            let heard = if self.lines.has_buffered() {
                Heard::Runner
            } else {
                self.wait(next_look_ns)?
            };
            if heard == Heard::Sigterm {
                self.target.stop();
                return Ok(());
            }
            if heard == Heard::Runner {
                match self.lines.next::<ToProgram>("go, report or bye") {
                    Ok(ToProgram::Go { start_at_ns }) => self.go(start_at_ns),
                    Ok(ToProgram::Report) => self.report()?,
                    Ok(ToProgram::Bye) | Err(ChannelError::Closed { .. }) => return Ok(()),
                    Ok(ToProgram::Job(_)) => {
                        let reason = "expected go, report or bye, got a second job";
                        return Err(fail(&mut self.out, reason.to_owned()));
                    }
                    Err(e) => return Err(fail(&mut self.out, e.to_string())),
                }
            }
            self.look()?;
            next_look_ns = match &self.window {
                Some(window) => window.course.slot_end_ns(),
                None => now_ns() + SLOT_NS,
            };
        }
    }

    /// Forgets what was before. The counters run on: workers are never stopped to be reset.
    fn go(&mut self, start_at_ns: u64) {
        // Where this thread wakes late, clients may have begun: what was read before they were
        // told to is then the beginning, or their first requests would be missing for ever.
        if now_ns() < start_at_ns {
            self.before = Before::read(&self.target);
        }
        self.target.begin(start_at_ns);
        self.window = Some(Window {
            course: Course::new(start_at_ns, self.before.totals),
            cpu_start_ns: self.before.cpu_ns,
            ticks: 0,
        });
    }

    fn look(&mut self) -> Result<(), ControlError> {
        self.before = Before::read(&self.target);
        let Some(window) = &mut self.window else {
            self.target.look(None);
            return Ok(());
        };
        self.target.look(Some(&mut window.course));
        if window.course.seconds() > window.ticks {
            window.ticks = window.course.seconds();
            let totals = window.course.totals();
            let tick = FromProgram::Tick {
                requests: totals.requests,
                connections: totals.accepted,
            };
            send(&mut self.out, &tick)?;
        }
        Ok(())
    }

    fn report(&mut self) -> Result<(), ControlError> {
        let patience_ends_ns = now_ns() + PATIENCE_NS;
        while self.target.totals().active() > 0 && now_ns() < patience_ends_ns {
            sleep_until(now_ns() + PATIENCE_STEP_NS);
            self.look()?;
        }
        let Some(window) = &mut self.window else {
            return Err(fail(&mut self.out, "report without go".to_owned()));
        };
        let testimony = self
            .target
            .testimony(&mut window.course, window.cpu_start_ns);
        Ok(send(
            &mut self.out,
            &FromProgram::Testimony(Box::new(testimony)),
        )?)
    }

    /// Sleeps until the runner says something (or is gone), SIGTERM comes, or the deadline.
    fn wait(&self, deadline_ns: u64) -> Result<Heard, ControlError> {
        let left = timespec(deadline_ns.saturating_sub(now_ns()));
        let mut fds = [
            PollFd::new(self.lines.get_ref(), PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&left)) {
            Ok(_) if !fds[1].revents().is_empty() => Ok(Heard::Sigterm),
            Ok(_) if !fds[0].revents().is_empty() => Ok(Heard::Runner),
            Ok(_) | Err(Errno::INTR) => Ok(Heard::Nobody),
            Err(e) => Err(ControlError::Write(e.into())),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nobody,
    Runner,
    Sigterm,
}

//! The runner's side of the protocol, as much as a benchmark needs.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, bail};
use yieldpoint_protocol::{
    ChannelError, FromProgram, Hello, Job, LineReader, Outcome, Testimony, ToProgram, VERSION, send,
};
use yieldpoint_terms::clock::now_ns;
use yieldpoint_terms::{Knobs, Value};

use crate::bench::{Bench, Stop};

/// How often a read looks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How long a program may take to answer. It takes milliseconds; this only bounds a hang.
const ANSWER_S: u64 = 30;
/// From `go` to the start of the window: time for every thread to wake up.
const AHEAD_NS: u64 = 20_000_000;

/// One conversation.
pub struct Talk {
    lines: LineReader<UnixStream>,
    to: UnixStream,
    stop: Stop,
}

/// What a program says to a job.
pub enum Answer {
    /// where it listens, if it does
    Ready(String),
    /// why it cannot
    Unsupported(String),
}

/// Both ends of a conversation: ours, and the program's stdin and stdout.
pub fn pair(bench: &Bench) -> anyhow::Result<(Talk, OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair().context("a socket pair")?;
    ours.set_read_timeout(Some(LOOK))?;
    let their_out = theirs.try_clone()?;
    let talk = Talk {
        to: ours.try_clone()?,
        lines: LineReader::new(ours),
        stop: bench.stop(),
    };
    Ok((talk, theirs.into(), their_out.into()))
}

impl Talk {
    fn next(&mut self, expected: &'static str, patience_s: u64) -> anyhow::Result<FromProgram> {
        let deadline = now_ns() + patience_s * 1_000_000_000;
        loop {
            match self.lines.next(expected) {
                Err(ChannelError::Io(e)) if e.kind() == ErrorKind::WouldBlock => {
                    self.stop.check()?;
                    if now_ns() >= deadline {
                        bail!("no {expected} within {patience_s} s");
                    }
                }
                other => return Ok(other?),
            }
        }
    }

    /// The first line.
    pub fn hello(&mut self) -> anyhow::Result<Hello> {
        match self.next("hello", ANSWER_S)? {
            FromProgram::Hello(hello) => Ok(hello),
            other => bail!("expected hello, got {other:?}"),
        }
    }

    /// Gives a job.
    pub fn job(&mut self, knobs: Knobs) -> anyhow::Result<Answer> {
        let job = Job {
            protocol: VERSION,
            knobs,
        };
        send(&mut self.to, &ToProgram::Job(job))?;
        match self.next("ready", ANSWER_S)? {
            FromProgram::Ready { listens } => Ok(Answer::Ready(listens)),
            FromProgram::Unsupported { reason } => Ok(Answer::Unsupported(reason)),
            FromProgram::Failed { reason } => bail!("{reason}"),
            other => bail!("expected ready, got {other:?}"),
        }
    }

    /// Starts a client and waits for its outcome; the client lives on.
    pub fn go(&mut self, patience_s: u64) -> anyhow::Result<Outcome> {
        let go = ToProgram::Go {
            start_at_ns: now_ns() + AHEAD_NS,
        };
        send(&mut self.to, &go)?;
        match self.next("end", patience_s)? {
            FromProgram::End { .. } => {}
            FromProgram::Failed { reason } => bail!("{reason}"),
            other => bail!("expected end, got {other:?}"),
        }
        match self.next("outcome", ANSWER_S)? {
            FromProgram::Outcome(outcome) => Ok(*outcome),
            other => bail!("expected outcome, got {other:?}"),
        }
    }

    /// Tells a target that the load begins.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        Ok(send(
            &mut self.to,
            &ToProgram::Go {
                start_at_ns: now_ns(),
            },
        )?)
    }

    /// What a target saw since [`Self::begin`].
    pub fn report(&mut self) -> anyhow::Result<Testimony> {
        send(&mut self.to, &ToProgram::Report)?;
        loop {
            match self.next("testimony", ANSWER_S)? {
                FromProgram::Tick { .. } => {}
                FromProgram::Testimony(testimony) => return Ok(*testimony),
                other => bail!("expected testimony, got {other:?}"),
            }
        }
    }

    /// Lets the program go.
    pub fn bye(&mut self) -> anyhow::Result<()> {
        Ok(send(&mut self.to, &ToProgram::Bye)?)
    }
}

/// The job of a client: every default, then what is asked for.
pub fn client_job(hello: &Hello, set: &[(&str, Value)]) -> Knobs {
    let mut knobs = Knobs::default();
    for knob in yieldpoint_clients_core::KNOBS {
        if let Some(value) = knob.default_value() {
            knobs.set(knob.name.as_ref(), value);
        }
    }
    for knob in &hello.knobs {
        if let Some(value) = knob.default_value() {
            knobs.set(format!("options.{}", knob.name), value);
        }
    }
    for (name, value) in set {
        knobs.set(*name, value.clone());
    }
    knobs
}

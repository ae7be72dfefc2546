//! The steps of one trial with one program: start it, talk to it, explain its silence.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use yieldpoint_lab::{CpuSet, Lab, Process, Side, Spawn};
use yieldpoint_protocol::{ChannelError, FromProgram, Job, ToProgram, VERSION};
use yieldpoint_terms::clock::now_ns;

use crate::Program;
use crate::logs::{self, Log};
use crate::peer::{Peer, WaitError, pair};

/// A second in ns.
pub const S: u64 = 1_000_000_000;
/// A program may take this long to say who it is (a virtual machine may have to start).
const HELLO: u64 = 20 * S;
/// … to allocate everything.
const READY: u64 = 30 * S;
/// … to exit when it is told to, or to be seen dead.
const EXIT: u64 = 2 * S;

/// Why a trial ended before its result.
#[derive(Debug)]
pub enum Stop {
    /// the user interrupted; no row
    Cancelled,
    /// an `error` row with this reason
    Error(String),
    /// an `unsupported` row with this reason
    Unsupported(String),
}

impl Stop {
    /// An `error` row.
    pub fn error(why: impl ToString) -> Self {
        Self::Error(why.to_string())
    }
}

/// A program that runs inside the lab.
pub struct Running {
    /// "client" or "target"
    pub role: &'static str,
    /// its name in the matrix
    pub name: String,
    /// the lab's handle
    pub process: Process,
    /// its socket pair
    pub peer: Peer,
    /// its stderr
    pub log: Log,
}

/// What a program may have of the machine.
#[derive(Clone, Copy)]
pub struct Share<'a> {
    /// its CPUs
    pub cpus: &'a CpuSet,
    /// soft limit of descriptors; `None`: the hard limit
    pub nofile: Option<u64>,
    /// limit of memory, MiB; `None`: none
    pub memory_mib: Option<u64>,
}

/// Starts a program and hears who it is. `process` is its name in the lab: "target", "client", or
/// "client-2" and so on where a client is several processes.
pub fn start(
    lab: &mut Lab,
    process: &str,
    program: &Program,
    share: Share,
    log: &Path,
    cancel: Option<BorrowedFd>,
) -> Result<Running, Stop> {
    let role = match process {
        "target" => "target",
        _ => "client",
    };
    let fail = |e: &dyn std::fmt::Display| Stop::Error(format!("{role} \"{}\": {e}", program.name));
    let (peer, stdin, stdout) = pair().map_err(|e| fail(&e))?;
    let (log, stderr) = logs::start(log.to_owned()).map_err(|e| fail(&e))?;
    let spawn = Spawn {
        name: process.to_owned(),
        argv: program.command.clone(),
        // What is not UTF-8 cannot cross the lab's protocol; no program of ours needs it.
        env: std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect(),
        cpus: Some(share.cpus.clone()),
        nofile: share.nofile,
        memory_mib: share.memory_mib,
        cwd: None,
        side: match role {
            "target" => Side::Target,
            _ => Side::Client,
        },
    };
    let process = lab
        .spawn(&spawn, stdin, stdout, stderr)
        .map_err(|e| fail(&e))?;
    let mut running = Running {
        role,
        name: program.name.clone(),
        process,
        peer,
        log,
    };
    match running.hear(lab, "hello", now_ns() + HELLO, cancel)? {
        FromProgram::Hello(hello) if hello.protocol == VERSION => Ok(running),
        FromProgram::Hello(hello) => Err(running.error(&format!(
            "speaks protocol version {}, expected {VERSION}; build it from the revision of this yieldpoint",
            hello.protocol
        ))),
        other => Err(running.unexpected("hello", &other)),
    }
}

impl Running {
    /// Gives the job and waits until everything stands; returns what it listens on (a target).
    pub fn prepare(
        &mut self,
        lab: &mut Lab,
        job: Job,
        cancel: Option<BorrowedFd>,
    ) -> Result<String, Stop> {
        self.say(lab, &ToProgram::Job(job))?;
        match self.hear(lab, "ready", now_ns() + READY, cancel)? {
            FromProgram::Ready { listens } => Ok(listens),
            FromProgram::Unsupported { reason } => Err(Stop::Unsupported(reason)),
            FromProgram::Failed { reason } => Err(self.error(&reason)),
            other => Err(self.unexpected("ready", &other)),
        }
    }

    /// Sends a message.
    pub fn say(&mut self, lab: &mut Lab, message: &ToProgram) -> Result<(), Stop> {
        self.peer.send(message).map_err(|e| {
            let exit = self.exit(lab);
            self.error(&exit.unwrap_or_else(|| format!("does not listen: {e}")))
        })
    }

    /// Waits for a message; silence and death become the row's reason.
    pub fn hear(
        &mut self,
        lab: &mut Lab,
        expected: &'static str,
        deadline_ns: u64,
        cancel: Option<BorrowedFd>,
    ) -> Result<FromProgram, Stop> {
        let gone = self.process.pidfd.as_fd();
        let heard = self.peer.next(expected, gone, deadline_ns, cancel);
        heard.map_err(|e| self.explain(lab, e))
    }

    /// The next message if it is complete, without waiting.
    pub fn poll(
        &mut self,
        lab: &mut Lab,
        expected: &'static str,
    ) -> Result<Option<FromProgram>, Stop> {
        let gone = self.process.pidfd.as_fd();
        let heard = self.peer.poll(expected, gone);
        heard.map_err(|e| self.explain(lab, e))
    }

    /// What becomes readable when it speaks or dies.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.peer.as_fd(), self.process.pidfd.as_fd()]
    }

    /// The row's reason of a failed wait.
    pub fn explain(&self, lab: &mut Lab, e: WaitError) -> Stop {
        match e {
            WaitError::Cancelled => Stop::Cancelled,
            WaitError::Channel(ChannelError::Closed { expected }) => {
                let what = self
                    .exit(lab)
                    .unwrap_or_else(|| "closed its stdout".to_owned());
                self.error(&format!("{what} where \"{expected}\" was expected"))
            }
            WaitError::Channel(e @ ChannelError::Silent { .. }) => {
                self.error(&format!("hangs: {e}; it was killed"))
            }
            WaitError::Channel(e) => self.error(&e.to_string()),
        }
    }

    /// How it ended, if it did.
    fn exit(&self, lab: &mut Lab) -> Option<String> {
        lab.wait(&self.process.name, now_ns() + EXIT)
            .ok()
            .flatten()
            .map(|e| e.to_string())
    }

    /// Tells it to exit and sees to it.
    pub fn dismiss(&mut self, lab: &mut Lab) {
        // Whoever does not go when told goes with the lab a moment later.
        let _ = self.peer.send(&ToProgram::Bye);
        if !matches!(lab.wait(&self.process.name, now_ns() + EXIT), Ok(Some(_))) {
            let _ = lab.kill(&self.process.name);
        }
    }

    /// An `error` row that names this program.
    pub fn error(&self, why: &str) -> Stop {
        // Of several processes of one client the number says which.
        let which = self.process.name.strip_prefix("client-");
        let which = which.map_or_else(String::new, |n| format!(" (process {n})"));
        Stop::Error(format!("{} \"{}\"{which}: {why}", self.role, self.name))
    }

    /// An `error` row: a message out of turn.
    pub fn unexpected(&self, expected: &str, got: &FromProgram) -> Stop {
        let shown: String = format!("{got:?}").chars().take(80).collect();
        self.error(&format!("expected \"{expected}\", got {shown}"))
    }
}

//! The outer process: makes the namespaces, forks init, and sees to it that neither outlives the
//! runner nor leaves anything behind.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, pidfd_send_signal, set_child_subreaper,
    setsid,
};
use yieldpoint_lab::wire::{FromLab, send};
use yieldpoint_lab::{Mode, Step};

use super::{init, namespaces, orphans, os};

/// What the guard holds before it forks.
struct Ready {
    runner: OwnedFd,
    myself: OwnedFd,
    sigchld: SignalFd,
}

/// Runs the lab program until the runner or init ends.
pub fn run(mode: Mode, runner: i32) -> ExitCode {
    let control = match os::close_inherited().and_then(|()| os::take_control()) {
        Ok(control) => control,
        Err(e) => {
            eprintln!("yieldpoint-lab: {e}");
            return ExitCode::FAILURE;
        }
    };
    // Ctrl-C goes to the terminal's foreground group; this session has no terminal. It fails only
    // for a process that leads a group already.
    let _ = setsid();
    let (init, ready) = match prepare(mode, runner).and_then(|r| Ok((fork()?, r))) {
        Ok(both) => both,
        Err((step, error)) => return refuse(&control, step, &error),
    };
    match init {
        None => init::run(mode, control, ready.myself, ready.sigchld),
        Some(init) => {
            // Only init's end may keep the control socket open.
            drop(control);
            watch(&ready, init);
            ExitCode::SUCCESS
        }
    }
}

/// Tells the runner which step failed.
pub fn refuse(control: &OwnedFd, step: Step, error: &io::Error) -> ExitCode {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    // A runner that is gone needs no answer.
    let _ = send(control, &FromLab::Refused { step, errno }, &[]);
    ExitCode::FAILURE
}

fn fork() -> Result<Option<Pid>, (Step, io::Error)> {
    os::fork().map_err(|e| (Step::Fork, e))
}

fn prepare(mode: Mode, runner: i32) -> Result<Ready, (Step, io::Error)> {
    let forking = |e: io::Error| (Step::Fork, e);
    let runner = Pid::from_raw(runner);
    let pidfd = |pid| pidfd_open(pid, PidfdFlags::empty()).map_err(|e| forking(e.into()));
    // A pidfd and not PDEATHSIG: that one follows the runner's thread, not the runner.
    let gone = || forking(io::Error::from_raw_os_error(libc::ESRCH));
    let runner_fd = pidfd(runner.ok_or_else(gone)?)?;
    if getppid() != runner {
        return Err(gone());
    }
    if mode == Mode::Private {
        namespaces::enter()?;
    } else {
        set_child_subreaper(Some(getpid())).map_err(|e| forking(e.into()))?;
    }
    // Blocked for good, here and in init (a spawned child gets an empty mask): read, not handled.
    let mut mask = SigSet::empty();
    mask.add(NixSignal::SIGCHLD);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    mask.thread_block().map_err(|e| forking(e.into()))?;
    Ok(Ready {
        runner: runner_fd,
        myself: pidfd(getpid())?,
        sigchld: SignalFd::with_flags(&mask, flags).map_err(|e| forking(e.into()))?,
    })
}

/// Waits until init or the runner has ended; then ends what is left.
fn watch(ready: &Ready, init: Pid) {
    // Our child, not yet waited for: the pid is its own.
    if let Ok(init) = pidfd_open(init, PidfdFlags::empty()) {
        let mut fds = [
            PollFd::new(&ready.runner, PollFlags::IN),
            PollFd::new(&init, PollFlags::IN),
        ];
        while let Err(rustix::io::Errno::INTR) = poll(&mut fds, None) {}
        // Init ends by itself at the end of its control socket; this is for an init that cannot.
        let _ = pidfd_send_signal(init.as_fd(), Signal::KILL);
    }
    orphans::end_all(&ready.sigchld);
}

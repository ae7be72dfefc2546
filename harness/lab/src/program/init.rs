//! The inner process, PID 1 of a private lab: sets it up, then spawns, reaps and reports.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process_group, pidfd_open,
    set_child_subreaper, set_parent_process_death_signal, wait,
};
use yieldpoint_lab::wire::{FromLab, ToLab, receive, send};
use yieldpoint_lab::{Exit, Mode, Network, Step, sysctl};

use super::spawner::{Spawner, outer_pid};
use super::{guard, namespaces, netlink, orphans, veth};

/// Sets the lab up and serves until the control socket or the guard ends.
pub fn run(mode: Mode, control: OwnedFd, guard: OwnedFd, sigchld: SignalFd) -> ExitCode {
    let code = match set_up(mode, &control) {
        Ok(Some(spawner)) => {
            let mut init = Init {
                mode,
                control,
                guard,
                sigchld: &sigchld,
                spawner,
                running: BTreeMap::new(),
            };
            init.serve();
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::FAILURE,
        Err((step, error)) => guard::refuse(&control, step, &error),
    };
    // In a private lab the kernel kills all that is left when this process, its PID 1, ends.
    if mode == Mode::Host {
        orphans::end_all(&sigchld);
    }
    code
}

/// Returns none where there is nothing to serve: sysctls refused, or no runner any more.
fn set_up(mode: Mode, control: &OwnedFd) -> Result<Option<Spawner>, (Step, io::Error)> {
    let forking = |e: Errno| (Step::Fork, e.into());
    match mode {
        // The pidfd of the guard covers a guard that died before this line.
        Mode::Private => set_parent_process_death_signal(Some(Signal::KILL)).map_err(forking)?,
        Mode::Host => set_child_subreaper(Some(getpid())).map_err(forking)?,
    }
    let (sysctls, network) = match receive::<ToLab>(control).map_err(|e| (Step::Start, e))? {
        Some((ToLab::Setup { sysctls, network }, _)) => (sysctls, network),
        _ => return Ok(None),
    };
    if mode == Mode::Private {
        namespaces::loopback_up().map_err(|e| (Step::Loopback, e))?;
    }
    let sock_diag = netlink::sock_diag().map_err(|e| (Step::SockDiag, e))?;
    let write = || (sysctl::ask(mode, &sysctls), sysctl::effective(&sysctls));
    let (mut errors, mut effective) = write();
    let mut target = None;
    // What one namespace refuses the other would refuse as well.
    if let Network::Veth(link) = network
        && errors.is_empty()
    {
        let (side, (refused, there)) = veth::target_side(link, write)?;
        target = Some(side);
        errors = refused;
        sysctl::add_target(&mut effective, &there);
    }
    if !errors.is_empty() {
        let _ = send(control, &FromLab::Sysctls { errors }, &[]);
        return Ok(None);
    }
    let myself = pidfd_open(getpid(), PidfdFlags::empty()).map_err(forking)?;
    let up = FromLab::Up {
        init_pid: outer_pid(&myself).map_err(|e| (Step::Fork, e))?,
        effective,
    };
    let mut fds = vec![sock_diag.as_fd(), myself.as_fd()];
    fds.extend(target.as_ref().map(|t| t.sock_diag.as_fd()));
    let heard = send(control, &up, &fds).is_ok();
    Ok(heard.then(|| Spawner::new(target.map(|t| t.namespace))))
}

struct Init<'a> {
    mode: Mode,
    control: OwnedFd,
    guard: OwnedFd,
    sigchld: &'a SignalFd,
    spawner: Spawner,
    // Processes spawned by name that are not reaped yet.
    running: BTreeMap<i32, String>,
}

impl Init<'_> {
    fn serve(&mut self) {
        loop {
            let mut fds = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(self.sigchld, PollFlags::IN),
                PollFd::new(&self.guard, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let [asked, child_ended, guard_ended] = fds.map(|fd| !fd.revents().is_empty());
            // Exits first: a name whose process has ended is free for the spawn that may follow.
            if guard_ended || (child_ended && !self.reap()) || (asked && !self.obey()) {
                return;
            }
        }
    }

    /// Reaps everything that has ended, orphans included; false: the runner is gone.
    fn reap(&mut self) -> bool {
        while let Ok(Some(_)) = self.sigchld.read_signal() {}
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let exit = Exit {
                code: status.exit_status(),
                signal: status.terminating_signal(),
            };
            // One without a name is an orphan whose parent has ended: nobody asks for it.
            if let Some(name) = self.running.remove(&pid.as_raw_nonzero().get())
                && !self.say(&FromLab::Exited { name, exit }, &[])
            {
                return false;
            }
        }
        true
    }

    /// Does what one message asks; false: the runner is gone or speaks nonsense.
    fn obey(&mut self) -> bool {
        match receive::<ToLab>(&self.control) {
            Ok(Some((ToLab::Spawn(order), fds))) => match self.spawner.spawn(&order, fds) {
                Ok(child) => {
                    self.running
                        .insert(child.pid.as_raw_nonzero().get(), order.name);
                    let pid = child.outer_pid;
                    self.say(&FromLab::Spawned { pid }, &[child.pidfd.as_fd()])
                }
                Err(reason) => self.say(&FromLab::NotSpawned { reason }, &[]),
            },
            Ok(Some((ToLab::Kill { name }, _))) => {
                // Each leads its own group, and none is reaped yet, so the number is still theirs.
                for (pid, _) in self.running.iter().filter(|(_, n)| **n == name) {
                    if let Some(group) = Pid::from_raw(*pid) {
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                }
                true
            }
            Ok(Some((ToLab::Setup { .. }, _))) | Ok(None) => false,
            Err(e) => {
                eprintln!("yieldpoint-lab ({}): {e}", self.mode);
                false
            }
        }
    }

    fn say(&self, message: &FromLab, fds: &[BorrowedFd<'_>]) -> bool {
        send(&self.control, message, fds).is_ok()
    }
}

//! All unsafe code of the lab, each item with its reason.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use nix::sys::signal::SigSet;
use nix::unistd::ForkResult;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit, setsid,
};
use yieldpoint_lab::CpuSet;

use super::veth;

/// Closes whatever the runner's own parent left open without close-on-exec: no client or target
/// may inherit it, since their descriptors are counted. Call first, before anything is opened.
#[allow(unsafe_code)]
pub fn close_inherited() -> io::Result<()> {
    // SAFETY: no value of this program owns a descriptor above 2 yet, so none is closed under it.
    // A system call by number, because older C libraries do not wrap close_range(2).
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Takes the control socket from standard input, and puts /dev/null there.
pub fn take_control() -> io::Result<OwnedFd> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(control)
}

/// fork(2). The child gets `None`, the parent the pid of the child.
#[allow(unsafe_code)]
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the program has one thread, so no lock is held by a thread that the child lacks.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Child => Ok(None),
        ForkResult::Parent { child } => Ok(Pid::from_raw(child.as_raw())),
    }
}

/// What is done in a spawned child between fork and exec, after its descriptors and working
/// directory are in place.
pub struct Surroundings {
    /// CPUs; `None`: as they are
    pub cpus: Option<CpuSet>,
    /// limits of descriptors
    pub nofile: Rlimit,
    /// limit of private writable memory; `None`: as it is
    pub memory: Option<Rlimit>,
    /// pid of the process that forks
    pub parent: Option<Pid>,
    /// the network namespace to enter; `None`: that of the process that forks
    pub network: Option<Arc<OwnedFd>>,
}

/// Has a command prepare its child: its own session, death with its parent, network, CPUs,
/// limits, an empty signal mask.
#[allow(unsafe_code)]
pub fn prepare(command: &mut Command, surroundings: Surroundings) {
    let hook = move || -> io::Result<()> {
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before that line sends no signal any more.
        if getppid() != surroundings.parent {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if let Some(network) = &surroundings.network {
            veth::enter(network)?;
        }
        if let Some(cpus) = &surroundings.cpus {
            rustix::thread::sched_setaffinity(None, &cpus.as_mask())?;
        }
        setrlimit(Resource::Nofile, surroundings.nofile)?;
        if let Some(memory) = surroundings.memory {
            setrlimit(Resource::Data, memory)?;
        }
        // The standard library hands our mask down, and we block SIGCHLD.
        SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    // SAFETY: the program has one thread, so the child may allocate and take locks; the hook
    // closes no descriptor.
    unsafe {
        command.pre_exec(hook);
    }
}

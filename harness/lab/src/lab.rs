//! The runner's side: start the lab program, have it spawn, hear of exits, take it down.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use yieldpoint_terms::clock::now_ns;

use crate::wire::{FromLab, Order, ToLab, receive, send};
use crate::{CpuSet, Exit, LabError, Mode, Network, Refusal, Side, Step};

/// How long the lab program may take to answer or to end. It takes a few milliseconds; this only
/// bounds a machine that hangs.
const PATIENCE_S: u64 = 15;
const NS_PER_S: u64 = 1_000_000_000;

/// What lab to bring up.
#[derive(Clone, Debug)]
pub struct LabSpec {
    /// private or host
    pub mode: Mode,
    /// names and values ("net.ipv4.tcp_tw_reuse", "0"), written in this order
    pub sysctls: Vec<(String, String)>,
    /// path of the program `yieldpoint-lab`
    pub program: PathBuf,
    /// what lies between client and target; a veth pair needs a private lab
    pub network: Network,
}

impl LabSpec {
    /// A lab on loopback with no sysctl written.
    #[must_use]
    pub fn new(mode: Mode, program: impl Into<PathBuf>) -> Self {
        Self {
            mode,
            sysctls: Vec::new(),
            program: program.into(),
            network: Network::Loopback,
        }
    }
}

/// What to spawn in a lab.
#[derive(Clone, Debug, Default)]
pub struct Spawn {
    /// its name in this lab, free again once its exit was seen
    pub name: String,
    /// program (a path, relative to `cwd`, or a name found in the PATH of `env`) and arguments
    pub argv: Vec<String>,
    /// the whole environment; nothing is inherited
    pub env: Vec<(String, String)>,
    /// CPUs it may run on; `None`: those of the runner
    pub cpus: Option<CpuSet>,
    /// soft limit of open descriptors; `None`: the hard limit
    pub nofile: Option<u64>,
    /// limit of private writable memory, MiB; `None`: as it is
    pub memory_mib: Option<u64>,
    /// working directory; `None`: that of the runner
    pub cwd: Option<PathBuf>,
    /// the network namespace it is in, where the lab has two
    pub side: Side,
}

impl Spawn {
    /// A program with its arguments, an empty environment and no limits.
    #[must_use]
    pub fn new<T: Into<String>>(name: &str, argv: impl IntoIterator<Item = T>) -> Self {
        Self {
            name: name.to_owned(),
            argv: argv.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// A process of the lab, to sample and to poll; it ends with the lab, not with this value.
#[derive(Debug)]
pub struct Process {
    /// its name in this lab
    pub name: String,
    /// its pid as the runner sees it, valid in `/proc`
    pub pid: u32,
    /// readable once it has ended
    pub pidfd: OwnedFd,
}

/// A lab that stands. Nothing in it outlives this value, or the runner.
#[derive(Debug)]
pub struct Lab {
    mode: Mode,
    control: OwnedFd,
    guard: Child,
    guard_pidfd: OwnedFd,
    init_pid: u32,
    init_pidfd: Option<OwnedFd>,
    network: Network,
    sock_diag: Option<OwnedFd>,
    // That of the target's side, where it is a namespace of its own.
    sock_diag_target: Option<OwnedFd>,
    effective: BTreeMap<String, String>,
    // Every process by name: `None` while it runs.
    exits: BTreeMap<String, Option<Exit>>,
    ended: bool,
}

impl Lab {
    /// Starts the lab program and waits until the lab stands (a few ms).
    ///
    /// Errors: a step refused, a sysctl that cannot be had, a program that is not there.
    pub fn up(spec: &LabSpec) -> Result<Self, LabError> {
        let refused = |refusal| LabError::Refused {
            mode: spec.mode,
            refusal,
        };
        if spec.mode == Mode::Host && spec.network != Network::Loopback {
            let what = "a host lab has no network of its own, so set lab.mode = \"private\"";
            return Err(refused(Refusal::of_words(Step::Veth, what)));
        }
        let mut lab = Self::start(spec)?;
        let setup = ToLab::Setup {
            sysctls: spec.sysctls.clone(),
            network: spec.network,
        };
        // A program that has already refused has closed its end; what it said is still to be read.
        match send(&lab.control, &setup, &[]) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                return Err(control_error("coming up")(e));
            }
            _ => {}
        }
        match lab.answer("coming up")? {
            (
                FromLab::Up {
                    init_pid,
                    effective,
                },
                mut fds,
            ) => {
                if let Network::Veth(_) = spec.network {
                    lab.sock_diag_target = fds.pop();
                }
                let [sock_diag, init] = exactly(fds, "coming up")?;
                lab.sock_diag = Some(sock_diag);
                lab.init_pidfd = Some(init);
                lab.init_pid = init_pid;
                lab.effective = effective;
                Ok(lab)
            }
            (FromLab::Refused { step, errno }, _) => Err(refused(Refusal::of_errno(step, errno))),
            (FromLab::Sysctls { errors }, _) => Err(LabError::Sysctls(errors)),
            (other, _) => Err(unexpected("coming up", &other)),
        }
    }

    fn start(spec: &LabSpec) -> Result<Self, LabError> {
        let not_started = |e: io::Error| {
            let mut refusal =
                Refusal::of_words(Step::Start, format!("\"{}\": {e}", spec.program.display()));
            refusal.errno = e.raw_os_error();
            LabError::Refused {
                mode: spec.mode,
                refusal,
            }
        };
        let (control, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|e| not_started(e.into()))?;
        // The control socket is its standard input: the one descriptor that the standard library
        // hands down without a hook between fork and exec, so that it can use vfork. Of the runner
        // it gets nothing else but stderr, for a panic.
        let mut guard = Command::new(&spec.program)
            .arg(spec.mode.as_str())
            .arg(std::process::id().to_string())
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(not_started)?;
        // The child is ours and not yet waited for, so that its pid cannot be another's.
        let guard_pidfd = i32::try_from(guard.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let guard_pidfd = match guard_pidfd {
            Ok(fd) => fd,
            Err(e) => {
                let _ = guard.kill();
                let _ = guard.wait();
                return Err(not_started(e.into()));
            }
        };
        Ok(Self {
            mode: spec.mode,
            control,
            guard,
            guard_pidfd,
            init_pid: 0,
            init_pidfd: None,
            network: spec.network,
            sock_diag: None,
            sock_diag_target: None,
            effective: BTreeMap::new(),
            exits: BTreeMap::new(),
            ended: false,
        })
    }

    /// private or host
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }
    /// Sysctls that hold in the lab: those asked for and [`crate::sysctl::ALWAYS_RECORDED`];
    /// runs of blanks are one blank; what this kernel does not have is absent. Where the target's
    /// own namespace has another value, that stands beside it as "target:" and the name.
    #[must_use]
    pub fn effective(&self) -> &BTreeMap<String, String> {
        &self.effective
    }
    /// What lies between client and target.
    #[must_use]
    pub fn network(&self) -> Network {
        self.network
    }
    /// Where a target listens that is to be reached by the client.
    #[must_use]
    pub fn target_address(&self) -> Ipv4Addr {
        self.network.target_address()
    }
    /// A NETLINK_SOCK_DIAG socket of the client's network namespace (in host mode: the host's).
    /// It keeps the namespace alive: do not keep a duplicate of it.
    #[must_use]
    pub fn sock_diag(&self) -> BorrowedFd<'_> {
        // `up` returns a lab only with both descriptors, and they stay until it is dropped.
        self.sock_diag.as_ref().expect("a lab that is up").as_fd()
    }
    /// The same of the target's network namespace, which on loopback is the client's.
    #[must_use]
    pub fn sock_diag_target(&self) -> BorrowedFd<'_> {
        self.sock_diag_target
            .as_ref()
            .map_or_else(|| self.sock_diag(), AsFd::as_fd)
    }
    /// A pid, as the runner sees it, whose `/proc/<pid>/net` is that of the client's network
    /// namespace; that of the target's belongs to every process spawned there ([`Process::pid`]).
    #[must_use]
    pub fn init_pid(&self) -> u32 {
        self.init_pid
    }
    /// The pid of the outer process of the lab program, as the runner sees it.
    #[must_use]
    pub fn guard_pid(&self) -> u32 {
        self.guard.id()
    }

    /// Spawns a program in its own session, with these standard descriptors and no others.
    ///
    /// Returns once exec has succeeded; errors name what is wrong with program, CPUs or limits.
    pub fn spawn(
        &mut self,
        cmd: &Spawn,
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    ) -> Result<Process, LabError> {
        const DOING: &str = "spawning";
        let name = cmd.name.clone();
        if let Some(None) = self.exits.get(&name) {
            return Err(LabError::Spawn {
                name,
                reason: "a process of that name still runs; expected a free name".to_owned(),
            });
        }
        let order = ToLab::Spawn(Order {
            name: name.clone(),
            argv: cmd.argv.clone(),
            env: cmd.env.clone(),
            cpus: cmd.cpus.clone(),
            nofile: cmd.nofile,
            memory_mib: cmd.memory_mib,
            cwd: cmd.cwd.clone(),
            side: cmd.side,
        });
        let fds = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        send(&self.control, &order, &fds).map_err(control_error(DOING))?;
        match self.answer(DOING)? {
            (FromLab::Spawned { pid }, fds) => {
                let [pidfd] = exactly(fds, DOING)?;
                self.exits.insert(name.clone(), None);
                Ok(Process { name, pid, pidfd })
            }
            (FromLab::NotSpawned { reason }, _) => Err(LabError::Spawn { name, reason }),
            (other, _) => Err(unexpected(DOING, &other)),
        }
    }

    /// Waits for the end of a process until `deadline_ns` (CLOCK_MONOTONIC; one in the past only
    /// looks). `None`: it still runs. Asked again, it gives the same answer again.
    pub fn wait(&mut self, name: &str, deadline_ns: u64) -> Result<Option<Exit>, LabError> {
        const DOING: &str = "waiting for a process";
        loop {
            match self.exits.get(name) {
                None => return Err(self.unknown(name)),
                Some(Some(exit)) => return Ok(Some(*exit)),
                Some(None) => {}
            }
            if !readable(self.control.as_fd(), deadline_ns).map_err(control_error(DOING))? {
                return Ok(None);
            }
            if let Some((other, _)) = self.hear(DOING)? {
                return Err(unexpected(DOING, &other));
            }
        }
    }

    /// Kills a process and its process group (SIGKILL); one that has ended is left as it is.
    /// What it has started outside its group ends with the lab.
    pub fn kill(&mut self, name: &str) -> Result<(), LabError> {
        match self.exits.get(name) {
            None => Err(self.unknown(name)),
            Some(Some(_)) => Ok(()),
            Some(None) => {
                let kill = ToLab::Kill {
                    name: name.to_owned(),
                };
                send(&self.control, &kill, &[]).map_err(control_error("killing a process"))
            }
        }
    }

    /// Ends everything in the lab and the lab itself; returns once no process of it is left.
    pub fn down(mut self) -> Result<(), LabError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), LabError> {
        if self.ended {
            return Ok(());
        }
        self.ended = true;
        // The end of file asks for the orderly end. The answer is that both processes of the lab
        // program are gone: init is the last to see its children die, and the guard sees init die.
        let _ = shutdown(&self.control, Shutdown::Write);
        let orderly = self.all_gone();
        if !orderly {
            for pidfd in self.pidfds() {
                let _ = pidfd_send_signal(pidfd, Signal::KILL);
            }
            self.all_gone();
        }
        // Only a process that the kernel cannot kill (a dead disk) is still there: not waited for.
        if readable(self.guard_pidfd.as_fd(), 0).unwrap_or(false) {
            let _ = self.guard.wait();
        }
        if orderly {
            Ok(())
        } else {
            Err(LabError::Silent {
                doing: "going down",
                seconds: PATIENCE_S,
            })
        }
    }

    fn pidfds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.guard_pidfd), self.init_pidfd.as_ref()]
            .into_iter()
            .flatten()
            .map(AsFd::as_fd)
    }

    fn all_gone(&self) -> bool {
        let deadline = now_ns() + PATIENCE_S * NS_PER_S;
        self.pidfds()
            .all(|fd| readable(fd, deadline).unwrap_or(false))
    }

    fn unknown(&self, name: &str) -> LabError {
        LabError::Unknown {
            name: name.to_owned(),
            known: self.exits.keys().cloned().collect(),
        }
    }

    /// The next message that is not an exit; exits on the way are kept.
    fn answer(&mut self, doing: &'static str) -> Result<(FromLab, Vec<OwnedFd>), LabError> {
        let deadline = now_ns() + PATIENCE_S * NS_PER_S;
        while readable(self.control.as_fd(), deadline).map_err(control_error(doing))? {
            if let Some(answer) = self.hear(doing)? {
                return Ok(answer);
            }
        }
        let _ = self.guard.kill();
        Err(LabError::Silent {
            doing,
            seconds: PATIENCE_S,
        })
    }

    /// Reads one message; an exit is kept and gives `None`.
    fn hear(&mut self, doing: &'static str) -> Result<Option<(FromLab, Vec<OwnedFd>)>, LabError> {
        match receive(&self.control).map_err(control_error(doing))? {
            None => Err(LabError::Gone { doing }),
            Some((FromLab::Exited { name, exit }, _)) => {
                self.exits.insert(name, Some(exit));
                Ok(None)
            }
            Some(answer) => Ok(Some(answer)),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Nobody is left to hear of an error; `down` tells it.
        let _ = self.end();
    }
}

/// Waits until a descriptor is readable or at its end; false: the deadline passed.
fn readable(fd: BorrowedFd<'_>, deadline_ns: u64) -> io::Result<bool> {
    loop {
        let left = deadline_ns.saturating_sub(now_ns());
        let timeout = Timespec {
            // Seconds of a u64 of nanoseconds, and less than 10^9, fit in i64.
            tv_sec: (left / NS_PER_S) as i64,
            tv_nsec: (left % NS_PER_S) as _,
        };
        match poll(
            &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
            Some(&timeout),
        ) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(n) => return Ok(n > 0),
            Err(e) => return Err(e.into()),
        }
    }
}

fn exactly<const N: usize>(
    fds: Vec<OwnedFd>,
    doing: &'static str,
) -> Result<[OwnedFd; N], LabError> {
    fds.try_into()
        .map_err(|fds: Vec<OwnedFd>| LabError::Control {
            doing,
            source: io::Error::other(format!("expected {N} descriptors, got {}", fds.len())),
        })
}

fn control_error(doing: &'static str) -> impl Fn(io::Error) -> LabError {
    move |source| match source.kind() {
        io::ErrorKind::BrokenPipe => LabError::Gone { doing },
        _ => LabError::Control { doing, source },
    }
}

fn unexpected(doing: &'static str, got: &FromLab) -> LabError {
    LabError::Control {
        doing,
        source: io::Error::other(format!("unexpected answer {got:?}")),
    }
}

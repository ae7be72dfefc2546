//! Spawns one program with its descriptors, CPUs and limits, or says in words why not.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getpid, getrlimit, pidfd_open};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use yieldpoint_lab::wire::Order;
use yieldpoint_lab::{CpuSet, Side};

use super::os::{self, Surroundings};

/// A child that runs its program.
pub struct Spawned {
    /// as this process sees it
    pub pid: Pid,
    /// as the runner sees it
    pub outer_pid: u32,
    /// readable at its end
    pub pidfd: OwnedFd,
}

/// Spawns, knowing what this machine has to give.
pub struct Spawner {
    available: Option<CpuSet>,
    // The network namespace of the target's side, where it is not this process's own.
    target: Option<Arc<OwnedFd>>,
}

impl Spawner {
    pub fn new(target: Option<OwnedFd>) -> Self {
        Self {
            available: available_cpus().ok(),
            target: target.map(Arc::new),
        }
    }

    /// Spawns; returns after exec. The error is in words.
    pub fn spawn(&self, order: &Order, fds: Vec<OwnedFd>) -> Result<Spawned, String> {
        let [stdin, stdout, stderr]: [OwnedFd; 3] = fds
            .try_into()
            .map_err(|fds: Vec<_>| format!("expected 3 descriptors, got {}", fds.len()))?;
        let [program, args @ ..] = order.argv.as_slice() else {
            return Err("no program: expected at least one word".to_owned());
        };
        if let (Some(cpus), Some(available)) = (&order.cpus, &self.available) {
            check_cpus(cpus, available)?;
        }
        let nofile = limit(getrlimit(Resource::Nofile), order.nofile)?;
        let memory = memory(getrlimit(Resource::Data), order.memory_mib)?;
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(order.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        if let Some(cwd) = &order.cwd {
            // Tried here, since an error of exec does not tell a folder from a program.
            fs::read_dir(cwd).map_err(|e| format!("working directory {cwd:?}: {e}"))?;
            command.current_dir(cwd);
        }
        let surroundings = Surroundings {
            cpus: order.cpus.clone(),
            nofile,
            memory,
            parent: Some(getpid()),
            network: match order.side {
                Side::Client => None,
                Side::Target => self.target.clone(),
            },
        };
        os::prepare(&mut command, surroundings);
        let child = command.spawn().map_err(|e| cannot_start(order, &e))?;
        // The standard library's handle is dropped without a wait: init reaps.
        let pid = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or("a pid beyond the range")?;
        // It may have ended already, but it is not reaped before the next round of the loop, so
        // both of these still find it.
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| format!("pidfd: {e}"))?;
        let outer_pid = outer_pid(&pidfd).map_err(|e| format!("its pid: {e}"))?;
        Ok(Spawned {
            pid,
            outer_pid,
            pidfd,
        })
    }
}

fn cannot_start(order: &Order, error: &io::Error) -> String {
    let program = &order.argv[0]; // `spawn` has seen that it is there.
    let path = order.env.iter().find(|(k, _)| k == "PATH");
    let expected = if program.contains('/') {
        "expected the path of an executable file whose interpreter exists".to_owned()
    } else {
        let path = path.map_or("", |(_, v)| v.as_str());
        format!("expected a program in PATH=\"{path}\", or a path")
    };
    format!("\"{program}\": {error}; {expected}")
}

/// The pid of a pidfd as the mounted /proc counts, which is as the runner counts: /proc is the
/// one the runner has, whatever PID namespace this process is in.
pub fn outer_pid(pidfd: &OwnedFd) -> io::Result<u32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    pid_in(&info).ok_or_else(|| io::Error::other("no \"Pid:\" in /proc/self/fdinfo"))
}

fn pid_in(fdinfo: &str) -> Option<u32> {
    let line = fdinfo.lines().find_map(|l| l.strip_prefix("Pid:"))?;
    line.trim().parse().ok().filter(|pid| *pid > 0)
}

/// All CPUs this process could be given, not only those it runs on now: the kernel cuts a wish
/// down to what the machine and its cgroup have, and says nothing.
fn available_cpus() -> io::Result<CpuSet> {
    let now = sched_getaffinity(None)?;
    let mut wish = rustix::thread::CpuSet::new();
    (0..=CpuSet::MAX).for_each(|n| wish.set(n));
    sched_setaffinity(None, &wish)?;
    let available = CpuSet::of_this_process();
    sched_setaffinity(None, &now)?;
    available
}

fn check_cpus(wanted: &CpuSet, available: &CpuSet) -> Result<(), String> {
    match CpuSet::new(wanted.missing_from(available)) {
        // None is missing: a set of none is not a set.
        Err(_) => Ok(()),
        Ok(missing) => Err(format!(
            "CPUs \"{wanted}\": \"{missing}\" not available; expected some of \"{available}\""
        )),
    }
}

/// The limits to set: the hard one as it is, the soft one as asked, or up to the hard one.
fn limit(now: Rlimit, wanted: Option<u64>) -> Result<Rlimit, String> {
    match (wanted, now.maximum) {
        (Some(n), Some(hard)) if n > hard => Err(format!(
            "nofile {n} is above the hard limit: expected at most {hard}; raise it (ulimit -Hn, LimitNOFILE=) before yieldpoint starts, or ask for less"
        )),
        (wanted, hard) => Ok(Rlimit {
            current: wanted.or(hard),
            maximum: hard,
        }),
    }
}

/// The limit of memory to set, if one is asked for; nothing may raise it again.
fn memory(now: Rlimit, wanted_mib: Option<u64>) -> Result<Option<Rlimit>, String> {
    let Some(mib) = wanted_mib else {
        return Ok(None);
    };
    let wanted = mib.saturating_mul(1 << 20);
    match now.maximum {
        Some(hard) if wanted > hard => Err(format!(
            "memory {mib} MiB is above the hard limit: expected at most {} MiB; raise it (ulimit -Hd) before yieldpoint starts, or ask for less",
            hard >> 20
        )),
        _ => Ok(Some(Rlimit {
            current: Some(wanted),
            maximum: Some(wanted),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_stay_below_the_hard_one() {
        let now = |hard| Rlimit {
            current: Some(1024),
            maximum: hard,
        };
        // each row: hard limit, asked, soft limit
        let table = [
            (Some(4096), None, Some(Some(4096))), // default: all there is
            (Some(4096), Some(64), Some(Some(64))),
            (Some(4096), Some(4096), Some(Some(4096))),
            (Some(4096), Some(4097), None),
            (None, Some(1 << 20), Some(Some(1 << 20))), // no hard limit
            (None, None, Some(None)),
        ];
        for (hard, asked, want) in table {
            let got = limit(now(hard), asked);
            assert_eq!(got.as_ref().ok().map(|l| l.current), want, "{asked:?}");
            assert!(got.is_ok_and(|l| l.maximum == hard) || want.is_none());
        }
    }

    #[test]
    fn memory_is_limited_only_where_asked() {
        let now = |hard| Rlimit {
            current: hard,
            maximum: hard,
        };
        // each row: hard limit, MiB asked, bytes set
        let table = [
            (None, None, Ok(None)),
            (None, Some(16), Ok(Some(16 << 20))),
            (Some(32 << 20), Some(32), Ok(Some(32 << 20))), // all there is
            (Some(32 << 20), Some(33), Err("at most 32 MiB")),
        ];
        for (hard, asked, want) in table {
            match (memory(now(hard), asked), want) {
                (Ok(got), Ok(want)) => assert_eq!(got.and_then(|l| l.current), want),
                (Err(got), Err(part)) => assert!(got.contains(part), "{got}"),
                (got, want) => panic!("{asked:?}: expected {want:?}, got {got:?}"),
            }
        }
    }

    #[test]
    fn cpus_that_are_not_there_are_named() {
        let set = |t: &str| t.parse::<CpuSet>().unwrap();
        assert_eq!(check_cpus(&set("0-1"), &set("0-3")), Ok(()));
        assert_eq!(
            check_cpus(&set("1-5"), &set("0-3")).unwrap_err(),
            "CPUs \"1-5\": \"4-5\" not available; expected some of \"0-3\""
        );
    }

    #[test]
    fn the_pid_of_a_pidfd() {
        let table = [
            (
                "pos:\t0\nflags:\t02\nPid:\t4711\nNSpid:\t4711\t1\n",
                Some(4711),
            ),
            ("Pid:\t-1\n", None), // reaped
            ("Pid:\t0\n", None),  // not in this /proc
            ("pos:\t0\n", None),  // not a pidfd
        ];
        for (info, want) in table {
            assert_eq!(pid_in(info), want, "{info:?}");
        }
    }
}

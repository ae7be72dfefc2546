//! Which step of bringing a lab up was refused, why, and what allows it.
//!
//! Some systems let unshare pass and deny a later write, so every step has its own name.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The steps of bringing a lab up, in order, and the two a probe adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// start the lab program
    Start,
    /// unshare(2) of user, network, PID and IPC
    Unshare,
    /// write setgroups, uid_map and gid_map
    IdMaps,
    /// fork PID 1 (or the host mode's inner process) and tie it to its parent
    Fork,
    /// set the interface `lo` up
    Loopback,
    /// open a NETLINK_SOCK_DIAG socket
    SockDiag,
    /// link the namespaces of client and target by a veth pair
    Veth,
    /// limit the rate of that link
    Rate,
    /// delay the packets of that link
    Delay,
    /// write a sysctl
    Sysctl,
    /// spawn a program inside
    Spawn,
    /// exchange bytes over 127.0.0.1 inside
    Traffic,
}

impl Step {
    fn in_words(self) -> &'static str {
        match self {
            Self::Start => "start the lab program",
            Self::Unshare => "unshare user, network, PID and IPC namespaces",
            Self::IdMaps => "write the id maps of the user namespace",
            Self::Fork => "fork the first process of the lab",
            Self::Loopback => "bring \"lo\" up",
            Self::SockDiag => "open a sock_diag socket",
            Self::Veth => "link client and target by a veth pair",
            Self::Rate => "limit the rate of the link (lab.rate)",
            Self::Delay => "delay the packets of the link (lab.delay)",
            Self::Sysctl => "write a sysctl",
            Self::Spawn => "spawn a program",
            Self::Traffic => "exchange bytes over 127.0.0.1",
        }
    }
}

/// A step that did not work, with its reason and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// which step
    pub step: Step,
    /// the error number of the system call, where one failed
    pub errno: Option<i32>,
    /// what happened, in words
    pub what: String,
    /// what to do, in words
    pub fix: String,
}

impl Refusal {
    /// A step that failed with an error number on this machine.
    pub(crate) fn of_errno(step: Step, errno: i32) -> Self {
        Self {
            step,
            errno: Some(errno),
            what: std::io::Error::from_raw_os_error(errno).to_string(),
            fix: remedy(step, Some(errno), &Facts::read()),
        }
    }
    /// A step that failed for a reason in words.
    pub(crate) fn of_words(step: Step, what: impl Into<String>) -> Self {
        Self {
            step,
            errno: None,
            what: what.into(),
            fix: remedy(step, None, &Facts::read()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step, what, fix, ..
        } = self;
        write!(f, "could not {}: {what}; {fix}", step.in_words())
    }
}

/// What of the host decides whether a private lab is allowed.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// kernel.apparmor_restrict_unprivileged_userns is not 0
    apparmor_restricts: bool,
    /// kernel.unprivileged_userns_clone (Debian, Arch) is 0
    clone_forbidden: bool,
    /// one of user.max_{user,net,pid,ipc}_namespaces is 0
    namespaces_forbidden: Option<&'static str>,
    /// inside a container
    container: bool,
}

impl Facts {
    fn read() -> Self {
        let sysctl = |name: &str| {
            let path = Path::new("/proc/sys").join(name.replace('.', "/"));
            fs::read_to_string(path).ok().map(|t| t.trim().to_owned())
        };
        let zero = |name: &&str| sysctl(name).as_deref() == Some("0");
        Self {
            apparmor_restricts: sysctl("kernel.apparmor_restrict_unprivileged_userns")
                .is_some_and(|v| v != "0"),
            clone_forbidden: zero(&"kernel.unprivileged_userns_clone"),
            namespaces_forbidden: [
                "user.max_user_namespaces",
                "user.max_net_namespaces",
                "user.max_pid_namespaces",
                "user.max_ipc_namespaces",
            ]
            .into_iter()
            .find(zero),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|p| Path::new(p).exists()),
        }
    }
}

/// What allows a step. Ends in the way that always remains.
fn remedy(step: Step, errno: Option<i32>, facts: &Facts) -> String {
    let denied = matches!(errno, Some(libc::EPERM | libc::EACCES));
    let makes_namespaces = matches!(step, Step::Unshare | Step::IdMaps);
    let other_way = match step {
        Step::Veth | Step::Rate | Step::Delay => "set lab.network = \"loopback\"",
        _ => "set lab.mode = \"host\"",
    };
    let first = match (step, errno) {
        (Step::Start, _) => {
            return "expected \"yieldpoint-lab\" beside \"yieldpoint\": build it with scripts/build"
                .to_owned();
        }
        // A kernel that knows no qdisc of that name says "no such file".
        (Step::Delay, Some(libc::ENOENT)) => {
            "this kernel has no netem (CONFIG_NET_SCH_NETEM, module sch_netem): leave lab.delay out; lab.rate does without it".to_owned()
        }
        (Step::Rate, Some(libc::ENOENT)) => {
            "this kernel has no tbf (CONFIG_NET_SCH_TBF, module sch_tbf): leave lab.rate out"
                .to_owned()
        }
        (Step::Veth, Some(libc::EOPNOTSUPP)) => {
            "a kernel with CONFIG_VETH (module veth) is needed".to_owned()
        }
        (Step::Unshare, Some(libc::ENOSPC)) => {
            let name = facts
                .namespaces_forbidden
                .unwrap_or("user.max_user_namespaces");
            format!("allow more namespaces: sudo sysctl -w {name}=15000")
        }
        (Step::Unshare, Some(libc::EINVAL)) => {
            "a kernel with CONFIG_USER_NS, CONFIG_NET_NS, CONFIG_PID_NS and CONFIG_IPC_NS is needed"
                .to_owned()
        }
        _ if makes_namespaces && denied && facts.clone_forbidden => {
            "allow it: sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned()
        }
        // AppArmor lets unshare pass and takes the new namespace's capabilities away,
        // so that any later step may be the one that is denied.
        _ if denied && facts.apparmor_restricts => {
            "allow it: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for yieldpoint-lab with \"userns,\"".to_owned()
        }
        (Step::Sysctl, Some(libc::EROFS)) if facts.container => {
            "start the container with a writable /proc/sys: docker run --security-opt systempaths=unconfined"
                .to_owned()
        }
        (Step::Sysctl, Some(libc::EROFS)) => {
            "/proc/sys is read-only: sudo mount -o remount,rw /proc/sys".to_owned()
        }
        _ if denied && facts.container => {
            "start the container with docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined".to_owned()
        }
        _ if denied => {
            "a security module or seccomp filter denies it: allow user namespaces for this user"
                .to_owned()
        }
        _ => return other_way.to_owned(),
    };
    format!("{first}; or {other_way}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_its_remedy() {
        let plain = Facts::default();
        let ubuntu = Facts {
            apparmor_restricts: true,
            ..Facts::default()
        };
        let old_debian = Facts {
            clone_forbidden: true,
            ..Facts::default()
        };
        let no_net = Facts {
            namespaces_forbidden: Some("user.max_net_namespaces"),
            ..Facts::default()
        };
        let docker = Facts {
            container: true,
            ..Facts::default()
        };
        // each row: step, errno, host, a word the remedy must hold
        let table: [(Step, i32, &Facts, &str); 16] = [
            (
                Step::Unshare,
                libc::EPERM,
                &old_debian,
                "unprivileged_userns_clone=1",
            ),
            // Ubuntu 24.04: unshare passes, the id maps are denied
            (
                Step::IdMaps,
                libc::EACCES,
                &ubuntu,
                "apparmor_restrict_unprivileged_userns=0",
            ),
            // … or even these pass and the first use of a capability is denied
            (
                Step::Loopback,
                libc::EPERM,
                &ubuntu,
                "apparmor_restrict_unprivileged_userns=0",
            ),
            (
                Step::Unshare,
                libc::ENOSPC,
                &no_net,
                "user.max_net_namespaces=",
            ),
            (
                Step::Unshare,
                libc::ENOSPC,
                &plain,
                "user.max_user_namespaces=",
            ), // nested too deep
            (Step::Unshare, libc::EINVAL, &plain, "CONFIG_USER_NS"),
            (Step::Unshare, libc::EPERM, &docker, "seccomp=unconfined"),
            (Step::Sysctl, libc::EROFS, &docker, "systempaths=unconfined"),
            (Step::Sysctl, libc::EROFS, &plain, "remount,rw /proc/sys"),
            (Step::Unshare, libc::EPERM, &plain, "seccomp"),
            (Step::SockDiag, libc::EPROTONOSUPPORT, &plain, "host"),
            (Step::Start, libc::ENOENT, &plain, "scripts/build"),
            (Step::Delay, libc::ENOENT, &plain, "leave lab.delay out"),
            (Step::Rate, libc::ENOENT, &plain, "leave lab.rate out"),
            (Step::Veth, libc::EOPNOTSUPP, &plain, "CONFIG_VETH"),
            (Step::Rate, libc::EINVAL, &plain, "lab.network"), // nothing to say but the way out
        ];
        for (step, errno, facts, word) in table {
            let got = remedy(step, Some(errno), facts);
            assert!(got.contains(word), "{step:?} {errno}: {got}");
            let other_way = match step {
                Step::Start => None,
                Step::Veth | Step::Rate | Step::Delay => Some("lab.network = \"loopback\""),
                _ => Some("lab.mode = \"host\""),
            };
            for way in ["lab.network = \"loopback\"", "lab.mode = \"host\""] {
                assert_eq!(got.contains(way), other_way == Some(way), "{got}");
            }
        }
    }
}

//! Sysctls: names, what may be written, writing and reading back.
//!
//! Everything here acts on the namespaces of the calling process; the lab program calls it inside.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Mode;

/// Those that decide how ports, TIME_WAIT and the accept queue behave: recorded for every trial,
/// asked for or not, since a namespace starts from kernel defaults and some follow the host.
pub const ALWAYS_RECORDED: &[&str] = &[
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_tw_reuse_delay",
];

/// Why a sysctl cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum SysctlError {
    /// Not the name of a sysctl at all.
    #[error("sysctl \"{name}\": expected a dotted name such as \"net.ipv4.tcp_tw_reuse\"")]
    BadName {
        /// as it was written
        name: String,
    },
    /// No such file in the lab.
    #[error("sysctl \"{name}\" does not exist {}{}", in_mode(*.mode), did_you_mean(.nearest))]
    Unknown {
        /// as it was written
        name: String,
        /// where it was looked for
        mode: Mode,
        /// the nearest one there is
        nearest: Option<String>,
    },
    /// It belongs to the machine, not to a namespace.
    #[error(
        "sysctl \"{name}\" belongs to the whole machine, not to the lab: expected one of net.* or of System V IPC; set it by hand (sudo sysctl -w {name}=…) and leave it out of the matrix"
    )]
    MachineWide {
        /// as it was written
        name: String,
    },
    /// The kernel refused the write.
    #[error("sysctl \"{name}\" = \"{value}\" was refused: {why}{}", refusal_fix(*.errno))]
    Refused {
        /// as it was written
        name: String,
        /// the value that was asked for
        value: String,
        /// error number
        errno: i32,
        /// the same in words
        why: String,
    },
    /// The kernel took the write and made another value of it.
    #[error(
        "sysctl \"{name}\": expected \"{value}\", got \"{got}\": the kernel changed the value when it was written; ask for \"{got}\""
    )]
    Changed {
        /// as it was written
        name: String,
        /// the value that was asked for
        value: String,
        /// the value that was read back
        got: String,
    },
    /// Host mode, and the host has another value.
    #[error(
        "sysctl \"{name}\": expected \"{value}\", the host has \"{got}\", and a host lab changes nothing of it: use lab.mode = \"private\", or set it by hand (sudo sysctl -w {name}=\"{value}\")"
    )]
    HostDiffers {
        /// as it was written
        name: String,
        /// the value that was asked for
        value: String,
        /// the host's value
        got: String,
    },
}

impl SysctlError {
    /// The sysctl it is about, as it was written.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::BadName { name }
            | Self::Unknown { name, .. }
            | Self::MachineWide { name }
            | Self::Refused { name, .. }
            | Self::Changed { name, .. }
            | Self::HostDiffers { name, .. } => name,
        }
    }
}

fn in_mode(mode: Mode) -> &'static str {
    match mode {
        // Some tables are the host's alone (tcp_mem, netdev_max_backlog).
        Mode::Private => "in a network namespace of this kernel",
        Mode::Host => "on this host",
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(n) => format!(": did you mean \"{n}\"?"),
        None => ": see the names under /proc/sys/net".to_owned(),
    }
}

fn refusal_fix(errno: i32) -> &'static str {
    match errno {
        libc::EINVAL | libc::ERANGE | libc::ENOENT => {
            ": expected a value in the kernel's range (Documentation/networking/ip-sysctl.rst)"
        }
        libc::EACCES | libc::EPERM => ": it is read-only inside a namespace; leave it out",
        libc::EROFS => ": /proc/sys is read-only here; `yieldpoint doctor` says how to change that",
        _ => "",
    }
}

/// Runs of blanks and tabs are one blank: "32768\t60999\n" is "32768 60999".
#[must_use]
pub fn normalise(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The file of a sysctl. Dots separate; inside a part a slash stands for a dot
/// ("net.ipv4.conf.eth0/1.forwarding"), as sysctl(8) has it. `None`: not a name.
fn file_of(name: &str) -> Option<PathBuf> {
    let parts: Vec<String> = name.split('.').map(|p| p.replace('/', ".")).collect();
    // Without these two a name could climb out of /proc/sys.
    let climbs = |p: &String| p.is_empty() || p.bytes().all(|b| b == b'.');
    let plain = |p: &String| {
        p.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    };
    if parts.len() < 2 || parts.iter().any(climbs) || !parts.iter().all(plain) {
        return None;
    }
    Some(Path::new("/proc/sys").join(parts.join("/")))
}

/// Whether a sysctl belongs to a namespace of the lab. A list of what may be written, not of what
/// may not: root in the lab of a caller who is root could write the machine's others as well.
fn is_namespaced(name: &str) -> bool {
    ["net.", "kernel.msg", "kernel.shm", "fs.mqueue."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || name == "kernel.sem"
}

/// Asks for sysctls in order and returns every error there is. In a private lab each is written
/// and read back; in a host lab it is only compared.
#[must_use]
pub fn ask(mode: Mode, wanted: &[(String, String)]) -> Vec<SysctlError> {
    wanted
        .iter()
        .filter_map(|(name, value)| ask_one(mode, name, value).err())
        .collect()
}

fn ask_one(mode: Mode, name: &str, value: &str) -> Result<(), SysctlError> {
    let name = name.to_owned();
    let value = normalise(value);
    let Some(file) = file_of(&name) else {
        return Err(SysctlError::BadName { name });
    };
    if mode == Mode::Private && !is_namespaced(&name) {
        return Err(SysctlError::MachineWide { name });
    }
    if !file.is_file() {
        let nearest = yieldpoint_terms::nearest(&name, all_names().iter().map(String::as_str))
            .map(str::to_owned);
        return Err(SysctlError::Unknown {
            name,
            mode,
            nearest,
        });
    }
    let refused = |e: io::Error| SysctlError::Refused {
        name: name.clone(),
        value: value.clone(),
        errno: e.raw_os_error().unwrap_or(0),
        why: e.to_string(),
    };
    if mode == Mode::Private {
        fs::write(&file, &value).map_err(refused)?;
    }
    let got = normalise(&fs::read_to_string(&file).map_err(refused)?);
    match mode {
        _ if got == value => Ok(()),
        Mode::Private => Err(SysctlError::Changed { name, value, got }),
        Mode::Host => Err(SysctlError::HostDiffers { name, value, got }),
    }
}

/// What holds now: [`ALWAYS_RECORDED`] and those asked for; what cannot be read is absent.
#[must_use]
pub fn effective(asked: &[(String, String)]) -> BTreeMap<String, String> {
    let asked = asked.iter().map(|(name, _)| name.as_str());
    ALWAYS_RECORDED
        .iter()
        .copied()
        .chain(asked)
        .filter_map(|name| {
            let text = fs::read_to_string(file_of(name)?).ok()?;
            Some((name.to_owned(), normalise(&text)))
        })
        .collect()
}

/// Adds what holds in the target's own namespace where it is another value, as "target:<name>".
pub fn add_target(client: &mut BTreeMap<String, String>, target: &BTreeMap<String, String>) {
    for (name, value) in target {
        if client.get(name) != Some(value) {
            client.insert(format!("target:{name}"), value.clone());
        }
    }
}

/// All names below net, for a hint: bounded in depth, about a thousand.
fn all_names() -> Vec<String> {
    fn walk(folder: &Path, prefix: &str, depth: u8, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let part = entry.file_name().to_string_lossy().replace('.', "/");
            let name = format!("{prefix}.{part}");
            match entry.file_type() {
                Ok(t) if t.is_dir() && depth > 0 => walk(&entry.path(), &name, depth - 1, names),
                Ok(t) if t.is_file() => names.push(name),
                _ => {}
            }
        }
    }
    let mut names = Vec::new();
    walk(Path::new("/proc/sys/net"), "net", 5, &mut names);
    // Directory order is arbitrary; of two equally near names the first in the alphabet is taken.
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_below_proc_sys() {
        let table = [
            ("net.ipv4.tcp_tw_reuse", Some("net/ipv4/tcp_tw_reuse")),
            // a slash inside a part is a dot of an interface's name
            ("net.ipv4.conf.eth0/1.mtu", Some("net/ipv4/conf/eth0.1/mtu")),
            ("net", None), // a folder, not a value
            ("", None),
            ("net..core", None),
            ("net.", None),
            ("/etc/passwd.x", Some(".etc.passwd/x")), // below /proc/sys, where it does not exist
            ("net.//.//.//.etc", None),               // would be "net/../../../etc"
            ("net./.x", None),                        // would be "net/./x"
            ("net.ipv4.tcp tw", None),
            ("net.ipv4.tcp_tw\u{0}", None),
        ];
        for (name, want) in table {
            let want = want.map(|w| Path::new("/proc/sys").join(w));
            assert_eq!(file_of(name), want, "{name:?}");
        }
    }

    #[test]
    fn blanks_do_not_count() {
        for text in ["32768 60999", "32768\t60999\n", "  32768   60999 "] {
            assert_eq!(normalise(text), "32768 60999");
        }
    }

    #[test]
    fn what_belongs_to_the_machine_is_never_written() {
        let table = [
            ("net.core.somaxconn", true),
            ("kernel.shmmax", true),
            ("kernel.sem", true),
            ("kernel.sem_next_id", false), // for checkpointing only
            ("vm.swappiness", false),
            ("kernel.pid_max", false),
            ("network.x", false),
        ];
        for (name, want) in table {
            assert_eq!(is_namespaced(name), want, "{name}");
        }
        // Were it written, this would fail with another error, since the value is no number.
        let vm = [("vm.swappiness".to_owned(), "many".to_owned())];
        let errors = ask(Mode::Private, &vm);
        assert!(
            matches!(errors.as_slice(), [SysctlError::MachineWide { name }] if name == "vm.swappiness"),
            "{errors:?}"
        );
    }

    #[test]
    fn the_host_is_compared_and_not_changed() {
        let range = "net.ipv4.ip_local_port_range".to_owned();
        let now = effective(&[])[&range].clone();
        let spaced = now.replace(' ', "\t  ");
        assert_eq!(ask(Mode::Host, &[(range.clone(), spaced)]), []);
        let other = (range.clone(), "1025 1026".to_owned());
        let errors = ask(Mode::Host, std::slice::from_ref(&other));
        assert!(
            matches!(errors.as_slice(), [SysctlError::HostDiffers { got, .. }] if *got == now),
            "{errors:?}"
        );
        assert_eq!(effective(&[])[&range], now);
    }

    #[test]
    fn only_what_differs_at_the_target_is_added() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let own = |(n, v): &(&str, &str)| ((*n).to_owned(), (*v).to_owned());
            pairs.iter().map(own).collect()
        };
        let mut client = map(&[("net.a", "1"), ("net.b", "1")]);
        add_target(&mut client, &map(&[("net.a", "1"), ("net.b", "2")]));
        let want = [("net.a", "1"), ("net.b", "1"), ("target:net.b", "2")];
        assert_eq!(client, map(&want));
    }

    #[test]
    fn texts_say_what_to_do() {
        let unknown = ask(Mode::Host, &[("net.ipv4.tcp_tw_reus".into(), "1".into())]);
        assert_eq!(
            unknown[0].to_string(),
            "sysctl \"net.ipv4.tcp_tw_reus\" does not exist on this host: did you mean \"net.ipv4.tcp_tw_reuse\"?"
        );
    }
}

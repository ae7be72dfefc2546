//! What the library and its program say to each other: one JSON message a packet, with descriptors.
//!
//! A sequenced-packet socket keeps messages apart and ends in an end-of-file when the other end
//! dies. Nothing but the two ends of one build uses it, so it has no version.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{CpuSet, Exit, Network, Side, Step, SysctlError};

/// Greatest message in bytes, a spawn with its whole environment; the kernel's default send
/// buffer of 208 KiB holds it.
pub const MAX_MESSAGE: usize = 192 * 1024;
/// Greatest number of descriptors beside a message: stdin, stdout, stderr.
const MAX_FDS: usize = 3;

/// From the runner to the lab program. End-of-file means: end everything.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToLab {
    /// The first message: write these. Answered by `Up`, `Refused` or `Sysctls`.
    Setup {
        /// names and values
        sysctls: Vec<(String, String)>,
        /// what lies between client and target
        network: Network,
    },
    /// Spawn this; beside it stdin, stdout and stderr. Answered by `Spawned` or `NotSpawned`.
    Spawn(Order),
    /// Kill this process and its process group. No answer.
    Kill {
        /// its name
        name: String,
    },
}

/// What to spawn.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// name in this lab
    pub name: String,
    /// program and arguments
    pub argv: Vec<String>,
    /// the whole environment
    pub env: Vec<(String, String)>,
    /// CPUs; `None`: those of the runner
    pub cpus: Option<CpuSet>,
    /// soft limit of descriptors; `None`: the hard limit
    pub nofile: Option<u64>,
    /// limit of private writable memory, MiB; `None`: as it is
    pub memory_mib: Option<u64>,
    /// working directory; `None`: that of the runner
    pub cwd: Option<PathBuf>,
    /// the network namespace it is in
    pub side: Side,
}

/// From the lab program to the runner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromLab {
    /// The lab stands; beside it the sock_diag socket, a pidfd of the init, and with a veth pair
    /// the sock_diag socket of the target's side.
    Up {
        /// init's pid as the runner sees it
        init_pid: u32,
        /// sysctls that hold
        effective: BTreeMap<String, String>,
    },
    /// A step failed; the program ends.
    Refused {
        /// which
        step: Step,
        /// error number
        errno: i32,
    },
    /// Sysctls cannot be had; the program ends.
    Sysctls {
        /// each of them
        errors: Vec<SysctlError>,
    },
    /// It runs; beside it its pidfd.
    Spawned {
        /// pid as the runner sees it
        pid: u32,
    },
    /// It does not run.
    NotSpawned {
        /// why, in words
        reason: String,
    },
    /// A process that was spawned by name has ended and is reaped.
    Exited {
        /// its name
        name: String,
        /// how
        exit: Exit,
    },
}

/// Sends one message with descriptors.
pub fn send<T: Serialize>(to: impl AsFd, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_MESSAGE {
        return Err(io::Error::other(format!(
            "a message of {} bytes: expected at most {MAX_MESSAGE}; shorten the arguments or the environment",
            bytes.len()
        )));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("more descriptors than a message carries"));
    }
    rustix::io::retry_on_intr(|| {
        sendmsg(
            to.as_fd(),
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
    })?;
    Ok(())
}

/// Receives one message with its descriptors (all close-on-exec); `None`: end-of-file.
pub fn receive<T: DeserializeOwned>(from: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    // From the allocator's zero pages: memory is only touched as far as a message reaches.
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut once = || {
        rustix::io::retry_on_intr(|| {
            recvmsg(
                from.as_fd(),
                &mut [IoSliceMut::new(&mut bytes)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )
        })
    };
    let got = match once() {
        // The other end died with a message of ours unread. The kernel says so once, before it
        // hands over what the other end had said.
        Err(Errno::CONNRESET) => once(),
        other => other,
    }?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    if got.flags.contains(ReturnFlags::TRUNC) || got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other(
            "a message or its descriptors were cut off: is the limit of open descriptors reached?",
        ));
    }
    let text = &bytes[..got.bytes];
    let message = serde_json::from_slice(text).map_err(|e| {
        let start: String = String::from_utf8_lossy(text).chars().take(120).collect();
        io::Error::other(format!(
            "expected a message of this build, got \"{start}\": {e}; build all programs together with scripts/build"
        ))
    })?;
    Ok(Some((message, fds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap()
    }

    #[test]
    fn messages_and_descriptors_there_and_back() {
        let (a, b) = pair();
        let (read, write) = rustix::pipe::pipe().unwrap();
        let kill = ToLab::Kill { name: "x".into() };
        send(&a, &kill, &[read.as_fd(), write.as_fd()]).unwrap();
        send(&a, &kill, &[]).unwrap();
        drop((read, write));
        let (_, fds) = receive::<ToLab>(&b).unwrap().unwrap();
        let [read, write]: [OwnedFd; 2] = fds.try_into().unwrap();
        rustix::io::write(&write, b"hi").unwrap();
        let mut text = [0; 2];
        rustix::io::read(&read, &mut text).unwrap();
        assert_eq!(&text, b"hi");
        let (second, fds) = receive::<ToLab>(&b).unwrap().unwrap();
        assert!(matches!(second, ToLab::Kill { .. }) && fds.is_empty());
        drop(a);
        assert!(receive::<ToLab>(&b).unwrap().is_none());
    }

    #[test]
    fn last_words_are_heard() {
        let (a, b) = pair();
        let kill = ToLab::Kill { name: "x".into() };
        send(&b, &kill, &[]).unwrap();
        send(&a, &kill, &[]).unwrap();
        drop(a); // with a message unread
        assert!(receive::<ToLab>(&b).unwrap().is_some());
        assert!(receive::<ToLab>(&b).unwrap().is_none());
    }

    #[test]
    fn the_longest_message_passes_and_a_longer_one_says_so() {
        let (a, b) = pair();
        let name = |len: usize| ToLab::Kill {
            name: "x".repeat(len),
        };
        send(&a, &name(MAX_MESSAGE - 100), &[]).unwrap();
        let Some((ToLab::Kill { name: got }, _)) = receive(&b).unwrap() else {
            panic!("expected the message");
        };
        assert_eq!(got.len(), MAX_MESSAGE - 100);
        let error = send(&a, &name(MAX_MESSAGE), &[]).unwrap_err().to_string();
        assert!(error.contains("shorten the arguments"), "{error}");
    }

    #[test]
    fn a_message_of_another_build_says_so() {
        let (a, b) = pair();
        send(&a, &"old", &[]).unwrap();
        let error = receive::<ToLab>(&b).unwrap_err().to_string();
        assert!(error.contains("build all programs together"), "{error}");
    }
}

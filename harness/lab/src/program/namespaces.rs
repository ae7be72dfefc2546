//! Making the namespaces, and bringing `lo` up in the new one.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};
use rustix::process::{getgid, getuid};
use std::os::fd::OwnedFd;
use yieldpoint_lab::Step;

/// Leaves the host's user, network, PID (for children only) and IPC namespaces; the caller is
/// root in the new user namespace.
pub fn enter() -> Result<(), (Step, io::Error)> {
    // Read before: afterwards they are those of nobody until the maps are written.
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC;
    unshare(flags).map_err(|e| (Step::Unshare, e.into()))?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|e| (Step::IdMaps, e))
    };
    // Without a privilege outside, a group map is only allowed once setgroups(2) is given up.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {uid} 1"))?;
    write("gid_map", format!("0 {gid} 1"))
}

/// A socket that asks the kernel about sockets of this network namespace.
pub fn sock_diag() -> io::Result<OwnedFd> {
    netlink_socket(Some(netlink::SOCK_DIAG))
}

fn netlink_socket(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?)
}

/// Sets the interface `lo` up by one rtnetlink request (rtnetlink(7)).
pub fn loopback_up() -> io::Result<()> {
    // NETLINK_ROUTE is protocol 0, which rustix writes as none.
    let socket = netlink_socket(None)?;
    send(&socket, &set_link_up(1), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (bytes, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    match netlink_error(&answer[..bytes]) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::from_raw_os_error(libc::EPROTO)),
    }
}

/// RTM_NEWLINK for the interface of that index: set IFF_UP, leave the other flags. In a fresh
/// network namespace `lo` is always interface 1.
fn set_link_up(index: i32) -> [u8; 32] {
    // Constants of netlink that fit, by definition, in the fields they are made for.
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let up = libc::IFF_UP as u32;
    let mut m = [0; 32];
    // struct nlmsghdr: length, type, flags, sequence, port
    m[0..4].copy_from_slice(&32_u32.to_ne_bytes());
    m[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
    m[6..8].copy_from_slice(&flags.to_ne_bytes());
    m[8..12].copy_from_slice(&1_u32.to_ne_bytes());
    // struct ifinfomsg: family, padding, type (all 0), index, flags, mask of flags to change
    m[20..24].copy_from_slice(&index.to_ne_bytes());
    m[24..28].copy_from_slice(&up.to_ne_bytes());
    m[28..32].copy_from_slice(&up.to_ne_bytes());
    m
}

/// The error number of an NLMSG_ERROR answer, 0 for an acknowledgement; `None`: no such answer.
fn netlink_error(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (i32::from(kind) == libc::NLMSG_ERROR).then(|| code.saturating_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_answer_of_netlink() {
        let answer = |kind: i32, code: i32| {
            let mut m = vec![0; 20];
            m[4..6].copy_from_slice(&(kind as u16).to_ne_bytes());
            m[16..20].copy_from_slice(&code.to_ne_bytes());
            m
        };
        assert_eq!(netlink_error(&answer(libc::NLMSG_ERROR, 0)), Some(0));
        let denied = answer(libc::NLMSG_ERROR, -libc::EPERM);
        assert_eq!(netlink_error(&denied), Some(libc::EPERM));
        assert_eq!(netlink_error(&denied[..19]), None); // cut off
        assert_eq!(netlink_error(&answer(libc::NLMSG_DONE, 0)), None);
    }
}

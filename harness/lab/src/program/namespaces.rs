//! Making the namespaces, and bringing `lo` up in the new one.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getgid, getuid};
use yieldpoint_lab::Step;

use super::netlink::Route;

/// The number of `lo` in a fresh network namespace.
pub const LOOPBACK: i32 = 1;

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

/// Sets the interface `lo` up.
pub fn loopback_up() -> io::Result<()> {
    Route::open()?.set_up(LOOPBACK)
}

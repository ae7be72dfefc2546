//! What a trial is watched by: all open files, and one row of all of them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use yieldpoint_terms::clock::now_ns;

use crate::cgroup::{CgroupReader, Throttling};
use crate::diag::{ListenQueue, States, listen_queue, states};
use crate::machine::{MachineReader, MachineSample};
use crate::net::{NetReader, NetSample};
use crate::pace::{Moment, Pace, thread_cpu_ns};
use crate::tree::{Tree, TreeSample};

/// What to watch. Pids are those of the caller's pid namespace.
#[derive(Debug)]
pub struct Subject {
    /// the client's processes, one or more; what they and their descendants use is added up
    pub client_pids: Vec<u32>,
    /// the target's process, with its descendants, where it is on this machine
    pub target_pid: Option<u32>,
    /// a process in the client's network namespace; in the host's mode, any
    pub net_pid: u32,
    /// CPUs on which the client may run; empty: its busy time is missing
    pub client_cpus: Vec<usize>,
    /// CPUs on which the target may run; empty: its busy time is missing
    pub target_cpus: Vec<usize>,
    /// port on which the target listens (IPv4)
    pub port: Option<u16>,
    /// a netlink sock_diag socket opened in the client's network namespace; without it, listen queue and states are missing
    pub sock_diag: Option<OwnedFd>,
    /// the target's network namespace, where it is not the client's
    pub target_net: Option<TargetNet>,
}

/// A network namespace of the target alone, at the other end of a veth pair.
#[derive(Debug)]
pub struct TargetNet {
    /// a process in it
    pub pid: u32,
    /// a netlink sock_diag socket opened in it
    pub sock_diag: OwnedFd,
}

/// Everything that one row is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub client: TreeSample,
    pub target: TreeSample,
    pub net: NetSample,
    /// TIME_WAIT entries of the target's own namespace
    pub target_time_wait: Option<i64>,
    pub machine: MachineSample,
    pub listen: ListenQueue,
    pub states: Option<States>,
    pub throttling: Throttling,
    pub sampler_cpu_ns: Option<i64>,
}

/// The open files of a trial, and the buffer that they share.
#[derive(Debug)]
pub(crate) struct Readers {
    client: Tree,
    target: Tree,
    net: NetReader,
    machine: MachineReader,
    cgroup: CgroupReader,
    cgroup_pace: Pace,
    sock_diag: Option<OwnedFd>,
    states_pace: Pace,
    port: Option<u16>,
    target_net: Option<(NetReader, OwnedFd)>,
    buffer: Vec<u8>,
}

impl Readers {
    /// Opens everything and reads it once, so that no later read needs memory.
    pub(crate) fn open(subject: Subject) -> io::Result<Self> {
        let mut readers = Self {
            client: Tree::open(&subject.client_pids)?,
            target: Tree::open(subject.target_pid.as_slice())?,
            net: NetReader::open(subject.net_pid)?,
            machine: MachineReader::open(subject.client_cpus, subject.target_cpus)?,
            cgroup: subject
                .client_pids
                .first()
                .map_or_else(CgroupReader::default, |pid| CgroupReader::open(*pid)),
            cgroup_pace: Pace::default(),
            sock_diag: subject.sock_diag,
            states_pace: Pace::default(),
            port: subject.port,
            target_net: subject
                .target_net
                .map(|there| Ok::<_, io::Error>((NetReader::open(there.pid)?, there.sock_diag)))
                .transpose()?,
            buffer: Vec::new(),
        };
        readers.read(Moment {
            now_ns: now_ns(),
            edge: true,
        });
        Ok(readers)
    }

    /// One row. What cannot be read is `None`, and so is what is not yet due again.
    pub(crate) fn read(&mut self, moment: Moment) -> Seen {
        let buffer = &mut self.buffer;
        let machine = self.machine.read(buffer);
        let diag = self.sock_diag.as_ref().map(AsFd::as_fd);
        let there = self.target_net.as_ref();
        let diag_there = there.map(|(_, diag)| diag.as_fd());
        let net_there = there.map(|(net, _)| net.read(buffer));
        let net = self.net.read(buffer);
        Seen {
            client: self.client.read(moment, machine.forks, buffer),
            target: self.target.read(moment, machine.forks, buffer),
            net: net_there.map_or(net, |there| net.with_target(&there)),
            target_time_wait: net_there.and_then(|there| there.sockstat.time_wait),
            // The target listens in its own namespace, where it has one.
            listen: diag_there
                .or(diag)
                .zip(self.port)
                .and_then(|(diag, port)| listen_queue(diag, port).ok())
                .unwrap_or_default(),
            states: diag.and_then(|diag| {
                self.states_pace.read(moment, || {
                    let here = states(diag).ok()?;
                    diag_there.map_or(Some(here), |there| Some(here.plus(states(there).ok()?)))
                })
            }),
            throttling: self
                .cgroup_pace
                .read(moment, || self.cgroup.read(buffer))
                .unwrap_or_default(),
            machine,
            // Last, so that the row's own cost is in it.
            sampler_cpu_ns: thread_cpu_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocations;

    #[test]
    fn a_row_allocates_nothing() {
        let pid = std::process::id();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut readers = Readers::open(Subject {
            client_pids: vec![pid],
            target_pid: Some(pid),
            net_pid: pid,
            client_cpus: vec![0],
            target_cpus: vec![0],
            port: Some(listener.local_addr().unwrap().port()),
            sock_diag: Some(crate::open_sock_diag().unwrap()),
            // Another would need a privilege; what counts here is that reading it needs no memory.
            target_net: Some(TargetNet {
                pid,
                sock_diag: crate::open_sock_diag().unwrap(),
            }),
        })
        .unwrap();
        // A child that the row finds: a tree that grows needs no memory either.
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        // One time for both rows, so that nothing costly is due in the second.
        let now_ns = now_ns();
        let rows = [true, false].map(|edge| {
            let before = allocations::of_this_thread();
            let seen = readers.read(Moment { now_ns, edge });
            (edge, seen, allocations::of_this_thread() - before)
        });
        child.kill().unwrap();
        child.wait().unwrap();
        for (edge, seen, allocated) in rows {
            assert_eq!(allocated, 0);
            // It did read: each source has its numbers.
            assert!(seen.client.sum.cpu.total_ns.unwrap() > 0);
            // Other tests of this process have children, too.
            assert!(seen.client.processes.unwrap() >= 2);
            assert!(seen.target.sum.fds.unwrap() > 0);
            assert_eq!(seen.listen.waiting, Some(0));
            assert!(seen.net.sockstat.inuse.is_some());
            assert!(seen.target_time_wait.is_some());
            assert!(seen.machine.client_set.busy.is_some());
            // What is costly is not read in every row.
            assert_eq!(seen.states.is_some(), edge);
            assert_eq!(seen.client.switches.voluntary.is_some(), edge);
        }
        let before = allocations::of_this_thread();
        drop(std::hint::black_box(vec![1]));
        assert!(allocations::of_this_thread() > before, "the counter counts");
    }
}

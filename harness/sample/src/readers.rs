//! What a trial is watched by: all open files, and one row of all of them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::time::{ClockId, clock_gettime};

use crate::diag::listen_queue;
use crate::machine::{MachineReader, MachineSample};
use crate::net::{NetReader, NetSample};
use crate::process::ProcessSample;
use crate::tree::Tree;

/// What to watch. Pids are those of the caller's pid namespace.
#[derive(Debug)]
pub struct Subject {
    /// the client's processes, one or more; what they use is added up
    pub client_pids: Vec<u32>,
    /// the target's process, where it is on this machine
    pub target_pid: Option<u32>,
    /// a process in the lab's network namespace; in the host's mode, any
    pub net_pid: u32,
    /// CPUs on which the client may run; empty: its busy time is missing
    pub client_cpus: Vec<usize>,
    /// CPUs on which the target may run; empty: its busy time is missing
    pub target_cpus: Vec<usize>,
    /// port on which the target listens (IPv4)
    pub port: Option<u16>,
    /// a netlink sock_diag socket opened inside the lab; without it, the listen queue is missing
    pub sock_diag: Option<OwnedFd>,
}

/// Everything that one row is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub client: ProcessSample,
    pub target: ProcessSample,
    pub net: NetSample,
    pub machine: MachineSample,
    pub listen_queue: Option<i64>,
    pub sampler_cpu_ns: Option<i64>,
}

/// The open files of a trial, and the buffer that they share.
#[derive(Debug)]
pub(crate) struct Readers {
    client: Tree,
    target: Tree,
    net: NetReader,
    machine: MachineReader,
    listen: Option<(OwnedFd, u16)>,
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
            listen: subject.sock_diag.zip(subject.port),
            buffer: Vec::new(),
        };
        readers.read();
        Ok(readers)
    }

    /// One row. What cannot be read is `None`.
    pub(crate) fn read(&mut self) -> Seen {
        let buffer = &mut self.buffer;
        Seen {
            client: self.client.read(buffer),
            target: self.target.read(buffer),
            net: self.net.read(buffer),
            machine: self.machine.read(buffer),
            listen_queue: self
                .listen
                .as_ref()
                .and_then(|(socket, port)| listen_queue(socket.as_fd(), *port).ok()?),
            // Last, so that the row's own cost is in it.
            sampler_cpu_ns: thread_cpu_ns(),
        }
    }
}

/// CPU time of the calling thread, ns.
fn thread_cpu_ns() -> Option<i64> {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec.checked_mul(1_000_000_000)?.checked_add(t.tv_nsec)
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
        })
        .unwrap();
        let before = allocations::of_this_thread();
        let seen = readers.read();
        assert_eq!(allocations::of_this_thread(), before);
        // It did read: each source has its numbers.
        assert!(seen.client.cpu_ns.unwrap() > 0);
        assert!(seen.target.fds.unwrap() > 0);
        assert_eq!(seen.listen_queue, Some(0));
        assert!(seen.net.sockstat.inuse.is_some());
        assert!(seen.machine.client_set_busy_ns.is_some());
        drop(std::hint::black_box(vec![1]));
        assert!(allocations::of_this_thread() > before, "the counter counts");
    }
}

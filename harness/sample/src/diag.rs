//! netlink sock_diag: asking the kernel for its table of TCP sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::diag_wire::{Entry, WireError, mask, read_datagram, request, state};

/// Opens a sock_diag socket in the network namespace of the calling thread. Needs no privilege;
/// handed to another process it still shows the namespace in which it was opened.
///
/// # Errors
/// The kernel has no netlink, or no descriptor is left.
pub fn open_sock_diag() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?)
}

/// TIME_WAIT entries by the end that holds them: the end that closed first, or both at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeWaitSplit {
    /// entries whose remote port is the target's
    pub client: u64,
    /// entries whose local port is the target's
    pub target: u64,
    /// entries of other connections
    pub other: u64,
}

/// Counts the TIME_WAIT entries (IPv4) of a namespace by end. Costs about 1 µs an entry, so
/// it is for after the window.
///
/// # Errors
/// The socket is not of sock_diag, the kernel refuses, or the table changed during each of several walks.
pub fn time_wait_split(sock_diag: BorrowedFd<'_>, target_port: u16) -> io::Result<TimeWaitSplit> {
    dump(
        sock_diag,
        mask(&[state::TIME_WAIT]),
        0,
        ATTEMPTS,
        |split: &mut TimeWaitSplit, entry| match entry {
            e if e.local_port == target_port => split.target += 1,
            e if e.remote_port == target_port => split.client += 1,
            _ => split.other += 1,
        },
    )
}

/// The listening sockets (IPv4) of a port, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenQueue {
    /// connections that wait for accept(); `None` where nothing listens
    pub waiting: Option<i64>,
    /// how many may wait
    pub limit: Option<i64>,
}

/// Looks at the accept queue of a port.
pub(crate) fn listen_queue(sock_diag: BorrowedFd<'_>, port: u16) -> io::Result<ListenQueue> {
    dump(
        sock_diag,
        mask(&[state::LISTEN]),
        port,
        ATTEMPTS,
        |queue: &mut ListenQueue, entry| {
            // An old kernel may not filter by port.
            if entry.local_port == port {
                let add = |sum: Option<i64>, n| Some(sum.unwrap_or(0) + i64::from(n));
                queue.waiting = add(queue.waiting, entry.receive_queue);
                queue.limit = add(queue.limit, entry.send_queue);
            }
        },
    )
}

/// Sockets (IPv4) of a namespace by state, both ends of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct States {
    pub established: i64,
    /// connects without an answer yet
    pub syn_sent: i64,
    /// connects that came in and wait for the last step of the handshake
    pub syn_recv: i64,
    /// closed here, and waiting for the other end (FIN_WAIT_1 and FIN_WAIT_2, with those without a socket)
    pub fin_wait: i64,
    /// closed by the other end, and not yet here
    pub close_wait: i64,
}

impl States {
    /// Those of two namespaces.
    pub(crate) fn plus(self, other: Self) -> Self {
        // Counts of sockets, of which a machine has less than 2^63.
        Self {
            established: self.established + other.established,
            syn_sent: self.syn_sent + other.syn_sent,
            syn_recv: self.syn_recv + other.syn_recv,
            fin_wait: self.fin_wait + other.fin_wait,
            close_wait: self.close_wait + other.close_wait,
        }
    }
}

/// Counts sockets by state. TIME_WAIT is left out, yet the kernel walks its whole table: 3.9 ms with
/// 33,000 of them. A table that changes is not walked again, since a count that is off by
/// the sockets of a ms serves as well.
pub(crate) fn states(sock_diag: BorrowedFd<'_>) -> io::Result<States> {
    const COUNTED: u32 = mask(&[
        state::ESTABLISHED,
        state::SYN_SENT,
        state::SYN_RECV,
        state::FIN_WAIT_1,
        state::FIN_WAIT_2,
        state::CLOSE_WAIT,
    ]);
    dump(sock_diag, COUNTED, 0, 1, |states: &mut States, entry| {
        let count = match entry.state {
            state::ESTABLISHED => &mut states.established,
            state::SYN_SENT => &mut states.syn_sent,
            state::SYN_RECV => &mut states.syn_recv,
            state::FIN_WAIT_1 | state::FIN_WAIT_2 => &mut states.fin_wait,
            state::CLOSE_WAIT => &mut states.close_wait,
            _ => return,
        };
        *count += 1;
    })
}

/// A conversation that is going on, or the place for the next one.
struct Conversation {
    seq: u32,
    buffer: Vec<u8>,
}

/// One conversation at a time in this process: duplicates of a descriptor are the *same* socket, on
/// which a second dump is refused (EBUSY), and either side would read the other's answer.
static CONVERSATION: Mutex<Conversation> = Mutex::new(Conversation {
    seq: 0,
    buffer: Vec::new(),
});

/// The kernel fills at most 32 KiB a datagram, and no more than the reader asked for before.
const BUFFER_LEN: usize = 64 * 1024;
/// The kernel answers at once; this only bounds a hang.
const PATIENCE: Duration = Duration::from_secs(2);
/// Walks of a table that changes under the walker.
const ATTEMPTS: usize = 5;
/// Bounds a dump: 2^20 datagrams hold more sockets than there are pairs of ports.
const MOST_DATAGRAMS: usize = 1 << 20;

/// Asks for all sockets in a set of states and folds them; a walk that the kernel calls interrupted is
/// repeated, up to `attempts` in all.
fn dump<T: Default>(
    sock_diag: BorrowedFd<'_>,
    states: u32,
    local_port: u16,
    attempts: usize,
    mut fold: impl FnMut(&mut T, Entry),
) -> io::Result<T> {
    // A panic of another holder leaves at worst an old seq and a buffer: both still good.
    let mut conversation = CONVERSATION.lock().unwrap_or_else(PoisonError::into_inner);
    conversation.buffer.resize(BUFFER_LEN, 0);
    set_socket_timeout(sock_diag, Timeout::Recv, Some(PATIENCE))?;
    for _ in 0..attempts {
        let mut result = T::default();
        let whole = walk(
            &mut conversation,
            sock_diag.as_fd(),
            states,
            local_port,
            |entry| fold(&mut result, entry),
        )?;
        // A single attempt takes what it gets.
        if whole || attempts == 1 {
            return Ok(result);
        }
    }
    Err(io::Error::other(format!(
        "sock_diag: the table of sockets changed during each of {attempts} walks; ask again when fewer connections come and go"
    )))
}

/// One walk; false if the table changed meanwhile. Reads to the end in any case, so that the socket is free again.
fn walk(
    conversation: &mut Conversation,
    sock_diag: BorrowedFd<'_>,
    states: u32,
    local_port: u16,
    mut each: impl FnMut(Entry),
) -> io::Result<bool> {
    conversation.seq = conversation.seq.wrapping_add(1);
    let Conversation { seq, buffer } = conversation;
    rustix::net::send(
        sock_diag,
        &request(*seq, states, local_port),
        SendFlags::empty(),
    )?;
    let mut interrupted = false;
    for _ in 0..MOST_DATAGRAMS {
        let (_, length) = loop {
            match rustix::net::recv(sock_diag, buffer.as_mut_slice(), RecvFlags::TRUNC) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?,
            }
        };
        let datagram = buffer.get(..length).ok_or_else(|| {
            io::Error::other(format!(
                "sock_diag: a datagram of {length} bytes, expected {BUFFER_LEN} at most"
            ))
        })?;
        let part = read_datagram(datagram, *seq, &mut each)?;
        interrupted |= part.interrupted;
        if part.done {
            return Ok(!interrupted);
        }
    }
    Err(io::Error::other("sock_diag: a dump without an end"))
}

impl From<WireError> for io::Error {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Refused(errno) => Self::from_raw_os_error(errno),
            other => Self::other(other),
        }
    }
}

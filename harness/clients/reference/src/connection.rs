//! One non-blocking connection on an epoll instance, from connect() to close().

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use socket2::{Domain, Socket, Type};
use yieldpoint_clients_core::bind;

/// A socket and what the epoll instance is asked to tell about it.
///
/// Dropping it closes the socket, which takes it off the epoll instance.
pub struct Connection {
    socket: Socket,
    // The number of its user.
    token: u64,
    interest: EventFlags,
}

/// Whether a connection is open.
pub enum Opening {
    /// it is
    Open,
    /// not yet: an event will tell
    Pending,
}

impl Connection {
    /// Begins to connect, from the source address if there is one.
    pub fn begin(address: SocketAddr, source: Option<Ipv4Addr>, token: u64) -> io::Result<Self> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(address), kind, None)?;
        if let Some(source) = source {
            bind(&socket, source)?;
        }
        match socket.connect(&address.into()) {
            Err(e) if !in_progress(&e) => Err(e),
            _ => Ok(Self {
                socket,
                token,
                interest: EventFlags::empty(),
            }),
        }
    }

    /// Whether connect() has come to its end. On loopback it has at once, though the kernel says
    /// "in progress", so asking saves an event.
    pub fn opening(&self) -> io::Result<Opening> {
        if self.socket.peer_addr().is_ok() {
            return Ok(Opening::Open);
        }
        match self.socket.take_error()? {
            Some(e) => Err(e),
            None => Ok(Opening::Pending),
        }
    }

    /// Sends what the socket takes; the number of bytes, 0 if it takes none now.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        or_none((&self.socket).write(bytes)).map(Option::unwrap_or_default)
    }

    /// Reads what has arrived: `None` if nothing has, 0 bytes at the end of the connection.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        or_none((&self.socket).read(buffer))
    }

    /// Wants an event when it can be written.
    pub fn await_writable(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        self.register(epoll, EventFlags::OUT)
    }

    /// Wants an event when it can be read.
    pub fn await_readable(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        self.register(epoll, EventFlags::IN)
    }

    /// Level-triggered: a read that leaves bytes behind is told of them again.
    fn register(&mut self, epoll: &OwnedFd, interest: EventFlags) -> io::Result<()> {
        if self.interest == interest {
            return Ok(());
        }
        let data = EventData::new_u64(self.token);
        if self.interest.is_empty() {
            epoll::add(epoll, &self.socket, data, interest)?;
        } else {
            epoll::modify(epoll, &self.socket, data, interest)?;
        }
        self.interest = interest;
        Ok(())
    }
}

fn in_progress(e: &io::Error) -> bool {
    e.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
}

fn or_none(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

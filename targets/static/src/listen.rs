//! The listening socket and its accept queue.

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};

/// Why nobody can be heard.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("port {port} of {address} is in use; choose another with --set target.port=N (0: any free one)", port = .0.port(), address = .0.ip())]
    InUse(SocketAddrV4),
    #[error("port {port} needs privileges; choose one above 1023 with --set target.port=N", port = .0.port())]
    Denied(SocketAddrV4),
    #[error("cannot listen on {0}: {1}")]
    Other(SocketAddrV4, std::io::Error),
}

/// Binds and listens; gives the address with the port that the kernel chose for port 0.
pub fn open(address: SocketAddrV4, backlog: i32) -> Result<(OwnedFd, SocketAddrV4), ListenError> {
    try_open(address, backlog).map_err(|e| match e {
        Errno::ADDRINUSE => ListenError::InUse(address),
        Errno::ACCESS | Errno::PERM => ListenError::Denied(address),
        other => ListenError::Other(address, other.into()),
    })
}

fn try_open(address: SocketAddrV4, backlog: i32) -> Result<(OwnedFd, SocketAddrV4), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    // TIME_WAIT entries of an earlier target must not keep the port.
    set_socket_reuseaddr(&socket, true)?;
    // Accepted sockets inherit it: one call instead of one a connection.
    set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, backlog)?;
    let bound = SocketAddrV4::try_from(getsockname(&socket)?)?;
    Ok((socket, bound))
}

/// The accept queue of a listening socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// connections that wait for accept()
    pub length: u64,
    /// the backlog in effect
    pub limit: u64,
}

/// Reads the accept queue; `None` where the kernel does not say.
pub fn queue(listener: &OwnedFd) -> Option<Queue> {
    let info = tcp_info(listener)?;
    // Of a listening socket these two fields carry the queue (tcp_get_info in net/ipv4/tcp.c).
    Some(Queue {
        length: info.tcpi_unacked.into(),
        limit: info.tcpi_sacked.into(),
    })
}

/// TCP_INFO, which no crate of ours wraps.
#[allow(unsafe_code)]
fn tcp_info(socket: &OwnedFd) -> Option<libc::tcp_info> {
    // SAFETY: the struct is plain integers, for which zero is a value; the kernel writes at most
    // `size` bytes into it, and both pointers live through the call.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
        let result = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &mut size,
        );
        (result == 0).then_some(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpStream};

    #[test]
    fn the_queue_is_counted_and_accepted_sockets_inherit_nodelay() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let (listener, bound) = open(any, 7).unwrap();
        assert_ne!(bound.port(), 0);
        assert_eq!(
            queue(&listener),
            Some(Queue {
                length: 0,
                limit: 7
            })
        );
        let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(bound).unwrap()).collect();
        assert_eq!(queue(&listener).map(|q| q.length), Some(3));
        let accepted = rustix::net::accept(&listener).unwrap();
        assert!(rustix::net::sockopt::tcp_nodelay(&accepted).unwrap());
        assert_eq!(queue(&listener).map(|q| q.length), Some(2));
        drop(clients);
        let e = open(bound, 7).unwrap_err().to_string();
        assert!(
            e.contains(&bound.port().to_string()) && e.contains("--set target.port=N"),
            "{e}"
        );
    }
}

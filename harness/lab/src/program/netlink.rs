//! Requests to rtnetlink(7) as bytes, and their answers: a handful of messages, all sent in one
//! thread and answered at once, do not pay for a library.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};

/// A socket that asks the kernel about sockets of this network namespace.
pub fn sock_diag() -> io::Result<OwnedFd> {
    socket(Some(netlink::SOCK_DIAG))
}

fn socket(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?)
}

/// Sets up interfaces of the network namespace it was opened in, wherever its process goes.
pub struct Route(OwnedFd);

impl Route {
    /// Opens one of the present namespace.
    pub fn open() -> io::Result<Self> {
        // NETLINK_ROUTE is protocol 0, which rustix writes as none.
        socket(None).map(Self)
    }

    /// Has a request done.
    pub fn ask(&self, request: Request) -> io::Result<()> {
        send(&self.0, &request.finish(), SendFlags::empty())?;
        // The answer repeats the request, so it is as long, and some bytes more.
        let mut answer = [0; 1024];
        let (bytes, _) = recv(&self.0, &mut answer[..], RecvFlags::empty())?;
        match netlink_error(&answer[..bytes]) {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::Error::from_raw_os_error(libc::EPROTO)),
        }
    }

    /// Sets an interface up.
    pub fn set_up(&self, index: i32) -> io::Result<()> {
        self.ask(Request::new(
            libc::RTM_NEWLINK,
            0,
            &link(index, libc::IFF_UP as u32),
        ))
    }
}

/// struct ifinfomsg: family, padding, type (all 0), index, flags, mask of flags to change.
pub fn link(index: i32, flags: u32) -> [u8; 16] {
    let mut m = [0; 16];
    m[4..8].copy_from_slice(&index.to_ne_bytes());
    m[8..12].copy_from_slice(&flags.to_ne_bytes());
    m[12..16].copy_from_slice(&flags.to_ne_bytes());
    m
}

/// A request, built from its front.
pub struct Request(Vec<u8>);

impl Request {
    /// A request of a type (RTM_…) with the struct that this type begins with.
    pub fn new(kind: u16, flags: i32, body: &[u8]) -> Self {
        // Flags of netlink fit, by definition, in the field they are made for.
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; 4];
        // struct nlmsghdr: length (written by `finish`), type, flags, sequence, port
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(1_u32.to_ne_bytes());
        bytes.extend([0; 4]);
        Self(bytes).raw(body)
    }

    /// Appends a struct, and zeros up to the next word.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute.
    pub fn attribute(self, kind: u16, value: &[u8]) -> Self {
        // The length of an attribute leaves out the zeros that follow its value.
        self.attribute_header(kind, value.len()).raw(value)
    }

    /// Appends an attribute whose value is made of attributes.
    pub fn nest(self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let inner = fill(Self(Vec::new()));
        self.attribute(kind, &inner.0)
    }

    fn attribute_header(mut self, kind: u16, value: usize) -> Self {
        // Values here have some hundred bytes at most.
        self.0.extend((4 + value as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
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

    #[test]
    fn a_request_has_the_form_of_netlink() {
        let bytes = Request::new(7, 0x400, &[9; 4])
            .attribute(1, b"abc\0d") // 5 bytes, padded to 8
            .nest(2, |r| r.attribute(3, &[8; 4]))
            .finish();
        let words = |b: &[u8], at: usize| {
            let half = |i: usize| u16::from_ne_bytes(b[i..i + 2].try_into().unwrap());
            (half(at), half(at + 2))
        };
        assert_eq!(bytes.len(), 16 + 4 + 12 + 12);
        assert_eq!(bytes[0..4], 44_u32.to_ne_bytes());
        assert_eq!(words(&bytes, 4), (7, 0x405)); // type; create, request, acknowledge
        assert_eq!(words(&bytes, 20), (9, 1)); // length without padding, type
        assert_eq!(&bytes[24..32], b"abc\0d\0\0\0");
        assert_eq!(words(&bytes, 32), (12, 2)); // the nest …
        assert_eq!(words(&bytes, 36), (8, 3)); // … and what is in it
    }
}

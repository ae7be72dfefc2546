//! Bytes to a socket.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use crate::dialogue::Then;
use crate::settings::Close;

/// What a client that waits to send its body waits for.
pub const GO_AHEAD: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The last response of a connection is held back for the FIN that follows at once.
pub fn flags(close: Close, then: Then) -> SendFlags {
    if close == Close::WithData && then != Then::Continue {
        SendFlags::NOSIGNAL | SendFlags::MORE
    } else {
        SendFlags::NOSIGNAL
    }
}

/// One write; a full socket took 0 bytes.
pub fn write(to: &OwnedFd, first: &[u8], second: &[u8], flags: SendFlags) -> Result<usize, Errno> {
    let sent = if second.is_empty() {
        send(to, first, flags)
    } else {
        let pieces = [IoSlice::new(first), IoSlice::new(second)];
        sendmsg(to, &pieces, &mut SendAncillaryBuffer::default(), flags)
    };
    match sent {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        other => other,
    }
}

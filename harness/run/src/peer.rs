//! The runner's end of a program's socket pair: messages with deadlines, and a way to be interrupted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use yieldpoint_protocol::{ChannelError, FromProgram, LineReader, ToProgram, send};
use yieldpoint_terms::clock::now_ns;

/// Why waiting ended without a message.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// the user wants to stop
    #[error("interrupted")]
    Cancelled,
    /// the other end failed
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

/// One program's socket pair.
pub struct Peer {
    lines: LineReader<UnixStream>,
    to: UnixStream,
}

/// Both ends of a socket pair: ours, and the program's twice (its stdin and its stdout).
pub fn pair() -> io::Result<(Peer, OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    let their_out = theirs.try_clone()?;
    ours.set_nonblocking(true)?;
    let to = ours.try_clone()?;
    Ok((
        Peer {
            lines: LineReader::new(ours),
            to,
        },
        theirs.into(),
        their_out.into(),
    ))
}

impl Peer {
    /// Sends one message. Messages are far smaller than a socket's buffer, and the program reads them
    /// one by one: a full buffer means that it does not read, which is an error.
    pub fn send(&mut self, message: &ToProgram) -> io::Result<()> {
        send(&mut self.to, message)
    }

    /// The next message if it is complete; `None` if more bytes must come first.
    pub fn try_next(
        &mut self,
        expected: &'static str,
    ) -> Result<Option<FromProgram>, ChannelError> {
        let mut next = self.lines.next(expected);
        // A Unix socket whose peer died with unread input says so once, before what the peer sent last.
        if matches!(&next, Err(ChannelError::Io(e)) if e.kind() == io::ErrorKind::ConnectionReset) {
            next = self.lines.next(expected);
        }
        match next {
            Ok(message) => Ok(Some(message)),
            Err(ChannelError::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Waits for the next message until `deadline_ns`.
    pub fn next(
        &mut self,
        expected: &'static str,
        deadline_ns: u64,
        cancel: Option<BorrowedFd>,
    ) -> Result<FromProgram, WaitError> {
        let began = now_ns();
        loop {
            if let Some(message) = self.try_next(expected)? {
                return Ok(message);
            }
            if !wait_readable(self.lines.get_ref(), cancel, deadline_ns)? {
                let seconds = (now_ns() - began) as f64 / 1e9;
                return Err(ChannelError::Silent { expected, seconds }.into());
            }
        }
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.get_ref().as_fd()
    }
}

/// Waits until `fd` can be read (or is closed): true; false at the deadline.
pub fn wait_readable(
    fd: impl AsFd,
    cancel: Option<BorrowedFd>,
    deadline_ns: u64,
) -> Result<bool, WaitError> {
    Ok(wait_any(&[fd.as_fd()], cancel, deadline_ns)?.is_some())
}

/// Waits until one of `fds` can be read: its index; `None` at the deadline.
pub fn wait_any(
    fds: &[BorrowedFd],
    cancel: Option<BorrowedFd>,
    deadline_ns: u64,
) -> Result<Option<usize>, WaitError> {
    let mut polled: Vec<PollFd> = fds
        .iter()
        .chain(cancel.iter())
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    loop {
        let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
        let timeout = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut polled, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(ChannelError::Io(e.into()).into()),
            Ok(0) if now_ns() >= deadline_ns => return Ok(None),
            Ok(_) => {}
        }
        // The user's wish to stop goes before what the programs say.
        if cancel.is_some() && polled.last().is_some_and(|p| !p.revents().is_empty()) {
            return Err(WaitError::Cancelled);
        }
        if let Some(i) = polled
            .iter()
            .take(fds.len())
            .position(|p| !p.revents().is_empty())
        {
            return Ok(Some(i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_last_words_of_a_program_that_died_with_unread_input_are_heard() {
        let (mut peer, stdin, stdout) = pair().unwrap();
        peer.send(&ToProgram::Report).unwrap();
        let mut out = UnixStream::from(stdout);
        out.write_all(b"{\"type\":\"end\",\"at_ns\":7}\n").unwrap();
        drop((stdin, out));
        let heard = peer.next("end", now_ns() + 10_000_000_000, None);
        assert_eq!(heard.unwrap(), FromProgram::End { at_ns: 7 });
        let gone = peer.next("outcome", now_ns() + 10_000_000_000, None);
        assert_eq!(
            gone.unwrap_err().to_string(),
            "end of file where outcome was expected"
        );
    }
}

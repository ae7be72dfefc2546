//! The runner's end of a program's socket pair: messages with deadlines, and a way to be interrupted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use yieldpoint_protocol::{
    ChannelError, FromProgram, LineReader, MAX_LINE, MAX_SHORT_LINE, ToProgram, send,
};
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
        let most = match expected {
            "outcome" | "testimony" => MAX_LINE,
            _ => MAX_SHORT_LINE,
        };
        let mut next = self.lines.next_within(expected, most);
        // A Unix socket whose peer died with unread input says so once, before what the peer sent last.
        if matches!(&next, Err(ChannelError::Io(e)) if e.kind() == io::ErrorKind::ConnectionReset) {
            next = self.lines.next_within(expected, most);
        }
        match next {
            Ok(message) => Ok(Some(message)),
            Err(ChannelError::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The same of a program that is gone once `gone` can be read: its end is the end of what it
    /// says even where a child of it holds the stream open.
    pub fn poll(
        &mut self,
        expected: &'static str,
        gone: BorrowedFd,
    ) -> Result<Option<FromProgram>, WaitError> {
        // The order matters: what it said before it died is in the stream once its death is seen.
        let dead = wait_readable(gone, None, 0)?;
        match self.try_next(expected)? {
            None if dead && !self.lines.has_buffered() && !wait_readable(&*self, None, 0)? => {
                Err(ChannelError::Closed { expected }.into())
            }
            other => Ok(other),
        }
    }

    /// Waits for the next message until `deadline_ns`.
    pub fn next(
        &mut self,
        expected: &'static str,
        gone: BorrowedFd,
        deadline_ns: u64,
        cancel: Option<BorrowedFd>,
    ) -> Result<FromProgram, WaitError> {
        let began = now_ns();
        loop {
            if let Some(message) = self.poll(expected, gone)? {
                return Ok(message);
            }
            if wait_any(&[self.as_fd(), gone], cancel, deadline_ns)?.is_none() {
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
    fn a_program_is_gone_though_its_child_holds_the_stream() {
        let (mut peer, stdin, stdout) = pair().unwrap();
        let mut held = UnixStream::from(stdout);
        held.write_all(b"{\"type\":\"end\",\"at_ns\":7}\n{\"type\":\"out")
            .unwrap();
        let (gone, writer) = io::pipe().unwrap();
        drop(writer); // readable from now on, as the descriptor of a dead process is
        let far = now_ns() + 60_000_000_000;
        let heard = peer.next("end", gone.as_fd(), far, None);
        assert_eq!(heard.unwrap(), FromProgram::End { at_ns: 7 });
        let e = peer.next("outcome", gone.as_fd(), far, None).unwrap_err();
        assert_eq!(e.to_string(), "end of file where outcome was expected");
        drop((stdin, held));
    }

    #[test]
    fn the_last_words_of_a_program_that_died_with_unread_input_are_heard() {
        let (mut peer, stdin, stdout) = pair().unwrap();
        peer.send(&ToProgram::Report).unwrap();
        let mut out = UnixStream::from(stdout);
        out.write_all(b"{\"type\":\"end\",\"at_ns\":7}\n").unwrap();
        drop((stdin, out));
        // A descriptor that is never readable: the program lives, as far as this one tells.
        let (alive, _writer) = io::pipe().unwrap();
        let heard = peer.next("end", alive.as_fd(), now_ns() + 10_000_000_000, None);
        assert_eq!(heard.unwrap(), FromProgram::End { at_ns: 7 });
        let gone = peer.next("outcome", alive.as_fd(), now_ns() + 10_000_000_000, None);
        assert_eq!(
            gone.unwrap_err().to_string(),
            "end of file where outcome was expected"
        );
    }
}

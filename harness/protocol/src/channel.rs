//! Lines over a byte stream, bounded in length.

use std::io::{BufRead, BufReader, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Greatest length of a line that carries a result, in bytes; an outcome of an hour is below 1 MiB.
pub const MAX_LINE: usize = 64 * 1024 * 1024;
/// Greatest length of every other line, in bytes: a program that floods its stdout must not fill our memory.
pub const MAX_SHORT_LINE: usize = 256 * 1024;

/// What can go wrong between two programs.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other end is gone.
    #[error("end of file where {expected} was expected")]
    Closed {
        /// what was expected
        expected: &'static str,
    },
    /// The other end is silent.
    #[error("no {expected} within {seconds:.1} s")]
    Silent {
        /// what was expected
        expected: &'static str,
        /// how long was waited
        seconds: f64,
    },
    /// A line that is not a message.
    #[error("expected {expected}, got \"{got}\": {why}")]
    NotAMessage {
        /// what was expected
        expected: &'static str,
        /// start of the line, at most 200 characters
        got: String,
        /// the parser's reason
        why: String,
    },
    /// A line without an end.
    #[error("a line of more than {most} bytes where {expected} was expected")]
    TooLong {
        /// what was expected
        expected: &'static str,
        /// how long it may be
        most: usize,
    },
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Sends one message as one line in one write.
pub fn send<T: Serialize>(to: &mut impl Write, message: &T) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads messages line by line.
pub struct LineReader<R> {
    from: BufReader<R>,
    // Kept between calls: a read timeout in the middle of a line must not lose its first half.
    line: Vec<u8>,
}

impl<R: Read> LineReader<R> {
    /// Reads from `from`.
    pub fn new(from: R) -> Self {
        Self {
            from: BufReader::new(from),
            line: Vec::new(),
        }
    }
    /// The stream underneath (to set a timeout).
    pub fn get_ref(&self) -> &R {
        self.from.get_ref()
    }
    /// Whether bytes are waiting that a poll of the stream would not show.
    pub fn has_buffered(&self) -> bool {
        !self.from.buffer().is_empty()
    }

    /// The next message; `expected` names it in errors. An `Io` error of kind `WouldBlock`
    /// keeps what was read: call again.
    pub fn next<T: DeserializeOwned>(&mut self, expected: &'static str) -> Result<T, ChannelError> {
        self.next_within(expected, MAX_LINE)
    }

    /// The same, of a line of at most `most` bytes.
    pub fn next_within<T: DeserializeOwned>(
        &mut self,
        expected: &'static str,
        most: usize,
    ) -> Result<T, ChannelError> {
        // What was read of this line under a greater limit may already be too long.
        let limit = (most + 1).saturating_sub(self.line.len()) as u64;
        self.from
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.line)?;
        if self.line.len() > most {
            return Err(ChannelError::TooLong { expected, most });
        }
        if self.line.is_empty() {
            return Err(ChannelError::Closed { expected });
        }
        let line = std::mem::take(&mut self.line);
        serde_json::from_slice(&line).map_err(|e| ChannelError::NotAMessage {
            expected,
            got: String::from_utf8_lossy(&line)
                .trim_end()
                .chars()
                .take(200)
                .collect(),
            why: e.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToProgram;

    #[test]
    fn a_flood_ends_at_the_limit() {
        let flood = std::io::repeat(b'x');
        let mut lines = LineReader::new(flood);
        let e = lines
            .next_within::<ToProgram>("end", MAX_SHORT_LINE)
            .unwrap_err();
        assert_eq!(
            e.to_string(),
            "a line of more than 262144 bytes where end was expected"
        );
        assert!(lines.line.len() <= MAX_SHORT_LINE + 1, "no more was kept");
    }

    #[test]
    fn lines_there_and_back() {
        let mut wire = Vec::new();
        send(&mut wire, &ToProgram::Go { start_at_ns: 7 }).unwrap();
        send(&mut wire, &ToProgram::Bye).unwrap();
        wire.extend_from_slice(b"{\"type\":\"go\"");
        let mut lines = LineReader::new(wire.as_slice());
        assert_eq!(
            lines.next::<ToProgram>("go").unwrap(),
            ToProgram::Go { start_at_ns: 7 }
        );
        assert_eq!(lines.next::<ToProgram>("bye").unwrap(), ToProgram::Bye);
        let half = lines.next::<ToProgram>("go").unwrap_err();
        assert!(
            matches!(half, ChannelError::NotAMessage { .. }),
            "half a line: {half}"
        );
        let end = lines.next::<ToProgram>("bye").unwrap_err();
        assert_eq!(end.to_string(), "end of file where bye was expected");
    }
}

//! An HTTP/1.1 response as a push parser: bytes in, whatever their pieces, nothing copied but a
//! head that arrives in several reads.

use yieldpoint_clients_core::Response;

/// Greatest length of a head, bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Greatest length of a head that is remembered, bytes.
const MAX_SEEN: usize = 2 * 1024;
/// Greatest number of header lines.
const MAX_HEADERS: usize = 100;

/// Where a response stands after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// more bytes are needed
    More,
    /// complete
    Done {
        /// status and body
        response: Response,
        /// another request may follow on this connection
        reusable: bool,
    },
}

/// Not HTTP/1.1; the text says where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an HTTP/1.1 response: {0}")]
pub struct NotHttp(pub &'static str);

/// The parser of one response after another on one connection.
#[derive(Debug, Default)]
pub struct Parser {
    // The head so far; used only if it arrives in pieces.
    head: Vec<u8>,
    body: Body,
    status: u16,
    body_bytes: u64,
    reusable: bool,
    seen: Seen,
}

/// The last head that came in one read, and what it said. A server repeats itself, and the same
/// bytes up to the empty line say the same, so they need not be parsed again.
#[derive(Debug, Default)]
struct Seen {
    head: Vec<u8>,
    status: u16,
    body: Body,
    reusable: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Body {
    /// The head is not complete.
    #[default]
    Before,
    /// So many bytes are to come.
    Length(u64),
    Chunked(Chunk),
    /// The body ends with the connection.
    ToClose,
}

/// Within a chunked body: what the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// the length in hexadecimal; whether a digit was seen
    Size { size: u64, digits: bool },
    /// the rest of the line of the length
    Extension { size: u64 },
    /// the data of a chunk
    Data { left: u64 },
    /// the line end after the data
    DataEnd,
    /// the lines after the last chunk; whether the current one is empty so far
    Trailer { empty: bool },
}

impl Parser {
    /// Forgets an unfinished response: the connection is new.
    pub fn reset(&mut self) {
        self.head.clear();
        self.body = Body::Before;
    }

    /// Takes the bytes of one read.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, NotHttp> {
        if self.body != Body::Before {
            return self.feed_body(bytes);
        }
        if self.head.is_empty() {
            // The usual case: the whole head in one read, read where it lies.
            if let Some(length) = self.known_head(bytes) {
                return self.feed_body(&bytes[length..]);
            }
            if let Some(length) = self.parse_head(bytes)? {
                self.remember(&bytes[..length]);
                return self.feed_body(&bytes[length..]);
            }
            self.head.extend_from_slice(bytes);
        } else {
            self.head.extend_from_slice(bytes);
            let head = std::mem::take(&mut self.head);
            let length = self.parse_head(&head)?;
            if let Some(length) = length {
                return self.feed_body(&head[length..]);
            }
            self.head = head;
        }
        if self.head.len() > MAX_HEAD {
            return Err(NotHttp("its head is longer than 64 KiB"));
        }
        Ok(Progress::More)
    }

    /// The connection has ended; `None` if the response is not complete.
    pub fn end(&mut self) -> Option<Response> {
        let complete = self.body == Body::ToClose;
        self.reset();
        complete.then_some(Response {
            status: self.status,
            body_bytes: self.body_bytes,
        })
    }

    /// Sets up the body if the bytes begin with the head that was seen last; its length.
    fn known_head(&mut self, bytes: &[u8]) -> Option<usize> {
        let seen = &self.seen;
        if seen.head.is_empty() || !bytes.starts_with(&seen.head) {
            return None;
        }
        self.status = seen.status;
        self.body = seen.body;
        self.reusable = seen.reusable;
        self.body_bytes = 0;
        Some(seen.head.len())
    }

    fn remember(&mut self, head: &[u8]) {
        self.seen.head.clear();
        if head.len() <= MAX_SEEN {
            self.seen.head.extend_from_slice(head);
            self.seen.status = self.status;
            self.seen.body = self.body;
            self.seen.reusable = self.reusable;
        }
    }

    /// Sets up the body and returns the length of the head, if all of it is there.
    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, NotHttp> {
        let mut skipped = 0;
        loop {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut head = httparse::Response::new(&mut headers);
            let length = match head.parse(&bytes[skipped..]) {
                Ok(httparse::Status::Complete(length)) => skipped + length,
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(httparse::Error::TooManyHeaders) => {
                    return Err(NotHttp("it has more than 100 header lines"));
                }
                Err(_) => return Err(NotHttp("its head cannot be parsed")),
            };
            // A complete head has both.
            let status = head.code.unwrap_or_default();
            if (100..200).contains(&status) {
                skipped = length;
                continue;
            }
            self.status = status;
            self.body_bytes = 0;
            self.framing(status, head.version == Some(1), head.headers)?;
            return Ok(Some(length));
        }
    }

    /// How the body ends and whether the connection outlives it (RFC 9112, 6.3 and 9.3).
    fn framing(
        &mut self,
        status: u16,
        http_1_1: bool,
        headers: &[httparse::Header<'_>],
    ) -> Result<(), NotHttp> {
        let (mut length, mut chunked, mut coded) = (None, false, false);
        self.reusable = http_1_1;
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let value = std::str::from_utf8(header.value).ok().map(str::trim);
                let value = value.and_then(|v| v.parse().ok());
                let value: u64 = value.ok_or(NotHttp("its content-length is no number"))?;
                if length.is_some_and(|other| other != value) {
                    return Err(NotHttp("it has two content-lengths"));
                }
                length = Some(value);
            } else if is("transfer-encoding") {
                coded = true;
                chunked = words(header.value).last() == Some(&b"chunked"[..]);
            } else if is("connection") {
                for word in words(header.value) {
                    if word.eq_ignore_ascii_case(b"close") {
                        self.reusable = false;
                    } else if word.eq_ignore_ascii_case(b"keep-alive") {
                        self.reusable = true;
                    }
                }
            }
        }
        self.body = if matches!(status, 204 | 304) {
            Body::Length(0)
        } else if chunked {
            Body::Chunked(Chunk::Size {
                size: 0,
                digits: false,
            })
        } else {
            match length {
                Some(length) if !coded => Body::Length(length),
                _ => Body::ToClose,
            }
        };
        self.reusable &= self.body != Body::ToClose;
        Ok(())
    }

    fn feed_body(&mut self, bytes: &[u8]) -> Result<Progress, NotHttp> {
        let used = match self.body {
            Body::Before | Body::ToClose => {
                self.body_bytes += bytes.len() as u64;
                None
            }
            Body::Length(left) => {
                let taken = left.min(bytes.len() as u64);
                self.body_bytes += taken;
                self.body = Body::Length(left - taken);
                // taken is at most the length of a slice.
                (taken == left).then_some(taken as usize)
            }
            Body::Chunked(chunk) => self.feed_chunks(chunk, bytes)?,
        };
        let Some(used) = used else {
            return Ok(Progress::More);
        };
        self.body = Body::Before;
        Ok(Progress::Done {
            response: Response {
                status: self.status,
                body_bytes: self.body_bytes,
            },
            // Bytes beyond the response answer nothing that was asked.
            reusable: self.reusable && used == bytes.len(),
        })
    }

    /// The bytes used if the last chunk ends within `bytes`.
    fn feed_chunks(&mut self, mut at: Chunk, bytes: &[u8]) -> Result<Option<usize>, NotHttp> {
        let mut used = 0;
        while let Some(&byte) = bytes.get(used) {
            if let Chunk::Data { left } = at {
                let taken = left.min((bytes.len() - used) as u64);
                self.body_bytes += taken;
                // At most the length of a slice.
                used += taken as usize;
                at = match left - taken {
                    0 => Chunk::DataEnd,
                    left => Chunk::Data { left },
                };
                continue;
            }
            used += 1;
            at = match at.next(byte)? {
                Some(at) => at,
                None => return Ok(Some(used)),
            };
        }
        self.body = Body::Chunked(at);
        Ok(None)
    }
}

impl Chunk {
    /// One byte outside the data; `None` after the last one of the body.
    fn next(self, byte: u8) -> Result<Option<Self>, NotHttp> {
        const SIZE: NotHttp = NotHttp("a chunk has no length");
        let line_end = |size| match size {
            0 => Self::Trailer { empty: true },
            left => Self::Data { left },
        };
        Ok(Some(match (self, byte) {
            (Self::Size { size, .. }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).ok_or(SIZE)?;
                let size = size.checked_mul(16).ok_or(NotHttp("a chunk is too long"))?;
                Self::Size {
                    size: size + u64::from(digit),
                    digits: true,
                }
            }
            (Self::Size { digits: false, .. }, _) => return Err(SIZE),
            (Self::Size { size, .. } | Self::Extension { size }, b'\n') => line_end(size),
            (Self::Size { size, .. }, b'\r' | b';' | b' ' | b'\t') => Self::Extension { size },
            (Self::Size { .. }, _) => return Err(SIZE),
            (Self::Extension { size }, _) => Self::Extension { size },
            (Self::DataEnd, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size {
                size: 0,
                digits: false,
            },
            (Self::DataEnd, _) => return Err(NotHttp("a chunk is longer than its length")),
            (Self::Trailer { empty: true }, b'\n') => return Ok(None),
            (Self::Trailer { .. }, b'\n') => Self::Trailer { empty: true },
            (Self::Trailer { empty }, b'\r') => Self::Trailer { empty },
            (Self::Trailer { .. }, _) => Self::Trailer { empty: false },
            // The caller takes the data itself.
            (Self::Data { .. }, _) => self,
        }))
    }
}

/// The words of a list header.
fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `wire` in pieces of `piece` bytes; then the connection ends, if the response has not.
    fn parse(wire: &str, piece: usize) -> Result<Option<(u16, u64, bool)>, NotHttp> {
        let mut parser = Parser::default();
        for bytes in wire.as_bytes().chunks(piece) {
            if let Progress::Done { response, reusable } = parser.feed(bytes)? {
                return Ok(Some((response.status, response.body_bytes, reusable)));
            }
        }
        Ok(parser.end().map(|r| (r.status, r.body_bytes, false)))
    }

    #[test]
    fn responses_however_they_are_cut() {
        const OK: &str = "HTTP/1.1 200 OK\r\n";
        // each row: after the status line; status, body bytes, reusable; None: incomplete
        let table = [
            ("content-length: 5\r\n\r\nhello", Some((200, 5, true))),
            ("Content-Length: 0\r\n\r\n", Some((200, 0, true))),
            (
                "content-length: 5\r\nconnection: Close\r\n\r\nhello",
                Some((200, 5, false)),
            ),
            ("content-length: 5\r\n\r\nhell", None), // closed early
            ("content-len", None),
            ("\r\nto the end", Some((200, 10, false))), // nothing says how long: it ends with the connection
            (
                "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                Some((200, 5, true)),
            ),
            (
                "Transfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n1\r\n!\r\n0\r\nt: v\r\n\r\n",
                Some((200, 11, true)),
            ),
            (
                "transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n2\r\nab\r\n0\r\n\r\n",
                Some((200, 2, true)),
            ), // chunked wins
            ("transfer-encoding: chunked\r\n\r\n5\r\nhel", None),
            (
                "transfer-encoding: gzip\r\ncontent-length: 3\r\n\r\nabcd",
                Some((200, 4, false)),
            ), // a coding without chunks ends with the connection
        ];
        for (rest, want) in table {
            let wire = format!("{OK}{rest}");
            for piece in 1..=wire.len() {
                assert_eq!(
                    parse(&wire, piece),
                    Ok(want),
                    "{rest:?} in pieces of {piece}"
                );
            }
        }
        // each row: a whole wire
        let table = [
            (
                "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx",
                (200, 1, false),
            ),
            (
                "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx",
                (200, 1, true),
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", (204, 0, true)),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno",
                (404, 2, true),
            ),
        ];
        for (wire, want) in table {
            for piece in 1..=wire.len() {
                assert_eq!(
                    parse(wire, piece),
                    Ok(Some(want)),
                    "{wire:?} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn a_head_that_was_seen_changes_nothing() {
        // each row: a whole response; status, body bytes, reusable
        let table: [(&str, (u16, u64, bool)); 6] = [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
                (200, 5, true),
            ),
            // as long as the first, another byte
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhell",
                (200, 4, true),
            ),
            (
                "HTTP/1.1 404 OK\r\ncontent-length: 5\r\n\r\nhello",
                (404, 5, true),
            ),
            // the first one's lines and one more
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
                (200, 5, false),
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n",
                (200, 2, true),
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
                (204, 0, true),
            ),
        ];
        // Every response after every other one, whole and cut, on one parser.
        let mut parser = Parser::default();
        for (first, first_want) in table {
            for (second, second_want) in table {
                for piece in [1, 7, 1000] {
                    for (wire, want) in [(first, first_want), (second, second_want)] {
                        let mut got = None;
                        for bytes in wire.as_bytes().chunks(piece) {
                            assert_eq!(got, None, "{wire:?} ended early");
                            if let Progress::Done { response, reusable } =
                                parser.feed(bytes).unwrap()
                            {
                                got = Some((response.status, response.body_bytes, reusable));
                            }
                        }
                        assert_eq!(got, Some(want), "{second:?} after {first:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_http_says_so() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(MAX_HEAD));
        for wire in [
            "SSH-2.0-OpenSSH_9.6\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            &long,
        ] {
            assert!(parse(wire, 1000).is_err(), "{wire:?}");
        }
    }

    #[test]
    fn bytes_that_nobody_asked_for_end_the_connection() {
        let wire = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxy";
        assert_eq!(parse(wire, wire.len()), Ok(Some((200, 1, false))));
    }
}

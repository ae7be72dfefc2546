//! The access log: what a log costs, without filling a disk.

use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::date;
use crate::http::Head;
use crate::reply::{Replies, Reply};
use crate::status::STATUSES;

/// Where a log in memory starts over, bytes.
const RING: u64 = 16 * 1024 * 1024;

/// One worker's log: one line and one write a request, as nginx does without `buffer=`.
pub struct AccessLog {
    to: Sink,
    line: Vec<u8>,
}

enum Sink {
    /// An hour of load would fill a disk, and nobody reads it: pages of a file in memory cost
    /// the same, and the start is overwritten.
    Ring { file: File, at: u64 },
    /// started by hand: a person reads it
    Stderr,
}

impl AccessLog {
    /// In memory.
    pub fn in_memory() -> std::io::Result<Self> {
        let file = File::from(memfd_create("access_log", MemfdFlags::CLOEXEC)?);
        Ok(Self::new(Sink::Ring { file, at: 0 }))
    }
    /// On stderr.
    pub fn on_stderr() -> Self {
        Self::new(Sink::Stderr)
    }
    fn new(to: Sink) -> Self {
        Self {
            to,
            line: Vec::with_capacity(512),
        }
    }

    /// Writes one line in nginx's combined format. No head: the request could not be read.
    pub fn record(
        &mut self,
        peer: Ipv4Addr,
        head: Option<&Head<'_>>,
        reply: &Reply,
        replies: &Replies,
    ) {
        combined(&mut self.line, peer, head, reply, replies);
        // A log that cannot be written does not stop a server; nginx goes on too.
        let _ = match &mut self.to {
            Sink::Stderr => std::io::stderr().write_all(&self.line),
            Sink::Ring { file, at } => {
                let here = *at;
                *at = (here + self.line.len() as u64) % RING;
                file.write_all_at(&self.line, here)
            }
        };
    }
}

fn combined(
    line: &mut Vec<u8>,
    peer: Ipv4Addr,
    head: Option<&Head<'_>>,
    reply: &Reply,
    replies: &Replies,
) {
    let field = |bytes: &[u8]| match bytes {
        [] => "-".to_owned(),
        // Quotes and control characters of a client must not forge lines.
        _ => bytes.escape_ascii().to_string(),
    };
    line.clear();
    // Writing to a Vec cannot fail.
    let _ = writeln!(
        line,
        "{peer} - - [{}] \"{}\" {} {} \"{}\" \"{}\"",
        date::log(replies.unix_s()),
        head.map_or(String::new(), |h| field(h.line())),
        STATUSES[replies.status_index(reply)].0,
        replies.body_bytes(reply),
        field(head.map_or(&[], |h| h.referer)),
        field(head.map_or(&[], |h| h.user_agent)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};
    use crate::pages::Pages;
    use crate::status::Kind;
    use std::sync::Arc;

    #[test]
    fn lines_are_those_of_the_combined_format() {
        let mut replies = Replies::new(Arc::new(Pages::one(612)));
        replies.set_clock(784_111_777);
        let text = b"GET /a\"b HTTP/1.1\r\nHost: x\r\nUser-Agent: u \"1\"\r\n\r\n";
        let Parsed::Head(head) = parse(text, 0) else {
            panic!("a whole head");
        };
        let mut line = Vec::new();
        combined(
            &mut line,
            Ipv4Addr::LOCALHOST,
            Some(&head),
            &replies.answer(&head, false),
            &replies,
        );
        assert_eq!(
            String::from_utf8_lossy(&line),
            "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /a\\\"b HTTP/1.1\" 200 612 \"-\" \"u \\\"1\\\"\"\n"
        );
        combined(
            &mut line,
            Ipv4Addr::LOCALHOST,
            None,
            &replies.failure(Kind::BadRequest, true, false),
            &replies,
        );
        let text = String::from_utf8_lossy(&line);
        assert!(
            text.contains("\"\" 400 ") && text.ends_with("\"-\" \"-\"\n"),
            "{text}"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut log = AccessLog::in_memory().unwrap();
        let replies = Replies::new(Arc::new(Pages::one(1)));
        let bad = replies.failure(Kind::BadRequest, true, false);
        let Sink::Ring { at, .. } = &mut log.to else {
            panic!("in memory");
        };
        *at = RING - 1;
        for _ in 0..2 {
            log.record(Ipv4Addr::LOCALHOST, None, &bad, &replies);
        }
        let Sink::Ring { file, at } = &log.to else {
            panic!("in memory");
        };
        assert!(*at < 1000, "the log started over, at {at}");
        assert!(file.metadata().unwrap().len() < RING + 1000);
    }
}

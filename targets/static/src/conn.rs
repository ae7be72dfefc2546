//! One connection: reads, answers at once, closes as it was told.

use std::io::IoSlice;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg, shutdown,
};

use crate::dialogue::{Answer, Dialogue, Step, Then};
use crate::knobs::Close;
use crate::worker::Site;

/// Longest silence within a request or a response, ns (nginx: client_header_timeout, send_timeout).
const STALLED_NS: u64 = 60_000_000_000;
/// Longest wait for the client's end-of-file after our FIN, ns.
const LINGER_NS: u64 = 2_000_000_000;
/// Turns of reading at one event, so that a client that sends without end does not starve the others.
const TURNS: usize = 16;
/// Events of an open connection. RDHUP says in the same event that the client has sent its FIN.
/// Edge-triggered: the kernel does not look again at every socket before each wait. The price is
/// the invariant of [`Conn::unread`].
pub const READING: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// Whether a connection is still needed; dropping it closes its descriptor.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Stay,
    Gone,
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Client,
    Target,
}

/// Where a connection stands.
#[derive(Debug)]
enum Phase {
    /// reads requests
    Open,
    /// waits until the rest of a response fits into the socket
    Sending(Box<Unsent>),
    /// the last response is out, our FIN is not yet due (`close = "after"`)
    FinDue(Then),
    /// our FIN is out; what the client still sends is read and dropped, because close() with
    /// unread data would send a reset that can destroy the response on its way
    Lingering,
}

/// The rest of a response.
#[derive(Debug)]
struct Unsent {
    /// of the piece that is patched with the date, copied; nearly always empty
    first: Vec<u8>,
    /// where the rest begins in the page
    page_from: usize,
    answer: Answer,
}

pub struct Conn {
    socket: OwnedFd,
    token: u64,
    peer: Ipv4Addr,
    dialogue: Dialogue,
    /// a request that has begun; empty, and without memory, between requests
    held: Vec<u8>,
    phase: Phase,
    /// The socket may hold bytes or an end of which no further event will tell. Whoever leaves it
    /// set must see to it that somebody reads.
    unread: bool,
    /// the last read filled the buffer: there may be more
    filled: bool,
    /// the client's FIN has been seen behind data
    client_ended: bool,
    /// counted among the closed ones
    ended: bool,
    /// when something must have happened, CLOCK_MONOTONIC ns
    pub deadline_ns: u64,
}

impl Conn {
    pub fn new(socket: OwnedFd, token: u64, peer: Ipv4Addr, now_ns: u64) -> Self {
        Self {
            socket,
            token,
            peer,
            dialogue: Dialogue::default(),
            held: Vec::new(),
            phase: Phase::Open,
            unread: false,
            filled: false,
            client_ended: false,
            ended: false,
            deadline_ns: now_ns + STALLED_NS,
        }
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The socket is readable, writable or broken.
    pub fn on_event(&mut self, site: &mut Site, buffer: &mut [u8], flags: EventFlags) -> Fate {
        self.client_ended |= flags.contains(EventFlags::RDHUP);
        self.unread = true;
        if matches!(self.phase, Phase::Sending(_)) && self.send_rest(site) == Fate::Gone {
            return Fate::Gone;
        }
        self.read_all(site, buffer)
    }

    /// Reads until nothing is left, or this connection has had its turns.
    fn read_all(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        for _ in 0..TURNS {
            let fate = match &self.phase {
                _ if !self.unread => return Fate::Stay,
                Phase::Open => self.read(site, buffer),
                Phase::FinDue(_) | Phase::Lingering => self.drain(site, buffer),
                // The change of events at its end tells of what is unread.
                Phase::Sending(_) => return Fate::Stay,
            };
            if fate == Fate::Gone {
                return Fate::Gone;
            }
        }
        // Asking for the same events again makes the kernel look, and tell.
        self.listen_for(site, READING)
    }

    /// Nothing happened for too long.
    pub fn on_deadline(&mut self, site: &mut Site) -> Fate {
        match self.phase {
            Phase::Open => self.send_fin(site, Then::CloseGently),
            // A client that does not read: close() leaves the rest to the kernel.
            Phase::Sending(_) => {
                self.end(site, Side::Target);
                Fate::Gone
            }
            Phase::Lingering => Fate::Gone,
            // Has a timer of its own.
            Phase::FinDue(_) => Fate::Stay,
        }
    }

    /// The time between the last response and our FIN is over.
    pub fn on_fin_due(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        let Phase::FinDue(then) = self.phase else {
            return Fate::Stay;
        };
        // The client's FIN may have come in the same turn; then it was first.
        self.unread = true;
        match self.read_all(site, buffer) {
            Fate::Stay => self.send_fin(site, then),
            Fate::Gone => Fate::Gone,
        }
    }

    fn read(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) => {
                self.end(site, Side::Client);
                Fate::Gone
            }
            Ok((_, n)) => {
                site.counters.bytes_in.add(n as u64);
                self.took(n, buffer.len());
                if self.held.is_empty() {
                    self.serve(site, &buffer[..n])
                } else {
                    self.held.extend_from_slice(&buffer[..n]);
                    let bytes = std::mem::take(&mut self.held);
                    self.serve(site, &bytes)
                }
            }
            Err(Errno::INTR) => Fate::Stay,
            Err(Errno::AGAIN) => {
                self.unread = false;
                Fate::Stay
            }
            Err(_) => self.broken(site),
        }
    }

    /// Answers every request in `bytes`, each with one write, and keeps what is left.
    fn serve(&mut self, site: &mut Site, bytes: &[u8]) -> Fate {
        let mut rest = bytes;
        loop {
            let (log, replies, peer) = (&mut site.log, &site.replies, self.peer);
            let (used, step) = self.dialogue.step(rest, site.rules, |head, kind| {
                if let Some(log) = log {
                    log.record(peer, head, kind, replies);
                }
            });
            rest = &rest[used..];
            let Step::Answer(mut answer) = step else {
                self.held = rest.to_vec();
                self.wait_for_request(site);
                return Fate::Stay;
            };
            if answer.request {
                site.counters.requests.add(1);
            }
            // More bytes than this request: the client may be sending still.
            if answer.then == Then::Close && (self.filled || !rest.is_empty()) {
                answer.then = Then::CloseGently;
            }
            let (first, second) = site
                .replies
                .pieces(answer.kind, answer.then != Then::Continue);
            let (first_len, all) = (first.len(), first.len() + second.len());
            match write(&self.socket, first, second, flags(site.close, answer.then)) {
                Ok(sent) if sent == all => {
                    site.counters.bytes_out.add(sent as u64);
                    if let Some(fate) = self.answered(site, answer) {
                        return fate;
                    }
                }
                Ok(sent) => {
                    site.counters.bytes_out.add(sent as u64);
                    let unsent = Unsent {
                        first: first[sent.min(first_len)..].to_vec(),
                        page_from: site.replies.page_bytes() - second.len()
                            + sent.saturating_sub(first_len),
                        answer,
                    };
                    self.held = rest.to_vec();
                    self.phase = Phase::Sending(Box::new(unsent));
                    self.deadline_ns = site.now_ns + STALLED_NS;
                    return self.listen_for(site, EventFlags::OUT);
                }
                Err(_) => return self.broken(site),
            }
        }
    }

    /// Goes on with a response that did not fit.
    fn send_rest(&mut self, site: &mut Site) -> Fate {
        let Phase::Sending(unsent) = &mut self.phase else {
            return Fate::Stay;
        };
        let answer = unsent.answer;
        let page = site.replies.page_from(unsent.page_from);
        let all = unsent.first.len() + page.len();
        let sent = match write(
            &self.socket,
            &unsent.first,
            page,
            flags(site.close, answer.then),
        ) {
            Ok(sent) => sent,
            Err(_) => return self.broken(site),
        };
        site.counters.bytes_out.add(sent as u64);
        self.deadline_ns = site.now_ns + STALLED_NS;
        if sent < all {
            unsent.page_from += sent.saturating_sub(unsent.first.len());
            unsent.first.drain(..sent.min(unsent.first.len()));
            return Fate::Stay;
        }
        self.phase = Phase::Open;
        if self.listen_for(site, READING) == Fate::Gone {
            return Fate::Gone;
        }
        // Pipelined requests may have waited behind this one.
        self.answered(site, answer).unwrap_or_else(|| {
            let bytes = std::mem::take(&mut self.held);
            self.serve(site, &bytes)
        })
    }

    /// A response is with the kernel; `None`: the next request.
    fn answered(&mut self, site: &mut Site, answer: Answer) -> Option<Fate> {
        site.counters.responses[answer.kind.status_index()].add(1);
        if answer.then == Then::Continue {
            return None;
        }
        self.held = Vec::new();
        Some(match site.close {
            Close::WithData => self.send_fin(site, answer.then),
            Close::After(delay_ns) => {
                self.phase = Phase::FinDue(answer.then);
                self.deadline_ns = u64::MAX;
                site.fins.push_back((site.now_ns + delay_ns, self.token));
                Fate::Stay
            }
        })
    }

    /// Closes our side. A last piece of data that the kernel was told to hold back (MSG_MORE)
    /// leaves with the FIN in one segment.
    fn send_fin(&mut self, site: &mut Site, then: Then) -> Fate {
        self.end(site, Side::Target);
        // Nothing is unread and nothing more is expected: one close() does everything.
        if then == Then::Close || shutdown(&self.socket, Shutdown::Write).is_err() {
            return Fate::Gone;
        }
        self.phase = Phase::Lingering;
        self.deadline_ns = site.now_ns + LINGER_NS;
        Fate::Stay
    }

    /// A short read has emptied the socket, but for a FIN.
    fn took(&mut self, n: usize, room: usize) {
        self.filled = n == room;
        self.unread = self.filled || self.client_ended;
    }

    /// Reads and drops, in our last phases.
    fn drain(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) => {
                self.end(site, Side::Client);
                Fate::Gone
            }
            Ok((_, n)) => {
                site.counters.bytes_in.add(n as u64);
                self.took(n, buffer.len());
                Fate::Stay
            }
            Err(Errno::INTR) => Fate::Stay,
            Err(Errno::AGAIN) => {
                self.unread = false;
                Fate::Stay
            }
            Err(_) => self.broken(site),
        }
    }

    fn wait_for_request(&mut self, site: &Site) {
        let between =
            self.held.is_empty() && self.dialogue.is_idle() && self.dialogue.has_answered();
        let patience = if between {
            site.keepalive_timeout_ns
        } else {
            STALLED_NS
        };
        self.deadline_ns = site.now_ns + patience;
    }

    fn listen_for(&self, site: &Site, events: EventFlags) -> Fate {
        let data = EventData::new_u64(self.token);
        match epoll::modify(&site.epoll, self.socket.as_fd(), data, events) {
            Ok(()) => Fate::Stay,
            // Only for want of kernel memory; a connection without events would hang.
            Err(_) => Fate::Gone,
        }
    }

    /// Counts the first end of this connection, once.
    fn end(&mut self, site: &Site, side: Side) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        match side {
            Side::Target if !self.client_ended => site.counters.closed_by_target.add(1),
            _ => site.counters.closed_by_client.add(1),
        }
    }

    fn broken(&mut self, site: &Site) -> Fate {
        if !std::mem::replace(&mut self.ended, true) {
            site.counters.reset.add(1);
        }
        Fate::Gone
    }
}

/// The last response of a connection is held back for the FIN that follows at once.
fn flags(close: Close, then: Then) -> SendFlags {
    if close == Close::WithData && then != Then::Continue {
        SendFlags::NOSIGNAL | SendFlags::MORE
    } else {
        SendFlags::NOSIGNAL
    }
}

/// One write; a full socket took 0 bytes.
fn write(to: &OwnedFd, first: &[u8], second: &[u8], flags: SendFlags) -> Result<usize, Errno> {
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

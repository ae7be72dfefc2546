//! One connection: reads, answers at once or when it is due, closes as it was told.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, shutdown};

use crate::behaviour::Ending;
use crate::dialogue::{Dialogue, Step, Then};
use crate::outgoing::Outgoing;
use crate::phase::{Answer, Fate, Next, Phase, Side, Unsent};
use crate::settings::Close;
use crate::site::{Decided, Site};
use crate::status::Kind;
use crate::wire::{GO_AHEAD, flags, write};

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

pub struct Conn {
    socket: OwnedFd,
    token: u64,
    peer: Ipv4Addr,
    dialogue: Dialogue<Decided>,
    /// bytes of requests that have not been served; empty, and without memory, between requests
    held: Vec<u8>,
    /// the deadline is that of a head which has begun; more bytes of it do not move it
    in_head: bool,
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
    pub fn new(socket: OwnedFd, token: u64, peer: Ipv4Addr, site: &Site) -> Self {
        Self {
            socket,
            token,
            peer,
            dialogue: Dialogue::default(),
            held: Vec::new(),
            in_head: true,
            phase: Phase::Open,
            unread: false,
            filled: false,
            client_ended: false,
            ended: false,
            deadline_ns: site.now_ns + site.patience.header_ns,
        }
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Whether nothing of a request has been read.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Open) && self.held.is_empty() && self.dialogue.is_idle()
    }

    /// The socket is readable, writable or broken.
    pub fn on_event(&mut self, site: &mut Site, buffer: &mut [u8], flags: EventFlags) -> Fate {
        self.client_ended |= flags.contains(EventFlags::RDHUP);
        self.unread = true;
        // Nobody is left who could read an answer.
        let waits = matches!(self.phase, Phase::Waiting(_) | Phase::Pausing(_));
        if waits && flags.contains(EventFlags::ERR) {
            return self.broken(site);
        }
        if self.go_on_sending(site) == Fate::Gone {
            return Fate::Gone;
        }
        self.read_all(site, buffer)
    }

    /// Its timer has come.
    pub fn on_due(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        match std::mem::replace(&mut self.phase, Phase::Open) {
            Phase::Waiting(answer) => {
                let next = self.respond(site, *answer);
                self.go_on_reading(site, buffer, next)
            }
            Phase::Pausing(mut unsent) => {
                unsent.out.next_piece();
                let next = self.send_piece(site, unsent);
                self.go_on_reading(site, buffer, next)
            }
            Phase::FinDue(then) => {
                self.phase = Phase::FinDue(then);
                // The client's FIN may have come in the same turn; then it was first.
                self.unread = true;
                match self.read_all(site, buffer) {
                    Fate::Stay => self.send_fin(site, then),
                    Fate::Gone => Fate::Gone,
                }
            }
            other => {
                self.phase = other;
                Fate::Stay
            }
        }
    }

    /// Nothing happened for too long.
    pub fn on_deadline(&mut self, site: &mut Site) -> Fate {
        match self.phase {
            // Between requests there is nothing to answer.
            Phase::Open if self.is_idle() => self.send_fin(site, Then::CloseGently),
            Phase::Open => {
                self.dialogue = Dialogue::default();
                let answer = Answer {
                    decided: site.decide(self.peer, Err(Kind::Timeout), true),
                    then: Then::CloseGently,
                    request: false,
                };
                match self.respond(site, answer) {
                    Next::Serve => Fate::Stay,
                    Next::Rest(fate) => fate,
                }
            }
            // A client that does not read: close() leaves the rest to the kernel.
            Phase::Sending(_) => {
                self.end(site, Side::Target);
                Fate::Gone
            }
            Phase::Lingering => Fate::Gone,
            // These have timers of their own.
            Phase::Waiting(_) | Phase::Pausing(_) | Phase::FinDue(_) => Fate::Stay,
        }
    }

    /// The target ends: a connection between requests is closed.
    pub fn on_stop(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        // A request may have come of which no event has told yet.
        self.unread = true;
        match self.read_all(site, buffer) {
            Fate::Stay if self.is_idle() => self.send_fin(site, Then::Close),
            fate => fate,
        }
    }

    /// Reads until nothing is left, or this connection has had its turns.
    fn read_all(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        for _ in 0..TURNS {
            let fate = match &self.phase {
                _ if !self.unread => return Fate::Stay,
                Phase::Open => self.read(site, buffer),
                Phase::FinDue(_) | Phase::Lingering => self.drain(site, buffer),
                // Read on when the answer is out.
                Phase::Waiting(_) | Phase::Sending(_) | Phase::Pausing(_) => return Fate::Stay,
            };
            if fate == Fate::Gone {
                return Fate::Gone;
            }
        }
        // Asking for the same events again makes the kernel look, and tell.
        self.listen_for(site, READING)
    }

    fn read(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        let n = match self.receive(site, buffer) {
            Ok(n) => n,
            Err(fate) => return fate,
        };
        if self.held.is_empty() {
            self.serve(site, &buffer[..n])
        } else {
            self.held.extend_from_slice(&buffer[..n]);
            let bytes = std::mem::take(&mut self.held);
            self.serve(site, &bytes)
        }
    }

    /// Reads and drops, in our last phases.
    fn drain(&mut self, site: &mut Site, buffer: &mut [u8]) -> Fate {
        match self.receive(site, buffer) {
            Ok(_) => Fate::Stay,
            Err(fate) => fate,
        }
    }

    /// At least one byte, or what has become of the connection.
    fn receive(&mut self, site: &mut Site, buffer: &mut [u8]) -> Result<usize, Fate> {
        match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) => {
                self.end(site, Side::Client);
                Err(Fate::Gone)
            }
            Ok((_, n)) => {
                site.counters.bytes_in.add(n as u64);
                // A short read has emptied the socket, but for a FIN.
                self.filled = n == buffer.len();
                self.unread = self.filled || self.client_ended;
                Ok(n)
            }
            Err(Errno::INTR) => Err(Fate::Stay),
            Err(Errno::AGAIN) => {
                self.unread = false;
                Err(Fate::Stay)
            }
            Err(_) => Err(self.broken(site)),
        }
    }

    /// Answers every request in `bytes`, each with one write, and keeps what is left.
    fn serve(&mut self, site: &mut Site, bytes: &[u8]) -> Fate {
        let mut rest = bytes;
        loop {
            let (rules, peer) = (site.rules, self.peer);
            let (used, step) = self.dialogue.step(rest, rules, |asked, closes| {
                site.decide(peer, asked, closes)
            });
            rest = &rest[used..];
            let mut answer = match step {
                Step::More => {
                    self.held = rest.to_vec();
                    self.wait_for_request(site);
                    return Fate::Stay;
                }
                Step::GoAhead => match write(&self.socket, GO_AHEAD, &[], SendFlags::NOSIGNAL) {
                    Ok(n) if n == GO_AHEAD.len() => {
                        site.counters.bytes_out.add(n as u64);
                        continue;
                    }
                    // 25 bytes do not fit: the client has not read for long.
                    _ => return self.broken(site),
                },
                Step::Answer(answer) => answer,
            };
            self.in_head = false;
            if answer.request {
                site.counters.requests.add(1);
            }
            // More bytes than this request: the client may be sending still.
            if answer.then == Then::Close && (self.filled || !rest.is_empty()) {
                answer.then = Then::CloseGently;
            }
            let next = match answer.decided.plan.map(|plan| site.due_ns(plan)) {
                Some(due_ns) if due_ns > site.now_ns => {
                    self.phase = Phase::Waiting(Box::new(answer));
                    self.wake_at(site, due_ns)
                }
                _ => self.respond(site, answer),
            };
            if let Next::Rest(fate) = next {
                if !matches!(self.phase, Phase::FinDue(_) | Phase::Lingering) {
                    self.held = rest.to_vec();
                }
                return fate;
            }
        }
    }

    /// Serves what was held back behind an answer.
    fn go_on(&mut self, site: &mut Site, next: Next) -> Fate {
        match next {
            Next::Serve => {
                let bytes = std::mem::take(&mut self.held);
                self.serve(site, &bytes)
            }
            Next::Rest(fate) => fate,
        }
    }

    /// The same, and reads what has come meanwhile.
    fn go_on_reading(&mut self, site: &mut Site, buffer: &mut [u8], next: Next) -> Fate {
        match self.go_on(site, next) {
            Fate::Stay => self.read_all(site, buffer),
            Fate::Gone => Fate::Gone,
        }
    }

    /// Sends an answer that is due.
    fn respond(&mut self, site: &mut Site, answer: Answer) -> Next {
        if let Some(plan) = answer.decided.plan {
            site.burn();
            let slow = site.slow_body().is_some();
            if slow || matches!(plan.ending, Ending::CutShort | Ending::Reset) {
                return self.misbehave(site, answer, plan.ending);
            }
        }
        let closing = flags(site.close, answer.then);
        let (first, second) = site.replies.pieces(&answer.decided.reply);
        let all = first.len() + second.len();
        let sent = match write(&self.socket, first, second, closing) {
            Ok(sent) => sent,
            Err(_) => return Next::Rest(self.broken(site)),
        };
        site.counters.bytes_out.add(sent as u64);
        let status_index = site.replies.status_index(&answer.decided.reply);
        if sent == all {
            return self.answered(site, status_index, answer.then);
        }
        let message = site.replies.message(answer.decided.reply);
        self.wait_for_room(
            site,
            Box::new(Unsent {
                out: Outgoing::rest(message, sent),
                status_index,
                then: answer.then,
                cut_short: false,
            }),
        )
    }

    /// The same in pieces, in part, or not at all.
    fn misbehave(&mut self, site: &mut Site, answer: Answer, ending: Ending) -> Next {
        if ending == Ending::Reset {
            // Without lingering, close() sends a RST.
            let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
            return Next::Rest(self.broken(site));
        }
        let status_index = site.replies.status_index(&answer.decided.reply);
        let message = site.replies.message(answer.decided.reply);
        let mut out = match site.slow_body() {
            Some((_, pieces)) => Outgoing::slowly(message, pieces),
            None => Outgoing::rest(message, 0),
        };
        let cut_short = ending == Ending::CutShort;
        if cut_short {
            out = out.cut_short();
        }
        self.send_piece(
            site,
            Box::new(Unsent {
                out,
                status_index,
                then: answer.then,
                cut_short,
            }),
        )
    }

    /// Room in the socket again, if it was that we waited for.
    fn go_on_sending(&mut self, site: &mut Site) -> Fate {
        let unsent = match std::mem::replace(&mut self.phase, Phase::Open) {
            Phase::Sending(unsent) => unsent,
            other => {
                self.phase = other;
                return Fate::Stay;
            }
        };
        // What was not read meanwhile is told of again.
        if self.listen_for(site, READING) == Fate::Gone {
            return Fate::Gone;
        }
        let next = self.send_piece(site, unsent);
        self.go_on(site, next)
    }

    /// Sends on until a pause or the end.
    fn send_piece(&mut self, site: &mut Site, mut unsent: Box<Unsent>) -> Next {
        let last = unsent.out.is_last_piece();
        let how = if last && !unsent.cut_short {
            flags(site.close, unsent.then)
        } else {
            SendFlags::NOSIGNAL
        };
        let (first, second) = unsent.out.pieces();
        let sent = match write(&self.socket, first, second, how) {
            Ok(sent) => sent,
            Err(_) => return Next::Rest(self.broken(site)),
        };
        site.counters.bytes_out.add(sent as u64);
        unsent.out.took(sent);
        if !unsent.out.is_piece_out() {
            return self.wait_for_room(site, unsent);
        }
        if !last {
            let pause_ns = site.slow_body().map_or(0, |(pause_ns, _)| pause_ns);
            self.phase = Phase::Pausing(unsent);
            let due_ns = site.now_ns + pause_ns;
            return self.wake_at(site, due_ns);
        }
        if unsent.cut_short {
            self.end(site, Side::Target);
            return Next::Rest(Fate::Gone);
        }
        self.answered(site, unsent.status_index, unsent.then)
    }

    fn wait_for_room(&mut self, site: &mut Site, unsent: Box<Unsent>) -> Next {
        self.phase = Phase::Sending(unsent);
        self.deadline_ns = site.now_ns + site.patience.send_ns;
        Next::Rest(self.listen_for(site, EventFlags::OUT))
    }

    fn wake_at(&mut self, site: &mut Site, due_ns: u64) -> Next {
        self.deadline_ns = u64::MAX;
        site.timers.push(due_ns, self.token);
        Next::Rest(Fate::Stay)
    }

    /// A response is with the kernel.
    fn answered(&mut self, site: &mut Site, status_index: usize, then: Then) -> Next {
        site.counters.responses[status_index].add(1);
        if then == Then::Continue {
            return Next::Serve;
        }
        self.held = Vec::new();
        match site.close {
            Close::WithData => Next::Rest(self.send_fin(site, then)),
            Close::After(delay_ns) => {
                self.phase = Phase::FinDue(then);
                let due_ns = site.now_ns + delay_ns;
                self.wake_at(site, due_ns)
            }
        }
    }

    /// Closes our side. A last piece of data that the kernel was told to hold back (MSG_MORE)
    /// leaves with the FIN in one segment.
    fn send_fin(&mut self, site: &mut Site, then: Then) -> Fate {
        self.end(site, Side::Target);
        if then == Then::Close || shutdown(&self.socket, Shutdown::Write).is_err() {
            return Fate::Gone;
        }
        self.phase = Phase::Lingering;
        self.deadline_ns = site.now_ns + LINGER_NS;
        Fate::Stay
    }

    /// Sets the deadline that follows from what is in hand.
    fn wait_for_request(&mut self, site: &Site) {
        let patience_ns = if !self.dialogue.is_idle() {
            site.patience.body_ns
        } else if self.held.is_empty() && self.dialogue.has_answered() {
            self.in_head = false;
            site.patience.keepalive_ns
        } else if self.in_head {
            return;
        } else {
            self.in_head = true;
            site.patience.header_ns
        };
        self.deadline_ns = site.now_ns + patience_ns;
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

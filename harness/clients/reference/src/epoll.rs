//! The epoll mode: many users on one loop a thread.
//!
//! A user has a request in flight, waits for its peer to close, waits for its next start, or has a
//! place in the queue of those that may go on. An event of a connection without a request means
//! that the peer has closed it.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event};
use rustix::time::Timespec;
use yieldpoint_clients_core::{Failure, Gate, Pace, Recorder, Response, Setup, Step, VirtualUser};
use yieldpoint_protocol::ErrorKind;
use yieldpoint_terms::clock;

use crate::connection::{Connection, Opening};
use crate::response::{Parser, Progress};
use crate::timer::Timer;
use crate::{closes_after_peer, request};

/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Reads of one event: a body without end must not keep the loop from its deadlines.
const READS: usize = 16;
/// Events of one wait.
const EVENTS: usize = 1024;

/// One load thread: allocates, waits for `go`, drives its users to the end.
pub fn thread(setup: &Setup, gate: Gate) -> Result<Recorder, String> {
    let number = gate.thread();
    let mut reactor = Loop::new(setup, number)?;
    let window = gate.wait()?;
    reactor.recorder.begin(window);
    reactor.pace = Pace::new(setup, window, number);
    for user in &mut reactor.users {
        user.user = VirtualUser::new(setup, window);
    }
    reactor.run()?;
    Ok(reactor.recorder)
}

/// A virtual user and its request.
struct User {
    user: VirtualUser,
    source: Option<Ipv4Addr>,
    connection: Option<Connection>,
    phase: Phase,
    parser: Parser,
    /// start of the request, ns
    start_ns: u64,
    /// open loop: when it should have started, ns
    intended_ns: Option<u64>,
    /// when the phase must be over, ns
    deadline_ns: u64,
}

/// What a user's connection is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// no request in flight
    Idle,
    /// since this time, ns
    Connecting {
        since_ns: u64,
    },
    /// so many bytes of the request are sent
    Sending {
        sent: usize,
    },
    Receiving,
    /// the response is complete; the peer is to close first
    Closing,
}

/// What a request has come to.
enum Fate {
    InFlight,
    Answered {
        response: Response,
        reusable: bool,
    },
    Failed(Failure),
    /// The peer closed, or its time was up, after the request had ended.
    Closed,
}

struct Loop {
    epoll: OwnedFd,
    timer: Timer,
    address: SocketAddr,
    request: Vec<u8>,
    keep_alive: bool,
    closes_after_peer: bool,
    connect_timeout_ns: u64,
    request_timeout_ns: u64,
    users: Vec<User>,
    // Users that may go on.
    ready: VecDeque<usize>,
    // Users that wait for a start, ns, the earliest first: they take their starts in this order.
    waiting: VecDeque<(u64, usize)>,
    running: usize,
    pace: Pace,
    // The last reading of the clock, ns.
    now: u64,
    // No deadline is earlier, ns.
    earliest_ns: u64,
    buffer: Box<[u8]>,
    recorder: Recorder,
}

impl Loop {
    fn new(setup: &Setup, thread: usize) -> Result<Self, String> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|e| {
            format!("no epoll instance for a load thread: {e}; raise the limit of descriptors")
        })?;
        let timer = Timer::on(&epoll).map_err(|e| {
            format!("no timer for a load thread: {e}; raise the limit of descriptors")
        })?;
        let first = thread * setup.users_per_thread;
        let user = |number| User {
            user: VirtualUser::new(setup, yieldpoint_clients_core::Window::new(setup, 0)),
            source: setup.sources.of_user(number),
            connection: None,
            phase: Phase::Idle,
            parser: Parser::default(),
            start_ns: 0,
            intended_ns: None,
            deadline_ns: u64::MAX,
        };
        Ok(Self {
            epoll,
            timer,
            address: setup.address,
            request: request::bytes(setup),
            keep_alive: setup.keep_alive,
            closes_after_peer: !setup.keep_alive && closes_after_peer(setup),
            connect_timeout_ns: setup.connect_timeout.0,
            request_timeout_ns: setup.request_timeout.0,
            users: (first..first + setup.users_per_thread).map(user).collect(),
            ready: (0..setup.users_per_thread).collect(),
            waiting: VecDeque::with_capacity(setup.users_per_thread),
            running: setup.users_per_thread,
            pace: Pace::Closed,
            now: clock::now_ns(),
            earliest_ns: u64::MAX,
            buffer: vec![0; READ].into_boxed_slice(),
            recorder: Recorder::new(setup)?,
        })
    }

    /// Until every user has stopped.
    fn run(&mut self) -> Result<(), String> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        while self.running > 0 {
            self.wake();
            // Only those that are ready now: a user that fails at once comes back behind the
            // events of the others.
            for _ in 0..self.ready.len() {
                if let Some(i) = self.ready.pop_front() {
                    self.now = clock::now_ns();
                    self.go_on(i);
                }
            }
            if self.running == 0 {
                break;
            }
            self.wait(&mut events)
                .map_err(|e| format!("epoll_wait: {e}"))?;
            for event in &events {
                if event.data.u64() == Timer::TOKEN {
                    continue;
                }
                // The other tokens are indices of users.
                let i = event.data.u64() as usize;
                let fate = self.advance(i);
                self.settle(i, fate);
            }
            if events.is_empty() {
                self.now = clock::now_ns();
            }
            if self.now >= self.earliest_ns {
                self.expire();
            }
        }
        Ok(())
    }

    /// Lets those go on whose start has come.
    fn wake(&mut self) {
        while let Some((until_ns, i)) = self.waiting.front().copied() {
            self.now = clock::now_ns();
            if until_ns > self.now {
                break;
            }
            self.waiting.pop_front();
            self.go_on(i);
        }
    }

    fn wait(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        if let Some((until_ns, _)) = self.waiting.front() {
            self.timer.set(*until_ns)?;
        }
        let patience = match self.ready.is_empty() {
            true => self.earliest_ns.saturating_sub(self.now),
            false => 0,
        };
        // Deadlines are at most a day ahead, so both parts fit; without one the timer is enough.
        let timeout = (patience < u64::MAX - self.now).then_some(Timespec {
            tv_sec: (patience / 1_000_000_000) as i64,
            tv_nsec: (patience % 1_000_000_000) as _,
        });
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => Ok(()),
            other => other.map(|_| ()).map_err(Into::into),
        }
    }

    /// Lets an idle user take its next steps, up to a request in flight.
    fn go_on(&mut self, i: usize) {
        loop {
            match self.users[i].user.next(self.now, &mut self.pace) {
                Step::Wait { until_ns } => {
                    self.waiting.push_back((until_ns, i));
                    return;
                }
                Step::Connect => {
                    if self.users[i].connection.take().is_some() {
                        self.now = clock::now_ns();
                    }
                }
                Step::Request { intended_ns } => {
                    self.users[i].intended_ns = intended_ns;
                    let fate = self.begin(i);
                    if self.record(i, fate) {
                        self.ready.push_back(i);
                    }
                    return;
                }
                Step::Stop => {
                    let user = &mut self.users[i];
                    user.connection = None;
                    self.recorder.stopped(&user.user);
                    self.running -= 1;
                    return;
                }
            }
        }
    }

    /// Takes in what has become of a request; its user goes on if it has ended.
    fn settle(&mut self, i: usize, fate: Fate) {
        if self.record(i, fate) {
            self.go_on(i);
        }
    }

    /// The end of a request, if it is one: the clock is read before the connection is closed.
    /// Whether the user may go on.
    fn record(&mut self, i: usize, fate: Fate) -> bool {
        if matches!(fate, Fate::InFlight) {
            return false;
        }
        self.now = clock::now_ns();
        let complete = matches!(fate, Fate::Answered { .. });
        let (result, reusable) = match fate {
            Fate::InFlight => return false,
            Fate::Closed => {
                self.close(i);
                return true;
            }
            Fate::Answered { response, reusable } => (Ok(response), reusable && self.keep_alive),
            Fate::Failed(failure) => (Err(failure), false),
        };
        let user = &mut self.users[i];
        let good = self
            .recorder
            .request(user.start_ns, user.intended_ns, self.now, result);
        if let Some(since) = user.user.done(good) {
            self.recorder.iteration(since, self.now);
        }
        if reusable {
            user.phase = Phase::Idle;
            user.deadline_ns = u64::MAX;
        } else if complete && self.closes_after_peer {
            // The deadline of the request stands for the close, too.
            user.phase = Phase::Closing;
            return false;
        } else {
            self.close(i);
        }
        true
    }

    /// The user is without connection and request.
    fn close(&mut self, i: usize) {
        let user = &mut self.users[i];
        user.phase = Phase::Idle;
        user.deadline_ns = u64::MAX;
        if user.connection.take().is_some() {
            self.now = clock::now_ns();
        }
    }

    /// Starts a request on the user's connection, or on a new one.
    fn begin(&mut self, i: usize) -> Fate {
        let user = &mut self.users[i];
        user.start_ns = self.now;
        user.deadline_ns = self.now + self.request_timeout_ns;
        user.parser.reset();
        user.phase = Phase::Sending { sent: 0 };
        if user.connection.is_none() {
            match Connection::begin(self.address, user.source, i as u64) {
                Ok(connection) => user.connection = Some(connection),
                Err(e) => {
                    self.recorder.connect_failed_at(clock::now_ns());
                    return Fate::Failed(Failure::of_connect(&e));
                }
            }
            user.phase = Phase::Connecting { since_ns: self.now };
            let patience = self.connect_timeout_ns.min(self.request_timeout_ns);
            user.deadline_ns = self.now + patience;
        }
        self.earliest_ns = self.earliest_ns.min(user.deadline_ns);
        self.advance(i)
    }

    /// Takes a request as far as its socket lets it.
    fn advance(&mut self, i: usize) -> Fate {
        let fate = match self.users[i].phase {
            Phase::Idle => {
                // Closed by its peer while the user waited for its start: no request is lost.
                self.users[i].connection = None;
                Ok(Fate::InFlight)
            }
            Phase::Closing => Ok(self.await_peer(i)),
            Phase::Connecting { since_ns } => self.connect(i, since_ns),
            Phase::Sending { sent } => self.send(i, sent),
            Phase::Receiving => self.receive(i),
        };
        fate.unwrap_or_else(|e| Fate::Failed(Failure::of_exchange(&e, ErrorKind::Other)))
    }

    fn connect(&mut self, i: usize, since_ns: u64) -> io::Result<Fate> {
        let user = &mut self.users[i];
        let Some(connection) = &mut user.connection else {
            return Ok(Fate::InFlight);
        };
        match connection.opening() {
            Ok(Opening::Pending) => {
                connection.await_writable(&self.epoll)?;
                return Ok(Fate::InFlight);
            }
            Ok(Opening::Open) => {}
            Err(e) => {
                let now = clock::now_ns();
                // A reset cannot come before the connection: refusal has a number of its own.
                if ErrorKind::of_connect(&e) == ErrorKind::Reset {
                    self.recorder.connected_at(now, Some(now - since_ns));
                    return Err(e);
                }
                self.recorder.connect_failed_at(now);
                return Ok(Fate::Failed(Failure::of_connect(&e)));
            }
        }
        let now = clock::now_ns();
        self.recorder.connected_at(now, Some(now - since_ns));
        user.deadline_ns = user.start_ns + self.request_timeout_ns;
        self.send(i, 0)
    }

    fn send(&mut self, i: usize, mut sent: usize) -> io::Result<Fate> {
        let user = &mut self.users[i];
        let Some(connection) = &mut user.connection else {
            return Ok(Fate::InFlight);
        };
        sent += connection.send(&self.request[sent..])?;
        if sent < self.request.len() {
            user.phase = Phase::Sending { sent };
            connection.await_writable(&self.epoll)?;
        } else {
            user.phase = Phase::Receiving;
            connection.await_readable(&self.epoll)?;
        }
        Ok(Fate::InFlight)
    }

    fn receive(&mut self, i: usize) -> io::Result<Fate> {
        let user = &mut self.users[i];
        let Some(connection) = &user.connection else {
            return Ok(Fate::InFlight);
        };
        for _ in 0..READS {
            let n = match connection.receive(&mut self.buffer)? {
                None => break,
                Some(0) => {
                    let response = user.parser.end();
                    let early = || io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Ok(Fate::Answered {
                        response: response.ok_or_else(early)?,
                        reusable: false,
                    });
                }
                Some(n) => n,
            };
            match user.parser.feed(&self.buffer[..n]) {
                Ok(Progress::Done { response, reusable }) => {
                    return Ok(Fate::Answered { response, reusable });
                }
                // A full buffer has more behind it.
                Ok(Progress::More) if n == READ => {}
                Ok(Progress::More) => break,
                Err(e) => {
                    return Ok(Fate::Failed(Failure::of_exchange(&e, ErrorKind::Protocol)));
                }
            }
        }
        // Deadlines pass also while only pieces of responses arrive.
        self.now = clock::now_ns();
        Ok(Fate::InFlight)
    }

    /// Whether the peer has closed; what it still sends answers nothing.
    fn await_peer(&mut self, i: usize) -> Fate {
        let Some(connection) = &self.users[i].connection else {
            return Fate::Closed;
        };
        for _ in 0..READS {
            match connection.receive(&mut self.buffer) {
                Ok(None) => break,
                Ok(Some(0)) | Err(_) => return Fate::Closed,
                Ok(Some(_)) => {}
            }
        }
        Fate::InFlight
    }

    /// Ends the requests whose time is up.
    ///
    /// All users share two timeouts, and later requests have later deadlines, so looking through
    /// all users once in about a timeout needs neither a queue of timers nor memory per request.
    fn expire(&mut self) {
        let now = self.now;
        self.earliest_ns = u64::MAX;
        for i in 0..self.users.len() {
            if self.users[i].deadline_ns <= now {
                let fate = match self.users[i].phase {
                    Phase::Closing => Fate::Closed,
                    _ => Fate::Failed(self.too_late(i)),
                };
                self.settle(i, fate);
            }
            self.earliest_ns = self.earliest_ns.min(self.users[i].deadline_ns);
        }
    }

    fn too_late(&mut self, i: usize) -> Failure {
        let connecting = matches!(self.users[i].phase, Phase::Connecting { .. });
        if connecting {
            self.recorder.connect_failed_at(clock::now_ns());
        }
        let (kind, what, ns) = if connecting && self.connect_timeout_ns <= self.request_timeout_ns {
            (
                ErrorKind::ConnectTimeout,
                "connection",
                self.connect_timeout_ns,
            )
        } else {
            (
                ErrorKind::Timeout,
                "complete response",
                self.request_timeout_ns,
            )
        };
        Failure {
            kind,
            example: format!("no {what} within {}", yieldpoint_terms::Nanos(ns)),
        }
    }
}

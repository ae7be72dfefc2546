//! The loop of one worker: epoll, accept, and whatever a connection wants. No lock, no allocation a request.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, accept_with, acceptfrom_with};
use rustix::time::Timespec;
use yieldpoint_terms::clock::now_ns;

use crate::access_log::AccessLog;
use crate::conn::{Conn, READING};
use crate::counters::Counters;
use crate::dialogue::Rules;
use crate::phase::Fate;
use crate::reply::Replies;
use crate::settings::Settings;
use crate::site::{Mischief, Patience, Site};
use crate::slab::Slab;
use crate::timers::{Timers, timespec};

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const STOP: u64 = u64::MAX - 2;
const EVENTS: usize = 512;
const READ_BUFFER: usize = 64 * 1024;
/// Connections accepted in one turn, so that those already there are not starved.
const ACCEPTS: usize = 64;
/// Connections accepted before the end: as many as a queue can hold.
const EVERYONE: usize = 65_536;
/// How long a worker without descriptors leaves the accept queue alone, ns.
const ACCEPT_PAUSE_NS: u64 = 50_000_000;

/// What all workers share with the control thread.
#[derive(Default)]
pub struct Shared {
    /// the wall clock in seconds since 1970, kept by the control thread
    pub unix_s: AtomicU64,
    /// when the run began, CLOCK_MONOTONIC ns; 0: not yet
    pub go_ns: Arc<AtomicU64>,
    /// no more connections, and no more requests on those there are
    pub stop: AtomicBool,
}

/// One worker.
pub struct Worker {
    site: Site,
    listener: Arc<OwnedFd>,
    shared: Arc<Shared>,
    /// readable when `shared.stop` has been set
    stop: Arc<OwnedFd>,
    stopping: bool,
    conns: Slab<Conn>,
    buffer: Vec<u8>,
    accepts: usize,
    /// while accept() fails for want of descriptors: when to try again
    paused_until_ns: Option<u64>,
    next_sweep_ns: u64,
    sweep_ns: u64,
}

impl Worker {
    /// Allocates everything; nothing is accepted before [`Worker::run`].
    pub fn new(
        settings: &Settings,
        nth: usize,
        listener: Arc<OwnedFd>,
        shared: Arc<Shared>,
        replies: Replies,
        log: Option<AccessLog>,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timers = Timers::new()?;
        epoll::add(&epoll, &timers, EventData::new_u64(TIMER), EventFlags::IN)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let patience = Patience::new(settings);
        let mischief = (!settings.behaviour.is_plain()).then(|| {
            Box::new(Mischief {
                behaviour: settings.behaviour.clone(),
                worker: nth as u64,
                drawn: 0,
                go_ns: shared.go_ns.clone(),
            })
        });
        let worker = Self {
            site: Site {
                epoll,
                counters: Arc::default(),
                replies,
                log,
                rules: Rules {
                    keep_alive: settings.keep_alive,
                    keepalive_requests: settings.keepalive_requests,
                    max_body_bytes: settings.max_body_bytes,
                },
                close: settings.close,
                patience,
                mischief,
                now_ns: now_ns(),
                timers,
            },
            listener,
            shared,
            stop: Arc::new(stop),
            stopping: false,
            conns: Slab::new(),
            buffer: vec![0; READ_BUFFER],
            // With several workers one connection a turn: the others are awake too, and a
            // connection stays where it was accepted.
            accepts: if settings.workers == 1 { ACCEPTS } else { 1 },
            paused_until_ns: None,
            next_sweep_ns: 0,
            sweep_ns: (patience.least_ns() / 4).clamp(5_000_000, 1_000_000_000),
        };
        worker.watch_listener()?;
        Ok(worker)
    }

    /// What this worker counts.
    pub fn counters(&self) -> Arc<Counters> {
        self.site.counters.clone()
    }
    /// Write to it after setting [`Shared::stop`].
    pub fn stop_signal(&self) -> Arc<OwnedFd> {
        self.stop.clone()
    }

    /// Serves until it is told to stop and its last connection is closed; an error is one of epoll itself.
    pub fn run(mut self) -> std::io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let timeout = self.timeout();
            match epoll::wait(
                &self.site.epoll,
                spare_capacity(&mut events),
                timeout.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            self.site.now_ns = now_ns();
            let unix_s = self.shared.unix_s.load(Relaxed);
            self.site.replies.set_clock(unix_s);
            for &Event { flags, data } in &events {
                match data.u64() {
                    LISTENER => self.accept()?,
                    // Only wakes: what is due is found below.
                    TIMER => {}
                    STOP => self.stop()?,
                    token => self.on_conn(token, |conn, site, buffer| {
                        conn.on_event(site, buffer, flags)
                    }),
                }
            }
            while let Some(token) = self.site.timers.pop_due(self.site.now_ns) {
                self.on_conn(token, |conn, site, buffer| conn.on_due(site, buffer));
            }
            self.site.timers.arm()?;
            self.sweep()?;
            if self.stopping {
                self.close_idle();
                if self.conns.is_empty() {
                    return Ok(());
                }
            }
        }
    }

    /// Lets a connection act, and lets it go when it is done.
    fn on_conn(&mut self, token: u64, act: impl FnOnce(&mut Conn, &mut Site, &mut [u8]) -> Fate) {
        // Nothing there: it went in this very turn, before its event's turn came.
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        if act(conn, &mut self.site, &mut self.buffer) == Fate::Gone {
            // Dropping closes the descriptor and with it the epoll entry.
            self.conns.remove(token);
            self.site.counters.released.add(1);
        }
    }

    fn accept(&mut self) -> std::io::Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        for _ in 0..self.accepts {
            // The peer's address costs a copy and is wanted for the log alone.
            let accepted = if self.site.log.is_some() {
                acceptfrom_with(&*self.listener, flags)
            } else {
                accept_with(&*self.listener, flags).map(|socket| (socket, None))
            };
            match accepted {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(Errno::AGAIN) => break,
                // The client went while it was queued.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                // No descriptor or memory. The queue stays readable, so epoll would spin: look
                // away for a while; the kernel queues meanwhile.
                Err(_) => {
                    self.site.counters.accept_failures.add(1);
                    epoll::delete(&self.site.epoll, &*self.listener)?;
                    self.paused_until_ns = Some(self.site.now_ns + ACCEPT_PAUSE_NS);
                    break;
                }
            }
        }
        Ok(())
    }

    fn admit(&mut self, socket: OwnedFd, peer: Option<SocketAddrAny>) {
        let peer = peer
            .and_then(|any| std::net::SocketAddrV4::try_from(any).ok())
            .map_or(Ipv4Addr::UNSPECIFIED, |v4| *v4.ip());
        let site = &self.site;
        site.counters.accepted.add(1);
        let token = self
            .conns
            .insert(|token| Conn::new(socket, token, peer, site));
        let epoll = &self.site.epoll;
        let added = self.conns.get_mut(token).is_some_and(|conn| {
            epoll::add(epoll, conn.socket(), EventData::new_u64(token), READING).is_ok()
        });
        if !added {
            // For want of kernel memory only; the client sees its connection closed.
            self.conns.remove(token);
            self.site.counters.closed_by_target.add(1);
            self.site.counters.released.add(1);
        }
    }

    /// One listener for all workers, each waiting exclusively (so that one wakes, not all). With
    /// SO_REUSEPORT the kernel would deal connections out by hash: one behind a busy worker waits
    /// while another worker idles, and the accept queue would be n queues without one length.
    fn watch_listener(&self) -> std::io::Result<()> {
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        let data = EventData::new_u64(LISTENER);
        Ok(epoll::add(
            &self.site.epoll,
            self.listener.as_fd(),
            data,
            flags,
        )?)
    }

    /// Accepts who has been queued, then nobody. Whoever has begun a request gets its answer; from
    /// now on answers say "close".
    fn stop(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.stopping, true) || !self.shared.stop.load(Relaxed) {
            return Ok(());
        }
        epoll::delete(&self.site.epoll, self.stop.as_fd())?;
        self.site.rules.keep_alive = false;
        if self.paused_until_ns.take().is_none() {
            self.accepts = EVERYONE;
            self.accept()?;
            // accept() itself may have looked away.
            if self.paused_until_ns.take().is_none() {
                epoll::delete(&self.site.epoll, &*self.listener)?;
            }
        }
        Ok(())
    }

    /// At the end of every turn of the end: an answer that was promised with "keep-alive" may have
    /// left in it.
    fn close_idle(&mut self) {
        let idle: Vec<u64> = self.conns.tokens_where(Conn::is_idle).collect();
        for token in idle {
            self.on_conn(token, |conn, site, buffer| conn.on_stop(site, buffer));
        }
    }

    /// Looks for connections that are silent for too long, at most once in `sweep_ns`: one pass
    /// over all of them is cheaper than moving a timer at every request.
    fn sweep(&mut self) -> std::io::Result<()> {
        let now_ns = self.site.now_ns;
        if self.paused_until_ns.is_some_and(|until| until <= now_ns) {
            self.paused_until_ns = None;
            self.watch_listener()?;
        }
        if self.next_sweep_ns > now_ns {
            return Ok(());
        }
        self.next_sweep_ns = now_ns + self.sweep_ns;
        let late: Vec<u64> = self
            .conns
            .tokens_where(|c| c.deadline_ns <= now_ns)
            .collect();
        for token in late {
            self.on_conn(token, |conn, site, _| conn.on_deadline(site));
        }
        Ok(())
    }

    /// Until when nothing is due; `None`: for ever.
    fn timeout(&self) -> Option<Timespec> {
        let sweep = (!self.conns.is_empty()).then_some(self.next_sweep_ns);
        let until = [sweep, self.paused_until_ns].into_iter().flatten().min()?;
        // Rounded up to epoll's whole milliseconds, or it would turn idly during the last one.
        let left_ms = until.saturating_sub(self.site.now_ns).div_ceil(1_000_000);
        Some(timespec(left_ms * 1_000_000))
    }
}

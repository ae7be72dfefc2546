//! What a connection sees of its worker.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::time::{ClockId, clock_gettime};
use yieldpoint_terms::clock::now_ns;

use crate::access_log::AccessLog;
use crate::behaviour::{Behaviour, Ending, Plan};
use crate::counters::Counters;
use crate::dialogue::Rules;
use crate::http::{Head, Method};
use crate::reply::{Replies, Reply};
use crate::settings::{Close, Settings};
use crate::status::Kind;
use crate::timers::Timers;

/// Longest silences, ns.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// from the first byte of a head (of a new connection: from its start) to its last
    pub header_ns: u64,
    /// between two pieces of a body
    pub body_ns: u64,
    /// between two writes of a response
    pub send_ns: u64,
    /// between two requests
    pub keepalive_ns: u64,
}

/// A worker's own misbehaviour.
pub struct Mischief {
    pub behaviour: Behaviour,
    /// the number of this worker
    pub worker: u64,
    /// requests that have drawn their plan
    pub drawn: u64,
    /// when the run began; 0: not yet
    pub go_ns: Arc<AtomicU64>,
}

/// What was decided about a request.
#[derive(Debug)]
pub struct Decided {
    pub reply: Reply,
    /// `None`: answer at once and well
    pub plan: Option<Plan>,
}

/// What a connection sees of its worker.
pub struct Site {
    pub epoll: OwnedFd,
    pub counters: Arc<Counters>,
    pub replies: Replies,
    pub log: Option<AccessLog>,
    pub rules: Rules,
    pub close: Close,
    pub patience: Patience,
    /// `None`, and no cost, unless it was asked for
    pub mischief: Option<Box<Mischief>>,
    /// read once a turn, CLOCK_MONOTONIC
    pub now_ns: u64,
    /// connections that are due later, by token
    pub timers: Timers,
}

impl Patience {
    pub fn new(settings: &Settings) -> Self {
        Self {
            header_ns: settings.header_timeout.0,
            body_ns: settings.body_timeout.0,
            send_ns: settings.send_timeout.0,
            keepalive_ns: settings.keepalive_timeout.0,
        }
    }
    /// The shortest of them.
    pub fn least_ns(&self) -> u64 {
        let all = [self.header_ns, self.body_ns, self.send_ns];
        all.into_iter().fold(self.keepalive_ns, u64::min)
    }
}

impl Site {
    /// Decides the answer to a request, once, and logs it.
    pub fn decide(
        &mut self,
        peer: Ipv4Addr,
        asked: Result<&Head<'_>, Kind>,
        closes: bool,
    ) -> Decided {
        let plan = match (&mut self.mischief, asked) {
            (Some(mischief), Ok(_)) => Some(mischief.next_plan()),
            _ => None,
        };
        let reply = match asked {
            Err(kind) => self.replies.failure(kind, closes, false),
            Ok(head) if plan.is_some_and(|p| p.ending == Ending::Error) => {
                let head_only = head.method == Method::Head;
                self.replies.failure(Kind::ServerError, closes, head_only)
            }
            Ok(head) => self.replies.answer(head, closes),
        };
        if let Some(log) = &mut self.log {
            log.record(peer, asked.ok(), &reply, &self.replies);
        }
        Decided { reply, plan }
    }

    /// When an answer with this plan is due.
    pub fn due_ns(&self, plan: Plan) -> u64 {
        self.mischief.as_ref().map_or(self.now_ns, |m| {
            m.behaviour
                .due_ns(self.now_ns, plan.delay_ns, m.go_ns.load(Relaxed))
        })
    }

    /// Burns CPU time as the job asks for each request.
    pub fn burn(&mut self) {
        let burn_ns = self
            .mischief
            .as_ref()
            .map_or(0, |m| m.behaviour.cpu_burn_ns);
        if burn_ns == 0 {
            return;
        }
        // CPU time, not time: a worker that waits for its core burns nothing meanwhile.
        let until_ns = thread_cpu_ns() + burn_ns;
        while thread_cpu_ns() < until_ns {}
        self.now_ns = now_ns();
    }

    /// Time between two pieces of a body and the number of pieces, where bodies are slow.
    pub fn slow_body(&self) -> Option<(u64, usize)> {
        let b = &self.mischief.as_ref()?.behaviour;
        (b.slow_body_ns > 0).then_some((b.slow_body_ns, b.slow_body_pieces))
    }
}

impl Mischief {
    fn next_plan(&mut self) -> Plan {
        let plan = self.behaviour.plan(self.worker, self.drawn);
        self.drawn += 1;
        plan
    }
}

fn thread_cpu_ns() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    // A CPU clock is never negative.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

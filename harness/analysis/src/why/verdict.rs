//! What bound a trial, with its evidence in figures and a remedy.
//!
//! Each rule looks for one cause and says what it saw. What burns ports burns CPU as well, so a cause that
//! another explains is not counted twice; two that stand side by side are both said. If no rule holds, the
//! verdict is `unexplained`: a guess would cost a reader more than a gap.

use yieldpoint_protocol::ErrorKind::{
    BadLength, BadStatus, ClosedEarly, ConnectTimeout, FdLimit, Other, Protocol, Reset, Timeout,
};

use super::ceilings::{self, Ceiling, NO_PORT};
use super::evidence::Evidence;
use super::phases;
use crate::text;

/// Failed requests of a kind below this share of all are not what bound a trial.
const NOTABLE: f64 = 0.01;
/// A CPU that is used for this share of the time has nothing left: the rest goes to interrupts and switches.
const BUSY: f64 = 0.90;
/// The same where interrupts and others on the set are counted too, and the program has the most of it.
const SET_BUSY: f64 = 0.97;
const MOST_OF_THE_SET: f64 = 0.60;
/// A link is full at this share of its rate.
const FULL: f64 = 0.90;
/// All ports are taken if so many of them are in TIME_WAIT; the rest are in use or on their way back.
const ALL_PORTS: f64 = 0.95;
/// While connect() searches for a port, a connection costs at least this many times the CPU of the burst.
const SEARCH_COST: f64 = 3.0;
/// A request rate is met if no more than this share of it is missing.
const MISSED: f64 = 0.02;
/// The users wait for responses if no more than this share of their time is anything else.
const WAITING: f64 = 0.15;
/// Reconnecting binds if it takes this share of the users' time.
const RECONNECTING: f64 = 0.10;
/// Resident memory of the client is the machine's limit from this share on.
const MEMORY: f64 = 0.80;
/// Time stolen by the hypervisor that makes a machine noisy, share of one CPU.
const STEAL: f64 = 0.05;
/// A SYN that was dropped is sent again after 1 s, so such connects take longer than this, s.
const SYN_AGAIN_S: f64 = 0.9;

/// One cause.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    pub kind: &'static str,
    /// what was seen, in figures
    pub evidence: String,
    /// what would help, and by how much at most where a bound tells
    pub remedy: String,
}

/// What bound a trial: one cause, or two that stand side by side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    causes: Vec<Cause>,
}

impl Verdict {
    /// "ports_exhausted", or two joined by a comma.
    pub fn name(&self) -> String {
        self.joined(",", |c| c.kind)
    }
    pub fn evidence(&self) -> String {
        self.joined("; ", |c| &c.evidence)
    }
    pub fn remedy(&self) -> String {
        self.joined(" ", |c| &c.remedy)
    }
    fn joined(&self, by: &str, of: impl Fn(&Cause) -> &str) -> String {
        self.causes.iter().map(of).collect::<Vec<_>>().join(by)
    }
}

/// Judges a trial; `ceilings` are its bounds, the least first.
pub(crate) fn verdict(e: &Evidence, ceilings: &[Ceiling]) -> Verdict {
    let ports = ports_exhausted(e, ceilings).or_else(|| port_search(e, ceilings));
    let failed = [
        fd_limit(e),
        accept_queue(e),
        target_errors(e),
        client_memory(e),
    ];
    let mut causes: Vec<Cause> = ports
        .into_iter()
        .chain(failed.into_iter().flatten())
        .collect();
    if causes.is_empty() {
        causes.extend(pacing(e, ceilings));
    }
    if causes.is_empty() {
        let loads = [
            bandwidth(e),
            keepalive_limit(e),
            client_cpu(e, ceilings),
            target_cpu(e, ceilings),
        ];
        causes.extend(loads.into_iter().flatten());
    }
    if causes.is_empty() {
        causes.extend(noisy_machine(e).or_else(|| target_latency(e, ceilings)));
    }
    if causes.is_empty() {
        causes.push(unexplained(e));
    }
    causes.truncate(2);
    Verdict { causes }
}

/// " The next bound is client_cpu at 12,300/s, 2.5× of now.": what is left once this cause is gone.
fn next_bound(e: &Evidence, ceilings: &[Ceiling], without: &str) -> String {
    let Some(x) = e.lasting_per_s().filter(|x| *x > 0.0) else {
        return String::new();
    };
    // A bound that was all but reached helps nobody to predict.
    let next = ceilings
        .iter()
        .find(|c| c.kind != without && c.per_s > 1.1 * x);
    next.map_or_else(String::new, |c| {
        format!(
            " The next known bound is {} at {}/s, {} of now.",
            c.kind,
            text::significant(c.per_s),
            text::times(c.per_s / x)
        )
    })
}

fn percent(share: f64) -> String {
    text::percent(share, 1.0).unwrap_or_default()
}

fn ports_exhausted(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    let refused = e.failed(&NO_PORT);
    // Without a single connection the address itself was refused, not a port of it.
    if refused == 0.0
        || refused < NOTABLE * e.attempts && exhausted_s(e) < 1.0
        || e.connections == 0.0
    {
        return None;
    }
    let taken = match (e.time_wait_peak, e.ports) {
        (Some(held), Some(ports)) if held >= ALL_PORTS * ports => {
            format!(
                "TIME_WAIT {} of {} ports",
                text::counted(held),
                text::counted(ports)
            )
        }
        // Ports may be held by open connections, or freed by reuse before they pile up.
        (held, Some(ports)) => format!(
            "{} connections with {} ports{}",
            text::counted(e.connections),
            text::counted(ports),
            held.map_or_else(String::new, |h| format!(
                ", TIME_WAIT {} at most",
                text::counted(h)
            ))
        ),
        _ => format!("{} connections", text::counted(e.connections)),
    };
    let from = e
        .no_port_s
        .map_or_else(String::new, |s| format!(", none free from second {s:.1}"));
    let nothing = match exhausted_s(e) {
        s if s >= 1.0 => format!(
            "; exhausted for {} s of {}",
            text::significant(s),
            text::significant(e.window_s)
        ),
        _ => String::new(),
    };
    Some(Cause {
        kind: "ports_exhausted",
        evidence: format!(
            "{taken}{from}; {} of the requests found no port{nothing}",
            percent(refused / e.attempts)
        ),
        remedy: more_ports(e, ceilings),
    })
}

fn exhausted_s(e: &Evidence) -> f64 {
    phase_ms(e, phases::EXHAUSTED) / 1e3
}

fn phase_ms(e: &Evidence, name: &str) -> f64 {
    let of = e.course.phases.iter().filter(|p| p.name == name);
    of.map(|p| (p.end_ms - p.start_ms) as f64).sum()
}

/// What frees ports, in the order of its worth.
fn more_ports(e: &Evidence, ceilings: &[Ceiling]) -> String {
    let reuse = match (e.reuse_after_s, e.ports, e.requests_per_connection) {
        (None, Some(ports), Some(requests)) => {
            let share = e.client_closes.filter(|p| *p > 0.0).unwrap_or(1.0);
            format!(
                "Set net.ipv4.tcp_tw_reuse = 1 (with timestamps): a port is free after 1 s, which allows {}/s.",
                text::significant(ports * requests / share)
            )
        }
        (None, ..) => "Set net.ipv4.tcp_tw_reuse = 1 (with timestamps).".to_owned(),
        (Some(s), ..) => format!("Ports are reused after {} s already.", text::significant(s)),
    };
    format!(
        "{reuse} Or open fewer connections (same_user, keep_alive, more requests an iteration), or use more source_addresses: n of them have n times the ports.{}",
        next_bound(e, ceilings, ceilings::PORTS)
    )
}

fn port_search(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    let since = e.half_used_s?;
    let of = |name: &str| {
        let found = e.course.phases.iter().find(|p| p.name == name);
        found.map(|p| p.good_per_s)
    };
    let (burst, search) = (of(phases::BURST)?, of(phases::SEARCH)?);
    let (cheap, dear) = (e.burst_cpu_s?, e.search_cpu_s?);
    (dear >= SEARCH_COST * cheap).then(|| Cause {
        kind: "port_search",
        evidence: format!(
            "over half of {} ports in TIME_WAIT from second {since:.1}; from then on {}/s against {}/s in the burst, and {} of client CPU a connection against {}",
            e.ports.map(text::counted).unwrap_or_default(),
            text::significant(search),
            text::significant(burst),
            text::time(dear * 1e9),
            text::time(cheap * 1e9),
        ),
        remedy: more_ports(e, ceilings),
    })
}

fn fd_limit(e: &Evidence) -> Option<Cause> {
    let failed = e.failed(&[FdLimit]);
    let at = |peak: Option<f64>| peak.zip(e.fd_limit).is_some_and(|(p, l)| p >= l - 1.0);
    // A target that cannot accept fails no request of the client by itself: the queue fills up.
    let target = at(e.target_fds_peak) && (e.failed(&[ConnectTimeout, Timeout]) > 0.0);
    if failed < NOTABLE * e.attempts.max(1.0) && !target {
        return None;
    }
    let (who, peak) = if failed > 0.0 {
        ("client", e.client_fds_peak)
    } else {
        ("target", e.target_fds_peak)
    };
    let limit = e
        .fd_limit
        .map_or_else(String::new, |l| format!(" of {}", text::counted(l)));
    let held = peak.map_or_else(String::new, |p| {
        format!("; {} descriptors{limit} open", text::counted(p))
    });
    Some(Cause {
        kind: "fd_limit",
        evidence: format!(
            "no descriptor left at the {who}: {} of the requests failed by it{held}",
            percent(failed / e.attempts.max(1.0))
        ),
        remedy: "Raise lab.nofile (ulimit -n) above the number of users and some 20.".to_owned(),
    })
}

fn accept_queue(e: &Evidence) -> Option<Cause> {
    let drops = e.listen_drops.filter(|d| *d > 0.0)?;
    let slow = e.connect_p99_s.is_some_and(|s| s >= SYN_AGAIN_S);
    let timed_out = e.failed(&[ConnectTimeout]);
    // A few drops at the start, when all users connect at once, bind nothing afterwards.
    if drops < NOTABLE * e.connections && !slow && timed_out < NOTABLE * e.attempts {
        return None;
    }
    let queue = match (e.listen_queue_peak, e.backlog) {
        (Some(peak), Some(of)) => {
            format!(", queue {} of {}", text::counted(peak), text::counted(of))
        }
        _ => String::new(),
    };
    let wait = e.connect_p99_s.map_or_else(String::new, |s| {
        format!(
            "; one connect in a hundred took {} or longer",
            text::time(s * 1e9)
        )
    });
    Some(Cause {
        kind: "accept_queue",
        evidence: format!(
            "{} connects dropped at the accept queue for {} opened{queue}{wait}",
            text::counted(drops),
            text::counted(e.connections)
        ),
        remedy: "Raise target.backlog and net.core.somaxconn together, or let the target accept faster (more workers)."
            .to_owned(),
    })
}

fn target_errors(e: &Evidence) -> Option<Cause> {
    let kinds = [BadStatus, BadLength, Reset, ClosedEarly, Protocol];
    let failed = e.failed(&kinds);
    (failed >= NOTABLE * e.attempts && failed > 0.0).then(|| {
        let each: Vec<String> = kinds
            .iter()
            .filter_map(|k| e.errors.get(k).map(|n| (k, n)))
            .map(|(k, n)| format!("{} {}", text::counted(*n), k.name()))
            .collect();
        Cause {
            kind: "target_errors",
            evidence: format!(
                "{} of {} requests failed at the target: {}",
                percent(failed / e.attempts),
                text::counted(e.attempts),
                each.join(", ")
            ),
            remedy: "Read the target's log; only good requests count, so its failures are what bounds them."
                .to_owned(),
        }
    })
}

fn client_memory(e: &Evidence) -> Option<Cause> {
    let full = e.client_memory_share.filter(|s| *s >= MEMORY);
    let refused = e.other_example.as_deref().filter(|t| {
        t.contains("os error 12)") || t.to_lowercase().contains("cannot allocate memory")
    });
    let failed = e.failed(&[Other]);
    let evidence = match (full, refused) {
        (Some(s), _) => format!(
            "the client's memory peaked at {} of the machine's",
            percent(s)
        ),
        (None, Some(text)) if failed >= NOTABLE * e.attempts => {
            format!(
                "{} of the requests failed for lack of memory (\"{text}\")",
                percent(failed / e.attempts)
            )
        }
        _ => return None,
    };
    Some(Cause {
        kind: "client_memory",
        evidence,
        remedy: "Use fewer users, or a client that keeps less for each.".to_owned(),
    })
}

fn pacing(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    let (rate, x) = (e.rate?, e.good_per_s?);
    (x >= (1.0 - MISSED) * rate).then(|| Cause {
        kind: "pacing",
        evidence: format!(
            "{}/s were asked for and {}/s given",
            text::significant(rate),
            text::significant(x)
        ),
        remedy: format!(
            "Raise rate to load further.{}",
            next_bound(e, ceilings, ceilings::PACING)
        ),
    })
}

fn bandwidth(e: &Evidence) -> Option<Cause> {
    let (link, used) = (e.link_bit_per_s?, e.link_used_bit_per_s?);
    (used >= FULL * link).then(|| Cause {
        kind: "bandwidth",
        evidence: format!(
            "{} of the link's {} Mbit/s used towards the client",
            percent(used / link),
            text::significant(link / 1e6)
        ),
        remedy: "Use smaller responses (compression) or a faster link (lab.rate).".to_owned(),
    })
}

fn keepalive_limit(e: &Evidence) -> Option<Cause> {
    let limit = e.keepalive_limit?;
    let closed = e
        .closed_by_target
        .filter(|c| *c >= 0.5 * e.connections && *c > 0.0)?;
    let (connect, users) = (e.connect_mean_s?, e.users?);
    let share = connect * e.connections / (users * e.window_s);
    (share >= RECONNECTING).then(|| Cause {
        kind: "keepalive_limit",
        evidence: format!(
            "the target closed {} of {} connections, each after {}; connecting anew took {} of the users' time",
            text::counted(closed),
            text::counted(e.connections),
            text::plural(limit as usize, "response"),
            percent(share)
        ),
        remedy: format!(
            "Raise target.keepalive_requests (nginx: keepalive_requests): without reconnecting at most {} of now.",
            text::times(1.0 / (1.0 - share.min(0.99)))
        ),
    })
}

/// A program that has no CPU left: by its own clock, or by its set's, where interrupts are booked apart.
fn saturated(own: Option<f64>, set: Option<f64>) -> Option<f64> {
    let by_clock = own.filter(|s| *s >= BUSY);
    let by_set = || set.filter(|s| *s >= SET_BUSY && own.is_some_and(|o| o >= MOST_OF_THE_SET));
    by_clock.or_else(by_set)
}

fn busy_text(own: Option<f64>, set: Option<f64>, cores: Option<f64>, what: &str) -> String {
    let cores = cores.map_or_else(String::new, |c| {
        // A number of CPUs: small and whole.
        format!(" of {}", text::plural(c.round() as usize, "core"))
    });
    let set = set.map_or_else(String::new, |s| {
        format!(" (its CPUs were busy for {})", percent(s))
    });
    format!(
        "the {what} used {}{cores}{set}",
        percent(own.unwrap_or_default())
    )
}

fn client_cpu(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    saturated(e.client_cpu, e.client_set_busy)?;
    let cost = e.client_cpu_s_per_good.map_or_else(String::new, |s| {
        format!(", {} a good request", text::time(s * 1e9))
    });
    Some(Cause {
        kind: "client_cpu",
        evidence: busy_text(e.client_cpu, e.client_set_busy, e.client_cores, "client") + &cost,
        remedy: format!(
            "Give the client more CPUs and threads (twice of both give at most 2×), or take a client that needs less CPU a request.{}",
            next_bound(e, ceilings, ceilings::CLIENT_CPU)
        ),
    })
}

fn target_cpu(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    saturated(e.target_cpu, e.target_set_busy)?;
    Some(Cause {
        kind: "target_cpu",
        evidence: busy_text(e.target_cpu, e.target_set_busy, e.target_cores, "target"),
        remedy: format!(
            "Give the target more CPUs and workers (twice of both give at most 2×), or less to do a request.{}",
            next_bound(e, ceilings, ceilings::TARGET)
        ),
    })
}

fn noisy_machine(e: &Evidence) -> Option<Cause> {
    let stolen = e.steal.filter(|s| *s >= STEAL);
    (e.noisy || stolen.is_some()).then(|| Cause {
        kind: "noisy_machine",
        evidence: stolen.map_or_else(
            || {
                "samples came late or the hypervisor took CPU time; nothing else was saturated"
                    .to_owned()
            },
            |s| {
                format!(
                    "the hypervisor took {} of a CPU; nothing else was saturated",
                    percent(s)
                )
            },
        ),
        remedy: "Measure again on a quiet machine, with more rounds.".to_owned(),
    })
}

/// Nobody was short of anything: the users waited for their responses.
fn target_latency(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    let late = e.failed(&[Timeout]);
    if late >= NOTABLE * e.attempts && late > 0.0 {
        return Some(Cause {
            kind: "target_latency",
            evidence: format!(
                "{} of {} requests got no complete response in time",
                percent(late / e.attempts),
                text::counted(e.attempts)
            ),
            remedy: "Find what the target waits for; a longer request_timeout only hides it."
                .to_owned(),
        });
    }
    let rest = e.unexplained_time().filter(|u| *u <= WAITING)?;
    // Without the CPU of both ends nothing says that it was not what they waited for.
    let (client, target) = (e.client_cpu?, e.target_cpu?);
    let latency = e.latency_mean_s?;
    Some(Cause {
        kind: "target_latency",
        evidence: format!(
            "{} of the users' time is response time ({} each{}), while the client used {} and the target {} of its CPUs",
            percent((1.0 - rest).clamp(0.0, 1.0)),
            text::time(latency * 1e9),
            // A user alone takes turns with the target, and its own work is part of what it waits for.
            e.client_cpu_s_per_good
                .map_or_else(String::new, |own| format!(
                    ", with {} of the client's own CPU",
                    text::time(own * 1e9)
                )),
            percent(client),
            percent(target)
        ),
        remedy: format!(
            "Add users: each adds at most {}/s.{}",
            text::significant(1.0 / latency),
            next_bound(e, ceilings, ceilings::USERS)
        ),
    })
}

fn unexplained(e: &Evidence) -> Cause {
    let mut seen = Vec::new();
    if let Some(u) = e.unexplained_time() {
        seen.push(format!(
            "{} of the users' time is not response time",
            percent(u.max(0.0))
        ));
    }
    for (who, share) in [("client", e.client_cpu), ("target", e.target_cpu)] {
        if let Some(s) = share {
            seen.push(format!("the {who} used {} of its CPUs", percent(s)));
        }
    }
    let failed: f64 = e.errors.values().sum();
    if failed > 0.0 {
        seen.push(format!(
            "{} of the requests failed",
            percent(failed / e.attempts)
        ));
    }
    let evidence = if seen.is_empty() {
        "too little was measured to name a cause".to_owned()
    } else {
        format!("no cause shows: {}", seen.join(", "))
    };
    Cause {
        kind: "unexplained",
        evidence,
        remedy: "Look where the client's threads wait, and measure with more samples.".to_owned(),
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;

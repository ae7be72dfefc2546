//! Causes of trials whose requests succeed: what was asked, a full link or CPU, or plain latency.

use yieldpoint_protocol::ErrorKind::Timeout;

use super::ceilings::{self, Ceiling};
use super::evidence::Evidence;
use super::verdict::{Cause, NOTABLE, next_bound, percent};
use crate::text;

/// A CPU that is used for this share of the time has nothing left: the rest goes to interrupts and switches.
const BUSY: f64 = 0.90;
/// The same where the soft interrupts of its set are counted too, and the program has the most of it.
const SET_BUSY: f64 = 0.97;
const MOST_OF_THE_SET: f64 = 0.60;
/// A link is full at this share of its rate.
const FULL: f64 = 0.90;
/// A request rate is met if no more than this share of it is missing.
const MISSED: f64 = 0.02;
/// The users wait for responses if no more than this share of their time is anything else.
const WAITING: f64 = 0.15;
/// A user's time goes to the CPU of one end if it takes this share of it.
const MOST_OF_A_TURN: f64 = 0.50;
/// Reconnecting binds if it takes this share of the users' time.
const RECONNECTING: f64 = 0.10;
/// Time stolen by the hypervisor that makes a machine noisy, share of one CPU.
const STEAL: f64 = 0.05;

pub(super) fn pacing(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    let (rate, x) = (e.rate?, e.good_per_s?);
    // The number of random starts varies by its root (Poisson): three of these are chance.
    let chance = match e.poisson {
        true => 3.0 / (rate * e.window_s).sqrt(),
        false => 0.0,
    };
    (x >= (1.0 - MISSED - chance) * rate).then(|| Cause {
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

pub(super) fn bandwidth(e: &Evidence) -> Option<Cause> {
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

pub(super) fn keepalive_limit(e: &Evidence) -> Option<Cause> {
    // Connections that end long before the limit ended for another reason.
    let limit = e
        .keepalive_limit
        .filter(|limit| e.attempts >= 0.5 * limit * e.connections)?;
    let closed = e
        .closed_by_target
        .filter(|c| *c >= 0.5 * e.connections && *c > 0.0)?;
    // A connection costs at least one round trip beside those of its requests, wherever its time is booked.
    let of_round_trips = 1.0 / (limit + 1.0);
    let of_time = e
        .connect_mean_s
        .zip(e.users)
        .map_or(0.0, |(connect, users)| {
            connect * e.connections / (users * e.window_s)
        });
    let share = of_time.max(of_round_trips);
    (share >= RECONNECTING).then(|| Cause {
        kind: "keepalive_limit",
        evidence: format!(
            "the target closed {} of {} connections, each after {}; connecting anew took {} of the users' time or round trips",
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

/// A program that has no CPU left: by its own clock, or with the interrupts of its set, where they are booked apart.
fn saturated(own: Option<f64>, set: Option<f64>, crowded: bool) -> Option<f64> {
    let by_clock = own.filter(|s| *s >= BUSY);
    let most = own.is_some_and(|o| o >= MOST_OF_THE_SET) && !crowded;
    by_clock.or_else(|| set.filter(|s| *s >= SET_BUSY && most))
}

fn busy_text(own: Option<f64>, set: Option<f64>, cores: Option<f64>, what: &str) -> String {
    let cores = cores.map_or_else(String::new, |c| {
        // A number of CPUs: small and whole.
        format!(" of {}", text::plural(c.round() as usize, "core"))
    });
    let set = set.map_or_else(String::new, |s| {
        format!(" ({} with the interrupts of its CPUs)", percent(s))
    });
    format!(
        "the {what} used {}{cores}{set}",
        percent(own.unwrap_or_default())
    )
}

pub(super) fn client_cpu(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    saturated(e.client_cpu, e.client_set_busy, e.crowded())?;
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

pub(super) fn target_cpu(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    saturated(e.target_cpu, e.target_set_busy, e.crowded())?;
    Some(Cause {
        kind: "target_cpu",
        evidence: busy_text(e.target_cpu, e.target_set_busy, e.target_cores, "target"),
        remedy: format!(
            "Give the target more CPUs and workers (twice of both give at most 2×), or less to do a request.{}",
            next_bound(e, ceilings, ceilings::TARGET)
        ),
    })
}

pub(super) fn noisy_machine(e: &Evidence) -> Option<Cause> {
    let stolen = e.steal.filter(|s| *s >= STEAL);
    let what = match (stolen, e.others.filter(|_| e.crowded())) {
        (Some(s), _) => format!("the hypervisor took {} of a CPU", percent(s)),
        (None, Some(s)) => format!(
            "others used {} of the CPUs of client or target{}",
            percent(s.min(1.0)),
            e.waited.map_or_else(String::new, |w| format!(
                ", for which its threads waited {} of the time",
                percent(w.min(1.0))
            ))
        ),
        (None, None) if e.throttled => "a CPU quota held the client back".to_owned(),
        // Where the kernel says that nobody here waited for a CPU, late samples bind nothing.
        (None, None) if e.noisy && e.waited.is_none() => "samples came late".to_owned(),
        (None, None) => return None,
    };
    Some(Cause {
        kind: "noisy_machine",
        evidence: format!("{what}; nothing else was saturated"),
        remedy: "Measure again on a quiet machine, with more rounds.".to_owned(),
    })
}

/// No CPU is used up, but a user takes turns with the target, and most of its time is the CPU of one of them:
/// a loop of one request at a time cannot use what is left.
pub(super) fn taking_turns(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
    let (users, x) = (e.users?, e.good_per_s.filter(|x| *x > 0.0)?);
    let share = |cpu: Option<f64>, cores: Option<f64>| Some(cpu? * cores? / users);
    let client = share(e.client_cpu, e.client_cores);
    let target = share(e.target_cpu, e.target_cores);
    let most = |s: &f64| *s >= MOST_OF_A_TURN;
    let (kind, who, share, used, bound) = match (client.filter(most), target.filter(most)) {
        (Some(s), _) => (
            "client_cpu",
            "client",
            s,
            e.client_cpu?,
            ceilings::CLIENT_CPU,
        ),
        (None, Some(s)) => ("target_cpu", "target", s, e.target_cpu?, ceilings::TARGET),
        (None, None) => return None,
    };
    Some(Cause {
        kind,
        evidence: format!(
            "{} of each user's time is CPU of the {who} ({} of {} a request): one request at a time, no CPU is used up",
            percent(share.min(1.0)),
            text::time(share * users / x * 1e9),
            text::time(users / x * 1e9),
        ),
        remedy: format!(
            "Make a request cheaper for the {who}, or add users, which use its CPU while others wait: at most {} of now.{}",
            text::times(1.0 / used.clamp(0.01, 1.0)),
            next_bound(e, ceilings, bound)
        ),
    })
}

/// Nobody was short of anything: the users waited for their responses.
pub(super) fn target_latency(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
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
    let waiting = e.waiting().filter(|w| *w >= 1.0 - WAITING)?;
    // Without the CPU of both ends nothing says that it was not what they waited for.
    let (client, target) = (e.client_cpu?, e.target_cpu?);
    let latency = e.latency_mean_s?;
    Some(Cause {
        kind: "target_latency",
        evidence: format!(
            "{} of the users' time is response time ({} each{}), while the client used {} and the target {} of its CPUs",
            percent(waiting.min(1.0)),
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

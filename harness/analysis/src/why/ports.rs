//! Causes that lie in the local ports.

use super::ceilings::{self, Ceiling, NO_PORT};
use super::evidence::Evidence;
use super::phases;
use super::verdict::{Cause, NOTABLE, next_bound, percent};
use crate::text;

/// All ports are taken if so many of them are in TIME_WAIT; the rest are in use or on their way back.
const ALL_PORTS: f64 = 0.95;
/// While connect() searches for a port, a connection costs at least this many times the CPU of the burst.
const SEARCH_COST: f64 = 3.0;

pub(super) fn ports_exhausted(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
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

pub(super) fn port_search(e: &Evidence, ceilings: &[Ceiling]) -> Option<Cause> {
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

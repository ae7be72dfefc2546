//! Causes that show as failed requests or lost connects.

use yieldpoint_protocol::ErrorKind::{
    BadLength, BadStatus, ClosedEarly, ConnectTimeout, FdLimit, Other, Protocol, Reset, Timeout,
};

use super::evidence::Evidence;
use super::verdict::{Cause, NOTABLE, percent};
use crate::text;

/// Resident memory of the client is the machine's limit from this share on.
const MEMORY: f64 = 0.80;
/// A SYN that was dropped is sent again after 1 s (RFC 6298, section 2), so such connects take longer than this, s.
const SYN_AGAIN_S: f64 = 0.9;
/// Dropped connects bind if their users spend this share of the time waiting for the next SYN.
const LOST: f64 = 0.10;

pub(super) fn fd_limit(e: &Evidence) -> Option<Cause> {
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

pub(super) fn accept_queue(e: &Evidence) -> Option<Cause> {
    let drops = e.listen_drops.filter(|d| *d > 0.0)?;
    let slow = e.connect_p99_s.is_some_and(|s| s >= SYN_AGAIN_S);
    let timed_out = e.failed(&[ConnectTimeout]);
    // A user whose SYN was dropped does nothing for a second, while the others go on: of many users most may
    // wait, however few of all connects were dropped. A few drops at the start bind nothing afterwards.
    let lost = e.users.map(|u| drops * 1.0 / (u * e.window_s));
    if lost.is_none_or(|l| l < LOST) && !slow && timed_out < NOTABLE * e.attempts {
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
            "{} connects dropped at the accept queue for {} opened{queue}{wait}{}",
            text::counted(drops),
            text::counted(e.connections),
            lost.map_or_else(String::new, |l| format!(
                "; a second each, {} of the users' time",
                percent(l.min(1.0))
            ))
        ),
        remedy: "Raise target.backlog and net.core.somaxconn together, or let the target accept faster (more workers)."
            .to_owned(),
    })
}

pub(super) fn target_errors(e: &Evidence) -> Option<Cause> {
    let kinds = [BadStatus, BadLength, Reset, ClosedEarly, Protocol];
    let failed = e.failed(&kinds);
    let reached = e.reached();
    (failed >= NOTABLE * reached && failed > 0.0).then(|| {
        let each: Vec<String> = kinds
            .iter()
            .filter_map(|k| e.errors.get(k).map(|n| (k, n)))
            .map(|(k, n)| format!("{} {}", text::counted(*n), k.name()))
            .collect();
        Cause {
            kind: "target_errors",
            evidence: format!(
                "{} of {} requests that reached the target failed there: {}",
                percent(failed / reached),
                text::counted(reached),
                each.join(", ")
            ),
            remedy: "Read the target's log; only good requests count, so its failures are what bounds them."
                .to_owned(),
        }
    })
}

pub(super) fn client_memory(e: &Evidence) -> Option<Cause> {
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

//! What bound a trial, with its evidence in figures and a remedy.
//!
//! Each rule looks for one cause and says what it saw. What burns ports burns CPU as well, so a cause that
//! another explains is not counted twice; two that stand side by side are both said. If no rule holds, the
//! verdict is `unexplained`: a guess would cost a reader more than a gap.

use super::ceilings::Ceiling;
use super::evidence::Evidence;
use super::failures::{accept_queue, client_memory, fd_limit, target_errors};
use super::loads::{
    bandwidth, client_cpu, keepalive_limit, noisy_machine, pacing, taking_turns, target_cpu,
    target_latency,
};
use super::ports::{port_search, ports_exhausted};
use crate::text;

/// Failed requests of a kind below this share of all are not what bound a trial.
pub(super) const NOTABLE: f64 = 0.01;

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
    /// A cause that needs no judgement of others.
    pub fn of(cause: Cause) -> Self {
        Self {
            causes: vec![cause],
        }
    }
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
    // A request that fails at once is tried again at once, which burns the client's CPU and nobody else's.
    let burning = [fd_limit(e), client_memory(e)];
    let (of_ports, burns) = (ports.is_some(), burning.iter().any(Option::is_some));
    let failed = [accept_queue(e), target_errors(e)];
    let mut causes: Vec<Cause> = (ports.into_iter())
        .chain(burning.into_iter().flatten())
        .chain(failed.into_iter().flatten())
        .collect();
    if causes.is_empty() {
        causes.extend(pacing(e, ceilings));
    }
    // What is full stands beside failures: a failed request frees neither a link nor a CPU. Only the ports explain
    // all of it: a trial that burned them had bursts, and their averages say nothing.
    if !of_ports && !causes.iter().any(|c| c.kind == "pacing") {
        let loads = [
            bandwidth(e),
            keepalive_limit(e),
            client_cpu(e, ceilings).filter(|_| !burns),
            target_cpu(e, ceilings),
        ];
        causes.extend(loads.into_iter().flatten());
    }
    if causes.is_empty() {
        causes.extend(
            noisy_machine(e)
                .or_else(|| taking_turns(e, ceilings))
                .or_else(|| target_latency(e, ceilings)),
        );
    }
    if causes.is_empty() {
        causes.push(unexplained(e));
    }
    causes.truncate(2);
    Verdict { causes }
}

/// " The next bound is client_cpu at 12,300/s, 2.5× of now.": what is left once this cause is gone.
pub(super) fn next_bound(e: &Evidence, ceilings: &[Ceiling], without: &str) -> String {
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

pub(super) fn percent(share: f64) -> String {
    text::percent(share, 1.0).unwrap_or_default()
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

//! The bound that the kernel's search for a free port sets.
//!
//! connect() tries half of the ports first, those of one parity, and finds them at once while few are in use. The
//! other half is found by search, ever slower. So a cycle holds half of the ports, and what the search finds in
//! the rest of it. How fast it searches no law says: it comes from other trials of the same client and lab.

use std::collections::HashMap;

use super::ceilings::{CYCLE_S, Ceiling};
use super::evidence::Evidence;
use super::phases;
use crate::text;

pub(crate) const PORT_SEARCH: &str = "port_search";

/// What trials that searched for ports know of one another.
#[derive(Debug, Default)]
pub(super) struct Searches {
    /// by `client_key`
    seen: HashMap<String, Vec<Seen>>,
}

/// One trial that burned half of its ports and went on searching.
#[derive(Clone, Debug)]
struct Seen {
    cell: String,
    round: u32,
    burst_per_s: f64,
    search_per_s: f64,
}

impl Searches {
    pub fn add(&mut self, e: &Evidence) {
        let of = |name: &str| {
            let found = e.course.phases.iter().find(|p| p.name == name);
            found.map(|p| p.good_per_s).filter(|x| *x > 0.0)
        };
        if let Some((burst_per_s, search_per_s)) = of(phases::BURST).zip(of(phases::SEARCH)) {
            self.seen
                .entry(e.client_key.clone())
                .or_default()
                .push(Seen {
                    cell: e.cell.clone(),
                    round: e.round,
                    burst_per_s,
                    search_per_s,
                });
        }
    }

    /// The bound of a trial that closes first; `share`: of its connections, those that leave TIME_WAIT at the
    /// client. `None` where no other trial searched, or the search does not bind.
    pub fn ceiling(&self, e: &Evidence, share: f64) -> Option<Ceiling> {
        let (ports, requests) = (e.ports?, e.requests_per_connection?);
        if e.reuse_after_s.is_some() {
            return None;
        }
        let others = self.seen.get(&e.client_key)?.iter();
        let others: Vec<&Seen> = others
            .filter(|s| s.cell != e.cell || s.round != e.round)
            .collect();
        // A number of trials, far below 2^53.
        let n = others.len() as f64;
        let mean = |of: fn(&Seen) -> f64| others.iter().map(|s| of(s)).sum::<f64>() / n;
        let first = others.first()?;
        let (burst, search) = (mean(|s| s.burst_per_s), mean(|s| s.search_per_s));
        let cycle = CYCLE_S.min(e.window_s);
        let half = ports / 2.0 * requests / share;
        let left = cycle - half / burst;
        let served = half + search * left;
        (left > 0.0 && served < 2.0 * half).then(|| Ceiling {
            kind: PORT_SEARCH,
            per_s: served / cycle,
            from: format!(
                "half of {} ports in {} s, then {}/s by search for the rest of {} s (\"{}\"{})",
                text::counted(ports),
                text::significant(half / burst),
                text::significant(search),
                text::significant(cycle),
                first.cell,
                if others.len() > 1 { " and others" } else { "" }
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::phases::{Course, Phase};

    /// A made-up trial of 130 s: a burst of 6,400/s, then 150/s by search.
    fn searching(cell: &str, round: u32) -> Evidence {
        let phase = |name, start_ms, end_ms, good_per_s| Phase {
            name,
            start_ms,
            end_ms,
            good_per_s,
        };
        Evidence {
            cell: cell.into(),
            round,
            client_key: "k".into(),
            window_s: 130.0,
            ports: Some(64_000.0),
            requests_per_connection: Some(1.0),
            course: Course {
                phases: vec![
                    phase(phases::BURST, 0, 5_000, 6_400.0),
                    phase(phases::SEARCH, 5_000, 61_000, 150.0),
                ],
                ..Course::default()
            },
            ..Evidence::default()
        }
    }

    fn known(of: &[&Evidence]) -> Searches {
        let mut all = Searches::default();
        of.iter().for_each(|e| all.add(e));
        all
    }

    #[test]
    fn half_of_the_ports_and_what_the_search_finds() {
        let other = searching("other", 1);
        let of = |change: &dyn Fn(&mut Evidence)| {
            let mut e = searching("mine", 1);
            change(&mut e);
            known(&[&other]).ceiling(&e, 1.0).map(|c| c.per_s.round())
        };
        // 32,000 in 5 s, and 150/s for 56 s more: 40,400 in a cycle of 61 s.
        assert_eq!(of(&|_| ()), Some(662.0));
        // A window of 10 s ends within the search: 32,750.
        assert_eq!(of(&|e| e.window_s = 10.0), Some(3_275.0));
        // It ends within the burst, which the search does not bind.
        assert_eq!(of(&|e| e.window_s = 4.0), None);
        // 8,000 ports are all found within the cycle: their number binds.
        assert_eq!(of(&|e| e.ports = Some(8_000.0)), None);
        // Ports that are free again after a second need no search.
        assert_eq!(of(&|e| e.reuse_after_s = Some(1.0)), None);
        // Another client, lab or target says nothing of this one.
        assert_eq!(of(&|e| e.client_key = "another".into()), None);
    }

    #[test]
    fn no_trial_bounds_itself() {
        let (first, second) = (searching("mine", 1), searching("mine", 2));
        assert_eq!(known(&[&first]).ceiling(&first, 1.0), None);
        // Another round of the same cell is another trial.
        assert!(known(&[&first, &second]).ceiling(&first, 1.0).is_some());
    }
}

//! What the data say, in sentences; never more than they carry.
//!
//! The answer leads: where along an axis throughput falls or bends, a sentence each, then what bound the cells,
//! then who was fastest. What it rests on follows the pictures.

use super::comparisons::{fastest, keep_alive, per_client};
use super::why::{breaks, examples, laws, verdicts};
use crate::grid::{Cell, Grid, Numbers, Place, no_port_free, ports};
use crate::stats::Spread;
use crate::text;
use crate::timeline::zero;

/// Combinations of the axes that are described one by one where ports ran out.
const DETAILS: usize = 3;

/// The sentences of a report, most important first.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Findings {
    /// before the pictures
    pub answer: Vec<String>,
    /// behind them
    pub evidence: Vec<String>,
}

/// At most five sentences of answer and twelve of evidence.
pub(super) fn findings(grid: &Grid) -> Findings {
    let measured = grid
        .cells
        .iter()
        .filter(|c| c.ok().next().is_some())
        .count();
    if measured == 0 {
        let none = "No trial was measured: there is no finding. The warnings say why.";
        return Findings {
            answer: vec![none.to_owned()],
            evidence: Vec::new(),
        };
    }
    let mut answer = breaks(grid, true);
    answer.extend(verdicts(grid));
    answer.extend(fastest(grid));
    let mut evidence = examples(grid);
    evidence.extend(ran_out(grid, measured));
    evidence.extend(breaks(grid, false));
    evidence.extend(keep_alive(grid));
    let cpu = per_client(grid, "CPU per good request", "µs", |n| n.cpu_us_per_good);
    let memory = per_client(grid, "Peak memory of the client", "MiB", |n| {
        n.rss_peak_kib.map(|kib| kib / 1024.0)
    });
    evidence.extend(cpu.into_iter().chain(memory));
    evidence.extend(laws(grid));
    Findings { answer, evidence }
}

/// Where no local port was free.
fn ran_out(grid: &Grid, measured: usize) -> Vec<String> {
    let broke = grid.cells.iter().filter(|c| c.ran_out()).count();
    if broke == 0 {
        return vec![format!(
            "None of {} ran out of local ports.",
            text::plural(measured, "measured cell")
        )];
    }
    let mut out = vec![format!(
        "{broke} of {} ran out of local ports (address_not_available).",
        text::plural(measured, "measured cell")
    )];
    let mut rest = 0;
    for (place, cells) in grid.by_place(None) {
        let cells: Vec<&Cell> = cells.into_iter().filter(|c| c.ran_out()).collect();
        if cells.is_empty() {
            continue;
        }
        if out.len() <= DETAILS {
            out.push(exhaustion(grid, &place, &cells));
        } else {
            rest += cells.len();
        }
    }
    if rest > 0 {
        out[0].push_str(&format!(
            " {DETAILS} combinations follow; the table of cells has the other {}.",
            text::plural(rest, "cell")
        ));
    }
    out
}

/// Some clients at the same place, told in one sentence: their numbers are ranges over clients and rounds.
fn exhaustion(grid: &Grid, place: &Place, cells: &[&Cell]) -> String {
    let clients: Vec<&str> = cells
        .iter()
        .map(|c| grid.clients[c.client].as_str())
        .collect();
    let at = grid.place_text(place, None);
    let at = if at.is_empty() { at } else { format!(", {at}") };
    let broken = || {
        cells
            .iter()
            .flat_map(|c| c.ok())
            .filter(|r| no_port_free(r.trial).is_some())
    };
    let over = |of: &dyn Fn(&Numbers) -> Option<f64>| {
        crate::stats::spread(broken().filter_map(|r| of(&r.numbers)))
    };
    let shown = |s: &Spread| text::range(s.low, s.high, text::counted);

    let connections = over(&|n| n.connections_total);
    let available = crate::stats::spread(broken().filter_map(|r| ports(r.trial)).map(|n| n as f64));
    let opened = match (&connections, &available) {
        (Some(c), Some(p)) if c.low == p.high && c.high == p.low => {
            format!(
                "opened exactly as many connections as there are ports ({})",
                shown(c)
            )
        }
        (Some(c), Some(p)) => format!("opened {} connections with {} ports", shown(c), shown(p)),
        (Some(c), None) => format!("opened {} connections", shown(c)),
        (None, _) => "opened connections".to_owned(),
    };
    let after =
        broken().filter_map(|r| Some(no_port_free(r.trial)?.saturating_sub(zero(r.trial)?)));
    let since = crate::stats::spread(after.map(|ns| ns as f64)).map_or_else(String::new, |s| {
        format!(", first after {}", text::range(s.low, s.high, text::time))
    });
    let left = over(&|n| n.time_wait_client).map_or_else(String::new, |s| {
        format!("; TIME_WAIT at the client's end {}", shown(&s))
    });
    format!(
        "{}{at}: {opened}, then no local port was free{since}{left}.",
        text::list(&clients)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_record::{Manifest, Status, Trial};
    use yieldpoint_terms::Value;

    fn findings_of(manifest: &Manifest, trials: &[Trial]) -> Vec<String> {
        let made = tables(manifest, trials).unwrap();
        let found = findings(&Grid::new(manifest, trials, &made).unwrap());
        [found.answer, found.evidence].concat()
    }

    /// Two clients × keep_alive × requests 1, 100; with keep_alive and one request an iteration the ports run out.
    fn quick(rounds: u32) -> (Manifest, Vec<Trial>) {
        let requests = [Value::Int(1), Value::Int(100)];
        let keep = [Value::Bool(true), Value::Bool(false)];
        let clients = ["hyper", "ureq"].map(|c| Value::Text(c.into()));
        let manifest = synthetic::manifest(&[
            ("client", &clients),
            ("keep_alive", &keep),
            ("requests_per_iteration", &requests),
        ]);
        let mut trials = Vec::new();
        for round in 1..=rounds {
            for (client, base) in [("hyper", 8_000), ("ureq", 4_000)] {
                for (k, times) in [(true, 3), (false, 1)] {
                    for r in [1, 100] {
                        let t = synthetic::at(
                            synthetic::trial(client, round),
                            "keep_alive",
                            Value::Bool(k),
                        );
                        let t = synthetic::at(t, "requests_per_iteration", Value::Int(r));
                        trials.push(if k && r == 1 {
                            synthetic::ran_out(t, 2_000)
                        } else {
                            // Drift: every round is slower by the same factor.
                            synthetic::good(t, base * times / u64::from(round))
                        });
                    }
                }
            }
        }
        (manifest, trials)
    }

    #[test]
    fn a_run_that_breaks_is_told_in_order() {
        let (manifest, trials) = quick(1);
        assert_eq!(
            findings_of(&manifest, &trials),
            [
                "What bound 8 measured cells: ports_exhausted 2, unexplained 6.",
                "hyper had the highest median throughput in all 3 comparable combinations (2.00× the next); the fastest: hyper, keep_alive = true, requests_per_iteration = 100 with 12,000 good requests/s (one round). Left out: 1 combination in which a client ran out of ports or was not measured.",
                "ports_exhausted: hyper, keep_alive = true, requests_per_iteration = 1: 2,000 connections with 2,000 ports, TIME_WAIT 20 at most, none free from second 0.3; 20.0 % of the requests found no port. Set net.ipv4.tcp_tw_reuse = 1 (with timestamps): a port is free after 1 s, which allows 2,000/s. Or open fewer connections (same_user, keep_alive, more requests an iteration), or use more source_addresses: n of them have n times the ports.",
                "2 of 8 measured cells ran out of local ports (address_not_available).",
                "hyper and ureq, keep_alive = true, requests_per_iteration = 1: opened exactly as many connections as there are ports (2,000), then no local port was free, first after 300 ms; TIME_WAIT at the client's end 2,000.",
                "Good requests/s with keep_alive = true against false at requests_per_iteration = 100: hyper 3.00×, ureq 3.00×.",
                "CPU per good request, medians of the cells that did not run out of ports: hyper 1.67–5.00 µs, ureq 3.33–10.0 µs.",
                "Peak memory of the client, medians of the cells that did not run out of ports: hyper 6.00 MiB, ureq 6.00 MiB.",
            ]
        );
    }

    #[test]
    fn eight_rounds_carry_an_interval_and_drift_cancels() {
        let (manifest, trials) = quick(8);
        let found = findings_of(&manifest, &trials);
        let keep = found.iter().find(|f| f.contains("against false")).unwrap();
        assert!(
            keep.contains("hyper 3.00× (95 % interval 3.00×–3.00×, 8 rounds)"),
            "{keep}"
        );
    }

    #[test]
    fn bursts_are_compared_and_named() {
        let (manifest, mut trials) = quick(1);
        for trial in &mut trials {
            trial.flags = vec!["burst_only".into()];
        }
        let found = findings_of(&manifest, &trials);
        let fastest = found.iter().find(|f| f.contains("fastest")).unwrap();
        assert!(
            fastest.contains("3 of these 3 compare port bursts"),
            "{fastest}"
        );
        let keep = found.iter().find(|f| f.contains("against false")).unwrap();
        assert!(
            keep.contains("keep_alive = false and true ran short"),
            "{keep}"
        );
    }

    #[test]
    fn clients_that_differ_are_told_as_a_range_and_never_as_exact() {
        let (manifest, mut trials) = quick(1);
        let broke = trials
            .iter_mut()
            .rfind(|t| t.flags == ["burst_only"])
            .unwrap();
        broke.outcome.as_mut().unwrap().total.connections = 1_990;
        let found = findings_of(&manifest, &trials);
        let text = "opened 1,990–2,000 connections with 2,000 ports";
        assert!(found.iter().any(|f| f.contains(text)), "{found:#?}");
    }

    #[test]
    fn many_combinations_are_cut_to_a_readable_list() {
        let threads: Vec<Value> = (1..=9).map(Value::Int).collect();
        let manifest = synthetic::manifest(&[("threads", &threads)]);
        let at = |t: &Value| synthetic::at(synthetic::trial("ureq", 1), "threads", t.clone());
        let trials: Vec<_> = threads
            .iter()
            .map(|t| synthetic::ran_out(at(t), 2_000))
            .collect();
        let found = findings_of(&manifest, &trials);
        assert!(found.len() <= 16, "{found:#?}");
        assert!(
            (found.iter())
                .any(|f| f.contains("9 of 9 measured cells") && f.contains("other 6 cells")),
            "{found:#?}"
        );
    }

    #[test]
    fn a_breakpoint_leads_and_names_what_binds_on_both_sides() {
        let threads = [1, 2, 4].map(Value::Int);
        let manifest = synthetic::manifest(&[("threads", &threads)]);
        let at = |t: &Value| synthetic::at(synthetic::trial("ureq", 1), "threads", t.clone());
        let trials = [
            synthetic::good(at(&threads[0]), 4_000),
            synthetic::good(at(&threads[1]), 8_000),
            synthetic::ran_out(at(&threads[2]), 2_000),
        ];
        let found = findings_of(&manifest, &trials);
        assert_eq!(
            found[0],
            "ureq: from threads = 2 to 4 throughput falls to 0.250×, bound by unexplained before and by \
             ports_exhausted after: 2,000 connections with 2,000 ports, TIME_WAIT 20 at most, none free from \
             second 0.3; 20.0 % of the requests found no port."
        );
        assert_eq!(
            found[1],
            "What bound 3 measured cells: ports_exhausted 1, unexplained 2."
        );
    }

    #[test]
    fn nothing_is_claimed_without_data() {
        let manifest = synthetic::manifest(&[]);
        let error = synthetic::failed(synthetic::trial("ureq", 1), Status::Error, "no");
        for trials in [&[][..], &[error]] {
            let found = findings_of(&manifest, trials);
            assert_eq!(found.len(), 1);
            assert!(found[0].starts_with("No trial was measured"));
        }
        let held = findings_of(&manifest, &[synthetic::trial("ureq", 1)]);
        assert_eq!(held[1], "None of 1 measured cell ran out of local ports.");
        assert!(
            !held.iter().any(|f| f.contains("fastest")),
            "one client is no comparison"
        );
    }
}

//! What the data say, in sentences; never more than they carry.
//!
//! The verdicts lead: what bound the cells, and where along an axis throughput bends or falls, a sentence each.
//!
//! Cells that ran out of ports are named as such and left out of the comparisons of clients: their numbers are
//! those of the ports. Cells that saw the burst only are compared, and the sentence says that it compares bursts.

use std::collections::BTreeMap;

use super::why::{breaks, examples, laws, verdicts};
use crate::grid::{Cell, Grid, Numbers, Place, no_port_free, ports};
use crate::stats::{Ratio, Spread, paired_ratio};
use crate::text;
use crate::timeline::zero;

/// Combinations of the axes that are described one by one where ports ran out.
const DETAILS: usize = 3;

/// At most sixteen sentences, most important first.
pub(super) fn findings(grid: &Grid) -> Vec<String> {
    let measured = grid
        .cells
        .iter()
        .filter(|c| c.ok().next().is_some())
        .count();
    if measured == 0 {
        return vec![
            "No trial was measured: there is no finding. The warnings say why.".to_owned(),
        ];
    }
    let mut out = breaks(grid, true);
    out.extend(verdicts(grid));
    out.extend(examples(grid));
    out.extend(ran_out(grid, measured));
    out.extend(breaks(grid, false));
    out.extend(fastest(grid));
    out.extend(keep_alive(grid));
    let cpu = per_client(grid, "CPU per good request", "µs", |n| n.cpu_us_per_good);
    let memory = per_client(grid, "Peak memory of the client", "MiB", |n| {
        n.rss_peak_kib.map(|kib| kib / 1024.0)
    });
    out.extend(cpu.into_iter().chain(memory));
    out.extend(laws(grid));
    out
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

/// Which client had the most good requests per second, place by place.
fn fastest(grid: &Grid) -> Option<String> {
    if grid.clients.len() < 2 {
        return None;
    }
    let mut wins: BTreeMap<usize, usize> = BTreeMap::new();
    let (mut ahead, mut compared, mut bursts) = (Vec::new(), 0, 0);
    let mut top: Option<(&Cell, Spread)> = None;
    let places = grid.by_place(None);
    for (_, cells) in &places {
        let speeds: Option<Vec<_>> = cells
            .iter()
            .map(|c| {
                c.spread(|n| n.good_per_s)
                    .filter(|_| !c.ran_out())
                    .map(|s| (*c, s))
            })
            .collect();
        let Some(mut speeds) = speeds.filter(|s| s.len() >= 2) else {
            continue;
        };
        speeds.sort_by(|a, b| b.1.mid.total_cmp(&a.1.mid));
        let (first, second) = (speeds[0], speeds[1]);
        compared += 1;
        bursts += usize::from(cells.iter().any(|c| c.burst_only()));
        *wins.entry(first.0.client).or_default() += 1;
        if second.1.mid > 0.0 {
            ahead.push(first.1.mid / second.1.mid);
        }
        if top.is_none_or(|t| first.1.mid > t.1.mid) {
            top = Some(first);
        }
    }
    let (cell, speed) = top?;
    let mut ranks: Vec<(usize, usize)> = wins.into_iter().collect();
    ranks.sort_by_key(|(client, n)| (std::cmp::Reverse(*n), *client));
    let name = |client: usize| grid.clients[client].as_str();
    let lead = match (&ranks[..], crate::stats::spread(ahead)) {
        ([(client, _)], Some(by)) => format!(
            "{} had the highest median throughput in {} ({} the next)",
            name(*client),
            if compared == 1 {
                "the one comparable combination".to_owned()
            } else {
                format!("all {compared} comparable combinations")
            },
            text::range(by.low, by.high, text::times)
        ),
        _ => {
            let each: Vec<_> = ranks
                .iter()
                .map(|(c, n)| format!("{} in {n}", name(*c)))
                .collect();
            format!(
                "Highest median throughput of {compared} comparable combinations: {}",
                each.join(", ")
            )
        }
    };
    let mut notes = String::new();
    if bursts > 0 {
        notes.push_str(&format!(
            " {bursts} of these {compared} compare port bursts, not sustained loads."
        ));
    }
    if places.len() > compared {
        notes.push_str(&format!(
            " Left out: {} in which a client ran out of ports or was not measured.",
            text::plural(places.len() - compared, "combination")
        ));
    }
    let rounds = cell.ok().count();
    let spread = if rounds > 1 {
        format!(
            " (median of {rounds} rounds, {})",
            text::range(speed.low, speed.high, text::significant)
        )
    } else {
        " (one round)".to_owned()
    };
    Some(format!(
        "{lead}; the fastest: {} with {} good requests/s{spread}.{notes}",
        grid.cell_text(cell),
        text::significant(speed.mid)
    ))
}

/// What keep-alive is worth at the most requests an iteration, client by client.
fn keep_alive(grid: &Grid) -> Option<String> {
    let axis = grid.axis("keep_alive")?;
    let on = grid.axes[axis].labels.iter().position(|l| l == "true")?;
    let off = grid.axes[axis].labels.iter().position(|l| l == "false")?;
    let requests = grid.axis("requests_per_iteration");
    let most = requests.map(|i| (i, grid.axes[i].labels.len() - 1));
    let at_most = |c: &Cell| most.is_none_or(|(i, last)| c.place[i] == Some(last));

    let mut pairs: BTreeMap<(usize, Place), [Option<&Cell>; 2]> = BTreeMap::new();
    for cell in grid.cells.iter().filter(|c| at_most(c)) {
        let mut rest = cell.place.clone();
        rest[axis] = None;
        let pair = pairs.entry((cell.client, rest)).or_default();
        match cell.place[axis] {
            Some(i) if i == off => pair[0] = Some(cell),
            Some(i) if i == on => pair[1] = Some(cell),
            _ => {}
        }
    }
    let mut by_client: BTreeMap<usize, Vec<Ratio>> = BTreeMap::new();
    let mut marked = Vec::new();
    for ((client, _), [off, on]) in pairs {
        let (Some(off), Some(on)) = (off, on) else {
            continue;
        };
        if let Some(ratio) = ratio(off, on) {
            by_client.entry(client).or_default().push(ratio);
            let names = [("false", off), ("true", on)];
            let unsound = names
                .iter()
                .filter(|(_, c)| c.mark().is_some())
                .map(|(value, _)| *value);
            marked.extend(unsound);
        }
    }
    if by_client.is_empty() {
        return None;
    }
    let one = |(client, ratios): (&usize, &Vec<Ratio>)| {
        format!("{} {}", grid.clients[*client], ratio_text(ratios))
    };
    let each: Vec<_> = by_client.iter().map(one).collect();
    let at = most.map_or_else(String::new, |(i, last)| {
        format!(" at requests_per_iteration = {}", grid.axes[i].labels[last])
    });
    marked.sort_unstable();
    marked.dedup();
    let unsound = if marked.is_empty() {
        String::new()
    } else {
        format!(
            " Cells with keep_alive = {} ran short of ports or saw the burst only, so these ratios are not of sustained loads.",
            text::list(&marked)
        )
    };
    Some(format!(
        "Good requests/s with keep_alive = true against false{at}: {}.{unsound}",
        each.join(", ")
    ))
}

/// `changed ÷ base`, paired by round.
fn ratio(base: &Cell, changed: &Cell) -> Option<Ratio> {
    let speeds = |c: &Cell| -> BTreeMap<u32, f64> {
        c.ok()
            .filter_map(|r| Some((r.trial.round, r.numbers.good_per_s?)))
            .collect()
    };
    let changed = speeds(changed);
    let pair = |(round, base)| Some((base, *changed.get(&round)?));
    let pairs: Vec<_> = speeds(base).into_iter().filter_map(pair).collect();
    paired_ratio(&pairs)
}

fn ratio_text(ratios: &[Ratio]) -> String {
    match ratios {
        [
            Ratio {
                mean,
                interval: Some((low, high)),
                rounds,
            },
        ] => format!(
            "{} (95 % interval {}–{}, {rounds} rounds)",
            text::times(*mean),
            text::times(*low),
            text::times(*high)
        ),
        // Over several combinations of other axes the range says more than any one interval.
        _ => crate::stats::spread(ratios.iter().map(|r| r.mean))
            .map_or_else(String::new, |s| text::range(s.low, s.high, text::times)),
    }
}

/// A quantity of every client as the range of its medians over the cells that did not run out of ports.
fn per_client(
    grid: &Grid,
    what: &str,
    unit: &str,
    of: fn(&Numbers) -> Option<f64>,
) -> Option<String> {
    let medians = |client: usize| {
        let cells = grid
            .cells
            .iter()
            .filter(move |c| c.client == client && !c.ran_out());
        crate::stats::spread(cells.filter_map(|c| c.spread(of)).map(|s| s.mid))
    };
    let one = |(client, name): (usize, &String)| {
        let s = medians(client)?;
        Some((
            s.low,
            format!(
                "{name} {} {unit}",
                text::range(s.low, s.high, text::significant)
            ),
        ))
    };
    let mut each: Vec<(f64, String)> = grid.clients.iter().enumerate().filter_map(one).collect();
    each.sort_by(|a, b| a.0.total_cmp(&b.0));
    let each: Vec<_> = each.into_iter().map(|(_, text)| text).collect();
    let which = if grid.cells.iter().any(Cell::ran_out) {
        "cells that did not run out of ports"
    } else {
        "cells"
    };
    (!each.is_empty()).then(|| format!("{what}, medians of the {which}: {}.", each.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_record::{Manifest, Status, Trial};
    use yieldpoint_terms::Value;

    fn findings_of(manifest: &Manifest, trials: &[Trial]) -> Vec<String> {
        let made = tables(manifest, trials).unwrap();
        findings(&Grid::new(manifest, trials, &made).unwrap())
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
                "ports_exhausted: hyper, keep_alive = true, requests_per_iteration = 1: 2,000 connections with 2,000 ports, TIME_WAIT 20 at most, none free from second 0.3; 20.0 % of the requests found no port. Set net.ipv4.tcp_tw_reuse = 1 (with timestamps): a port is free after 1 s, which allows 2,000/s. Or open fewer connections (same_user, keep_alive, more requests an iteration), or use more source_addresses: n of them have n times the ports.",
                "2 of 8 measured cells ran out of local ports (address_not_available).",
                "hyper and ureq, keep_alive = true, requests_per_iteration = 1: opened exactly as many connections as there are ports (2,000), then no local port was free, first after 300 ms; TIME_WAIT at the client's end 2,000.",
                "hyper had the highest median throughput in all 3 comparable combinations (2.00× the next); the fastest: hyper, keep_alive = true, requests_per_iteration = 100 with 12,000 good requests/s (one round). Left out: 1 combination in which a client ran out of ports or was not measured.",
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
        assert!(
            found[3].contains("opened 1,990–2,000 connections with 2,000 ports"),
            "{}",
            found[3]
        );
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
            found[2].contains("9 of 9 measured cells") && found[2].contains("other 6 cells"),
            "{}",
            found[2]
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

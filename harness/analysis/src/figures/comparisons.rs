//! Clients and settings side by side, in sentences.
//!
//! Cells that ran out of ports are left out of the comparisons of clients: their numbers are those of the
//! ports. Cells that saw the burst only are compared, and the sentence says that it compares bursts. A
//! starved cell is no load that was asked for, so it never wins and never loses.

use std::collections::BTreeMap;

use crate::breakpoints::rounds_of_both;
use crate::controls::{Floor, WITHIN};
use crate::grid::{Cell, Grid, Numbers, Place};
use crate::stats::{Ratio, Spread, paired_ratio};
use crate::text;

/// Which client had the most good requests per second, place by place.
pub(super) fn fastest(grid: &Grid) -> Option<String> {
    if grid.clients.len() < 2 {
        return None;
    }
    let mut wins: BTreeMap<usize, usize> = BTreeMap::new();
    let (mut ahead, mut compared, mut bursts, mut within) = (Vec::new(), 0, 0, 0);
    let mut top: Option<(&Cell, Spread)> = None;
    let places = grid.by_place(None);
    for (_, cells) in &places {
        let speeds: Option<Vec<_>> = cells
            .iter()
            .filter(|c| !c.starved())
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
            let lead = first.1.mid / second.1.mid;
            within += usize::from(grid.floor.as_ref().is_some_and(|f| f.holds(lead)));
            ahead.push(lead);
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
    if within > 0 {
        notes.push_str(&format!(
            " {within} of these {compared} leads {} {WITHIN}.",
            if within == 1 { "is" } else { "are" }
        ));
    }
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
    let starved = grid.cells.iter().filter(|c| c.starved()).count();
    if starved > 0 {
        notes.push_str(&format!(
            " Not compared: {} in which the asked users or rate were not reached (starved).",
            text::plural(starved, "cell")
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
pub(super) fn keep_alive(grid: &Grid) -> Option<String> {
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
        if let Some(ratio) = paired_ratio(&rounds_of_both(off, on)) {
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
        format!(
            "{} {}",
            grid.clients[*client],
            ratio_text(ratios, grid.floor.as_ref())
        )
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

fn ratio_text(ratios: &[Ratio], floor: Option<&Floor>) -> String {
    let all = floor.is_some_and(|f| ratios.iter().all(|r| f.holds(r.mean)));
    let within = if all {
        format!(", {WITHIN}")
    } else {
        String::new()
    };
    let shown = match ratios {
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
    };
    shown + &within
}

/// A quantity of every client as the range of its medians over the cells that did not run out of ports.
pub(super) fn per_client(
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

//! The sentences that lead a report: where throughput breaks, what binds, and how it scales.

use std::collections::BTreeMap;

use crate::breakpoints::{self, Breakpoint};
use crate::controls::WITHIN;
use crate::grid::Grid;
use crate::scaling::{self, Scaling};
use crate::text;

/// Breakpoints that are described one by one, the greatest falls first.
const BREAKPOINTS: usize = 3;

/// Lines along an axis of users of which it is said whether they follow the law of scalability.
const SCALINGS: usize = 2;
/// Causes of which one cell is told.
const EXAMPLES: usize = 2;

/// One sentence a breakpoint: where, by how much, and what binds on both sides. A fall is the answer of a
/// report (`leading`); where throughput merely stops rising, too few rounds for an interval make it a remark.
pub(super) fn breaks(grid: &Grid, leading: bool) -> Vec<String> {
    let mut found = breakpoints::find(grid);
    found.retain(|b| leading == (b.kind == breakpoints::CLIFF || b.interval.is_some()));
    found.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let rest = found.len().saturating_sub(BREAKPOINTS);
    let shown = found.iter().take(BREAKPOINTS);
    let mut out: Vec<String> = shown.map(|b| break_text(grid, b)).collect();
    if let Some(last) = out.last_mut().filter(|_| rest > 0) {
        last.push_str(&format!(
            " {} more in the table \"breakpoints\".",
            text::plural(rest, "breakpoint")
        ));
    }
    out
}

fn break_text(grid: &Grid, b: &Breakpoint) -> String {
    let cell = &grid.cells[b.cells.0];
    let held = grid.place_text(&cell.place, Some(b.axis));
    let held = if held.is_empty() {
        held
    } else {
        format!(", {held}")
    };
    let level = |cell| breakpoints::level(grid, b, cell).unwrap_or_default();
    let does = if b.kind == breakpoints::CLIFF {
        "throughput falls to"
    } else {
        "throughput stops rising, with"
    };
    let interval = b.interval.map_or_else(String::new, |(low, high)| {
        format!(
            " (95 % interval {}–{})",
            text::times(low),
            text::times(high)
        )
    });
    let said = |i: usize| grid.cells[i].said.as_ref();
    let verdict = |i: usize| said(i).map_or("nothing that was measured", |s| s.verdict.as_str());
    let (below, above) = (verdict(b.cells.0), verdict(b.cells.1));
    let bound = if below == above {
        format!("bound by {above} on both sides")
    } else {
        format!("bound by {below} before and by {above} after")
    };
    let floor = grid.floor.as_ref();
    // That a knee is flat is what it says; a fall must be more than noise.
    let noise = b.kind == breakpoints::CLIFF && floor.is_some_and(|f| f.holds(b.ratio));
    let within = if noise {
        format!(" ({WITHIN})")
    } else {
        String::new()
    };
    let why = said(b.cells.1).map_or_else(String::new, |s| format!(": {}", s.evidence));
    format!(
        "{}{held}: from {} = {} to {} {does} {}{interval}{within}, {bound}{why}.",
        grid.clients[cell.client],
        grid.axes[b.axis].name,
        level(b.cells.0),
        level(b.cells.1),
        text::times(b.ratio),
    )
}

/// One cell of each cause, with its evidence, the bound beside what was measured, and the remedy. Causes of
/// which a breakpoint told already, and what nothing explains, are left to the table of cells.
pub(super) fn examples(grid: &Grid) -> Vec<String> {
    let mut told = vec!["unexplained", "target_latency"];
    let mut found = breakpoints::find(grid);
    found.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let above = found.iter().take(BREAKPOINTS).map(|b| b.cells.1);
    told.extend(
        above
            .filter_map(|i| grid.cells[i].said.as_ref())
            .map(|s| s.verdict.as_str()),
    );
    let mut out = Vec::new();
    for cell in &grid.cells {
        let Some(said) = cell
            .said
            .as_ref()
            .filter(|s| !told.contains(&s.verdict.as_str()))
        else {
            continue;
        };
        if out.len() == EXAMPLES {
            break;
        }
        told.push(&said.verdict);
        let bound = said.sustained_per_s.zip(said.ceiling.as_ref());
        let bound = bound.map_or_else(String::new, |(x, (most, kind))| {
            format!(
                " It sustains {}/s, with a ceiling of {}/s set by {kind}.",
                text::significant(x),
                text::significant(*most)
            )
        });
        out.push(format!(
            "{}: {}: {}.{bound} {}",
            said.verdict.replace(',', " with "),
            grid.cell_text(cell),
            said.evidence,
            said.remedy
        ));
    }
    out
}

/// What bound how many cells; what nothing explains stands last.
pub(super) fn verdicts(grid: &Grid) -> Option<String> {
    let mut cells: BTreeMap<&str, usize> = BTreeMap::new();
    for said in grid.cells.iter().filter_map(|c| c.said.as_ref()) {
        *cells.entry(&said.verdict).or_default() += 1;
    }
    let measured: usize = cells.values().sum();
    let mut each: Vec<(&str, usize)> = cells.into_iter().collect();
    each.sort_by_key(|(verdict, n)| (*verdict == "unexplained", std::cmp::Reverse(*n)));
    let each: Vec<_> = each
        .into_iter()
        .map(|(verdict, n)| format!("{} {n}", verdict.replace(',', " with ")))
        .collect();
    (measured > 0).then(|| {
        format!(
            "What bound {}: {}.",
            text::plural(measured, "measured cell"),
            each.join(", ")
        )
    })
}

/// How throughput scales with the users, where there are levels enough to say.
pub(super) fn laws(grid: &Grid) -> Vec<String> {
    let found = scaling::find(grid);
    found
        .iter()
        .take(SCALINGS)
        .map(|s| scaling_text(grid, s))
        .collect()
}

/// Whether a line follows the Universal Scalability Law, and where it peaks.
fn scaling_text(grid: &Grid, s: &Scaling) -> String {
    let cell = &grid.cells[s.first];
    let held = grid.place_text(&cell.place, Some(s.axis));
    let held = if held.is_empty() {
        held
    } else {
        format!(", {held}")
    };
    let line = format!(
        "{}{held} along {}",
        grid.clients[cell.client], grid.axes[s.axis].name
    );
    match &s.law {
        Ok(law) => format!(
            "{line} follows the Universal Scalability Law within {}: contention {}, coherency {}, {}.",
            text::percent(law.worst_miss, 1.0).unwrap_or_default(),
            text::percent(law.contention, 1.0).unwrap_or_default(),
            text::percent(law.coherency, 1.0).unwrap_or_default(),
            law.peak.map_or_else(
                || "without a peak".to_owned(),
                |n| format!(
                    "peak at {} with {}/s",
                    text::significant(n),
                    text::significant(law.at(n))
                )
            )
        ),
        Err(why) => format!("{line}: no scalability law is fitted, because {why}."),
    }
}

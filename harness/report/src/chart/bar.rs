//! Grouped bars: every series has its slot in every group; what was not measured is a cross.

use yieldpoint_figures::{Bar, BarChart, BarGroup};

use crate::drawing::{Drawing, Rect};
use crate::frame::{self, Entry, Frame, LINE, MARGIN, SIZE};
use crate::marks::{self, Sample};
use crate::place;
use crate::scale::Scale;
use crate::theme::Ink;

const HEIGHT: f64 = 220.0;
const WIDEST_BAR: f64 = 44.0;

/// Draws the chart.
pub(crate) fn draw(chart: &BarChart, frame: Frame) -> Drawing {
    let slots = slots(&chart.groups);
    let (mut d, mut y) = frame::open(frame, &chart.title, &chart.y_label, &legend(chart));
    let values = bars(chart).flat_map(|b| [b.low, b.mid, b.high]).flatten();
    let scale = Scale::linear(values, frame::steps(HEIGHT));
    if slots.is_empty() {
        return frame::nothing(d, y);
    }
    let gutter = frame::gutter(&scale);
    let room = d.width - 2.0 * MARGIN - gutter;
    // Each group needs 5 px a bar and, turned, a line of text; what is too much wraps into rows.
    let least = (5.0 * slots.len() as f64 + 8.0).max(LINE + 2.0);
    let in_row = ((room / least).floor().max(1.0)) as usize;
    let rows = chart.groups.len().div_ceil(in_row);
    let in_row = chart.groups.len().div_ceil(rows.max(1)).max(1);
    for row in chart.groups.chunks(in_row) {
        let plot = Rect::new(MARGIN + gutter, y + 8.0, room, HEIGHT);
        frame::value_axis(&mut d, plot, &scale, true);
        // A short last row keeps the widths of the rows above.
        let step = room / in_row as f64;
        let part = Rect::new(plot.left, plot.top, step * row.len() as f64, HEIGHT);
        let names: Vec<String> = row.iter().map(|g| g.label.clone()).collect();
        let categories = place::categories(&names, step, SIZE);
        frame::category_axis(&mut d, part, &categories);
        for (i, group) in row.iter().enumerate() {
            let middle = frame::category_x(part, i, row.len());
            draw_group(&mut d, plot, (middle, step), group, &slots, &scale);
        }
        y = plot.bottom + 6.0 + categories.height + 6.0;
    }
    d.height = y + MARGIN - 4.0;
    d
}

fn bars(chart: &BarChart) -> impl Iterator<Item = &Bar> {
    chart.groups.iter().flat_map(|g| &g.bars)
}

/// Series in the order in which they occur. If no group has more than one bar, one slot is enough.
fn slots(groups: &[BarGroup]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for bar in groups.iter().flat_map(|g| &g.bars) {
        if !names.contains(&bar.name.as_str()) {
            names.push(&bar.name);
        }
    }
    if groups.iter().all(|g| g.bars.len() <= 1) {
        names.truncate(1);
    }
    names
}

fn legend(chart: &BarChart) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for bar in bars(chart) {
        let entry = Entry::new(Sample::Bar(bar.colour), &bar.name);
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    if bars(chart).any(|b| !measured(b)) {
        entries.push(Entry::new(Sample::Missing, "not measured"));
    }
    if bars(chart).any(|b| b.high > b.low) {
        entries.push(Entry::new(Sample::Whisker, "least and greatest round"));
    }
    entries
}

fn measured(bar: &Bar) -> bool {
    bar.mid.is_some_and(f64::is_finite)
}

fn draw_group(
    d: &mut Drawing,
    plot: Rect,
    (middle, step): (f64, f64),
    group: &BarGroup,
    slots: &[&str],
    scale: &Scale,
) {
    let count = slots.len() as f64;
    let width = ((step * 0.82) / count).min(WIDEST_BAR);
    let zero = plot.y(scale.at(0.0).unwrap_or(0.0));
    for bar in &group.bars {
        let slot = slots.iter().position(|s| *s == bar.name).unwrap_or(0);
        let left = middle + (slot as f64 - count / 2.0) * width;
        let centre = left + width / 2.0;
        let place = |v: Option<f64>| Some(plot.y(scale.at(v?)?));
        let Some(top) = place(bar.mid) else {
            marks::missing(d, (centre, zero - 8.0));
            continue;
        };
        let gap = (width * 0.06).min(1.0);
        let corner = (left + gap, top.min(zero));
        let body = Rect::new(corner.0, corner.1, width - 2.0 * gap, (zero - top).abs());
        d.fill(body, Ink::Series(bar.colour));
        if width >= 11.0 && body.height() >= 16.0 {
            marks::inside(d, (centre, body.bottom - 8.0), bar.colour);
        }
        if let (Some(low), Some(high)) = (place(bar.low), place(bar.high)) {
            d.whisker(centre, low, high, (width / 4.0).min(4.0), Ink::Text);
        }
    }
}

//! Every cell at a glance: rows × columns, coloured by a quantity that is also written into them.

use yieldpoint_figures::{HeatCell, HeatGroup, HeatMap};

use crate::drawing::{Anchor, Drawing, Label, Rect};
use crate::frame::{self, Entry, Frame, LINE, MARGIN, SIZE};
use crate::marks::{self, Sample};
use crate::place::{self, Categories};
use crate::scale::Scale;
use crate::text;
use crate::theme::{HEAT, Ink};

const ROW: f64 = 24.0;
/// Between two cells, px.
const GAP: f64 = 2.0;
/// A cell is never wider, px.
const WIDEST: f64 = 150.0;
/// A number below that size could not be read.
const SMALLEST_TEXT: f64 = 9.5;

/// Draws the chart.
pub(crate) fn draw(chart: &HeatMap, frame: Frame) -> Drawing {
    let scale = scale(chart);
    let marks = marks_of(chart);
    let (mut d, y) = frame::open(frame, &chart.title, "", &legend(chart, &marks));
    if !values(chart).any(f64::is_finite) || chart.x_values.is_empty() {
        return frame::nothing(d, y);
    }
    let layout = Layout::new(chart, &d);
    let mut y = colour_bar(&mut d, y, &chart.value_label, &scale) + 10.0;
    if !chart.y_label.is_empty() {
        let room = d.width - 2.0 * MARGIN;
        let rows = format!("rows: {}", chart.y_label);
        y = frame::lines(&mut d, &rows, (MARGIN, y), room, 3, SIZE, false);
    }
    for group in &chart.groups {
        y = draw_group(&mut d, y + 4.0, group, &layout, &scale, &marks);
    }
    let plot = Rect::new(layout.left, y - 4.0, layout.width(), 0.0);
    frame::category_axis(&mut d, plot, &layout.categories);
    y = plot.bottom + 6.0 + layout.categories.height + 2.0;
    let at = (layout.left, y);
    let room = d.width - at.0 - MARGIN;
    d.height = frame::lines(&mut d, &chart.x_label, at, room, 2, SIZE, false) + MARGIN;
    d
}

/// Measures that all rows share.
struct Layout {
    /// where cells begin, px
    left: f64,
    /// width of a column, gap included, px
    step: f64,
    columns: usize,
    /// room for the label of a row, px
    label: f64,
    /// size of the numbers, px; 0: there is no room for them
    size: f64,
    categories: Categories,
}

impl Layout {
    fn new(chart: &HeatMap, d: &Drawing) -> Self {
        let room = d.width - 2.0 * MARGIN;
        let rows = || chart.groups.iter().flat_map(|g| &g.rows);
        let widest = |texts: &mut dyn Iterator<Item = &String>, size: f64| {
            let widths = texts.map(|t| text::width(&text::printable(t), size, false));
            widths.fold(0.0, f64::max)
        };
        // Labels give way before cells do.
        let label = widest(&mut rows().map(|r| &r.label), SIZE).min(0.42 * room);
        let left = MARGIN + if label > 0.0 { label + 10.0 } else { 0.0 };
        let columns = chart.x_values.len();
        let step = ((d.width - MARGIN - left) / columns.max(1) as f64).min(WIDEST);
        let mut texts = rows().flat_map(|r| &r.cells).flatten().map(|c| &c.text);
        let widest = widest(&mut texts, 1.0);
        // A corner may be marked, so the number keeps away from the edges.
        let fits = (step - GAP - 8.0) / widest.max(0.1);
        Self {
            left,
            step,
            columns,
            label,
            size: if fits >= SMALLEST_TEXT {
                fits.min(SIZE)
            } else {
                0.0
            },
            categories: place::categories(&chart.x_values, step, SIZE),
        }
    }

    fn width(&self) -> f64 {
        self.step * self.columns as f64
    }
}

fn cells(chart: &HeatMap) -> impl Iterator<Item = &HeatCell> {
    let rows = chart.groups.iter().flat_map(|g| &g.rows);
    rows.flat_map(|r| &r.cells).flatten()
}

fn values(chart: &HeatMap) -> impl Iterator<Item = f64> {
    cells(chart).filter_map(|c| c.value)
}

fn measured(cell: &HeatCell) -> bool {
    cell.value.is_some_and(f64::is_finite)
}

fn scale(chart: &HeatMap) -> Scale {
    let shared = chart.range.iter().flat_map(|(low, high)| [*low, *high]);
    let values = values(chart).chain(shared);
    if chart.log {
        Scale::log(values, 4)
    } else {
        Scale::linear(values, 5)
    }
}

/// The step of the colour scale at a fraction of it.
fn step(fraction: f64) -> usize {
    // A fraction is 0 to 1, so this is at most HEAT.
    ((fraction * HEAT as f64) as usize).min(HEAT - 1)
}

/// Explanations of marked corners, in the order in which they occur.
fn marks_of(chart: &HeatMap) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for mark in cells(chart).filter_map(|c| c.mark.as_deref()) {
        if !out.contains(&mark) {
            out.push(mark);
        }
    }
    out
}

fn legend(chart: &HeatMap, marks: &[&str]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (sign, mark) in marks.iter().enumerate().take(3) {
        entries.push(Entry::new(Sample::Corner(sign), *mark));
    }
    if let Some(rest) = marks.get(3..).filter(|r| !r.is_empty()) {
        entries.push(Entry::new(Sample::Corner(3), rest.join("; ")));
    }
    if cells(chart).any(|c| !measured(c)) {
        entries.push(Entry::new(Sample::Missing, "not measured"));
    }
    entries
}

/// The colour scale with its unit; gives the y below it.
fn colour_bar(d: &mut Drawing, y: f64, label: &str, scale: &Scale) -> f64 {
    let room = d.width - 2.0 * MARGIN;
    let y = frame::lines(d, label, (MARGIN, y), room, 2, SIZE, false) + 3.0;
    let bar = Rect::new(MARGIN, y, room.min(420.0), 12.0);
    for i in 0..HEAT {
        let from = bar.x(i as f64 / HEAT as f64);
        let part = Rect::new(from, bar.top, bar.width() / HEAT as f64, bar.height());
        d.fill(part, Ink::Heat(i));
    }
    let mut free = 0.0;
    for (value, label) in &scale.ticks {
        let Some(f) = scale.at(*value) else { continue };
        let half = text::width(label, SIZE, false) / 2.0;
        // The first and last label stand inside the picture, and none touches another.
        let x = bar.x(f).clamp(MARGIN + half, d.width - MARGIN - half);
        d.line(
            (bar.x(f), bar.bottom),
            (bar.x(f), bar.bottom + 4.0),
            Ink::Axis,
            1.0,
        );
        if x - half >= free {
            let at = (x, bar.bottom + 5.0 + LINE / 2.0);
            d.text(
                Label::new(at, label, SIZE)
                    .anchor(Anchor::Middle)
                    .ink(Ink::Muted),
            );
            free = x + half + 6.0;
        }
    }
    bar.bottom + 5.0 + LINE
}

fn draw_group(
    d: &mut Drawing,
    mut y: f64,
    group: &HeatGroup,
    layout: &Layout,
    scale: &Scale,
    marks: &[&str],
) -> f64 {
    if !group.title.is_empty() {
        let room = d.width - 2.0 * MARGIN;
        y = frame::lines(d, &group.title, (MARGIN, y), room, 2, SIZE, true) + 2.0;
    }
    for row in &group.rows {
        let at = (MARGIN, y + (ROW - GAP) / 2.0);
        d.text(Label::new(at, &row.label, SIZE).within(layout.label));
        for (i, cell) in row.cells.iter().enumerate().take(layout.columns) {
            let left = layout.left + i as f64 * layout.step;
            let place = Rect::new(left, y, layout.step - GAP, ROW - GAP);
            if let Some(cell) = cell {
                draw_cell(d, place, cell, layout.size, scale, marks);
            }
        }
        y += ROW;
    }
    y + 4.0
}

fn draw_cell(
    d: &mut Drawing,
    place: Rect,
    cell: &HeatCell,
    size: f64,
    scale: &Scale,
    marks: &[&str],
) {
    let middle = (place.x(0.5), place.y(0.5));
    let sign = cell
        .mark
        .as_deref()
        .and_then(|m| marks.iter().position(|k| *k == m));
    match cell.value.and_then(|v| scale.at(v)) {
        Some(fraction) => {
            let step = step(fraction);
            d.fill(place, Ink::Heat(step));
            if size > 0.0 {
                let label = Label::new(middle, &cell.text, size).anchor(Anchor::Middle);
                d.text(label.ink(Ink::OnHeat(step)));
            }
            if let Some(sign) = sign {
                marks::corner(d, place, sign, Ink::OnHeat(step));
            }
        }
        None => {
            d.fill(place, Ink::Grid);
            marks::missing(d, middle);
        }
    }
}

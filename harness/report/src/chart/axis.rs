//! A quantity along one axis: one line a client, small multiples that share both axes.

use yieldpoint_figures::{AxisChart, Facet, Line, Point};

use crate::drawing::{Drawing, Label, Rect, Spot};
use crate::frame::{self, Entry, Frame, LINE, MARGIN, SIZE};
use crate::marks::{self, Sample};
use crate::place::{self, Categories};
use crate::scale::Scale;
use crate::text;
use crate::theme::{Ink, dash, marker};

/// Space between small multiples, px.
const GAP: f64 = 16.0;
/// A small multiple that was asked into a row is never narrower, px.
const LEAST: f64 = 190.0;
/// A label at a line's end: its height, and what stands in front of its text.
const END_HEIGHT: f64 = 15.0;
const END_LEAD: f64 = 28.0;

/// Draws the chart.
pub(crate) fn draw(chart: &AxisChart, frame: Frame) -> Drawing {
    let layout = Layout::new(chart, frame);
    let legend = legend(chart, &layout);
    let (mut d, top) = frame::open(frame, &chart.title, &chart.y_label, &legend);
    if !points(chart).any(|p| p.mid.is_finite()) || chart.x_values.is_empty() {
        return frame::nothing(d, top);
    }
    let mut y = top + 4.0;
    for row in chart.facets.chunks(layout.columns) {
        let titles: Vec<_> = row
            .iter()
            .map(|f| place::wrap_short(&f.title, layout.panel, 3, SIZE, true))
            .collect();
        let title_lines = row
            .iter()
            .zip(&titles)
            .filter(|(f, _)| !f.title.is_empty())
            .map(|(_, t)| t.len())
            .max()
            .unwrap_or(0);
        let plot_top = y + title_lines as f64 * LINE + 8.0;
        for (i, (facet, title)) in row.iter().zip(&titles).enumerate() {
            let left = MARGIN + layout.gutter + i as f64 * (layout.panel + GAP);
            for (k, line) in title.iter().enumerate() {
                let at = (left, y + LINE * (k as f64 + 0.5));
                d.text(Label::new(at, line, SIZE).bold());
            }
            let plot = Rect::new(left, plot_top, layout.panel - layout.ends, layout.height);
            frame::value_axis(&mut d, plot, &layout.scale, i == 0);
            frame::category_axis(&mut d, plot, &layout.categories);
            panel(&mut d, plot, facet, chart, &layout);
        }
        y = plot_top + layout.height + 6.0 + layout.categories.height + 10.0;
    }
    let at = (MARGIN + layout.gutter, y - 6.0);
    let room = d.width - at.0 - MARGIN;
    d.height = frame::lines(&mut d, &chart.x_label, at, room, 2, SIZE, false) + MARGIN;
    d
}

/// Every measure that is the same for all small multiples.
struct Layout {
    columns: usize,
    /// width of a small multiple with its line-end labels
    panel: f64,
    /// height of its plot
    height: f64,
    gutter: f64,
    /// room for labels at line ends; 0: the legend names the lines
    ends: f64,
    scale: Scale,
    categories: Categories,
    /// explanations of hollow points, in the order in which they occur
    marks: Vec<String>,
}

impl Layout {
    fn new(chart: &AxisChart, frame: Frame) -> Self {
        let n = chart.facets.len().max(1);
        let room = frame.width.max(200.0) - 2.0 * MARGIN;
        let most = ((room / 270.0).floor().max(1.0) as usize).min(4);
        let asked = chart.columns;
        let columns = if (1..=n).contains(&asked) && room >= LEAST * asked as f64 {
            // The values of one axis stand below each other.
            asked
        } else {
            // Even rows: four small multiples are two by two, not three and one.
            n.div_ceil(n.div_ceil(most))
        };
        let height = match (columns, room > 500.0) {
            (1, true) => 300.0,
            (1, false) => 210.0,
            _ => 200.0,
        };
        let shared = chart.range.iter().flat_map(|(low, high)| [*low, *high]);
        let values = points(chart).flat_map(|p| [p.low, p.mid, p.high]);
        let values = values.chain(shared);
        let steps = frame::steps(height);
        let scale = if chart.log_y {
            Scale::log(values, steps)
        } else {
            Scale::linear(values, steps)
        };
        let gutter = frame::gutter(&scale);
        let panel = (room - gutter - GAP * (columns as f64 - 1.0)) / columns as f64;
        let ends = end_room(chart, panel, height);
        let step = (panel - ends) / chart.x_values.len().max(1) as f64;
        let mut marks: Vec<String> = Vec::new();
        for mark in points(chart).filter_map(|p| p.mark.as_ref()) {
            if !marks.contains(mark) {
                marks.push(mark.clone());
            }
        }
        Self {
            columns,
            panel,
            height,
            gutter,
            ends,
            scale,
            categories: place::categories(&chart.x_values, step, SIZE),
            marks,
        }
    }
}

/// Room for the longest label at a line's end; 0 if labels would crowd the plot or each other.
fn end_room(chart: &AxisChart, panel: f64, height: f64) -> f64 {
    let most = chart
        .facets
        .iter()
        .map(|f| f.lines.len())
        .max()
        .unwrap_or(0);
    let names = chart.facets.iter().flat_map(|f| &f.lines).map(|l| &l.name);
    let longest = names
        .map(|n| text::width(&text::printable(n), SIZE, false))
        .fold(0.0, f64::max);
    let room = longest + END_LEAD + 6.0;
    let fits = most as f64 * END_HEIGHT <= height && room <= 0.3 * panel;
    if fits && longest > 0.0 { room } else { 0.0 }
}

fn points(chart: &AxisChart) -> impl Iterator<Item = &Point> {
    let lines = chart.facets.iter().flat_map(|f| &f.lines);
    lines.flat_map(|l| &l.points)
}

fn legend(chart: &AxisChart, layout: &Layout) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    if layout.ends == 0.0 {
        for line in chart.facets.iter().flat_map(|f| &f.lines) {
            let sample = Sample::Line {
                series: line.colour,
                dashed: true,
                points: true,
            };
            let entry = Entry::new(sample, &line.name);
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    for (sign, mark) in layout.marks.iter().enumerate().take(3) {
        entries.push(Entry::new(Sample::Hollow(sign), mark));
    }
    if let Some(rest) = layout.marks.get(3..).filter(|r| !r.is_empty()) {
        entries.push(Entry::new(Sample::Hollow(3), rest.join("; ")));
    }
    if points(chart).any(|p| p.high > p.low) {
        entries.push(Entry::new(Sample::Whisker, "least and greatest round"));
    }
    if points(chart).any(|p| layout.scale.is_below(p.mid)) {
        entries.push(Entry::new(
            Sample::None,
            "0 lies on the lower edge (log scale)",
        ));
    }
    entries
}

fn panel(d: &mut Drawing, plot: Rect, facet: &Facet, chart: &AxisChart, layout: &Layout) {
    let n = chart.x_values.len();
    let step = plot.width() / n.max(1) as f64;
    // Lines stand a little beside each other, or equal spreads would hide one another.
    let aside = (step / (4.0 * facet.lines.len().max(1) as f64)).min(3.0);
    let middle = (facet.lines.len() as f64 - 1.0) / 2.0;
    let mut ends: Vec<(&Line, Spot)> = Vec::new();
    for (i, line) in facet.lines.iter().enumerate() {
        let shift = (i as f64 - middle) * aside;
        let place = |p: &Point, value: f64| {
            let f = layout.scale.at(value)?;
            (p.x < n).then(|| (frame::category_x(plot, p.x, n) + shift, plot.y(f)))
        };
        let spots: Vec<(&Point, Spot)> = line
            .points
            .iter()
            .filter_map(|p| Some((p, place(p, p.mid)?)))
            .collect();
        let ink = Ink::Series(line.colour);
        let path = spots.iter().map(|(_, s)| *s).collect();
        d.path(path, ink, 2.0, dash(line.colour));
        for (p, _) in &spots {
            if let (Some(low), Some(high)) = (place(p, p.low), place(p, p.high)) {
                d.whisker(low.0, low.1, high.1, 3.5, ink);
            }
        }
        for (p, spot) in &spots {
            let sign = p
                .mark
                .as_ref()
                .and_then(|m| layout.marks.iter().position(|k| k == m));
            match sign {
                Some(sign) => marks::hollow(d, *spot, marker(line.colour), ink, sign),
                None => marks::point(d, *spot, line.colour),
            }
        }
        if let Some((_, spot)) = spots.last() {
            ends.push((line, *spot));
        }
    }
    if layout.ends > 0.0 {
        name_ends(d, plot, &ends);
    }
}

/// Names each line at its end. The names are pushed apart; a thin line leads to each.
fn name_ends(d: &mut Drawing, plot: Rect, ends: &[(&Line, Spot)]) {
    let wanted: Vec<f64> = ends.iter().map(|(_, s)| s.1).collect();
    let (lo, hi) = (plot.top - END_HEIGHT / 2.0, plot.bottom + END_HEIGHT / 2.0);
    let Some(placed) = place::spread(&wanted, END_HEIGHT, lo, hi) else {
        return;
    };
    for ((line, from), y) in ends.iter().zip(placed) {
        // Grey, or it would be read as a course of the line; the point says whose name it is.
        let start = from.0 + marks::RADIUS + 3.0;
        let sample = plot.right + END_LEAD - 10.0;
        let lead = vec![(start, from.1), (plot.right, from.1), (sample - 6.0, y)];
        d.path(lead, Ink::Axis, 0.6, None);
        marks::point(d, (sample, y), line.colour);
        d.text(Label::new((plot.right + END_LEAD, y), &line.name, SIZE));
    }
}

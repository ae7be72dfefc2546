//! The course of a trial: panels stacked on one time axis.

use yieldpoint_figures::{Panel, Series, TimeChart};

use crate::drawing::{Anchor, Drawing, Label, Rect, Spot};
use crate::frame::{self, Entry, Frame, LINE, MARGIN, SIZE};
use crate::marks::{self, Sample};
use crate::scale::Scale;
use crate::text;
use crate::theme::{Ink, dash};

/// Up to so many points a value is drawn as holding until the next; denser ones are joined.
const STEPS_UP_TO: usize = 200;
/// So many points of a dense line are shown, for noise swallows dashes.
const SHOWN: usize = 9;
/// A limit this many times above the data would flatten it; it is then only named.
const LIMIT_WITHIN: f64 = 4.0;

/// Draws the chart.
pub(crate) fn draw(chart: &TimeChart, frame: Frame) -> Drawing {
    let (mut d, mut y) = frame::open(frame, &chart.title, "", &[]);
    if !chart.panels.iter().any(|p| values(p).next().is_some()) {
        return frame::nothing(d, y);
    }
    let height = if d.width > 500.0 { 130.0 } else { 110.0 };
    let scales: Vec<Scale> = chart.panels.iter().map(|p| scale(p, height)).collect();
    let gutter = scales.iter().map(frame::gutter).fold(0.0, f64::max);
    let width = d.width - 2.0 * MARGIN - gutter;
    let time = time_axis(chart, width);
    let mut plot = Rect::new(MARGIN + gutter, y, width - 6.0, 0.0);
    for (panel, scale) in chart.panels.iter().zip(&scales) {
        y = head(&mut d, panel, scale, y);
        plot = Rect::new(plot.left, y + 8.0, plot.width(), height);
        for (t, _) in &time.ticks {
            if let Some(f) = time.at(*t) {
                d.line(
                    (plot.x(f), plot.top),
                    (plot.x(f), plot.bottom),
                    Ink::Grid,
                    1.0,
                );
            }
        }
        frame::value_axis(&mut d, plot, scale, true);
        for series in &panel.series {
            course(&mut d, plot, series, &time, scale);
            if dense(series) && panel.series.len() > 1 {
                sparse_points(&mut d, plot, series, &time, scale);
            }
        }
        // Above the lines: a level at its limit would hide it.
        if let Some((value, _)) = panel.limit.as_ref().filter(|_| limit_is_drawn(panel)) {
            let f = scale.at(*value).unwrap_or(1.0);
            marks::limit_line(&mut d, plot.left, plot.right, plot.y(f));
        }
        y = plot.bottom + 12.0;
    }
    for (t, label) in &time.ticks {
        if let Some(f) = time.at(*t) {
            let x = plot.x(f);
            d.line((x, plot.bottom), (x, plot.bottom + 4.0), Ink::Axis, 1.0);
            let at = (x, plot.bottom + 6.0 + LINE / 2.0);
            // The last label would leave the picture if it stood in the middle of its tick.
            let half = text::width(label, SIZE, false) / 2.0;
            let at = (at.0.min(d.width - half - 1.0), at.1);
            d.text(
                Label::new(at, label, SIZE)
                    .anchor(Anchor::Middle)
                    .ink(Ink::Muted),
            );
        }
    }
    let at = (plot.left, plot.bottom + 6.0 + LINE);
    let room = d.width - at.0 - MARGIN;
    let what = "seconds from the start of the window";
    d.height = frame::lines(&mut d, what, at, room, 2, SIZE, false) + MARGIN;
    d
}

fn values(panel: &Panel) -> impl Iterator<Item = f64> {
    let points = panel.series.iter().flat_map(|s| &s.points);
    points.filter_map(|(_, v)| v.filter(|v| v.is_finite()))
}

/// A limit is part of the scale if the data come near enough to it.
fn limit_is_drawn(panel: &Panel) -> bool {
    let greatest = values(panel).fold(0.0, f64::max);
    panel
        .limit
        .as_ref()
        .is_some_and(|(v, _)| v.is_finite() && *v <= LIMIT_WITHIN * greatest)
}

fn scale(panel: &Panel, height: f64) -> Scale {
    let limit = panel.limit.iter().map(|(v, _)| *v);
    let limit = limit.filter(|_| limit_is_drawn(panel));
    Scale::linear(values(panel).chain(limit), frame::steps(height))
}

fn time_axis(chart: &TimeChart, width: f64) -> Scale {
    let points = chart
        .panels
        .iter()
        .flat_map(|p| &p.series)
        .flat_map(|s| &s.points);
    let times = points.map(|(t, _)| *t).filter(|t| t.is_finite());
    let (lo, hi) = times.fold((0.0, 0.0), |(lo, hi): (f64, f64), t| (lo.min(t), hi.max(t)));
    let hi = if chart.seconds.is_finite() {
        hi.max(chart.seconds)
    } else {
        hi
    };
    let many = |room: f64| (width / room).clamp(1.0, 14.0) as usize;
    let trial = Scale::exact(lo, hi, many(60.0));
    let widest = trial.ticks.iter().map(|(_, l)| text::width(l, SIZE, false));
    // Long labels (a trial of days, or of nanoseconds) need more room each.
    Scale::exact(
        lo,
        hi,
        many(60.0_f64.max(widest.fold(0.0, f64::max) + 20.0)),
    )
}

/// Quantity and legend above a panel; gives the y below them.
fn head(d: &mut Drawing, panel: &Panel, scale: &Scale, y: f64) -> f64 {
    let room = d.width - 2.0 * MARGIN;
    let y = frame::lines(d, &panel.y_label, (MARGIN, y), room, 2, SIZE, true);
    let mut entries: Vec<Entry> = Vec::new();
    // A single line that only repeats its axis needs no legend.
    let alone = panel.series.len() == 1 && panel.y_label.starts_with(&panel.series[0].name);
    for series in panel.series.iter().filter(|_| !alone) {
        let sample = Sample::Line {
            series: series.colour,
            dashed: !dense(series),
            points: dense(series),
        };
        let measured = series.points.iter().any(|(_, v)| v.is_some());
        let note = if measured { "" } else { " (not measured)" };
        entries.push(Entry::new(sample, format!("{}{note}", series.name)));
    }
    if let Some((value, name)) = &panel.limit {
        let entry = if limit_is_drawn(panel) && scale.at(*value).is_some() {
            Entry::new(Sample::Limit, name)
        } else {
            Entry::new(Sample::None, format!("{name}: above this scale"))
        };
        entries.push(entry);
    }
    frame::legend_strip(d, Rect::new(MARGIN, y, room, 0.0), &entries)
}

fn dense(series: &Series) -> bool {
    series.points.len() > STEPS_UP_TO
}

/// A few points on a dense line, at other places for each series.
fn sparse_points(d: &mut Drawing, plot: Rect, series: &Series, time: &Scale, scale: &Scale) {
    let every = (series.points.len() / SHOWN).max(1);
    let first = every * (series.colour % 4) / 4;
    for (t, v) in series.points.iter().skip(first).step_by(every) {
        if let (Some(x), Some(y)) = (time.at(*t), v.and_then(|v| scale.at(v))) {
            marks::point(d, (plot.x(x), plot.y(y)), series.colour);
        }
    }
}

/// One series, broken where a value is missing.
fn course(d: &mut Drawing, plot: Rect, series: &Series, time: &Scale, scale: &Scale) {
    let ink = Ink::Series(series.colour);
    let steps = !dense(series);
    let spot = |t: f64, v: f64| Some((plot.x(time.at(t)?), plot.y(scale.at(v)?)));
    let mut run: Vec<Spot> = Vec::new();
    let mut last_step = 0.0;
    let mut before: Option<f64> = None;
    for (t, value) in &series.points {
        if !t.is_finite() {
            continue;
        }
        if let Some(b) = before {
            last_step = (t - b).max(0.0);
        }
        before = Some(*t);
        let here = value.and_then(|v| spot(*t, v));
        // A step holds until the next time, also until that of a missing value.
        if let (true, Some((_, y)), Some(f)) = (steps, run.last().copied(), time.at(*t)) {
            run.push((plot.x(f), y));
        }
        match here {
            Some(s) => run.push(s),
            None => flush(d, &mut run, series, ink),
        }
    }
    // The last value holds as long as the one before it did.
    if let (true, Some((x, y)), Some(t)) = (steps, run.last().copied(), before) {
        let end = time.at(t + last_step).map_or(x, |f| plot.x(f));
        run.push((end, y));
    }
    flush(d, &mut run, series, ink);
}

fn flush(d: &mut Drawing, run: &mut Vec<Spot>, series: &Series, ink: Ink) {
    let mut points = std::mem::take(run);
    level(&mut points);
    match points.as_slice() {
        [] => {}
        [(x, y)] => {
            // A single value between two gaps has no length: a short stroke makes it seen.
            d.line((x - 1.5, *y), (x + 1.5, *y), ink, 3.0);
        }
        _ if dense(series) => d.path(points, ink, 1.5, None),
        _ => d.path(points, ink, 2.0, dash(series.colour)),
    }
}

/// Drops the inner points of level stretches; where they lie changes nothing that is seen.
fn level(points: &mut Vec<Spot>) {
    points.dedup();
    let mut kept: Vec<Spot> = Vec::with_capacity(points.len());
    for p in points.drain(..) {
        if let [.., (_, a), (_, b)] = kept.as_slice()
            && *a == p.1
            && *b == p.1
        {
            kept.pop();
        }
        kept.push(p);
    }
    *points = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_stretches_become_two_points() {
        let mut points = vec![
            (0.0, 1.0),
            (1.0, 1.0),
            (1.0, 1.0),
            (2.0, 1.0),
            (2.0, 5.0),
            (3.0, 5.0),
        ];
        level(&mut points);
        assert_eq!(points, [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (3.0, 5.0)]);
    }

    /// Paths of one series over 0..4 s, as fractions of the plot.
    fn paths(points: &[(f64, Option<f64>)]) -> Vec<Vec<Spot>> {
        let mut d = Drawing::new(1.0);
        let series = Series {
            points: points.to_vec(),
            ..Series::default()
        };
        let (time, scale) = (Scale::exact(0.0, 4.0, 4), Scale::linear([10.0], 5));
        course(
            &mut d,
            Rect::new(0.0, 0.0, 4.0, 10.0),
            &series,
            &time,
            &scale,
        );
        let path = |s| match s {
            crate::drawing::Shape::Path { points, .. } => points,
            other => panic!("{other:?}"),
        };
        d.shapes.into_iter().map(path).collect()
    }

    #[test]
    fn steps_hold_until_the_next_value_and_break_at_a_gap() {
        let two = paths(&[
            (0.0, Some(10.0)),
            (1.0, None),
            (2.0, Some(0.0)),
            (3.0, Some(10.0)),
        ]);
        assert_eq!(
            two,
            [
                vec![(0.0, 0.0), (1.0, 0.0)],
                // The last value holds as long as the one before: to the end.
                vec![(2.0, 10.0), (3.0, 10.0), (3.0, 0.0), (4.0, 0.0)],
            ]
        );
        assert_eq!(paths(&[(0.0, None), (1.0, None)]), [] as [Vec<Spot>; 0]);
    }

    #[test]
    fn dense_series_are_joined() {
        let dense: Vec<_> = (0..400)
            .map(|i| (f64::from(i) / 100.0, Some(f64::from(i % 2))))
            .collect();
        assert_eq!(paths(&dense)[0].len(), 400);
    }
}

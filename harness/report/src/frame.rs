//! What every chart has: title, legend strip, value axis with grid, category labels.

use crate::drawing::{Anchor, Drawing, Label, Rect};
use crate::marks::Sample;
use crate::place::{self, Categories};
use crate::scale::Scale;
use crate::text::{self, LEADING};
use crate::theme::Ink;

/// Size of ordinary text, px.
pub(crate) const SIZE: f64 = 12.0;
/// Space at the edges of a picture, px.
pub(crate) const MARGIN: f64 = 10.0;
/// Height of a line of ordinary text, px.
pub(crate) const LINE: f64 = SIZE * LEADING;

/// Where a chart is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// width of the picture, px; the height follows
    pub(crate) width: f64,
    /// whether the picture carries its own title (a file) or stands below one (the page)
    pub(crate) title: bool,
}

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) sample: Sample,
    pub(crate) text: String,
}

impl Entry {
    pub(crate) fn new(sample: Sample, text: impl Into<String>) -> Self {
        Self {
            sample,
            text: text.into(),
        }
    }
}

/// Title, quantity and legend at the top. Gives the picture and the y where the chart begins.
pub(crate) fn open(frame: Frame, title: &str, quantity: &str, legend: &[Entry]) -> (Drawing, f64) {
    // Narrower than that nothing can be laid out.
    let mut d = Drawing::new(if frame.width >= 200.0 {
        frame.width
    } else {
        200.0
    });
    let room = d.width - 2.0 * MARGIN;
    let mut y = MARGIN;
    if frame.title {
        y = lines(&mut d, title, (MARGIN, y), room, 3, 15.0, true) + 6.0;
    }
    if !quantity.is_empty() {
        y = lines(&mut d, quantity, (MARGIN, y), room, 2, SIZE, false) + 2.0;
    }
    let strip = Rect::new(MARGIN, y, room, 0.0);
    let y = legend_strip(&mut d, strip, legend);
    (d, y + 4.0)
}

/// Writes a text in at most `most` lines and gives the y below it.
pub(crate) fn lines(
    d: &mut Drawing,
    what: &str,
    at: (f64, f64),
    room: f64,
    most: usize,
    size: f64,
    bold: bool,
) -> f64 {
    let mut y = at.1;
    for line in place::wrap_short(what, room, most, size, bold) {
        let label = Label::new((at.0, y + size * LEADING / 2.0), &line, size);
        d.text(if bold {
            label.bold()
        } else {
            label.ink(Ink::Muted)
        });
        y += size * LEADING;
    }
    y
}

/// Writes a legend into a strip of its own, row by row, and gives the y below it.
pub(crate) fn legend_strip(d: &mut Drawing, strip: Rect, entries: &[Entry]) -> f64 {
    const ROW: f64 = 18.0;
    let (mut x, mut y) = (strip.left, strip.top);
    for entry in entries {
        let sample = match entry.sample.width() {
            0.0 => 0.0,
            width => width + 6.0,
        };
        let label = Label::new((0.0, 0.0), &entry.text, SIZE).within(strip.width() - sample);
        let width = sample + label.width();
        if x > strip.left && x + width > strip.right {
            (x, y) = (strip.left, y + ROW);
        }
        entry.sample.draw(d, (x, y + ROW / 2.0));
        d.text(Label {
            at: (x + sample, y + ROW / 2.0),
            ..label
        });
        x += width + 18.0;
    }
    if entries.is_empty() { y } else { y + ROW }
}

/// Room that the labels of a value axis take to its left, px.
pub(crate) fn gutter(scale: &Scale) -> f64 {
    let widths = scale.ticks.iter().map(|(_, l)| text::width(l, SIZE, false));
    widths.fold(0.0, f64::max).ceil() + 8.0
}

/// How many steps a value axis of this height has room for.
pub(crate) fn steps(height: f64) -> usize {
    // Heights are some hundred px; two lines of text to a label keep them well apart.
    (height / (2.2 * LINE)).clamp(1.0, 6.0) as usize
}

/// Grid lines and, if asked, the labels to their left.
pub(crate) fn value_axis(d: &mut Drawing, plot: Rect, scale: &Scale, labels: bool) {
    for (value, label) in &scale.ticks {
        let Some(f) = scale.at(*value) else { continue };
        let y = plot.y(f);
        let ink = if f == 0.0 { Ink::Axis } else { Ink::Grid };
        d.line((plot.left, y), (plot.right, y), ink, 1.0);
        if labels {
            let at = (plot.left - 6.0, y);
            d.text(
                Label::new(at, label, SIZE)
                    .anchor(Anchor::End)
                    .ink(Ink::Muted),
            );
        }
    }
    d.line(
        (plot.left, plot.bottom),
        (plot.right, plot.bottom),
        Ink::Axis,
        1.0,
    );
}

/// The middle of category `i` of `n`, px.
pub(crate) fn category_x(plot: Rect, i: usize, n: usize) -> f64 {
    plot.x((i as f64 + 0.5) / n.max(1) as f64)
}

/// Labels below a plot, one under the middle of each category.
pub(crate) fn category_axis(d: &mut Drawing, plot: Rect, categories: &Categories) {
    let n = categories.labels.len();
    for (i, label_lines) in categories.labels.iter().enumerate() {
        let x = category_x(plot, i, n);
        for (k, line) in label_lines.iter().enumerate() {
            let label = Label::new((x, plot.bottom + 6.0), line, SIZE);
            d.text(if categories.turned {
                label.anchor(Anchor::End).turned()
            } else {
                let y = plot.bottom + 6.0 + LINE * (k as f64 + 0.5);
                Label {
                    at: (x, y),
                    ..label
                }
                .anchor(Anchor::Middle)
            });
        }
    }
}

/// Says that there is nothing to draw.
pub(crate) fn nothing(mut d: Drawing, y: f64) -> Drawing {
    d.text(Label::new((MARGIN, y + 20.0), "nothing was measured", SIZE).ink(Ink::Muted));
    d.height = y + 40.0;
    d
}

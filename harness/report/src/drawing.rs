//! A picture as a list of shapes in px. Charts make it, painters turn it into SVG or PNG.
//!
//! Being plain data it can be asked in a test whether two texts overlap.

use crate::place;
use crate::text;
use crate::theme::{Dash, Ink};

/// A place in px from the upper left corner.
pub(crate) type Spot = (f64, f64);

/// Which end of a text its place names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// an open line
    Path {
        points: Vec<Spot>,
        ink: Ink,
        width: f64,
        dash: Dash,
    },
    /// a filled polygon
    Area { points: Vec<Spot>, ink: Ink },
    /// a text, centred on the height of its place
    Text(Label),
}

/// A text and how it is set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    pub(crate) at: Spot,
    pub(crate) text: String,
    pub(crate) ink: Ink,
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) anchor: Anchor,
    /// written upwards
    pub(crate) turned: bool,
}

impl Label {
    /// A plain text that starts at `at`.
    pub(crate) fn new(at: Spot, text: &str, size: f64) -> Self {
        Self {
            at,
            text: text::printable(text),
            ink: Ink::Text,
            size,
            bold: false,
            anchor: Anchor::Start,
            turned: false,
        }
    }
    pub(crate) fn ink(mut self, ink: Ink) -> Self {
        self.ink = ink;
        self
    }
    pub(crate) fn bold(mut self) -> Self {
        self.bold = true;
        self
    }
    pub(crate) fn anchor(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }
    pub(crate) fn turned(mut self) -> Self {
        self.turned = true;
        self
    }
    /// The same text, shortened to `room` px.
    pub(crate) fn within(mut self, room: f64) -> Self {
        self.text = place::shorten(&self.text, room, self.size, self.bold);
        self
    }
    pub(crate) fn width(&self) -> f64 {
        text::width(&self.text, self.size, self.bold)
    }
    /// Left, top, right, bottom.
    #[cfg(test)]
    pub(crate) fn bounds(&self) -> [f64; 4] {
        let (w, half) = (self.width(), self.size / 2.0);
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => w / 2.0,
            Anchor::End => w,
        };
        let (x, y) = self.at;
        if self.turned {
            [x - half, y - (w - before), x + half, y + before]
        } else {
            [x - before, y - half, x - before + w, y + half]
        }
    }
}

/// A rectangle in px.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn new(left: f64, top: f64, width: f64, height: f64) -> Self {
        Self {
            left,
            top,
            right: left + width,
            bottom: top + height,
        }
    }
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }
    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }
    /// The place of a fraction of the width, from the left.
    pub(crate) fn x(&self, fraction: f64) -> f64 {
        self.left + fraction * self.width()
    }
    /// The place of a fraction of the height, from the bottom.
    pub(crate) fn y(&self, fraction: f64) -> f64 {
        self.bottom - fraction * self.height()
    }
    fn corners(&self) -> Vec<Spot> {
        vec![
            (self.left, self.top),
            (self.right, self.top),
            (self.right, self.bottom),
            (self.left, self.bottom),
        ]
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
}

impl Drawing {
    pub(crate) fn new(width: f64) -> Self {
        Self {
            width,
            height: 0.0,
            shapes: Vec::new(),
        }
    }
    pub(crate) fn text(&mut self, label: Label) {
        if !label.text.is_empty() {
            self.shapes.push(Shape::Text(label));
        }
    }
    pub(crate) fn path(&mut self, points: Vec<Spot>, ink: Ink, width: f64, dash: Dash) {
        if points.len() > 1 {
            self.shapes.push(Shape::Path {
                points,
                ink,
                width,
                dash,
            });
        }
    }
    pub(crate) fn line(&mut self, from: Spot, to: Spot, ink: Ink, width: f64) {
        self.path(vec![from, to], ink, width, None);
    }
    pub(crate) fn area(&mut self, points: Vec<Spot>, ink: Ink) {
        self.shapes.push(Shape::Area { points, ink });
    }
    pub(crate) fn fill(&mut self, rect: Rect, ink: Ink) {
        self.area(rect.corners(), ink);
    }
    /// A spread: a vertical line with caps.
    pub(crate) fn whisker(&mut self, x: f64, low: f64, high: f64, half: f64, ink: Ink) {
        // A spread below half a px is none that could be seen.
        if (low - high).abs() < 0.5 {
            return;
        }
        self.line((x, low), (x, high), ink, 1.2);
        for y in [low, high] {
            self.line((x - half, y), (x + half, y), ink, 1.2);
        }
    }

    /// Every pair of texts that overlap; a picture must have none.
    #[cfg(test)]
    pub(crate) fn overlaps(&self) -> Vec<(String, String)> {
        let labels: Vec<&Label> = self
            .shapes
            .iter()
            .filter_map(|s| match s {
                Shape::Text(l) => Some(l),
                _ => None,
            })
            .collect();
        let mut out = Vec::new();
        for (i, a) in labels.iter().enumerate() {
            for b in &labels[i + 1..] {
                let (p, q) = (a.bounds(), b.bounds());
                if p[0] < q[2] && q[0] < p[2] && p[1] < q[3] && q[1] < p[3] {
                    out.push((a.text.clone(), b.text.clone()));
                }
            }
        }
        out
    }

    /// Every text that leaves the picture; a picture must have none.
    #[cfg(test)]
    pub(crate) fn cut(&self) -> Vec<String> {
        let inside = |l: &Label| {
            let [left, top, right, bottom] = l.bounds();
            left >= 0.0 && top >= 0.0 && right <= self.width && bottom <= self.height
        };
        self.shapes
            .iter()
            .filter_map(|s| match s {
                Shape::Text(l) if !inside(l) => Some(l.text.clone()),
                _ => None,
            })
            .collect()
    }
}

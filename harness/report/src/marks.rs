//! Points, their marks, and the samples of them in a legend.

use std::f64::consts::{FRAC_PI_2, TAU};

use crate::drawing::{Drawing, Rect, Spot};
use crate::theme::{Ink, Marker, dash, marker};

/// Half the size of a point, px.
pub(crate) const RADIUS: f64 = 4.0;

fn outline(kind: Marker, (x, y): Spot, r: f64) -> Vec<Spot> {
    let ring = |n: u32, start: f64, radius: &dyn Fn(u32) -> f64| {
        (0..n)
            .map(|i| {
                let a = start + TAU * f64::from(i) / f64::from(n);
                (x + radius(i) * a.cos(), y + radius(i) * a.sin())
            })
            .collect()
    };
    let boxed = |w: f64, h: f64| {
        vec![
            (x - w, y - h),
            (x + w, y - h),
            (x + w, y + h),
            (x - w, y + h),
        ]
    };
    match kind {
        Marker::Circle => ring(20, 0.0, &|_| r),
        Marker::Square => boxed(0.88 * r, 0.88 * r),
        Marker::Triangle => ring(3, -FRAC_PI_2, &|_| 1.25 * r),
        Marker::TriangleDown => ring(3, FRAC_PI_2, &|_| 1.25 * r),
        Marker::Diamond => ring(4, -FRAC_PI_2, &|_| 1.25 * r),
        Marker::Hexagon => ring(6, 0.0, &|_| 1.1 * r),
        Marker::Bar => boxed(1.2 * r, 0.5 * r),
        Marker::Star => ring(10, -FRAC_PI_2, &|i| {
            if i % 2 == 0 { 1.4 * r } else { 0.65 * r }
        }),
    }
}

/// A filled point of a series.
pub(crate) fn point(d: &mut Drawing, at: Spot, series: usize) {
    d.area(outline(marker(series), at, RADIUS), Ink::Series(series));
}

/// A hollow point. `sign` tells one explanation from another: empty, a dot, a bar, a cross.
pub(crate) fn hollow(d: &mut Drawing, at: Spot, kind: Marker, ink: Ink, sign: usize) {
    // Two fills: an outline of so few px would be ragged in a bitmap.
    d.area(outline(kind, at, RADIUS + 1.8), ink);
    d.area(outline(kind, at, RADIUS), Ink::Surface);
    let (x, y) = at;
    let h = 2.4;
    match sign {
        0 => {}
        1 => d.area(outline(Marker::Circle, at, 1.7), ink),
        2 => d.line((x - h, y), (x + h, y), ink, 1.5),
        _ => {
            d.line((x - h, y), (x + h, y), ink, 1.3);
            d.line((x, y - h), (x, y + h), ink, 1.3);
        }
    }
}

/// What has no value: a small cross.
pub(crate) fn missing(d: &mut Drawing, (x, y): Spot) {
    let h = 3.5;
    d.line((x - h, y - h), (x + h, y + h), Ink::Muted, 1.4);
    d.line((x - h, y + h), (x + h, y - h), Ink::Muted, 1.4);
}

/// A marked corner of a cell. `sign` tells one explanation from another by the corner.
pub(crate) fn corner(d: &mut Drawing, cell: Rect, sign: usize, ink: Ink) {
    let size = 7.0_f64.min(cell.width() / 2.0).min(cell.height() / 2.0);
    let (x, inward) = if sign.is_multiple_of(2) {
        (cell.right, -size)
    } else {
        (cell.left, size)
    };
    let (y, down) = if sign < 2 {
        (cell.top, size)
    } else {
        (cell.bottom, -size)
    };
    d.area(vec![(x, y), (x + inward, y), (x, y + down)], ink);
}

/// A small shape of a series in the colour of the surface, inside a bar.
pub(crate) fn inside(d: &mut Drawing, at: Spot, series: usize) {
    d.area(outline(marker(series), at, 2.6), Ink::Surface);
}

/// What a legend shows in front of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sample {
    Line {
        series: usize,
        dashed: bool,
        points: bool,
    },
    Bar(usize),
    Hollow(usize),
    Corner(usize),
    Missing,
    Whisker,
    Limit,
    None,
}

impl Sample {
    /// Width of the sample, px.
    pub(crate) fn width(self) -> f64 {
        match self {
            Self::Line { .. } | Self::Limit => 30.0,
            Self::Bar(_) | Self::Hollow(_) | Self::Missing | Self::Whisker => 14.0,
            Self::Corner(_) => 22.0,
            Self::None => 0.0,
        }
    }
    /// Draws it with its left end at a place.
    pub(crate) fn draw(self, d: &mut Drawing, (x, y): Spot) {
        let middle = (x + self.width() / 2.0, y);
        match self {
            Self::Line {
                series,
                dashed,
                points,
            } => {
                let dash = if dashed { dash(series) } else { None };
                let ends = vec![(x, y), (x + self.width(), y)];
                d.path(ends, Ink::Series(series), 2.0, dash);
                if points {
                    point(d, middle, series);
                }
            }
            Self::Bar(series) => {
                let r = Rect::new(x, y - 6.0, 12.0, 12.0);
                d.fill(r, Ink::Series(series));
                inside(d, (x + 6.0, y), series);
            }
            Self::Hollow(sign) => hollow(d, middle, Marker::Circle, Ink::Text, sign),
            Self::Corner(sign) => {
                let cell = Rect::new(x, y - 6.5, self.width(), 13.0);
                d.fill(cell, Ink::Heat(3));
                corner(d, cell, sign, Ink::OnHeat(3));
            }
            Self::Missing => missing(d, middle),
            Self::Whisker => d.whisker(middle.0, y - 6.0, y + 6.0, 3.5, Ink::Text),
            Self::Limit => limit_line(d, x, x + self.width(), y),
            Self::None => {}
        }
    }
}

/// A line that nothing should cross.
pub(crate) fn limit_line(d: &mut Drawing, from: f64, to: f64, y: f64) {
    let dash = crate::theme::DASHES[4];
    d.path(vec![(from, y), (to, y)], Ink::Limit, 1.2, dash);
}

//! Painters: one picture, two kinds of file, both through plotters.

mod png;
mod svg;

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Text};
use plotters::prelude::{DrawingArea, DrawingBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, RGBColor, ShapeStyle, TextStyle};

use crate::drawing::{Anchor, Drawing, Label, Shape, Spot};
use crate::text;
use crate::theme::{Dash, Ink};

pub(crate) use png::png;
pub(crate) use svg::{inline, standalone};

/// How one backend differs from the other.
struct Brush<'a> {
    /// units of the backend in a px
    scale: f64,
    /// size that plotters must be told for a text of 1 em
    size_per_em: f64,
    /// how far below its place a text must be put so that capitals are centred there, em
    sink: f64,
    /// whether dashes and joints are drawn here (the bitmap) or by the viewer (SVG)
    by_hand: bool,
    colour: &'a dyn Fn(Ink, Dash) -> RGBColor,
}

/// Draws all shapes, in order.
fn paint<B: DrawingBackend>(
    drawing: &Drawing,
    on: &DrawingArea<B, Shift>,
    brush: &Brush,
) -> anyhow::Result<()> {
    let place = |(x, y): Spot| (units(x * brush.scale), units(y * brush.scale));
    for shape in &drawing.shapes {
        let done = match shape {
            Shape::Area { points, ink } => {
                let points: Vec<_> = points.iter().copied().map(place).collect();
                on.draw(&Polygon::new(points, (brush.colour)(*ink, None)))
            }
            Shape::Path {
                points,
                ink,
                width,
                dash,
            } => {
                let points: Vec<_> = points.iter().copied().map(place).collect();
                let style = ShapeStyle {
                    color: (brush.colour)(*ink, *dash).to_rgba(),
                    filled: false,
                    // Widths are a few px, so the product is small and positive.
                    stroke_width: (width * brush.scale).round().max(1.0) as u32,
                };
                match dash {
                    Some((on_px, off_px)) if brush.by_hand => {
                        let size = |px: &u32| f64::from(*px) * brush.scale;
                        let (on_px, off_px) = (units(size(on_px)), units(size(off_px)));
                        on.draw(&DashedPathElement::new(points, on_px, off_px, style))
                    }
                    None if brush.by_hand => joined(on, &points, style),
                    _ => on.draw(&PathElement::new(points, style)),
                }
            }
            Shape::Text(label) => {
                let (dx, dy) = if label.turned { (1.0, 0.0) } else { (0.0, 1.0) };
                let sink = brush.sink * label.size;
                let at = place((label.at.0 + dx * sink, label.at.1 + dy * sink));
                // The bitmap drops the space in front of each letter, and with it half of a blank.
                let text = if brush.by_hand {
                    label.text.replace(' ', " \u{200a}")
                } else {
                    label.text.clone()
                };
                on.draw(&Text::new(text, at, style_of(label, brush)))
            }
        };
        done.map_err(|e| anyhow!("cannot draw: {e}"))?;
    }
    Ok(())
}

/// A line piece by piece with round joints: drawn in one go, sharp turns would grow spikes.
fn joined<B: DrawingBackend>(
    on: &DrawingArea<B, Shift>,
    points: &[(i32, i32)],
    style: ShapeStyle,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    for piece in points.windows(2) {
        on.draw(&PathElement::new(piece.to_vec(), style))?;
    }
    if style.stroke_width > 2 {
        for joint in points.iter().skip(1).take(points.len().saturating_sub(2)) {
            on.draw(&Circle::new(*joint, style.stroke_width / 2, style.filled()))?;
        }
    }
    Ok(())
}

fn style_of<'a>(label: &Label, brush: &Brush) -> TextStyle<'a> {
    let h = match label.anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let mut font = text::font(label.size * brush.size_per_em * brush.scale, label.bold);
    if label.turned {
        font = font.transform(FontTransform::Rotate270);
    }
    TextStyle {
        color: (brush.colour)(label.ink, None).to_backend_color(),
        pos: Pos::new(h, VPos::Center),
        font,
    }
}

/// Backends count in whole units. Float to integer saturates, so even a wild value is a place.
fn units(v: f64) -> i32 {
    // Far outside every picture, yet far from overflow in what plotters computes with it.
    v.round().clamp(-1e6, 1e6) as i32
}

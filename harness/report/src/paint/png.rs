//! PNG at twice the size, in light colours.

use std::path::Path;

use anyhow::{anyhow, ensure};
use plotters::prelude::{BitMapBackend, IntoDrawingArea};
use plotters::style::RGBColor;

use super::{Brush, paint};
use crate::drawing::Drawing;
use crate::text;
use crate::theme::{Ink, Theme};

const SCALE: f64 = 2.0;

/// Writes the file. On an error a blank file may be left: the caller writes aside and renames.
pub(crate) fn png(drawing: &Drawing, theme: &Theme, path: &Path) -> anyhow::Result<()> {
    ensure!(text::register(), "the embedded fonts are damaged");
    // A picture is at least as large as its margins and at most some thousand px.
    let size = |px: f64| (px * SCALE).ceil() as u32;
    let backend = BitMapBackend::new(path, (size(drawing.width), size(drawing.height)));
    let area = backend.into_drawing_area();
    let colour = |ink, _| {
        let [r, g, b] = theme.rgb(ink);
        RGBColor(r, g, b)
    };
    let surface: RGBColor = colour(Ink::Surface, None);
    area.fill(&surface)
        .map_err(|e| anyhow!("cannot draw: {e}"))?;
    let brush = Brush {
        scale: SCALE,
        size_per_em: text::HEIGHT_PER_EM,
        sink: 0.12,
        by_hand: true,
        colour: &colour,
    };
    paint(drawing, &area, &brush)?;
    area.present()
        .map_err(|e| anyhow!("cannot write \"{}\": {e}", path.display()))
}

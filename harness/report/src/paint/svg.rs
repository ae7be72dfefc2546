//! SVG that follows the viewer's colour scheme.
//!
//! plotters bakes colours and knows no dashes. So the picture is painted in sentinel colours,
//! `#FE<dash><ink>`, that no theme uses, and each is then replaced by what it stands for. Data
//! cannot be mistaken for one: inside a text the quote of `fill="` would be escaped.

use std::fmt::Write as _;

use anyhow::{anyhow, ensure};
use plotters::prelude::{DrawingArea, IntoDrawingArea, SVGBackend};
use plotters::style::RGBColor;

use super::{Brush, paint, units};
use crate::drawing::Drawing;
use crate::text;
use crate::theme::{DASHES, Ink, Theme};

/// Units in a px: plotters counts in whole units, and a tenth of a px is not seen.
const SCALE: f64 = 10.0;

/// For a page that defines the variables of the theme (`--text`, `--series-0` …).
pub(crate) fn inline(drawing: &Drawing, name: &str) -> anyhow::Result<String> {
    let shapes = replaced(&raw(drawing)?, |ink| format!("var(--{})", ink.name()));
    Ok(format!("{}{shapes}</svg>", root(drawing, name, "")))
}

/// For a file of its own: light colours for every viewer, dark ones where the viewer asks.
pub(crate) fn standalone(drawing: &Drawing, name: &str) -> anyhow::Result<String> {
    let (light, dark) = (&Theme::LIGHT, &Theme::DARK);
    let shapes = replaced(&raw(drawing)?, |ink| light.hex(ink));
    let mut style = String::from("<style>@media (prefers-color-scheme: dark){");
    for ink in Ink::all() {
        // A style beats the attribute it selects by.
        for what in ["fill", "stroke"] {
            let (from, to) = (light.hex(ink), dark.hex(ink));
            // Writing to a String cannot fail.
            let _ = write!(style, "[{what}=\"{from}\"]{{{what}:{to}}}");
        }
    }
    style.push_str("}</style>\n");
    let size = format!(" width=\"{}\" height=\"{}\"", drawing.width, drawing.height);
    let surface = light.hex(Ink::Surface);
    Ok(format!(
        "{}<title>{}</title>\n{style}<rect width=\"100%\" height=\"100%\" fill=\"{surface}\"/>\n{shapes}</svg>\n",
        root(drawing, name, &size),
        escaped(name),
    ))
}

fn root(drawing: &Drawing, name: &str, size: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\"{size} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" font-family=\"{}\" stroke-linejoin=\"round\">\n",
        units(drawing.width * SCALE),
        units(drawing.height * SCALE),
        escaped(name),
        text::STACK,
    )
}

fn sentinel(ink: Ink, dash: usize) -> RGBColor {
    // There are five dashes.
    RGBColor(0xfe, dash as u8, ink.index())
}

/// The shapes as plotters writes them, without the root element.
fn raw(drawing: &Drawing) -> anyhow::Result<String> {
    ensure!(text::register(), "the embedded fonts are damaged");
    let mut out = String::new();
    let size = (drawing.width * SCALE, drawing.height * SCALE);
    // A picture is at least as large as its margins and at most some thousand px.
    let backend = SVGBackend::with_string(&mut out, (size.0 as u32, size.1 as u32));
    let area: DrawingArea<_, _> = backend.into_drawing_area();
    let colour = |ink, dash| {
        let dash = DASHES.iter().position(|d| *d == dash).unwrap_or(0);
        sentinel(ink, dash)
    };
    let brush = Brush {
        scale: SCALE,
        // The SVG backend divides by this number.
        size_per_em: 1.24,
        // It lowers a centred text by half an ex (0.27 em); half of a capital is 0.36 em.
        sink: 0.08,
        by_hand: false,
        colour: &colour,
    };
    paint(drawing, &area, &brush)?;
    area.present()
        .map_err(|e| anyhow!("cannot finish the SVG: {e}"))?;
    drop(area);
    let shapes = out.split_once('\n').map_or("", |(_, shapes)| shapes);
    Ok(shapes.trim_end().trim_end_matches("</svg>").to_owned())
}

/// Colours and dashes for sentinels; attributes that only repeat the default go.
fn replaced(raw: &str, colour: impl Fn(Ink) -> String) -> String {
    let raw = raw
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(&format!(" font-family=\"{}\"", text::FAMILY), "");
    let inks: Vec<(u8, String)> = Ink::all().map(|i| (i.index(), colour(i))).collect();
    let meaning = |rest: &str| {
        // Two digits of the dash, two of the ink, and the quote behind them.
        let byte = |at| u8::from_str_radix(rest.get(at)?, 16).ok();
        let (dash, ink) = (byte(0..2)?, byte(2..4)?);
        let (_, colour) = inks.iter().find(|(i, _)| *i == ink)?;
        let dash = DASHES.get(usize::from(dash))?;
        let dashes = dash.map_or_else(String::new, |(on, off)| {
            let px = |v: u32| f64::from(v) * SCALE;
            format!(" stroke-dasharray=\"{} {}\"", px(on), px(off))
        });
        rest.get(4..)?
            .starts_with('"')
            .then(|| format!("{colour}\"{dashes}"))
    };
    // One pass: a picture has thousands of shapes.
    let mut parts = raw.split("=\"#FE");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match meaning(part) {
            Some(text) => {
                out.push_str("=\"");
                out.push_str(&text);
                // The sentinel was four digits and a quote.
                out.push_str(part.get(5..).unwrap_or_default());
            }
            None => {
                out.push_str("=\"#FE");
                out.push_str(part);
            }
        }
    }
    out
}

fn escaped(name: &str) -> String {
    text::printable(name)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::{Label, Rect};

    fn picture() -> Drawing {
        let mut d = Drawing::new(200.0);
        d.height = 100.0;
        for (i, ink) in Ink::all().enumerate() {
            let dash = DASHES[i % DASHES.len()];
            d.path(vec![(0.0, 0.0), (9.0, 9.0)], ink, 1.5, dash);
            d.fill(Rect::new(1.0, 1.0, 5.0, 5.0), ink);
        }
        d.text(Label::new((5.0, 50.0), "fill=\"#FE0001\" <&>", 12.0));
        d
    }

    #[test]
    fn no_sentinel_is_left_and_no_text_is_taken_for_one() {
        let name = "a \"name\" & <more>";
        let page = inline(&picture(), name).unwrap();
        let file = standalone(&picture(), name).unwrap();
        for svg in [&page, &file] {
            assert!(!svg.contains("\"#FE"), "{svg}");
            assert!(
                svg.contains("fill=&quot;#FE0001&quot; &lt;&amp;&gt;"),
                "{svg}"
            );
            assert!(svg.contains("stroke-dasharray=\"80 30\""));
            assert!(svg.contains("aria-label=\"a &quot;name&quot; &amp; &lt;more&gt;\""));
        }
        for ink in Ink::all() {
            assert!(page.contains(&format!("fill=\"var(--{})\"", ink.name())));
            assert!(file.contains(&format!("stroke=\"{}\"", Theme::LIGHT.hex(ink))));
        }
        let colours = page.matches("=\"#").count();
        assert_eq!(colours, 0, "inline SVG has no colour of its own");
    }
}

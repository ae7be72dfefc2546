//! How wide a text is, before it is drawn; and the one family that charts use.

use std::sync::OnceLock;

use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

/// The family under which the fonts are registered with plotters.
pub(crate) const FAMILY: &str = "sans-serif";

/// What SVG and page ask the viewer for; all of these are at most as wide as the measured font.
pub(crate) const STACK: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif";

/// Ascent and descent of the measured font in em. plotters takes a size as this whole height.
pub(crate) const HEIGHT_PER_EM: f64 = 1.362;

/// Room for a viewer's font that is wider than the measured one.
const SLACK: f64 = 1.08;

/// Height of a line in em.
pub(crate) const LEADING: f64 = 1.3;

/// Registers the embedded fonts, once a process. False: they are damaged, nothing can be drawn.
pub(crate) fn register() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| {
        let regular = register_font(FAMILY, FontStyle::Normal, notosans::REGULAR_TTF);
        let bold = register_font(FAMILY, FontStyle::Bold, notosans::BOLD_TTF);
        regular.is_ok() && bold.is_ok()
    })
}

/// A font of plotters. Not by `FontDesc::style`, which renames a font but keeps its letters.
pub(crate) fn font(size: f64, bold: bool) -> FontDesc<'static> {
    let style = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    FontDesc::new(FontFamily::SansSerif, size, style)
}

/// Width in px of a text of `size` px, with some slack.
pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    // plotters answers in whole px: ask for a large text and scale down.
    const LARGE: f64 = 100.0;
    let measured = register()
        .then(|| font(LARGE * HEIGHT_PER_EM, bold).layout_box(text).ok())
        .flatten()
        .map(|((left, _), (right, _))| f64::from(right - left) / LARGE);
    // 0.6 em a letter is wider than the average of any common font.
    let em = measured.unwrap_or_else(|| text.chars().count() as f64 * 0.6);
    em * size * SLACK
}

/// A text that XML can carry: control characters and non-characters become "�".
pub(crate) fn printable(text: &str) -> String {
    let odd = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if odd(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_follows_letters_size_and_weight() {
        let w = width("throughput", 12.0, false);
        assert!((50.0..90.0).contains(&w), "{w}");
        assert!((width("throughput", 24.0, false) - 2.0 * w).abs() < 1e-9);
        assert!(width("throughput", 12.0, true) > w);
        assert!(width("iiiiiiiiii", 12.0, false) < w);
        assert_eq!(width("", 12.0, false), 0.0);
    }

    #[test]
    fn what_xml_refuses_is_replaced() {
        assert_eq!(printable("a\u{0}b\n<c>\u{ffff}"), "a\u{fffd}b <c>\u{fffd}");
    }
}

//! How wide a text is, before it is drawn; and the one family that charts use.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

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

/// Width in px of a text of `size` px, with some slack. Kerning is left out: it only narrows.
pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    text.chars().map(|c| advance(c, bold)).sum::<f64>() * size * SLACK
}

/// Width of a letter in em. Kept, because a report asks for some hundred letters very often.
fn advance(letter: char, bold: bool) -> f64 {
    // plotters answers in whole px: ask for a large letter and scale down.
    const LARGE: f64 = 1_000.0;
    static KNOWN: Mutex<BTreeMap<(char, bool), f64>> = Mutex::new(BTreeMap::new());
    // A map that is only ever added to is whole even if another thread panicked.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry((letter, bold)).or_insert_with(|| {
        let font = register().then(|| font(LARGE * HEIGHT_PER_EM, bold));
        let measured = font.and_then(|f| f.layout_box(letter.encode_utf8(&mut [0; 4])).ok());
        // 0.6 em is wider than the average letter of any common font.
        measured.map_or(0.6, |((left, _), (right, _))| {
            f64::from(right - left) / LARGE
        })
    })
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

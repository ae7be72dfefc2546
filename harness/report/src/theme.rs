//! Colours, dashes and markers. Every drawing goes through one `Theme`; nothing else names a colour.

/// A colour as red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// What a shape means; a `Theme` gives it a colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ink {
    Surface,
    Text,
    Muted,
    Grid,
    Axis,
    Limit,
    /// a series; indices beyond the palette start again, with another dash
    Series(usize),
    /// a step of the colour scale, upwards
    Heat(usize),
    /// a text on a step of the colour scale
    OnHeat(usize),
}

/// Colours in the palette.
pub(crate) const SERIES: usize = 8;

/// Steps of the colour scale.
pub(crate) const HEAT: usize = 9;

impl Ink {
    /// Every ink once.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [
            Self::Surface,
            Self::Text,
            Self::Muted,
            Self::Grid,
            Self::Axis,
            Self::Limit,
        ]
        .into_iter()
        .chain((0..SERIES).map(Self::Series))
        .chain((0..HEAT).map(Self::Heat))
        // Two texts are enough: one for dark steps and one for light ones.
        .chain([Self::OnHeat(0), Self::OnHeat(HEAT - 1)])
    }
    /// Its name as a CSS variable, without the dashes in front.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Surface => "surface".into(),
            Self::Text => "text".into(),
            Self::Muted => "muted".into(),
            Self::Grid => "grid".into(),
            Self::Axis => "axis".into(),
            Self::Limit => "limit".into(),
            Self::Series(i) => format!("series-{}", i % SERIES),
            Self::Heat(i) => format!("heat-{}", i.min(HEAT - 1)),
            Self::OnHeat(i) if is_dark(i) => "on-dark".into(),
            Self::OnHeat(_) => "on-light".into(),
        }
    }
    /// Its place in `all`.
    pub(crate) fn index(self) -> u8 {
        match self {
            Self::Surface => 0,
            Self::Text => 1,
            Self::Muted => 2,
            Self::Grid => 3,
            Self::Axis => 4,
            Self::Limit => 5,
            // The remainder is below 8.
            Self::Series(i) => 6 + (i % SERIES) as u8,
            // Below 9.
            Self::Heat(i) => 14 + i.min(HEAT - 1) as u8,
            Self::OnHeat(i) => 23 + u8::from(!is_dark(i)),
        }
    }
}

/// Steps of the colour scale that are darker than the middle grey: light text stands out from them.
fn is_dark(step: usize) -> bool {
    step < 4
}

/// Viridis (Smith and van der Walt 2015) in nine steps: even to the eye, safe for the common kinds
/// of colour blindness and in grey. The same in both themes, for every cell carries its own ground.
const VIRIDIS: [Rgb; HEAT] = [
    rgb(0x440154),
    rgb(0x472d7b),
    rgb(0x3b528b),
    rgb(0x2c728e),
    rgb(0x21918c),
    rgb(0x28ae80),
    rgb(0x5ec962),
    rgb(0xaddc30),
    rgb(0xfde725),
];

/// A colour for every ink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    surface: Rgb,
    text: Rgb,
    muted: Rgb,
    grid: Rgb,
    axis: Rgb,
    limit: Rgb,
    series: [Rgb; SERIES],
}

const fn rgb(hex: u32) -> Rgb {
    let [_, r, g, b] = hex.to_be_bytes();
    [r, g, b]
}

impl Theme {
    /// The hues of Okabe and Ito (2008), safe for the common kinds of colour blindness,
    /// darkened until each stands out from white by 3:1.
    pub(crate) const LIGHT: Self = Self {
        surface: rgb(0xffffff),
        text: rgb(0x1b1f24),
        muted: rgb(0x59626d),
        grid: rgb(0xe3e7eb),
        axis: rgb(0x8a939d),
        limit: rgb(0x9b1c31),
        series: [
            rgb(0x0072b2),
            rgb(0xd55e00),
            rgb(0x008f68),
            rgb(0xb9558f),
            rgb(0x2f8fca),
            rgb(0xa67100),
            rgb(0x353b42),
            rgb(0x7d7a00),
        ],
    };
    /// The same hues, lightened for a dark surface.
    pub(crate) const DARK: Self = Self {
        surface: rgb(0x14181d),
        text: rgb(0xe8ecf0),
        muted: rgb(0xa3adb8),
        grid: rgb(0x2b323a),
        axis: rgb(0x6f7a86),
        limit: rgb(0xff8fa0),
        series: [
            rgb(0x4aa3e0),
            rgb(0xf58442),
            rgb(0x22bf95),
            rgb(0xe39cc6),
            rgb(0x93d0f5),
            rgb(0xe69f00),
            rgb(0xdfe4e9),
            rgb(0xf0e442),
        ],
    };

    /// The colour of an ink.
    pub(crate) fn rgb(&self, ink: Ink) -> Rgb {
        match ink {
            Ink::Surface => self.surface,
            Ink::Text => self.text,
            Ink::Muted => self.muted,
            Ink::Grid => self.grid,
            Ink::Axis => self.axis,
            Ink::Limit => self.limit,
            Ink::Series(i) => self.series[i % SERIES],
            Ink::Heat(i) => VIRIDIS[i.min(HEAT - 1)],
            Ink::OnHeat(i) if is_dark(i) => rgb(0xfdfeff),
            Ink::OnHeat(_) => rgb(0x030507),
        }
    }
    /// The same as CSS writes it.
    pub(crate) fn hex(&self, ink: Ink) -> String {
        let [r, g, b] = self.rgb(ink);
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// A dash and the gap behind it, in px; `None` is solid.
pub(crate) type Dash = Option<(u32, u32)>;

/// Every dash that exists; its index travels through the SVG backend, which knows no dashes.
pub(crate) const DASHES: [Dash; 5] = [
    None,
    Some((8, 3)),
    Some((3, 3)),
    Some((14, 4)),
    Some((5, 6)),
];

/// Outline of the points of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Hexagon,
    Bar,
    Star,
}

/// The dash of a series, so that colour is never the only cue.
pub(crate) fn dash(series: usize) -> Dash {
    // Series that share a colour (i and i + 8) do not share a dash.
    let series = series % (4 * SERIES);
    DASHES[(series + series / SERIES) % 4]
}

/// The marker of a series.
pub(crate) fn marker(series: usize) -> Marker {
    const ALL: [Marker; 8] = [
        Marker::Circle,
        Marker::Square,
        Marker::Triangle,
        Marker::Diamond,
        Marker::TriangleDown,
        Marker::Hexagon,
        Marker::Bar,
        Marker::Star,
    ];
    let series = series % (8 * SERIES);
    ALL[(series + series / SERIES) % ALL.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance and contrast of WCAG 2.2.
    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let luminance = |c: Rgb| {
            let part = |v: u8| {
                let v = f64::from(v) / 255.0;
                if v <= 0.04045 {
                    v / 12.92
                } else {
                    ((v + 0.055) / 1.055).powf(2.4)
                }
            };
            0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2])
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_series_stand_out_in_both_schemes() {
        for theme in [Theme::LIGHT, Theme::DARK] {
            let against = |ink| contrast(theme.rgb(ink), theme.surface);
            for ink in [Ink::Text, Ink::Muted, Ink::Limit] {
                assert!(against(ink) >= 4.5, "{ink:?}: {}", against(ink));
            }
            for ink in (0..SERIES).map(Ink::Series).chain([Ink::Axis]) {
                assert!(against(ink) >= 3.0, "{ink:?}: {}", against(ink));
            }
            for step in 0..HEAT {
                let text = contrast(theme.rgb(Ink::OnHeat(step)), theme.rgb(Ink::Heat(step)));
                assert!(text >= 4.5, "step {step}: {text}");
            }
        }
    }

    #[test]
    fn inks_are_numbered_and_told_apart() {
        let light: std::collections::BTreeSet<_> =
            Ink::all().map(|i| Theme::LIGHT.rgb(i)).collect();
        assert_eq!(
            light.len(),
            Ink::all().count(),
            "the dark style selects by light colour"
        );
        for (i, ink) in Ink::all().enumerate() {
            assert_eq!(usize::from(ink.index()), i);
        }
    }

    #[test]
    fn series_of_one_colour_differ_otherwise() {
        for i in 0..SERIES {
            assert_ne!(dash(i), dash(i + SERIES));
            assert_ne!(marker(i), marker(i + SERIES));
        }
    }
}

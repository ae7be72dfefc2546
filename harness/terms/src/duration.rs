//! Durations as people write them ("250ms", "130s", "2m") and as they are kept (integer nanoseconds).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration in nanoseconds, 0 to about 584 years.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// Whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Seconds as a float, for arithmetic that ends in a ratio or a picture.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The standard library's type.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a duration: expected a number and a unit, such as \"250ms\", \"2s\", \"1.5m\" or \"1h\""
)]
pub struct DurationError(pub String);

const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

impl FromStr for Nanos {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || DurationError(text.to_owned());
        let t = text.trim();
        let at = t.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(err)?;
        let (number, unit) = (t[..at].trim(), t[at..].trim());
        let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let n: f64 = if plain {
            number.parse().map_err(|_| err())?
        } else {
            return Err(err());
        };
        let (_, scale) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(err)?;
        let ns = n * scale;
        // Beyond 2^63 ns (292 years) the text is a slip, not a duration.
        if ns < 9.2e18 {
            Ok(Self(ns.round() as u64))
        } else {
            Err(err())
        }
    }
}

impl fmt::Display for Nanos {
    /// The shortest exact form: the largest unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        // Minutes and hours are written in seconds ("130s", "120s"): one form, easy to compare.
        for (unit, scale) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
            if self.0.is_multiple_of(scale) {
                return write!(f, "{}{unit}", self.0 / scale);
            }
        }
        write!(f, "{}ns", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let table = [
            ("130s", Some(130_000_000_000)),
            ("2m", Some(120_000_000_000)), // minutes, not metres or milli
            ("1.5m", Some(90_000_000_000)), // fractions of a unit
            ("250ms", Some(250_000_000)),
            (" 5 us ", Some(5_000)), // blanks around
            ("0s", Some(0)), // zero is a duration; whether it is allowed is the knob's business
            ("5", None),     // a bare number has no unit: refused rather than guessed
            ("-1s", None),
            ("1e3s", None), // 'e' would start the unit: refused
            ("s", None),
            ("10y", None),
            ("99999999999h", None), // beyond the range
        ];
        for (text, want) in table {
            assert_eq!(text.parse::<Nanos>().ok().map(|n| n.0), want, "{text}");
        }
    }

    #[test]
    fn shows_a_form_that_reads_back() {
        for ns in [0, 1, 999, 1_000, 1_500_000, 2_000_000_000, 130_000_000_000] {
            let shown = Nanos(ns).to_string();
            assert_eq!(shown.parse::<Nanos>(), Ok(Nanos(ns)), "{shown}");
        }
    }
}

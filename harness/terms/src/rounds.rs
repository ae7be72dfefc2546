//! How many rounds a run has: a number, or as many as its comparisons need.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Value;

/// The word for [`Rounds::Auto`], in a matrix, on the command line and on disk.
const AUTO: &str = "auto";

/// Passes over all cells. On disk a number, or "auto".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Rounds {
    /// so many; 1 or more
    Fixed(u32),
    /// until every comparison is decided
    Auto,
}

/// A text that is neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number or \"auto\", got \"{0}\"")]
pub struct RoundsError(String);

impl FromStr for Rounds {
    type Err = RoundsError;
    fn from_str(text: &str) -> Result<Self, RoundsError> {
        if text == AUTO {
            return Ok(Self::Auto);
        }
        let number = text.parse().map(Self::Fixed);
        number.map_err(|_| RoundsError(text.to_owned()))
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(n) => n.fmt(f),
            Self::Auto => f.write_str(AUTO),
        }
    }
}

impl From<Rounds> for Value {
    fn from(rounds: Rounds) -> Self {
        match rounds {
            Rounds::Fixed(n) => Self::Int(n.into()),
            Rounds::Auto => Self::Text(AUTO.to_owned()),
        }
    }
}

impl TryFrom<Value> for Rounds {
    type Error = RoundsError;
    fn try_from(value: Value) -> Result<Self, RoundsError> {
        match value {
            Value::Int(n) => {
                let number = u32::try_from(n).map(Self::Fixed);
                number.map_err(|_| RoundsError(n.to_string()))
            }
            other => match other.to_string().as_str() {
                AUTO => Ok(Self::Auto),
                text => Err(RoundsError(text.to_owned())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_auto_and_nothing_else() {
        // typed, on disk, what it is
        let table = [
            ("3", "3", Some(Rounds::Fixed(3))),
            ("0", "0", Some(Rounds::Fixed(0))), // its range is the matrix's affair
            ("auto", "\"auto\"", Some(Rounds::Auto)),
            ("Auto", "\"Auto\"", None), // words have one spelling
            ("-1", "-1", None),
            ("1.5", "1.5", None),
            ("", "\"\"", None),
            ("4294967296", "4294967296", None), // beyond 32 bits
        ];
        for (typed, on_disk, want) in table {
            assert_eq!(typed.parse().ok(), want, "{typed}");
            assert_eq!(serde_json::from_str(on_disk).ok(), want, "{on_disk}");
            if let Some(rounds) = want {
                assert_eq!(rounds.to_string(), typed);
                assert_eq!(serde_json::to_string(&rounds).unwrap(), on_disk);
            }
        }
    }
}

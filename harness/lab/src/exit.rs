//! How a process ended.

use std::fmt;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// How a process ended: with a code or by a signal, never both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// what it returned, 0 to 255
    pub code: Option<i32>,
    /// the number of the signal that killed it
    pub signal: Option<i32>,
}

impl Exit {
    /// Whether it ended by itself with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => {
                write!(f, "was killed by signal {signal}")?;
                // Real-time signals have no name.
                Signal::try_from(signal).map_or(Ok(()), |s| write!(f, " ({})", s.as_str()))
            }
            (None, None) => f.write_str("ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how() {
        let table = [
            (Some(3), None, "exited with code 3"),
            (None, Some(9), "was killed by signal 9 (SIGKILL)"),
            (None, Some(40), "was killed by signal 40"), // real-time: no name
        ];
        for (code, signal, want) in table {
            assert_eq!(Exit { code, signal }.to_string(), want);
        }
    }
}

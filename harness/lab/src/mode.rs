//! Namespaces of its own, or the host's.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where the processes of a trial run. `auto` is not a mode: the runner asks [`crate::probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Fresh user, network, PID and IPC namespaces.
    Private,
    /// The namespaces of the host; nothing of the host is changed.
    Host,
}

impl Mode {
    /// "private" or "host", as in a matrix and in the column `lab_mode`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Host => "host",
        }
    }
    /// The mode of that name; "auto" is none.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Private, Self::Host]
            .into_iter()
            .find(|m| m.as_str() == word)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! What can go wrong with a lab, in the words of the person who has to mend it.

use std::io;

use crate::{Mode, Refusal, SysctlError};

/// What can go wrong with a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A step of bringing the lab up was refused.
    #[error("{mode} lab: {refusal}")]
    Refused {
        /// which lab
        mode: Mode,
        /// which step, why, what to do
        refusal: Refusal,
    },
    /// Sysctls that cannot be had.
    #[error("{}", lines(.0))]
    Sysctls(Vec<SysctlError>),
    /// A program that did not start.
    #[error("\"{name}\" did not start: {reason}")]
    Spawn {
        /// the name it was to have
        name: String,
        /// what failed, with its error number, expected, got, fix
        reason: String,
    },
    /// A name that stands for no process.
    #[error("no process \"{name}\" in this lab: expected one of {known:?}")]
    Unknown {
        /// the name
        name: String,
        /// the names there are
        known: Vec<String>,
    },
    /// The lab program ended although nobody asked it to.
    #[error(
        "the lab program ended while {doing}: it was killed, or it met an error that it printed"
    )]
    Gone {
        /// what was going on
        doing: &'static str,
    },
    /// The lab program did not answer, or did not end.
    #[error("the lab program took more than {seconds} s {doing}; it was killed")]
    Silent {
        /// what was going on
        doing: &'static str,
        /// how long was waited
        seconds: u64,
    },
    /// The control socket failed, or carried something else than was expected.
    #[error("lab control while {doing}: {source}")]
    Control {
        /// what was going on
        doing: &'static str,
        /// why
        source: io::Error,
    },
}

fn lines(errors: &[SysctlError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

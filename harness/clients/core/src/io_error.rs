//! The kernel's answer inside a library's error: exhausted ports must not end as "other".

use std::error::Error;
use std::io;

use yieldpoint_protocol::ErrorKind;

use crate::Failure;

/// The I/O error inside `error`, however deep: the first one that carries an errno, else the
/// innermost one of the chain.
#[must_use]
pub fn io_error_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut found = None;
    let mut next = Some(error);
    while let Some(e) = next {
        let io = e.downcast_ref::<io::Error>();
        if let Some(io) = io {
            found = Some(io);
            if io.raw_os_error().is_some() {
                break;
            }
        }
        // source() of an io::Error skips the error that it wraps, get_ref() does not.
        next = match io.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => e.source(),
        };
    }
    found
}

/// The text of an error and of all its causes, without repetitions.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(e) = next {
        let cause = e.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = e.source();
    }
    text
}

impl Failure {
    /// No connection: the kind from the I/O error in `error`, [`ErrorKind::Other`] if there is none.
    #[must_use]
    pub fn of_connect(error: &(dyn Error + 'static)) -> Self {
        Self {
            kind: io_error_of(error).map_or(ErrorKind::Other, ErrorKind::of_connect),
            example: chain(error),
        }
    }

    /// A failure on an open connection: the kind from the I/O error in `error`, or `otherwise`.
    #[must_use]
    pub fn of_exchange(error: &(dyn Error + 'static), otherwise: ErrorKind) -> Self {
        Self {
            kind: io_error_of(error).map_or(otherwise, ErrorKind::of_exchange),
            example: chain(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("library: {what}")]
    struct Library {
        what: &'static str,
        source: io::Error,
    }

    #[test]
    fn the_errno_is_found_below_every_wrapping() {
        let os = || io::Error::from_raw_os_error(99);
        let library = |source| Library {
            what: "connect",
            source,
        };
        // each row: error, kind of a failed connect
        let table: [(Box<dyn Error>, ErrorKind); 6] = [
            (Box::new(os()), ErrorKind::AddressNotAvailable),
            (Box::new(library(os())), ErrorKind::AddressNotAvailable),
            // io::Error in io::Error, as resolvers and TLS layers do
            (
                Box::new(io::Error::other(os())),
                ErrorKind::AddressNotAvailable,
            ),
            // library error in io::Error: its source is the kernel's
            (
                Box::new(io::Error::other(library(os()))),
                ErrorKind::AddressNotAvailable,
            ),
            // no errno anywhere: the innermost kind
            (
                Box::new(library(io::ErrorKind::TimedOut.into())),
                ErrorKind::ConnectTimeout,
            ),
            (Box::new(std::fmt::Error), ErrorKind::Other),
        ];
        for (error, kind) in table {
            assert_eq!(Failure::of_connect(&*error).kind, kind, "{error:?}");
        }
    }

    #[test]
    fn a_chain_says_everything_once() {
        let e = Library {
            what: "connect",
            source: io::ErrorKind::TimedOut.into(),
        };
        assert_eq!(chain(&e), "library: connect: timed out");
        assert_eq!(chain(&io::Error::other("alone")), "alone");
    }
}

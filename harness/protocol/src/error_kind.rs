//! Kinds of failed requests.

use serde::{Deserialize, Serialize};

/// Declares each kind once: its meaning, its variant, its name on the wire. The meaning is the
/// variant's documentation and what `yieldpoint explain` prints.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal,)+) => {
        /// Why a request failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl ErrorKind {
            /// All kinds, in the order of a request's life.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// The name on the wire and in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// What it means, in a few words.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Self::$kind => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

kinds! {
    /// nobody listens (ECONNREFUSED at connect)
    ConnectRefused = "connect_refused",
    /// no local port is free (EADDRNOTAVAIL at connect)
    AddressNotAvailable = "address_not_available",
    /// the local port is taken (EADDRINUSE at bind or connect)
    AddressInUse = "address_in_use",
    /// no connection within `connect_timeout`
    ConnectTimeout = "connect_timeout",
    /// no descriptor left (EMFILE, ENFILE)
    FdLimit = "fd_limit",
    /// the peer reset an open connection (ECONNRESET, EPIPE)
    Reset = "reset",
    /// the peer closed before the response was complete
    ClosedEarly = "closed_early",
    /// no complete response within `request_timeout`
    Timeout = "timeout",
    /// another status than expected
    BadStatus = "bad_status",
    /// another body length than expected
    BadLength = "bad_length",
    /// the response is not HTTP/1.1
    Protocol = "protocol",
    /// anything else; the example says what
    Other = "other",
}

impl ErrorKind {
    /// The request never left: it failed while the connection was being opened.
    #[must_use]
    pub const fn before_sending(self) -> bool {
        matches!(
            self,
            Self::ConnectRefused
                | Self::AddressNotAvailable
                | Self::AddressInUse
                | Self::ConnectTimeout
                | Self::FdLimit
        )
    }

    /// A complete response arrived, but not the expected one: the target has counted it.
    #[must_use]
    pub const fn answered(self) -> bool {
        matches!(self, Self::BadStatus | Self::BadLength)
    }

    /// The kind of an I/O error while opening a connection.
    #[must_use]
    pub fn of_connect(e: &std::io::Error) -> Self {
        match e.raw_os_error() {
            Some(libc_errno::EADDRNOTAVAIL) => Self::AddressNotAvailable,
            Some(libc_errno::EADDRINUSE) => Self::AddressInUse,
            Some(libc_errno::EMFILE | libc_errno::ENFILE) => Self::FdLimit,
            Some(libc_errno::ECONNREFUSED) => Self::ConnectRefused,
            _ => match e.kind() {
                // Read timeouts of a blocking socket are EAGAIN.
                std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => {
                    Self::ConnectTimeout
                }
                std::io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
                std::io::ErrorKind::ConnectionReset => Self::Reset,
                std::io::ErrorKind::AddrInUse => Self::AddressInUse,
                std::io::ErrorKind::AddrNotAvailable => Self::AddressNotAvailable,
                _ => Self::Other,
            },
        }
    }

    /// The kind of an I/O error on an open connection.
    #[must_use]
    pub fn of_exchange(e: &std::io::Error) -> Self {
        match e.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => Self::Timeout,
            std::io::ErrorKind::ConnectionReset
            | std::io::ErrorKind::ConnectionAborted
            | std::io::ErrorKind::BrokenPipe => Self::Reset,
            std::io::ErrorKind::UnexpectedEof => Self::ClosedEarly,
            std::io::ErrorKind::InvalidData => Self::Protocol,
            _ => match e.raw_os_error() {
                Some(libc_errno::EMFILE | libc_errno::ENFILE) => Self::FdLimit,
                _ => Self::Other,
            },
        }
    }
}

/// The numbers of Linux on every architecture we run on; a whole crate for five constants is not worth it.
mod libc_errno {
    pub const ENFILE: i32 = 23;
    pub const EMFILE: i32 = 24;
    pub const EADDRINUSE: i32 = 98;
    pub const EADDRNOTAVAIL: i32 = 99;
    pub const ECONNREFUSED: i32 = 111;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_wire_and_all_are_listed() {
        for kind in ErrorKind::ALL {
            assert_eq!(
                serde_json::to_string(&kind).unwrap(),
                format!("\"{}\"", kind.name())
            );
        }
        let distinct: std::collections::BTreeSet<_> = ErrorKind::ALL.into_iter().collect();
        assert_eq!(distinct.len(), ErrorKind::ALL.len());
        assert_eq!(
            ErrorKind::FdLimit.doc(),
            "no descriptor left (EMFILE, ENFILE)"
        );
    }

    #[test]
    fn errors_of_the_kernel_have_their_kind() {
        let os = std::io::Error::from_raw_os_error;
        assert_eq!(
            ErrorKind::of_connect(&os(99)),
            ErrorKind::AddressNotAvailable
        );
        assert_eq!(ErrorKind::of_connect(&os(98)), ErrorKind::AddressInUse);
        assert_eq!(ErrorKind::of_connect(&os(24)), ErrorKind::FdLimit);
        assert_eq!(ErrorKind::of_connect(&os(110)), ErrorKind::ConnectTimeout);
        assert_eq!(ErrorKind::of_exchange(&os(104)), ErrorKind::Reset);
        assert_eq!(
            ErrorKind::of_exchange(&os(11)),
            ErrorKind::Timeout,
            "EAGAIN of a read timeout"
        );
    }
}

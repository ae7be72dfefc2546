//! The local addresses that connections come from: how they are written, and how a socket gets one.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};

/// Greatest number of source addresses.
const MOST: usize = 65_536;

/// Local addresses, of which the users take one each in turn; none: the kernel chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(Vec<Ipv4Addr>);

/// A text that is no list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "source_addresses \"{text}\": {why}; expected IPv4 addresses such as \"127.0.0.1-127.0.0.4\" or \"127.0.0.1,127.0.0.3\""
)]
pub struct SourcesError {
    text: String,
    why: String,
}

impl Sources {
    /// Reads addresses and ranges (both ends included), separated by commas.
    pub fn parse(text: &str) -> Result<Self, SourcesError> {
        let error = |why: String| SourcesError {
            text: text.to_owned(),
            why,
        };
        let address = |word: &str| {
            let word = word.trim();
            word.parse::<Ipv4Addr>()
                .map_err(|_| error(format!("\"{word}\" is no IPv4 address")))
        };
        let mut list = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (address(first)?, address(last)?);
            if first > last {
                return Err(error(format!("\"{first}\" is beyond \"{last}\"")));
            }
            let range = u32::from(first)..=u32::from(last);
            // Counted before it is stored: a slip can mean billions.
            if list.len() as u64 + u64::from(last.to_bits() - first.to_bits()) >= MOST as u64 {
                return Err(error(format!("more than {MOST} addresses")));
            }
            list.extend(range.map(Ipv4Addr::from));
        }
        let mut distinct = list.clone();
        distinct.sort_unstable();
        if let Some(twice) = distinct.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(error(format!("\"{}\" is there twice", twice[0])));
        }
        Ok(Self(list))
    }

    /// The address of a user of the process, counted from 0; `None`: the kernel chooses.
    #[must_use]
    pub fn of_user(&self, user: usize) -> Option<Ipv4Addr> {
        // Beyond the end only if the list is empty, where there is no remainder either.
        self.0.get(user.checked_rem(self.0.len())?).copied()
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(Ipv4Addr::to_string).collect();
        f.write_str(&words.join(","))
    }
}

/// Gives an unconnected IPv4 socket its local address and leaves the port to connect().
///
/// Without IP_BIND_ADDRESS_NO_PORT the port is taken here: then two destinations cannot share
/// it, a port in TIME_WAIT is not reused, and running out is EADDRINUSE. See ip(7).
pub fn bind(socket: &impl AsFd, source: Ipv4Addr) -> io::Result<()> {
    setsockopt(socket, IpBindAddressNoPort, &true)?;
    rustix::net::bind(socket, &SocketAddr::from((source, 0)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        // each row: text, addresses or a piece of the reason
        let table: [(&str, Result<&str, &str>); 12] = [
            ("127.0.0.1", Ok("127.0.0.1")),
            (
                "127.0.0.1-127.0.0.4",
                Ok("127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4"),
            ),
            ("127.0.0.1,127.0.0.3", Ok("127.0.0.1,127.0.0.3")),
            // blanks, a range among single ones, an order that is kept
            (
                " 127.0.0.9 , 127.0.0.1 - 127.0.0.2",
                Ok("127.0.0.9,127.0.0.1,127.0.0.2"),
            ),
            // a range across the last number
            ("127.0.0.255-127.0.1.0", Ok("127.0.0.255,127.0.1.0")),
            ("127.0.0.4-127.0.0.1", Err("beyond")),
            ("127.0.0.1-4", Err("\"4\" is no IPv4 address")),
            ("", Err("\"\" is no IPv4 address")),
            ("127.0.0.1,", Err("\"\" is no IPv4 address")),
            ("::1", Err("is no IPv4 address")),
            // counted twice it would carry twice the users of the others
            (
                "127.0.0.1-127.0.0.3,127.0.0.2",
                Err("\"127.0.0.2\" is there twice"),
            ),
            ("0.0.0.0-255.255.255.255", Err("more than 65536")),
        ];
        for (text, want) in table {
            match (Sources::parse(text), want) {
                (Ok(got), Ok(want)) => assert_eq!(got.to_string(), want, "{text}"),
                (Err(e), Err(want)) => assert!(e.to_string().contains(want), "{text}: {e}"),
                (got, want) => panic!("{text}: expected {want:?}, got {got:?}"),
            }
        }
    }

    #[test]
    fn users_take_them_in_turn() {
        let sources = Sources::parse("127.0.0.1-127.0.0.2").unwrap();
        let got: Vec<_> = (0..4).filter_map(|u| sources.of_user(u)).collect();
        let [one, two] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)];
        assert_eq!(got, [one, two, one, two]);
        assert_eq!(Sources::default().of_user(5), None);
    }

    #[test]
    fn a_bound_socket_has_an_address_and_no_port() {
        let (family, kind) = (
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
        );
        let socket = rustix::net::socket(family, kind, None).unwrap();
        bind(&socket, Ipv4Addr::new(127, 0, 0, 7)).unwrap();
        let local = std::net::TcpStream::from(socket).local_addr().unwrap();
        assert_eq!(local.to_string(), "127.0.0.7:0");
    }
}

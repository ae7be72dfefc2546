//! What lies between client and target: one loopback, or a link of two namespaces with a rate and
//! a delay.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use yieldpoint_terms::Nanos;

/// Which of a lab's namespaces a process is in; on loopback both are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// where the load is made
    #[default]
    Client,
    /// where it is served
    Target,
}

/// The network of a lab.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Client and target share one namespace and its `lo`.
    #[default]
    Loopback,
    /// The target has a network namespace of its own, and the two are the ends of a veth pair.
    Veth(Link),
}

/// How the pair is slowed down, in each direction alike.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// most it carries, Ethernet, IP and TCP headers included; `None`: what the CPUs manage
    pub rate: Option<Rate>,
    /// how much later a packet arrives, one way; 0: no delay
    pub delay: Nanos,
}

impl Network {
    /// The client's end of the pair.
    pub const VETH_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
    /// The target's end of the pair.
    pub const VETH_TARGET: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

    /// Reads the knobs `lab.network`, `lab.rate` and `lab.delay`.
    pub fn from_knobs(
        network: &str,
        rate: Option<&str>,
        delay: Option<Nanos>,
    ) -> Result<Self, NetworkError> {
        match network {
            "veth" => Ok(Self::Veth(Link {
                rate: rate.map(str::parse).transpose()?,
                delay: delay.unwrap_or_default(),
            })),
            "loopback" => match (rate, delay) {
                (Some(_), _) => Err(NetworkError::NeedsVeth("lab.rate")),
                (_, Some(_)) => Err(NetworkError::NeedsVeth("lab.delay")),
                (None, None) => Ok(Self::Loopback),
            },
            other => Err(NetworkError::Unknown(other.to_owned())),
        }
    }

    /// Where a target listens that is to be reached by the client.
    #[must_use]
    pub const fn target_address(self) -> Ipv4Addr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            Self::Veth(_) => Self::VETH_TARGET,
        }
    }
}

/// Why the knobs of the network do not make one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Neither of the two.
    #[error("lab.network: expected \"loopback\" or \"veth\", got \"{0}\"")]
    Unknown(String),
    /// A knob of the link, where there is none.
    #[error("{0} slows down a link, and loopback has none: set lab.network = \"veth\"")]
    NeedsVeth(&'static str),
    /// A rate that is none.
    #[error("lab.rate: {0}")]
    Rate(#[from] RateError),
}

/// Bits per second, [`Rate::LEAST`] to [`Rate::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

impl Rate {
    /// 8 kbit/s: below it a single packet takes more than a second.
    pub const LEAST: Self = Self(8_000);
    /// 100 Gbit/s: no veth pair carries as much.
    pub const MOST: Self = Self(100_000_000_000);

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_s(self) -> u64 {
        self.0
    }
    /// Bytes per second.
    #[must_use]
    pub const fn bytes_per_s(self) -> u64 {
        self.0 / 8
    }
}

/// The units of tc(8) that count bits. Those that count bytes are left out: tc's "bps" is bytes per
/// second, and everywhere else it is bits.
const UNITS: [(&str, f64); 4] = [("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];

/// Why a text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a rate: expected a number and \"bit\", \"kbit\", \"mbit\" or \"gbit\" (per second, 1 kbit = 1000 bit), from \"{least}\" to \"{most}\", such as \"100mbit\"",
    least = Rate::LEAST,
    most = Rate::MOST
)]
pub struct RateError(pub String);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || RateError(text.to_owned());
        let t = text.trim();
        let at = t.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(err)?;
        let (number, unit) = (t[..at].trim(), t[at..].to_ascii_lowercase());
        // The standard library reads "+1", "inf" and "1e9" as numbers as well.
        if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(err());
        }
        let n: f64 = number.parse().map_err(|_| err())?;
        let (_, scale) = UNITS.iter().find(|(u, _)| *u == unit).ok_or_else(err)?;
        // A float beyond u64 becomes the greatest u64, which is out of range.
        let rate = Self((n * scale).round() as u64);
        (Self::LEAST..=Self::MOST)
            .contains(&rate)
            .then_some(rate)
            .ok_or_else(err)
    }
}

impl fmt::Display for Rate {
    /// The largest unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = [
            ("gbit", 1_000_000_000),
            ("mbit", 1_000_000),
            ("kbit", 1_000),
        ]
        .into_iter()
        .find(|(_, scale)| self.0.is_multiple_of(*scale))
        .unwrap_or(("bit", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rates_as_people_write_them() {
        // each row: text, bits per second, shown
        let table = [
            ("100mbit", Some((100_000_000, "100mbit"))),
            ("1gbit", Some((1_000_000_000, "1gbit"))),
            ("1.5mbit", Some((1_500_000, "1500kbit"))),
            ("0.1gbit", Some((100_000_000, "100mbit"))), // no error of a binary fraction
            (" 64 kbit ", Some((64_000, "64kbit"))),     // blanks around
            ("9600bit", Some((9_600, "9600bit"))),
            ("10Mbit", Some((10_000_000, "10mbit"))), // tc takes any case as well
            ("8kbit", Some((8_000, "8kbit"))),        // the least
            ("100gbit", Some((100_000_000_000, "100gbit"))), // the most
            ("7999bit", None),
            ("100.001gbit", None),
            ("99999999999999999999gbit", None), // beyond any integer
            ("0mbit", None),                    // nothing would pass
            ("100", None),                      // no unit: refused rather than guessed
            ("100mbps", None),                  // tc means bytes by it
            ("100m", None),
            ("100mib", None),
            ("mbit", None),
            ("-1mbit", None),
            ("1e3kbit", None), // the unit would start at "e"
            ("1.2.3mbit", None),
            ("", None),
        ];
        for (text, want) in table {
            let got = text.parse::<Rate>();
            match want {
                Some((bits, shown)) => {
                    let got = got.unwrap_or_else(|e| panic!("{e}"));
                    assert_eq!((got.bits_per_s(), &*got.to_string()), (bits, shown));
                    assert_eq!(got.to_string().parse(), Ok(got), "{text}");
                }
                None => assert_eq!(got, Err(RateError(text.to_owned()))),
            }
        }
    }

    #[test]
    fn knobs_make_a_network_or_say_why_not() {
        let ms = Nanos::from_millis;
        let link = |rate: Option<u64>, delay| {
            Ok(Network::Veth(Link {
                rate: rate.map(Rate),
                delay,
            }))
        };
        // each row: lab.network, lab.rate, lab.delay, the network or a part of the error
        let table = [
            ("loopback", None, None, Ok(Network::Loopback)),
            ("veth", None, None, link(None, ms(0))),
            (
                "veth",
                Some("100mbit"),
                None,
                link(Some(100_000_000), ms(0)),
            ),
            ("veth", None, Some(ms(5)), link(None, ms(5))),
            (
                "veth",
                Some("1gbit"),
                Some(ms(5)),
                link(Some(1_000_000_000), ms(5)),
            ),
            (
                "veth",
                Some("fast"),
                None,
                Err(
                    "lab.rate: \"fast\" is not a rate: expected a number and \"bit\", \"kbit\", \"mbit\" or \"gbit\" (per second, 1 kbit = 1000 bit), from \"8kbit\" to \"100gbit\", such as \"100mbit\"",
                ),
            ),
            // silently unlimited would be a wrong result
            (
                "loopback",
                Some("100mbit"),
                None,
                Err(
                    "lab.rate slows down a link, and loopback has none: set lab.network = \"veth\"",
                ),
            ),
            (
                "loopback",
                None,
                Some(ms(5)),
                Err(
                    "lab.delay slows down a link, and loopback has none: set lab.network = \"veth\"",
                ),
            ),
            (
                "bridge",
                None,
                None,
                Err("lab.network: expected \"loopback\" or \"veth\", got \"bridge\""),
            ),
        ];
        for (network, rate, delay, want) in table {
            let got = Network::from_knobs(network, rate, delay).map_err(|e| e.to_string());
            assert_eq!(got, want.map_err(str::to_owned));
        }
    }
}

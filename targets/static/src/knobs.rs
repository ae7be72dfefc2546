//! What can be set, and a job as the server uses it: typed, checked once, before anything listens.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use yieldpoint_protocol::Job;
use yieldpoint_terms::{Kind, Knob, KnobError, Knobs, MissingKnob, Nanos, Value, nearest};

const CLOSE: &[Cow<'static, str>] = &[Cow::Borrowed("with_data"), Cow::Borrowed("after")];
const DAY: Nanos = Nanos::from_secs(86_400);

/// The knobs by their short names; a matrix knows them as "target.<name>".
pub const KNOBS: &[Knob] = &[
    Knob::optional(
        "address",
        Kind::Text,
        "IPv4 address to listen on, within 127.0.0.0/8, or the target's end of a lab's own link (10.77.0.0/24); 127.0.0.1 by default",
    ),
    Knob::int(
        "port",
        8080,
        0,
        65_535,
        "port to listen on; 0: any free one",
    ),
    Knob::int(
        "workers",
        1,
        1,
        256,
        "worker threads, each with its own epoll",
    ),
    Knob::int(
        "body_bytes",
        612,
        0,
        1 << 30,
        "length of every good response's body in bytes (nginx's welcome page has 612)",
    ),
    Knob::bool(
        "keep_alive",
        true,
        "honour keep-alive; false: close after each response",
    ),
    Knob::int(
        "keepalive_requests",
        1000,
        1,
        1_000_000_000,
        "responses on one connection before the target closes it (nginx: 1000 since 1.19.10, 100 before)",
    ),
    Knob::duration(
        "keepalive_timeout",
        Nanos::from_secs(75),
        Nanos::from_millis(1),
        DAY,
        "time without a request before the target closes an idle connection; late by up to a quarter, at most 1 s",
    ),
    Knob::int(
        "backlog",
        511,
        1,
        65_535,
        "length of the accept queue; the kernel cuts it to net.core.somaxconn",
    ),
    Knob::bool(
        "access_log",
        false,
        "one line and one write per request in nginx's combined format, to memory that starts over at 16 MiB (stderr when started by hand)",
    ),
    Knob::choice(
        "close",
        CLOSE,
        "where the target closes: its FIN rides on the last data segment, or follows close_delay after it unless the client closes first",
    ),
    Knob::duration(
        "close_delay",
        Nanos(200_000),
        Nanos(0),
        Nanos::from_secs(60),
        "time from the last byte of a response to the FIN with close = \"after\"",
    ),
];

/// When the FIN follows the last response of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// on the last data segment: the target has always closed before the client knows
    WithData,
    /// this much later, ns: the client may close first
    After(u64),
}

/// A job as the server uses it; see [`KNOBS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub address: Ipv4Addr,
    pub port: u16,
    pub workers: usize,
    pub body_bytes: usize,
    pub keep_alive: bool,
    pub keepalive_requests: u64,
    pub keepalive_timeout: Nanos,
    pub backlog: i32,
    pub access_log: bool,
    pub close: Close,
}

/// Why a job cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("protocol version: expected {expected}, got {0}; build runner and target from the same revision", expected = yieldpoint_protocol::VERSION)]
    Version(u32),
    #[error("knob \"{0}\" does not exist here{1}")]
    Unknown(String, String),
    #[error("\"{0}\": expected name=value")]
    NotAnAssignment(String),
    #[error("knob {0}")]
    Value(#[from] KnobError),
    #[error(transparent)]
    Knob(#[from] MissingKnob),
    #[error(
        "knob \"address\": expected an IPv4 address within 127.0.0.0/8 or 10.77.0.0/24, got \"{0}\"; load stays on loopback"
    )]
    Address(String),
}

impl Settings {
    /// Reads a job; a knob that is not in it has its default.
    pub fn from_job(job: &Job) -> Result<Self, SettingsError> {
        if job.protocol != yieldpoint_protocol::VERSION {
            return Err(SettingsError::Version(job.protocol));
        }
        let mut knobs = defaults();
        for (name, value) in &job.knobs.0 {
            // "kind" chose this program; it is a knob of the matrix, not of ours.
            if name == "kind" {
                continue;
            }
            let knob = find(name)?;
            let value = match (&knob.kind, value) {
                // A duration is an integer of nanoseconds after its trip over the wire.
                (Kind::Duration { .. }, Value::Int(ns)) => {
                    Value::Duration(Nanos(u64::try_from(*ns).unwrap_or(u64::MAX)))
                }
                (_, other) => other.clone(),
            };
            knobs.set(name.as_str(), knob.accept(name, &value)?);
        }
        Self::from_knobs(&knobs)
    }

    /// Reads "name=value" words of a command line.
    pub fn from_words(words: &[String]) -> Result<Self, SettingsError> {
        let mut knobs = defaults();
        for word in words {
            let (name, text) = word
                .split_once('=')
                .ok_or_else(|| SettingsError::NotAnAssignment(word.clone()))?;
            knobs.set(name, find(name)?.parse(name, text)?);
        }
        Self::from_knobs(&knobs)
    }

    /// Every knob is there and within its range, so the casts below lose nothing.
    fn from_knobs(k: &Knobs) -> Result<Self, SettingsError> {
        let address = k
            .get("address")
            .map_or("127.0.0.1".to_owned(), Value::to_string);
        Ok(Self {
            address: address
                .parse()
                .ok()
                .filter(|a: &Ipv4Addr| a.is_loopback() || a.octets().starts_with(&[10, 77, 0]))
                .ok_or(SettingsError::Address(address))?,
            port: k.uint("port")? as u16,
            workers: k.uint("workers")? as usize,
            body_bytes: k.uint("body_bytes")? as usize,
            keep_alive: k.bool("keep_alive")?,
            keepalive_requests: k.uint("keepalive_requests")?,
            keepalive_timeout: k.duration("keepalive_timeout")?,
            backlog: k.uint("backlog")? as i32,
            access_log: k.bool("access_log")?,
            close: match k.text("close")? {
                "after" => Close::After(k.duration("close_delay")?.0),
                _ => Close::WithData,
            },
        })
    }
}

fn find(name: &str) -> Result<&'static Knob, SettingsError> {
    KNOBS.iter().find(|k| k.name == name).ok_or_else(|| {
        let hint = nearest(name, KNOBS.iter().map(|k| k.name.as_ref()));
        let hint = hint.map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
        SettingsError::Unknown(name.to_owned(), hint)
    })
}

fn defaults() -> Knobs {
    let with_default = |k: &Knob| Some((k.name.to_string(), k.default_value()?));
    Knobs(KNOBS.iter().filter_map(with_default).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Settings, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        Settings::from_words(&words).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_those_of_nginx() {
        let s = words(&[]).unwrap();
        assert_eq!((s.port, s.workers, s.body_bytes), (8080, 1, 612));
        assert_eq!((s.keepalive_requests, s.backlog), (1000, 511));
        assert_eq!(s.keepalive_timeout, Nanos::from_secs(75));
        assert_eq!(s.close, Close::WithData);
        assert!(s.keep_alive && !s.access_log && s.address == Ipv4Addr::LOCALHOST);
        assert_eq!(
            Settings::from_job(&job(&[])).unwrap(),
            s,
            "an empty job is all defaults"
        );
    }

    fn job(knobs: &[(&str, Value)]) -> Job {
        let knobs = knobs.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
        Job {
            protocol: yieldpoint_protocol::VERSION,
            knobs: Knobs(knobs.collect()),
        }
    }

    #[test]
    fn a_job_that_went_over_the_wire_is_read() {
        let sent = job(&[
            (
                "keepalive_timeout",
                Value::Duration(Nanos::from_millis(250)),
            ),
            ("close", Value::Text("after".into())),
            ("kind", Value::Text("static".into())),
        ]);
        let wire = serde_json::to_string(&sent).unwrap();
        let s = Settings::from_job(&serde_json::from_str(&wire).unwrap()).unwrap();
        assert_eq!(s.keepalive_timeout, Nanos::from_millis(250));
        assert_eq!(s.close, Close::After(200_000));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_fix() {
        // each row: words, what the error must say
        let table = [
            ("worker=2", "did you mean \"workers\"?"), // a slip
            ("workers=0", "from 1 to 256"),            // below the range
            ("workers", "expected name=value"),        // no value
            ("keepalive_timeout=75", "a duration"),    // no unit
            ("address=0.0.0.0", "127.0.0.0/8"),        // beyond loopback
            ("address=10.78.0.2", "10.77.0.0/24"),     // not the link of a lab
            ("address=localhost", "an IPv4 address"),  // a name, not an address
            ("close=never", "\"with_data\", \"after\""),
        ];
        for (word, says) in table {
            let e = words(&[word]).unwrap_err();
            assert!(e.contains(says), "{word}: {e}");
        }
        assert_eq!(
            words(&["address=127.0.0.2"]).unwrap().address,
            Ipv4Addr::new(127, 0, 0, 2)
        );
        let other = Job {
            protocol: 99,
            knobs: Knobs::default(),
        };
        assert!(
            Settings::from_job(&other)
                .unwrap_err()
                .to_string()
                .contains("same revision")
        );
    }
}

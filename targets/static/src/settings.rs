//! A job as the server uses it: typed, checked once, before anything listens.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use yieldpoint_protocol::Job;
use yieldpoint_terms::{Kind, Knob, KnobError, Knobs, MissingKnob, Nanos, Value, nearest};

use crate::behaviour::Behaviour;
use crate::knobs::KNOBS;

/// When the FIN follows the last response of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// on the last data segment: the target has always closed before the client knows
    WithData,
    /// this much later, ns: the client may close first
    After(u64),
}

/// A job as the server uses it; see [`KNOBS`].
#[derive(Clone, Debug, PartialEq)]
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
    pub files: Option<PathBuf>,
    pub max_body_bytes: u64,
    pub header_timeout: Nanos,
    pub body_timeout: Nanos,
    pub send_timeout: Nanos,
    pub behaviour: Behaviour,
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
    #[error(
        "knobs \"error_rate\", \"early_close_rate\" and \"reset_rate\": expected a sum of at most 1, got {0}; a request ends in one way"
    )]
    Rates(f64),
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
            files: k.get("files").map(|folder| folder.to_string().into()),
            max_body_bytes: k.uint("max_body_bytes")?,
            header_timeout: k.duration("header_timeout")?,
            body_timeout: k.duration("body_timeout")?,
            send_timeout: k.duration("send_timeout")?,
            behaviour: behaviour(k)?,
        })
    }
}

fn behaviour(k: &Knobs) -> Result<Behaviour, SettingsError> {
    // `accept` has made every number of a float knob a float.
    let float = |name| k.get(name).and_then(Value::as_f64).unwrap_or_default();
    let behaviour = Behaviour {
        seed: k.uint("delay_seed")?,
        delay_ns: k.duration("delay")?.0,
        delay_sigma: match k.text("delay_distribution")? {
            "lognormal" => float("delay_sigma"),
            _ => 0.0,
        },
        stall_at_ns: k.duration("stall_at")?.0,
        stall_for_ns: k.duration("stall_for")?.0,
        error_rate: float("error_rate"),
        early_close_rate: float("early_close_rate"),
        reset_rate: float("reset_rate"),
        slow_body_ns: k.duration("slow_body")?.0,
        slow_body_pieces: k.uint("slow_body_pieces")? as usize,
        cpu_burn_ns: k.duration("cpu_burn")?.0,
    };
    let sum = behaviour.error_rate + behaviour.early_close_rate + behaviour.reset_rate;
    // A little more than 1 is how decimal fractions add up.
    if sum > 1.0 + 1e-9 {
        return Err(SettingsError::Rates(sum));
    }
    Ok(behaviour)
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
        assert_eq!(s.max_body_bytes, 1024 * 1024);
        assert_eq!(s.header_timeout, Nanos::from_secs(60));
        assert!(s.files.is_none() && s.behaviour.is_plain());
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
            // a whole number where a fraction is asked
            ("error_rate", Value::Int(1)),
            ("delay_distribution", Value::Text("lognormal".into())),
        ]);
        let wire = serde_json::to_string(&sent).unwrap();
        let s = Settings::from_job(&serde_json::from_str(&wire).unwrap()).unwrap();
        assert_eq!(s.keepalive_timeout, Nanos::from_millis(250));
        assert_eq!(s.close, Close::After(200_000));
        assert_eq!(
            (s.behaviour.error_rate, s.behaviour.delay_sigma),
            (1.0, 0.3)
        );
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
            ("error_rate=1.5", "a number from 0 to 1"),
            ("close=never", "\"with_data\", \"after\""),
        ];
        for (word, says) in table {
            let e = words(&[word]).unwrap_err();
            assert!(e.contains(says), "{word}: {e}");
        }
        let sum = words(&["error_rate=0.7", "reset_rate=0.4"]).unwrap_err();
        assert!(sum.contains("at most 1, got 1.1"), "{sum}");
        assert!(words(&["error_rate=0.7", "reset_rate=0.2", "early_close_rate=0.1"]).is_ok());
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

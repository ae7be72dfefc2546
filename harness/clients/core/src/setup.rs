//! A job as a client uses it: typed, checked once, before anything is measured.

use std::borrow::Cow;
use std::net::SocketAddr;

use yieldpoint_protocol::Job;
use yieldpoint_terms::{Kind, Knob, Knobs, MissingKnob, Nanos};

use crate::pace::Arrival;
use crate::sources::{Sources, SourcesError};

const DAY: Nanos = Nanos::from_secs(86_400);
const ARRIVAL: &[Cow<'static, str>] = &[Cow::Borrowed("constant"), Cow::Borrowed("poisson")];

/// The common knobs of every load client, in the order in which help shows them.
pub const KNOBS: &[Knob] = &[
    Knob::optional(
        "url",
        Kind::Text,
        "URL of the request; set by the runner from the target unless target.kind is \"url\"",
    ),
    Knob::bool(
        "keep_alive",
        true,
        "reuse a connection within an iteration; false: `Connection: close` on every request",
    ),
    Knob::bool(
        "same_user",
        true,
        "connection, pool and cookies survive the end of an iteration; false: all dropped, the client closing first",
    ),
    // The runner obeys this one; a client is one of the processes and need not read it.
    Knob::int(
        "processes",
        1,
        1,
        64,
        "client processes; each runs threads × users_per_thread users",
    ),
    Knob::int("threads", 1, 1, 1024, "loop threads of the client"),
    Knob::int(
        "users_per_thread",
        1,
        1,
        10_000,
        "virtual users (closed loops) on each thread",
    ),
    Knob::int(
        "requests_per_iteration",
        1,
        1,
        1_000_000_000,
        "requests of one iteration of a virtual user",
    ),
    Knob::duration(
        "warmup",
        Nanos(0),
        Nanos(0),
        DAY,
        "load before the window that is not measured; 0 by default, since it would hide the port burst",
    ),
    Knob::duration(
        "duration",
        Nanos::from_secs(10),
        Nanos::from_millis(1),
        DAY,
        "length of the window",
    ),
    Knob::optional(
        "iterations",
        Kind::Int {
            min: 1,
            max: 1_000_000_000_000,
        },
        "iterations of each user; ends the window earlier than `duration` does",
    ),
    Knob::duration(
        "connect_timeout",
        Nanos::from_secs(2),
        Nanos::from_millis(1),
        DAY,
        "greatest time to open a connection",
    ),
    Knob::duration(
        "request_timeout",
        Nanos::from_secs(5),
        Nanos::from_millis(1),
        DAY,
        "greatest time from the start of a request to its last byte",
    ),
    Knob::optional(
        "rate",
        Kind::Float {
            min: 0.001,
            max: 1e9,
        },
        "open loop: requests per second of the whole process, started when they are due and a user is free; absent: closed loop",
    ),
    Knob::choice(
        "arrival",
        ARRIVAL,
        "how the starts of `rate` are spread: constant, equal gaps; poisson, independent exponential gaps",
    ),
    Knob::optional(
        "source_addresses",
        Kind::Text,
        "local IPv4 addresses that the users of a process take in turn, \"127.0.0.1-127.0.0.4\" or \"127.0.0.1,127.0.0.3\"; absent: the kernel chooses",
    ),
    Knob::optional(
        "expect.status",
        Kind::Any,
        "status of a good response; 200 by default",
    ),
    Knob::optional(
        "expect.body_bytes",
        Kind::Int {
            min: 0,
            max: i64::MAX,
        },
        "body length of a good response; the target's body_bytes by default, unchecked where that is unknown",
    ),
];

/// Names of [`KNOBS`]: what `honours` of a client that obeys everything holds.
#[must_use]
pub fn common() -> Vec<String> {
    common_without(&[])
}

/// The same without the knobs that a client cannot obey.
#[must_use]
pub fn common_without(knobs: &[&str]) -> Vec<String> {
    let names = KNOBS.iter().map(|k| k.name.to_string());
    names.filter(|n| !knobs.contains(&n.as_str())).collect()
}

/// A job as a client uses it. All times in ns.
#[derive(Clone, Debug)]
pub struct Setup {
    /// the whole URL
    pub url: String,
    /// where to connect (the URL's host is an address: nothing is resolved inside the window)
    pub address: SocketAddr,
    /// "address:port" for the Host header
    pub host: String,
    /// path and query, starts with "/"
    pub path: String,
    /// see [`KNOBS`]
    pub keep_alive: bool,
    /// see [`KNOBS`]
    pub same_user: bool,
    /// see [`KNOBS`]
    pub threads: usize,
    /// see [`KNOBS`]
    pub users_per_thread: usize,
    /// see [`KNOBS`]
    pub requests_per_iteration: u64,
    /// see [`KNOBS`]
    pub warmup: Nanos,
    /// see [`KNOBS`]
    pub duration: Nanos,
    /// iterations of each user; `None`: until the window ends
    pub iterations: Option<u64>,
    /// see [`KNOBS`]
    pub connect_timeout: Nanos,
    /// see [`KNOBS`]
    pub request_timeout: Nanos,
    /// open loop: requests per second of this process; `None`: closed loop
    pub rate: Option<f64>,
    /// how the starts of `rate` are spread
    pub arrival: Arrival,
    /// local addresses of the users
    pub sources: Sources,
    /// status of a good response
    pub expect_status: u16,
    /// body length of a good response, if it is checked
    pub expect_body_bytes: Option<u64>,
    /// the client's own options, by their short names
    pub options: Knobs,
}

/// Why a job cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// another version of the protocol
    #[error("protocol version: expected {expected}, got {0}; build runner and client from the same revision", expected = yieldpoint_protocol::VERSION)]
    Version(u32),
    /// a knob is missing or has another type
    #[error(transparent)]
    Knob(#[from] MissingKnob),
    /// an URL we do not make load on
    #[error("url \"{0}\": expected http://ADDRESS:PORT/PATH with a numeric IPv4 address")]
    Url(String),
    /// not a status code
    #[error("expect.status: expected a status code from 100 to 599, got \"{0}\"")]
    Status(String),
    /// no list of addresses
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// not a rate
    #[error("rate: expected a number of requests per second above 0, got \"{0}\"")]
    Rate(String),
    /// not a way to spread starts
    #[error("arrival: expected \"constant\" or \"poisson\", got \"{0}\"")]
    Arrival(String),
}

impl Setup {
    /// Reads a job. Every knob of [`KNOBS`] with a default must be there; the runner fills them in.
    pub fn from_job(job: &Job) -> Result<Self, SetupError> {
        if job.protocol != yieldpoint_protocol::VERSION {
            return Err(SetupError::Version(job.protocol));
        }
        let k = &job.knobs;
        let url = k.text("url")?.to_owned();
        let bad_url = || SetupError::Url(url.clone());
        let rest = url.strip_prefix("http://").ok_or_else(bad_url)?;
        let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let with_port = if host.contains(':') {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let address: SocketAddr = with_port.parse().map_err(|_| bad_url())?;
        let status = match k.get("expect.status") {
            None => 200,
            Some(v) => match v.to_string().parse::<u16>() {
                Ok(s @ 100..=599) => s,
                _ => return Err(SetupError::Status(v.to_string())),
            },
        };
        let rate = match k.get("rate").map(|v| (v, v.as_f64())) {
            None => None,
            Some((_, Some(per_s))) if per_s.is_finite() && per_s > 0.0 => Some(per_s),
            Some((other, _)) => return Err(SetupError::Rate(other.to_string())),
        };
        // Without a rate nothing is spread, and jobs of older runners do not carry the knob.
        let arrival = match k.get("arrival").map(ToString::to_string).as_deref() {
            None | Some("constant") => Arrival::Constant,
            Some("poisson") => Arrival::Poisson,
            Some(other) => return Err(SetupError::Arrival(other.to_owned())),
        };
        let sources = match k.get("source_addresses") {
            None => Sources::default(),
            Some(_) => Sources::parse(k.text("source_addresses")?)?,
        };
        let optional = |name| k.get(name).map(|_| k.uint(name)).transpose();
        Ok(Self {
            address,
            host: host.to_owned(),
            path: path.to_owned(),
            keep_alive: k.bool("keep_alive")?,
            same_user: k.bool("same_user")?,
            // Ranges were checked by the catalog; usize has 64 bits wherever this runs.
            threads: k.uint("threads")? as usize,
            users_per_thread: k.uint("users_per_thread")? as usize,
            requests_per_iteration: k.uint("requests_per_iteration")?,
            warmup: k.duration("warmup")?,
            duration: k.duration("duration")?,
            iterations: optional("iterations")?,
            connect_timeout: k.duration("connect_timeout")?,
            request_timeout: k.duration("request_timeout")?,
            rate,
            arrival,
            sources,
            expect_status: status,
            expect_body_bytes: optional("expect.body_bytes")?,
            options: k.below("options."),
            url,
        })
    }

    /// Virtual users of this process.
    #[must_use]
    pub fn users(&self) -> usize {
        self.threads * self.users_per_thread
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use yieldpoint_protocol::{Hello, Role, VERSION};
    use yieldpoint_terms::Value;

    use super::*;

    /// A job with all defaults.
    pub fn job() -> Job {
        let mut job = Job {
            protocol: VERSION,
            ..Job::default()
        };
        for knob in KNOBS {
            if let Some(default) = knob.default_value() {
                job.knobs.set(knob.name.as_ref(), default);
            }
        }
        let url = Value::Text("http://127.0.0.1:8080/x".into());
        job.knobs.set("url", url);
        job
    }

    /// What [`job`] says.
    pub fn setup() -> Setup {
        Setup::from_job(&job()).unwrap()
    }

    /// A client that obeys everything.
    pub fn hello() -> Hello {
        Hello {
            protocol: VERSION,
            role: Role::Client,
            name: "fake".into(),
            version: String::new(),
            library: String::new(),
            about: String::new(),
            honours: common(),
            limits: Default::default(),
            knobs: Vec::new(),
        }
    }

    #[test]
    fn an_url_is_an_address_and_a_path() {
        // each row: url, address, host, path; None where it is refused
        let table = [
            (
                "http://127.0.0.1:8080/a?b=c",
                Some(("127.0.0.1:8080", "127.0.0.1:8080", "/a?b=c")),
            ),
            ("http://127.0.0.1", Some(("127.0.0.1:80", "127.0.0.1", "/"))), // port and path are implied
            ("https://127.0.0.1/", None),
            ("http://localhost:8080/", None), // a name would be resolved inside the window
            ("127.0.0.1:8080", None),
        ];
        for (url, want) in table {
            let mut job = job();
            job.knobs.set("url", Value::Text(url.into()));
            let got = Setup::from_job(&job).ok();
            let got = got.map(|s| (s.address.to_string(), s.host, s.path));
            let want = want.map(|(a, h, p)| (a.to_owned(), h.to_owned(), p.to_owned()));
            assert_eq!(got, want, "{url}");
        }
    }

    #[test]
    fn a_status_may_be_a_number_or_a_text() {
        for (value, want) in [
            (Value::Int(404), Some(404)),
            (Value::Text("204".into()), Some(204)),
            (Value::Int(42), None),
            (Value::Text("ok".into()), None),
        ] {
            let mut job = job();
            job.knobs.set("expect.status", value.clone());
            let got = Setup::from_job(&job).map(|s| s.expect_status).ok();
            assert_eq!(got, want, "{value}");
        }
    }

    #[test]
    fn a_rate_is_a_number_above_zero() {
        let text = |t: &str| Value::Text(t.into());
        // each row: knob, value, rate and arrival; None where it is refused
        let table = [
            (
                "rate",
                Value::Int(1000),
                Some((Some(1000.0), Arrival::Constant)),
            ),
            (
                "rate",
                Value::Float(0.5),
                Some((Some(0.5), Arrival::Constant)),
            ),
            ("rate", Value::Float(0.0), None),
            ("rate", Value::Float(f64::INFINITY), None),
            ("rate", text("fast"), None),
            ("arrival", text("poisson"), Some((None, Arrival::Poisson))),
            ("arrival", text("uniform"), None),
        ];
        for (name, value, want) in table {
            let mut job = job();
            job.knobs.set(name, value.clone());
            let got = Setup::from_job(&job).ok().map(|s| (s.rate, s.arrival));
            assert_eq!(got, want, "{name} = {value}");
        }
    }
}

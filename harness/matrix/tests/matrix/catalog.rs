//! A catalog as a run has it, written by hand: the owners of the knobs are not ours to import.

use std::borrow::Cow;

use yieldpoint_matrix::{Changes, Matrix, MatrixErrors, parse_only, parse_set};
use yieldpoint_terms::{Catalog, Kind, Knob, Nanos};

const DAY: Nanos = Nanos::from_secs(86_400);
const MODES: &[Cow<'static, str>] = &[
    Cow::Borrowed("auto"),
    Cow::Borrowed("private"),
    Cow::Borrowed("host"),
];
const KINDS: &[Cow<'static, str>] = &[Cow::Borrowed("static"), Cow::Borrowed("url")];
const CLOSES: &[Cow<'static, str>] = &[Cow::Borrowed("with_data"), Cow::Borrowed("after")];

const A_TIME: Kind = Kind::Duration {
    min: Nanos(0),
    max: DAY,
};

fn int(name: &'static str, default: i64, min: i64, max: i64) -> Knob {
    Knob::int(name, default, min, max, "")
}

fn time(name: &'static str, default: Nanos, min: Nanos) -> Knob {
    Knob::duration(name, default, min, DAY, "")
}

fn optional(name: &'static str, kind: Kind) -> Knob {
    Knob::optional(name, kind, "")
}

/// The common knobs, the target's, the lab's, one option of isahc.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    let ms = Nanos::from_millis(1);
    catalog.add([
        optional("url", Kind::Text),
        Knob::bool("keep_alive", true, ""),
        Knob::bool("same_user", true, ""),
        int("threads", 1, 1, 1024),
        int("users_per_thread", 1, 1, 10_000),
        int("requests_per_iteration", 1, 1, 1_000_000_000),
        time("warmup", Nanos(0), Nanos(0)),
        time("duration", Nanos::from_secs(10), ms),
        optional(
            "iterations",
            Kind::Int {
                min: 1,
                max: 1_000_000,
            },
        ),
        time("connect_timeout", Nanos::from_secs(2), ms),
        time("request_timeout", Nanos::from_secs(5), ms),
        optional("expect.status", Kind::Any),
        optional(
            "expect.body_bytes",
            Kind::Int {
                min: 0,
                max: i64::MAX,
            },
        ),
        optional("rate", Kind::Float { min: 0.5, max: 1e6 }),
        Knob::choice("target.kind", KINDS, ""),
        int("target.port", 0, 0, 65_535),
        int("target.workers", 1, 1, 64),
        int("target.body_bytes", 612, 0, 1 << 30),
        Knob::bool("target.keep_alive", true, ""),
        int("target.keepalive_requests", 1000, 1, i64::MAX),
        time("target.keepalive_timeout", Nanos::from_secs(75), ms),
        int("target.backlog", 511, 1, 65_535),
        Knob::bool("target.access_log", false, ""),
        Knob::choice("target.close", CLOSES, ""),
        optional("target.delay", A_TIME),
        optional("target.delay_distribution", Kind::Text),
        optional("target.delay_sigma", Kind::Float { min: 0.0, max: 5.0 }),
        optional(
            "target.delay_seed",
            Kind::Int {
                min: 0,
                max: i64::MAX,
            },
        ),
        optional("target.stall_at", A_TIME),
        optional("target.stall_for", A_TIME),
        optional("target.cpu_burn", A_TIME),
        Knob::choice("lab.mode", MODES, ""),
        optional(
            "lab.nofile",
            Kind::Int {
                min: 16,
                max: 1 << 30,
            },
        ),
        optional("lab.cpus.client", Kind::Text),
        optional("lab.cpus.target", Kind::Text),
        optional("lab.sysctl.*", Kind::Any),
        Knob::bool("options.isahc.tcp_nodelay", true, ""),
    ]);
    catalog
}

/// The clients that are installed.
pub fn clients() -> Vec<String> {
    ["hyper", "isahc", "reference", "ureq"]
        .map(str::to_owned)
        .into()
}

/// Parses a text as `test.toml`.
pub fn parse(text: &str, changes: &Changes) -> Result<Matrix, MatrixErrors> {
    Matrix::parse("test", "test.toml", text, &catalog(), &clients(), changes)
}

/// Parses the body of a matrix whose first lines are sound, without changes.
pub fn body(text: &str) -> Result<Matrix, MatrixErrors> {
    parse(&with_head(text), &Changes::default())
}

/// A sound head of two lines, so that a body begins in line 3.
pub fn with_head(text: &str) -> String {
    format!("format = 1\nquestion = \"Why?\"\n{text}")
}

/// Changes as they are typed.
pub fn changes_of(set: &[&str], only: &[&str]) -> Changes {
    Changes {
        set: set.iter().map(|s| parse_set(s).unwrap()).collect(),
        only: only.iter().map(|o| parse_only(o).unwrap()).collect(),
        ..Changes::default()
    }
}

//! What can be set.

use std::borrow::Cow;

use yieldpoint_terms::{Kind, Knob, Nanos, Value};

const CLOSE: &[Cow<'static, str>] = &[Cow::Borrowed("with_data"), Cow::Borrowed("after")];
const DISTRIBUTION: &[Cow<'static, str>] = &[Cow::Borrowed("fixed"), Cow::Borrowed("lognormal")];
const MINUTE: Nanos = Nanos::from_secs(60);
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
        "length of every good response's body in bytes (nginx's welcome page has 612); without effect beside files",
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
    Knob::optional(
        "files",
        Kind::Text,
        "folder whose files are served from memory, best by its absolute path: read once at the start, at most 256 MiB; without it every path answers one page of body_bytes",
    ),
    Knob::int(
        "max_body_bytes",
        1024 * 1024,
        0,
        1 << 40,
        "greatest length of a request's body in bytes, beyond which it is refused with 413 (nginx: client_max_body_size)",
    ),
    Knob::duration(
        "header_timeout",
        MINUTE,
        Nanos::from_millis(1),
        DAY,
        "time for the whole head of a request, then 408; late by up to a quarter of the shortest timeout, at most 1 s",
    ),
    Knob::duration(
        "body_timeout",
        MINUTE,
        Nanos::from_millis(1),
        DAY,
        "time between two pieces of a request's body, then 408",
    ),
    Knob::duration(
        "send_timeout",
        MINUTE,
        Nanos::from_millis(1),
        DAY,
        "time in which a client reads nothing of a response, then its connection is closed",
    ),
    Knob::duration(
        "delay",
        Nanos(0),
        Nanos(0),
        MINUTE,
        "time from a read request to its response; of a log-normal delay the median",
    ),
    Knob::choice(
        "delay_distribution",
        DISTRIBUTION,
        "whether every request waits equally long, or the logarithm of its delay is normal",
    ),
    float(
        "delay_sigma",
        0.3,
        5.0,
        "standard deviation of the logarithm of a log-normal delay",
    ),
    Knob::int(
        "delay_seed",
        1,
        0,
        i64::MAX,
        "seed of everything that is drawn here: delays, errors, closes, resets",
    ),
    Knob::duration(
        "stall_at",
        Nanos(0),
        Nanos(0),
        DAY,
        "time from go to the start of a stall",
    ),
    Knob::duration(
        "stall_for",
        Nanos(0),
        Nanos(0),
        DAY,
        "length of a stall: nothing is answered in it, then everything that waits; 0s: none",
    ),
    float(
        "error_rate",
        0.0,
        1.0,
        "share of requests answered with 500; the connection is kept",
    ),
    float(
        "early_close_rate",
        0.0,
        1.0,
        "share of requests answered with a head and half of its body, then a FIN",
    ),
    float(
        "reset_rate",
        0.0,
        1.0,
        "share of requests answered with a RST",
    ),
    Knob::duration(
        "slow_body",
        Nanos(0),
        Nanos(0),
        MINUTE,
        "time between two pieces of a response's body; 0s: all at once",
    ),
    Knob::int(
        "slow_body_pieces",
        4,
        2,
        1_000_000,
        "number of equal pieces of a slow body, each of at least one byte",
    ),
    Knob::duration(
        "cpu_burn",
        Nanos(0),
        Nanos(0),
        MINUTE,
        "CPU time that a worker burns for each request before it answers",
    ),
];

/// A number from 0 to `max`.
const fn float(name: &'static str, default: f64, max: f64, doc: &'static str) -> Knob {
    Knob {
        name: Cow::Borrowed(name),
        kind: Kind::Float { min: 0.0, max },
        default: Some(Value::Float(default)),
        doc: Cow::Borrowed(doc),
    }
}

//! Conversations with slips: messages or errors, never a panic, never a hang, and the same ones however the
//! bytes arrive.
//!
//! `cargo run --release -p yieldpoint-protocol --example mutate-protocol -- N SEED` does the same with more inputs.

use std::io::{ErrorKind as IoKind, Read};

use serde::de::DeserializeOwned;
use yieldpoint_mutate::{Mutator, Report, drive};
use yieldpoint_protocol::{
    ChannelError, Counts, ErrorCount, ErrorKind, FromProgram, Hello, Histogram, Job, LineReader,
    Outcome, Role, Second, TargetSeries, Testimony, ToProgram, VERSION, send,
};
use yieldpoint_terms::{Knob, Knobs, Nanos, Value};

const WORDS: [&str; 24] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"type\"",
    "\"hello\"",
    "\"ready\"",
    "\"unsupported\"",
    "\"failed\"",
    "\"tick\"",
    "\"end\"",
    "\"outcome\"",
    "\"testimony\"",
    "\"job\"",
    "\"go\"",
    "\"bye\"",
    "\"report\"",
    "\"client\"",
    "\"reset\"",
    "\n",
    "1.5",
    "\\ud800",
    "\"duration\"",
    "\"int\"",
];

fn line<T: serde::Serialize>(message: &T) -> Vec<u8> {
    let mut line = Vec::new();
    // Writing to a Vec cannot fail.
    send(&mut line, message).unwrap();
    line
}

fn recorded() -> hdrhistogram::Histogram<u64> {
    let mut h = Histogram::recorder();
    for i in 0..200 {
        h.record(20_000 + i * i * 100).unwrap();
    }
    h
}

fn hello() -> Hello {
    let day = Nanos::from_secs(86_400);
    Hello {
        protocol: VERSION,
        role: Role::Client,
        name: "ureq".into(),
        version: "0.1.0".into(),
        library: "ureq 3.5.2".into(),
        about: "blocking".into(),
        honours: vec!["threads".into(), "duration".into()],
        limits: [("users_per_thread".to_owned(), 1)].into(),
        knobs: vec![
            Knob::bool("tcp_nodelay", true, "a flag"),
            Knob::int("n", 1, -5, 5, "a number"),
            Knob::duration("t", Nanos(1), Nanos(0), day, "a time"),
        ],
    }
}

fn outcome() -> Outcome {
    let counts = Counts {
        attempts: 9,
        good: 7,
        errors: 2,
        iterations: 3,
        connections: 2,
        connect_failures: 1,
        body_bytes: 84,
    };
    let error = ErrorCount {
        kind: ErrorKind::Reset,
        count: 2,
        first_ns: 5,
        example: "reset \"by\" peer \u{e4}".into(),
    };
    let second = Second {
        attempts: 9,
        good: 7,
        errors: 2,
        connections: 2,
        p50_ns: Some(3),
        p90_ns: None,
        p99_ns: None,
        max_ns: Some(9),
    };
    let histogram = Histogram::encode(&recorded());
    Outcome {
        window_start_ns: 1,
        window_end_ns: 2_000_000_001,
        window: counts,
        total: counts,
        errors: vec![error],
        series: vec![second; 2],
        latency: histogram.clone(),
        latency_intended: Histogram::default(),
        connect: histogram,
        iteration: Histogram::default(),
        saturated: 0,
        users: 1,
        latency_sum_ns: 18,
    }
}

fn testimony() -> Testimony {
    let ns = 100_000_000;
    let series = TargetSeries {
        start_ns: 1,
        slot_ns: ns,
        responses: vec![3, 4],
        ..TargetSeries::default()
    };
    Testimony {
        connections: 2,
        requests: 9,
        responses: [(200, 7), (404, 2)].into(),
        series,
        ..Testimony::default()
    }
}

/// What a client, a target and a runner say, a conversation each.
fn corpus() -> [Vec<u8>; 3] {
    let client = [
        line(&FromProgram::Hello(hello())),
        line(&FromProgram::Ready {
            listens: String::new(),
        }),
        line(&FromProgram::End { at_ns: 7 }),
        line(&FromProgram::Outcome(Box::new(outcome()))),
    ];
    let target = [
        line(&FromProgram::Ready {
            listens: "127.0.0.1:8080".into(),
        }),
        line(&FromProgram::Tick {
            requests: 5,
            connections: 1,
        }),
        line(&FromProgram::Testimony(Box::new(testimony()))),
        line(&FromProgram::Unsupported {
            reason: "no".into(),
        }),
    ];
    let mut knobs = Knobs::default();
    knobs.set("threads", Value::Int(2));
    knobs.set("url", Value::Text("http://127.0.0.1/".into()));
    knobs.set("rate", Value::Float(1.5));
    let runner = [
        line(&ToProgram::Job(Job {
            protocol: VERSION,
            knobs,
        })),
        line(&ToProgram::Go { start_at_ns: 7 }),
        line(&ToProgram::Report),
        line(&ToProgram::Bye),
    ];
    [client.concat(), target.concat(), runner.concat()]
}

/// Gives its bytes in pieces of odd lengths, with a pause after each, as a socket with a timeout does.
struct Dribble<'a> {
    rest: &'a [u8],
    turn: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(2) && !self.rest.is_empty() {
            return Err(IoKind::WouldBlock.into());
        }
        let n = (1 + self.turn * 31 % 257)
            .min(to.len())
            .min(self.rest.len());
        let (now, later) = self.rest.split_at(n);
        to[..n].copy_from_slice(now);
        self.rest = later;
        Ok(n)
    }
}

/// Every message or error until the end of the bytes.
fn read_all<T: DeserializeOwned>(from: impl Read, lines: usize) -> Vec<Result<T, String>> {
    let mut reader = LineReader::new(from);
    let mut heard = Vec::new();
    loop {
        match reader.next::<T>("a message") {
            Ok(message) => heard.push(Ok(message)),
            Err(ChannelError::Closed { .. }) => return heard,
            Err(ChannelError::Io(e)) if e.kind() == IoKind::WouldBlock => continue,
            Err(e) => heard.push(Err(e.to_string())),
        }
        assert!(heard.len() <= lines, "more messages than lines");
    }
}

fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug>(
    bytes: &[u8],
) -> Vec<Result<T, String>> {
    let lines = bytes.split_inclusive(|b| *b == b'\n').count();
    let heard = read_all::<T>(bytes, lines);
    assert_eq!(heard.len(), lines, "every line is a message or an error");
    let dribbled = read_all::<T>(
        Dribble {
            rest: bytes,
            turn: 0,
        },
        lines,
    );
    assert_eq!(heard, dribbled, "pauses change nothing");
    heard
}

/// Reads so many mutated conversations, both ways.
pub fn conversations(inputs: u64, seed: u64) -> Report {
    let corpus = corpus();
    let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
    let mutator = Mutator::new(seed, &corpus, &WORDS);
    drive("protocol", &mutator, inputs, |bytes| {
        let from = check::<FromProgram>(bytes);
        for message in from.iter().flatten() {
            // What was understood can be said again, and is then the same.
            let again = line(message);
            let back = LineReader::new(again.as_slice()).next::<FromProgram>("itself");
            assert_eq!(back.ok().as_ref(), Some(message));
            if let FromProgram::Outcome(outcome) = message {
                let _ = outcome.latency.decode();
            }
        }
        let to = check::<ToProgram>(bytes);
        from.iter().all(Result::is_ok) || to.iter().all(Result::is_ok)
    })
}

/// Decodes so many mutated histograms.
pub fn histograms(inputs: u64, seed: u64) -> Report {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let encode = |h: &hdrhistogram::Histogram<u64>| engine.decode(Histogram::encode(h).0).unwrap();
    let corpus = [encode(&recorded()), encode(&Histogram::recorder())];
    let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
    let mutator = Mutator::new(seed, &corpus, &[]);
    drive("histogram", &mutator, inputs, |bytes| {
        match Histogram(engine.encode(bytes)).decode() {
            Ok(h) => {
                let _ = (h.len(), h.value_at_quantile(0.99), h.max());
                true
            }
            Err(_) => false,
        }
    })
}

#[test]
fn no_slip_makes_the_reader_panic_or_hang() {
    let report = conversations(20_000, 1);
    // A mutator that breaks everything, or nothing, tests nothing.
    assert!(
        report.accepted > 200 && report.accepted < 19_800,
        "{report}"
    );
}

#[test]
fn no_slip_makes_a_histogram_panic_or_hang() {
    let report = histograms(20_000, 1);
    assert!(
        report.accepted > 200 && report.accepted < 19_800,
        "{report}"
    );
}

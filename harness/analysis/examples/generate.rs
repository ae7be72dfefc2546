//! Generates a run that was never measured: a folder with manifest and journal of 72 cells, to look at the
//! report of a big matrix and to measure how long it takes.
//!
//! ```sh
//! cargo run -p yieldpoint-analysis --example generate -- DIR [ROUNDS [SECONDS]]
//! yieldpoint report DIR/<run> --out DIR/report
//! ```
//! Defaults: 3 rounds (216 trials) of 130 s at 10 samples a second, the size of matrices/keepalive.toml.
//! Every figure is a formula of the cell's place; nothing here says anything about a client.

use std::path::Path;

use yieldpoint_protocol::{
    Counts, ErrorCount, ErrorKind, Histogram, Outcome, Second, TargetSeries, Testimony,
};
use yieldpoint_record::{Journal, Manifest, Role, RunFolder, Status, TimeWait, Trial, flag};
use yieldpoint_terms::{Knobs, SampleSeries, Value};

const SECOND: u64 = 1_000_000_000;
/// `go` of every trial, CLOCK_MONOTONIC ns.
const GO: u64 = 1_000 * SECOND;
const CLIENTS: [&str; 3] = ["generated-a", "generated-b", "generated-c"];
const REQUESTS: [i64; 4] = [1, 10, 50, 100];
const THREADS: [i64; 3] = [1, 2, 3];
/// As many sampled metrics as a real run has, most of them without a name that means anything.
const METRICS: usize = 40;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments
        .next()
        .ok_or_else(|| anyhow::anyhow!("expected a folder, then rounds and seconds"))?;
    let number = |text: Option<String>, or: u64| text.map_or(Ok(or), |t| t.parse());
    let rounds = u32::try_from(number(arguments.next(), 3)?)?;
    let seconds = number(arguments.next(), 130)?;
    let folder = RunFolder::create(Path::new(&dir), "2026-12-01", "generated")?;
    folder.begin(
        &manifest(&folder.name(), rounds)?,
        "# generated, never run\n",
    )?;
    let mut journal = Journal::open(&folder.journal())?;
    let mut order = 0;
    for round in 1..=rounds {
        for client in 0..CLIENTS.len() {
            for keep_alive in [true, false] {
                for requests in REQUESTS {
                    for threads in THREADS {
                        let place = (client, keep_alive, requests, threads);
                        journal.append(&trial(place, round, order, seconds))?;
                        order += 1;
                    }
                }
            }
        }
    }
    println!("{}", folder.path().display());
    Ok(())
}

type Place = (usize, bool, i64, i64);

fn text(t: &str) -> Value {
    Value::Text(t.to_owned())
}

fn trial(
    (client, keep_alive, requests, threads): Place,
    round: u32,
    order: u32,
    seconds: u64,
) -> Trial {
    let coordinates = vec![
        ("client".to_owned(), text(CLIENTS[client])),
        ("keep_alive".to_owned(), Value::Bool(keep_alive)),
        ("requests_per_iteration".to_owned(), Value::Int(requests)),
        ("threads".to_owned(), Value::Int(threads)),
    ];
    let mut knobs: Knobs = Knobs(coordinates.iter().cloned().collect());
    knobs.set("same_user", Value::Bool(false));
    knobs.set("users_per_thread", Value::Int(1));
    let cell: Vec<String> = coordinates
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    // Small positive factors, so the products stay far below the ends of their types.
    let weight = (client as u64 + 2) * threads as u64 + u64::from(round) % 3;
    let runs_out = keep_alive && requests == 1;
    let rate = match (keep_alive, requests) {
        (true, 1) => 400 + weight,
        (true, r) => 500 * r.unsigned_abs() / 2 + 900 * weight,
        (false, _) => 2_000 + 450 * weight,
    };
    let good = rate * seconds;
    let errors = if runs_out { good / 8 } else { 0 };
    let counts = Counts {
        attempts: good + errors,
        good,
        errors,
        connections: if keep_alive {
            good / requests.unsigned_abs()
        } else {
            good
        },
        connect_failures: errors,
        iterations: good / requests.unsigned_abs(),
        body_bytes: good * 612,
    };
    Trial {
        format: yieldpoint_record::FORMAT,
        cell: format!("generated/{}", cell.join(",")),
        round,
        role: Role::Cell,
        order,
        coordinates,
        knobs,
        status: Status::Ok,
        error: None,
        flags: if runs_out {
            vec![flag::BURST_ONLY.into()]
        } else {
            vec![]
        },
        started: "2026-12-01T00:00:00Z".into(),
        start_at_ns: Some(GO),
        elapsed_ns: (seconds + 1) * SECOND,
        lab_mode: Some("private".into()),
        sysctls: [("net.ipv4.ip_local_port_range".into(), "32768\t60999".into())].into(),
        outcome: Some(outcome(counts, seconds, runs_out)),
        testimony: Some(testimony(counts, seconds)),
        samples: Some(samples(seconds * 10, weight)),
        time_wait: Some(TimeWait {
            start: 0,
            client: Some(28_232),
            target: Some(12),
        }),
        checks: vec![],
    }
}

fn outcome(counts: Counts, seconds: u64, runs_out: bool) -> Outcome {
    let second = Second {
        attempts: counts.attempts / seconds,
        good: counts.good / seconds,
        errors: counts.errors / seconds,
        connections: counts.connections / seconds,
        p50_ns: Some(80_000),
        p90_ns: Some(150_000),
        p99_ns: Some(400_000),
        max_ns: Some(3_000_000),
    };
    let example = "generated: no local port is free".to_owned();
    Outcome {
        window_start_ns: GO,
        window_end_ns: GO + seconds * SECOND,
        window: counts,
        total: counts,
        errors: if runs_out {
            let kind = ErrorKind::AddressNotAvailable;
            vec![ErrorCount {
                kind,
                count: counts.errors,
                first_ns: GO + 34 * SECOND,
                example,
            }]
        } else {
            vec![]
        },
        series: vec![second; seconds as usize],
        latency: histogram(4_000, 60_000),
        latency_intended: Histogram::default(),
        connect: histogram(1_000, 30_000),
        iteration: histogram(2_000, 90_000),
        saturated: 0,
        users: 1,
        latency_sum_ns: 0,
    }
}

/// So many different times that a slot each is taken, as in a long trial.
fn histogram(slots: u64, least_ns: u64) -> Histogram {
    let mut h = Histogram::recorder();
    for i in 0..slots {
        // Within the recorder's range, so it is never refused.
        let _ = h.record(least_ns + i * least_ns / 500);
    }
    Histogram::encode(&h)
}

fn testimony(counts: Counts, seconds: u64) -> Testimony {
    let slots = seconds * 10;
    let course = |n: u64| -> Vec<u64> { (0..slots).map(|i| n / slots + i % 7).collect() };
    Testimony {
        connections: counts.connections,
        requests: counts.good,
        cpu_ns: counts.good * 9_000,
        series: TargetSeries {
            start_ns: GO,
            slot_ns: SECOND / 10,
            responses: course(counts.good),
            connections: course(counts.connections),
            bytes_out: course(counts.body_bytes),
            active: course(0),
            listen_queue: course(0),
        },
        ..Testimony::default()
    }
}

fn metric(i: usize) -> String {
    match i {
        0 => "client_cpu_ns".into(),
        1 => "client_rss_peak_kib".into(),
        2 => "sockets_time_wait".into(),
        i => format!("generated_{i}"),
    }
}

fn samples(rows: u64, weight: u64) -> SampleSeries {
    let value = |metric: usize, row: u64| {
        let v = match metric {
            0 => row * 9_000_000 * weight.min(10),
            1 => 6_000 + 700 * weight + row.min(200),
            2 => (row * 90).min(28_232),
            m => row * m as u64,
        };
        i64::try_from(v).ok()
    };
    let column = |m: usize| (metric(m), (0..rows).map(|r| value(m, r)).collect());
    SampleSeries {
        t_ns: (0..rows).map(|i| GO + i * SECOND / 10).collect(),
        columns: (0..METRICS).map(column).collect(),
    }
}

/// Through JSON, so that a field that a manifest may do without needs no line here.
fn manifest(run: &str, rounds: u32) -> anyhow::Result<Manifest> {
    let axis = |name: &str, values: serde_json::Value| serde_json::json!({ "name": name, "values": values });
    let metrics: Vec<_> = (0..METRICS)
        .map(|i| serde_json::json!({ "name": metric(i), "unit": "", "counter": false, "source": "generated", "doc": "A generated metric." }))
        .collect();
    let manifest = serde_json::json!({
        "format": yieldpoint_record::FORMAT,
        "yieldpoint": env!("CARGO_PKG_VERSION"),
        "run": run,
        "matrix": "generated",
        "question": "GENERATED, never measured: is the report of 72 cells readable?",
        "source": null,
        "analysis": null,
        "started": "2026-12-01T00:00:00Z",
        "command": ["cargo", "run", "-p", "yieldpoint-analysis", "--example", "generate"],
        "seed": 1,
        "rounds": rounds,
        "trials": 72 * rounds,
        "axes": [
            axis("client", CLIENTS.into()),
            axis("keep_alive", vec![true, false].into()),
            axis("requests_per_iteration", REQUESTS.to_vec().into()),
            axis("threads", THREADS.to_vec().into()),
        ],
        "set": [],
        "knobs": [],
        "metrics": metrics,
        "machine": { "kernel": "generated", "os": "", "architecture": "", "cpu": "", "cpus": 2, "memory_kib": 1_048_576, "governor": null, "virtualization": null, "clock_source": null },
        "programs": [],
        "lab": { "mode": "private", "why": null, "client_cpus": "0", "target_cpus": "1" },
        "notes": ["GENERATED: every figure of this report is a formula."],
    });
    Ok(serde_json::from_value(manifest)?)
}

//! Synthetic inputs of unit tests: trials made by hand, never measured.

use yieldpoint_protocol::{
    Counts, ErrorCount, ErrorKind, Histogram, Outcome, Second, TargetSeries, Testimony,
};
use yieldpoint_record::{
    Asked, AxisFact, FORMAT, LabFact, Machine, Manifest, MetricFact, ProgramFact, Role, Status,
    TimeWait, Trial,
};
use yieldpoint_terms::{Knob, Knobs, Nanos, SampleSeries, Value};

use crate::samples::metric;

const SECOND: u64 = 1_000_000_000;
/// `go` of every synthetic trial.
const GO: u64 = 50 * SECOND;

/// A histogram of these times in ns.
pub(crate) fn histogram(times: &[u64]) -> Histogram {
    let mut h = Histogram::recorder();
    times.iter().for_each(|t| h.record(*t).unwrap());
    Histogram::encode(&h)
}

pub(crate) fn outcome() -> Outcome {
    let counts = Counts {
        attempts: 2_000,
        good: 2_000,
        connections: 20,
        iterations: 20,
        ..Counts::default()
    };
    let second = Second {
        attempts: 1_000,
        good: 1_000,
        connections: 10,
        p50_ns: Some(20_000),
        ..Second::default()
    };
    Outcome {
        window_start_ns: GO,
        window_end_ns: GO + 2 * SECOND,
        window: counts,
        total: counts,
        errors: vec![],
        series: vec![second; 2],
        latency: histogram(&[20_000; 2_000]),
        latency_intended: Histogram::default(),
        connect: histogram(&[50_000; 20]),
        iteration: histogram(&[2_000_000; 20]),
        saturated: 0,
        users: 1,
        latency_sum_ns: 0,
    }
}

/// A trial of 2 s with 2,000 good requests over 20 connections.
pub(crate) fn trial(client: &str, round: u32) -> Trial {
    let text = |t: &str| Value::Text(t.to_owned());
    let knobs = [
        ("client", text(client)),
        ("keep_alive", Value::Bool(true)),
        ("same_user", Value::Bool(false)),
        ("threads", Value::Int(1)),
        ("users_per_thread", Value::Int(1)),
        ("requests_per_iteration", Value::Int(100)),
        ("duration", Value::Int(2 * SECOND as i64)),
    ];
    let columns = [
        (metric::CLIENT_CPU, [Some(5_000_000), Some(45_000_000)]),
        (metric::CLIENT_RSS_PEAK, [Some(4_096), Some(6_144)]),
        (metric::TIME_WAIT, [Some(0), Some(20)]),
    ];
    let slots = vec![100; 20];
    Trial {
        format: FORMAT,
        cell: format!("m/client={client}"),
        round,
        role: Role::Cell,
        order: round,
        coordinates: vec![("client".into(), text(client))],
        knobs: Knobs(knobs.map(|(k, v)| (k.to_owned(), v)).into()),
        status: Status::Ok,
        error: None,
        flags: vec![],
        started: "2026-12-01T00:00:00Z".into(),
        start_at_ns: Some(GO),
        elapsed_ns: 3 * SECOND,
        lab_mode: Some("private".into()),
        sysctls: [("net.ipv4.ip_local_port_range".into(), "32768\t34767".into())].into(),
        outcome: Some(outcome()),
        testimony: Some(Testimony {
            connections: 20,
            requests: 2_000,
            cpu_ns: 30_000_000,
            series: TargetSeries {
                start_ns: GO,
                slot_ns: SECOND / 10,
                responses: slots.clone(),
                connections: vec![1; 20],
                bytes_out: slots.clone(),
                active: vec![1; 20],
                listen_queue: vec![0; 20],
            },
            ..Testimony::default()
        }),
        samples: Some(SampleSeries {
            t_ns: vec![GO, GO + 2 * SECOND],
            columns: columns.map(|(k, v)| (k.to_owned(), v.to_vec())).into(),
        }),
        time_wait: Some(TimeWait {
            start: 0,
            client: Some(20),
            target: Some(0),
        }),
        checks: vec![],
    }
}

/// The trial puts a value on an axis.
pub(crate) fn at(mut trial: Trial, axis: &str, value: Value) -> Trial {
    trial.cell = format!("{},{axis}={value}", trial.cell);
    trial.knobs.set(axis, value.clone());
    trial.coordinates.push((axis.to_owned(), value));
    trial
}

/// The A/A twin of a trial.
pub(crate) fn control(mut trial: Trial) -> Trial {
    trial.role = Role::Control;
    trial
}

/// So many good requests in the window of 2 s.
pub(crate) fn good(mut trial: Trial, good: u64) -> Trial {
    let outcome = trial.outcome.as_mut().unwrap();
    for counts in [&mut outcome.window, &mut outcome.total] {
        counts.good = good;
        counts.attempts = good + counts.errors;
    }
    trial
}

/// The trial opened `ports` connections, one a request, and then found no port free, from 0.3 s on.
pub(crate) fn ran_out(trial: Trial, ports: u64) -> Trial {
    let mut trial = good(trial, ports);
    trial.flags.push("burst_only".into());
    trial.time_wait = Some(TimeWait {
        start: 0,
        client: Some(ports),
        target: Some(0),
    });
    let outcome = trial.outcome.as_mut().unwrap();
    outcome.errors = vec![ErrorCount {
        kind: ErrorKind::AddressNotAvailable,
        count: 500,
        first_ns: GO + 300_000_000,
        example: "Cannot assign requested address (os error 99)".into(),
    }];
    for counts in [&mut outcome.window, &mut outcome.total] {
        counts.connections = ports;
        counts.errors = 500;
        counts.connect_failures = 500;
        counts.attempts = ports + 500;
    }
    trial
}

/// The trial could not be measured, and left nothing.
pub(crate) fn failed(mut trial: Trial, status: Status, why: &str) -> Trial {
    trial.status = status;
    trial.error = Some(why.into());
    trial.start_at_ns = None;
    trial.lab_mode = None;
    trial.outcome = None;
    trial.testimony = None;
    trial.samples = None;
    trial.time_wait = None;
    trial
}

/// The names of a table's columns.
pub(crate) fn names(table: &polars::prelude::DataFrame) -> Vec<&str> {
    let names = table.get_column_names();
    names.into_iter().map(|n| n.as_str()).collect()
}

/// A manifest of these axes.
pub(crate) fn manifest(axes: &[(&str, &[Value])]) -> Manifest {
    let metric = |name: &str| MetricFact {
        name: name.into(),
        unit: "KiB".into(),
        counter: false,
        source: "/proc".into(),
        doc: "A metric.".into(),
    };
    let second = Nanos::from_secs(1);
    Manifest {
        format: FORMAT,
        yieldpoint: "0.1.0".into(),
        run: "2026-12-01.1-m".into(),
        matrix: "m".into(),
        question: "Does it break?".into(),
        source: None,
        analysis: None,
        started: "2026-12-01T00:00:00Z".into(),
        command: ["yieldpoint", "run", "m.toml"].map(str::to_owned).into(),
        asked: Asked::default(),
        seed: 1,
        rounds: 1,
        sequential: None,
        trials: 1,
        along: None,
        axes: axes
            .iter()
            .map(|(name, values)| AxisFact {
                name: (*name).into(),
                values: values.to_vec(),
            })
            .collect(),
        set: vec![],
        knobs: vec![
            Knob::bool(
                "keep_alive",
                true,
                "Whether a connection is reused within an iteration.",
            ),
            Knob::bool(
                "same_user",
                false,
                "Whether the connection survives an iteration.",
            ),
            Knob::int("threads", 1, 1, 9, "Loop threads."),
            Knob::int("users_per_thread", 1, 1, 9, "Virtual users."),
            Knob::int("requests_per_iteration", 1, 1, 1_000, "Requests."),
            Knob::duration("duration", second, second, second, "Length of the window."),
        ],
        metrics: [
            metric::CLIENT_CPU,
            metric::CLIENT_RSS_PEAK,
            metric::TIME_WAIT,
        ]
        .map(metric)
        .into(),
        machine: Machine {
            kernel: "6.1".into(),
            cpus: 2,
            memory_kib: 4_194_304,
            ..Machine::default()
        },
        programs: vec![ProgramFact {
            role: "client".into(),
            name: "ureq".into(),
            version: "0.1.0".into(),
            library: "ureq 3.5.2".into(),
            command: vec![],
            sha256: Some("0123456789abcdef".repeat(4)),
        }],
        lab: LabFact {
            mode: "private".into(),
            ..LabFact::default()
        },
        notes: vec![],
    }
}

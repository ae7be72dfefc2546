//! Tests of what every reader of a run relies on: names and order of columns, types, text of the CSV files.

use polars::prelude::DataType;
use yieldpoint_record::{Manifest, Status, Trial};
use yieldpoint_terms::Value;

use crate::write::{read_parquet, write_bulk};
use crate::{Tables, bulk, report, synthetic, tables};

const CONTRACT: [&str; 34] = [
    "cell",
    "round",
    "role",
    "status",
    "error",
    "flags",
    "client",
    "keep_alive",
    "same_user",
    "threads",
    "users_per_thread",
    "requests_per_iteration",
    "good_per_s",
    "attempts",
    "good",
    "errors",
    "connections",
    "requests_total",
    "connections_total",
    "target_requests",
    "target_connections",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "client_cpu_us_per_good",
    "target_cpu_us_per_request",
    "client_rss_peak_kib",
    "time_wait_start",
    "time_wait_peak",
    "time_wait_client",
    "time_wait_target",
    "lab_mode",
];
/// Knobs and axes end here, measurements begin.
const SETTINGS: usize = 12;
const BEYOND: [&str; 14] = [
    "order",
    "series_source",
    "connect_p50_ns",
    "connect_p99_ns",
    "started",
    "verdict",
    "evidence",
    "remedy",
    "ceiling_per_s",
    "ceiling_kind",
    "early_per_s",
    "sustained_per_s",
    "unexplained_time",
    "ceiling_from",
];

fn text(t: &str) -> Value {
    Value::Text(t.into())
}

fn dtype<'a>(tables: &'a Tables, column: &str) -> &'a DataType {
    tables.trials.column(column).unwrap().dtype()
}

#[test]
fn the_columns_of_trials_are_the_contract() {
    let mut manifest = synthetic::manifest(&[
        ("client", &[text("ureq")]),
        ("kernel", &[text("default"), text("wide")]), // a bundle: a coordinate without a knob
        ("errors", &[Value::Int(1)]),                 // a bundle named like a column
        ("threads", &[Value::Int(1)]),                // narrowed, and there anyway
    ]);
    manifest.set = ["duration", "threads", "options.isahc.tcp_nodelay"]
        .map(str::to_owned)
        .into();
    let mut trial = synthetic::trial("ureq", 1);
    trial.coordinates.push(("kernel".into(), text("wide")));
    trial.coordinates.push(("errors".into(), Value::Int(1)));
    let tables = tables(&manifest, &[trial]).unwrap();
    let mut want = CONTRACT[..SETTINGS].to_vec();
    want.extend([
        "kernel",
        "axis.errors",
        "duration",
        "options.isahc.tcp_nodelay",
    ]);
    want.extend(&CONTRACT[SETTINGS..]);
    want.extend(BEYOND);
    assert_eq!(synthetic::names(&tables.trials), want);
    let cell = |name: &str| {
        tables
            .trials
            .column(name)
            .unwrap()
            .get(0)
            .unwrap()
            .to_string()
    };
    assert_eq!(cell("kernel"), "\"wide\"");
    assert_eq!(cell("axis.errors"), "1");
    assert_eq!(cell("errors"), "0");
    assert_eq!(cell("duration"), "2000000000");
    assert_eq!(
        cell("options.isahc.tcp_nodelay"),
        "null",
        "not a knob of this client"
    );
}

#[test]
fn types_follow_the_values_and_not_how_far_the_run_came() {
    let manifest = synthetic::manifest(&[
        ("client", &[text("ureq")]),
        ("threads", &[Value::Int(1), Value::Int(2)]),
        ("rate", &[Value::Int(1), Value::Float(2.5)]),
        ("lab.sysctl.x", &[Value::Int(1), text("a b")]),
    ]);
    for trials in [vec![], vec![synthetic::trial("ureq", 1)]] {
        let tables = tables(&manifest, &trials).unwrap();
        for (column, want) in [
            ("client", DataType::String),
            ("keep_alive", DataType::Boolean),
            ("threads", DataType::Int64),
            ("rate", DataType::Float64),
            ("lab.sysctl.x", DataType::String),
            ("round", DataType::Int64),
            ("error", DataType::String),
            ("good_per_s", DataType::Float64),
            ("attempts", DataType::Int64),
            ("p99_ns", DataType::Int64),
            ("client_cpu_us_per_good", DataType::Float64),
            ("time_wait_peak", DataType::Int64),
            ("lab_mode", DataType::String),
        ] {
            assert_eq!(
                dtype(&tables, column),
                &want,
                "{column}, {} trials",
                trials.len()
            );
        }
    }
}

#[test]
fn the_numbers_of_a_trial_are_those_of_its_definition() {
    let trial = synthetic::ran_out(synthetic::trial("ureq", 1), 1_000);
    let tables = tables(&synthetic::manifest(&[]), &[trial]).unwrap();
    let number = |name: &str| {
        let column = tables
            .trials
            .column(name)
            .unwrap()
            .cast(&DataType::Float64)
            .unwrap();
        column.f64().unwrap().get(0)
    };
    for (column, want) in [
        ("good_per_s", 500.0), // 1,000 in 2 s
        ("attempts", 1_500.0),
        ("errors", 500.0),
        ("connections", 1_000.0),
        ("target_requests", 2_000.0),
        ("client_cpu_us_per_good", 40.0),    // 40 ms ÷ 1,000
        ("target_cpu_us_per_request", 15.0), // 30 ms ÷ 2,000
        ("client_rss_peak_kib", 6_144.0),
        ("time_wait_start", 0.0),
        ("time_wait_peak", 20.0),
        ("time_wait_client", 1_000.0),
        ("p50_ns", 20_031.0), // the upper end of the slot that holds 20,000
    ] {
        assert_eq!(number(column), Some(want), "{column}");
    }
}

/// One trial of every kind of trouble.
fn troubled() -> (Manifest, Vec<Trial>) {
    let manifest = synthetic::manifest(&[("client", &[text("ureq"), text("hyper")])]);
    let mut no_good = synthetic::good(synthetic::trial("ureq", 1), 0);
    no_good.outcome.as_mut().unwrap().window_end_ns = 0;
    no_good.outcome.as_mut().unwrap().latency = synthetic::histogram(&[]);
    let mut unreadable = synthetic::trial("ureq", 2);
    unreadable.outcome.as_mut().unwrap().latency = yieldpoint_protocol::Histogram("no".into());
    let mut one_ended = synthetic::trial("ureq", 3);
    one_ended.testimony = None;
    one_ended.samples = None;
    one_ended.time_wait = None;
    let error = synthetic::failed(
        synthetic::trial("hyper", 1),
        Status::Error,
        "died, \"signal 9\"",
    );
    let cannot = synthetic::failed(
        synthetic::trial("hyper", 2),
        Status::Unsupported,
        "no threads",
    );
    (
        manifest,
        vec![no_good, unreadable, one_ended, error, cannot],
    )
}

#[test]
fn what_is_missing_is_null_and_never_zero() {
    let (manifest, trials) = troubled();
    let tables = tables(&manifest, &trials).unwrap();
    let missing = |name: &str| {
        let column = tables.trials.column(name).unwrap().is_null();
        column.iter().map(|n| n.unwrap()).collect::<Vec<_>>()
    };
    //                                      no good, unreadable, one-ended, error, unsupported
    assert_eq!(missing("good_per_s"), [true, false, false, true, true]);
    assert_eq!(missing("good"), [false, false, false, true, true]);
    assert_eq!(missing("p99_ns"), [true, true, false, true, true]);
    assert_eq!(
        missing("client_cpu_us_per_good"),
        [true, false, true, true, true]
    );
    assert_eq!(missing("target_requests"), [false, false, true, true, true]);
    assert_eq!(missing("time_wait_peak"), [false, false, true, true, true]);
    assert_eq!(missing("time_wait_start"), [false, false, true, true, true]);
    assert_eq!(missing("error"), [true, true, true, false, false]);
    assert_eq!(missing("flags"), [true; 5]);
    assert_eq!(missing("client"), [false; 5]);
    let source = tables
        .trials
        .column("series_source")
        .unwrap()
        .str()
        .unwrap()
        .clone();
    assert_eq!(
        source.iter().collect::<Vec<_>>(),
        [Some("target"), Some("target"), Some("client"), None, None]
    );
}

#[test]
fn csv_is_plain_text() {
    let (manifest, trials) = troubled();
    let dir = tempfile::tempdir().unwrap();
    tables(&manifest, &trials[2..4])
        .unwrap()
        .write(&manifest, &trials[2..4], dir.path())
        .unwrap();
    let csv = std::fs::read_to_string(dir.path().join("trials.csv")).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], [&CONTRACT[..], &BEYOND[..]].concat().join(","));
    assert!(
        lines[1].starts_with(
            "m/client=ureq,3,cell,ok,,,ureq,true,false,1,1,100,1000.0,2000,2000,0,20,2000,20,,,"
        ),
        "{}",
        lines[1]
    );
    assert!(
        lines[1].contains(",private,3,client,50047,50047,2026-12-01T00:00:00Z,unexplained,"),
        "{}",
        lines[1]
    );
    // A comma and quotes in an error text; nothing was measured.
    let empty = ",".repeat(CONTRACT.len() - SETTINGS);
    assert_eq!(
        lines[2],
        format!(
            "m/client=hyper,1,cell,error,\"died, \"\"signal 9\"\"\",,hyper,true,false,1,1,100{empty},1,,,,2026-12-01T00:00:00Z,,,,,,,,,"
        )
    );
}

#[test]
fn parquet_reads_back_equal_and_nothing_is_left_beside() {
    let (manifest, mut trials) = troubled();
    trials.push(synthetic::ran_out(synthetic::trial("ureq", 4), 2_000));
    for trials in [trials, vec![]] {
        let tables = tables(&manifest, &trials).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("tables");
        tables.write(&manifest, &trials, &at).unwrap();
        // Again: files are replaced.
        let written = tables.write(&manifest, &trials, &at).unwrap();
        let mut all: Vec<_> = tables.named().map(|(name, t)| (name, t.clone())).into();
        all.extend(bulk::ALL.map(|b| (b.name, (b.rows)(&manifest, &trials).unwrap())));
        assert_eq!(all.len(), 11);
        for (name, want) in all {
            let back = read_parquet(&at.join(format!("{name}.parquet")));
            assert_eq!(back.schema(), want.schema(), "{name}");
            assert!(back.equals_missing(&want), "{name}");
            assert_eq!(
                at.join(format!("{name}.csv")).exists(),
                name != "histograms"
            );
        }
        let mut there: Vec<_> = std::fs::read_dir(&at)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        there.sort();
        assert_eq!(there, written);
    }
}

#[test]
fn a_table_in_parts_is_the_whole_table() {
    let (manifest, mut trials) = troubled();
    // Troubled ones first: a part without a row does not end the table, nor does it decide its types.
    trials.rotate_left(3);
    for table in &bulk::ALL {
        let files = |part: usize| {
            let dir = tempfile::tempdir().unwrap();
            let written = write_bulk(table, &manifest, &trials, part, dir.path()).unwrap();
            assert_eq!(written.len(), 1 + usize::from(table.csv));
            let csv = std::fs::read(dir.path().join(format!("{}.csv", table.name))).ok();
            let parquet = dir.path().join(format!("{}.parquet", table.name));
            (read_parquet(&parquet), csv)
        };
        let (whole, csv) = files(trials.len());
        assert!(whole.height() > 0, "{}", table.name);
        for part in [1, 2] {
            let (rows, text) = files(part);
            assert!(rows.equals_missing(&whole), "{} by {part}", table.name);
            assert_eq!(text, csv, "{} by {part}", table.name);
        }
    }
}

#[test]
fn a_report_of_trouble_or_of_nothing_is_still_a_report() {
    let (manifest, trials) = troubled();
    for trials in [&trials[..], &trials[3..], &[]] {
        let tables = tables(&manifest, trials).unwrap();
        let report = report(&manifest, trials, &tables).unwrap();
        assert!(!report.findings.is_empty() && !report.warnings.is_empty());
        assert!(!report.facts.is_empty() && !report.glossary.is_empty());
        for table in [&report.cells, &report.errors] {
            for row in &table.rows {
                assert_eq!(row.cells.len(), table.columns.len());
                assert_eq!(row.keys.len(), table.columns.len());
            }
        }
        let lines = crate::summary(&report, 800, true).lines().count();
        let heading_and_noise = 2 * usize::from(!report.cells.rows.is_empty());
        assert_eq!(lines, report.cells.rows.len() + heading_and_noise);
    }
}

/// As many trials as a long run has, all of them different cells or rounds: every step must get through them
/// (a quadratic one would take minutes, which the deadline of the test run ends).
#[test]
fn ten_thousand_trials() {
    let axis: Vec<Value> = (0..2_500).map(Value::Int).collect();
    let manifest = synthetic::manifest(&[
        ("client", &[text("ureq"), text("hyper")]),
        ("threads", &axis),
    ]);
    let mut trials = Vec::new();
    for round in 1..=2 {
        for threads in 0..2_500 {
            for client in ["ureq", "hyper"] {
                trials.push(synthetic::at(
                    synthetic::trial(client, round),
                    "threads",
                    Value::Int(threads),
                ));
            }
        }
    }
    let tables = tables(&manifest, &trials).unwrap();
    assert_eq!(tables.trials.height(), 10_000);
    let timeline = crate::timeline::table(&trials).unwrap();
    assert_eq!(timeline.height(), 10_000 * (20 + 2));
    let report = report(&manifest, &trials, &tables).unwrap();
    assert_eq!(report.cells.rows.len(), 5_000);
}

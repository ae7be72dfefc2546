//! What the sampler says of several processes and of their descendants.

mod fake;

use fake::Fake;
use yieldpoint_sample::{Sampler, Subject};
use yieldpoint_terms::SampleSeries;
use yieldpoint_terms::clock::now_ns;

const HOUR_NS: u64 = 3_600_000_000_000;

/// A sampler that takes rows only when it is asked: its first deadline is far away.
fn watch(clients: &[&Fake]) -> Sampler {
    let subject = Subject {
        client_pids: clients.iter().map(|c| c.pid()).collect(),
        target_pid: None,
        net_pid: std::process::id(),
        client_cpus: vec![],
        target_cpus: vec![],
        port: None,
        sock_diag: None,
        target_net: None,
    };
    Sampler::start(subject, now_ns() + HOUR_NS, HOUR_NS).unwrap()
}

fn value(series: &SampleSeries, metric: &str, row: usize) -> i64 {
    series.columns[metric][row].unwrap_or_else(|| panic!("\"{metric}\" is missing in row {row}"))
}
fn growth(series: &SampleSeries, metric: &str, row: usize) -> i64 {
    value(series, metric, row + 1) - value(series, metric, row)
}

#[test]
fn several_processes_are_one_client() {
    let (mut a, mut b) = (Fake::start(), Fake::start());
    let sampler = watch(&[&a, &b]);
    sampler.row_now().unwrap();
    a.tell("threads 2");
    b.tell("threads 3");
    a.tell("fds 10");
    b.tell("fds 20");
    a.tell("memory 16");
    b.tell("memory 32");
    a.tell("spin 20000000");
    b.tell("spin 30000000");
    let series = sampler.finish();
    assert_eq!(value(&series, "client_processes", 0), 2);
    assert_eq!(value(&series, "client_os_threads", 0), 2);
    assert_eq!(growth(&series, "client_os_threads", 0), 5);
    assert_eq!(growth(&series, "client_fds", 0), 30);
    assert!(growth(&series, "client_cpu_ns", 0) >= 50_000_000);
    // The kernel batches its count of pages; libc and stacks add some.
    for metric in ["client_rss_kib", "client_rss_peak_kib"] {
        let grown = growth(&series, metric, 0);
        assert!((grown - 48 * 1024).abs() <= 8192, "{metric}: {grown} KiB");
    }
}

#[test]
fn of_two_processes_one_may_end() {
    let (mut a, mut b) = (Fake::start(), Fake::start());
    let sampler = watch(&[&a, &b]);
    b.tell("memory 32");
    b.tell("spin 40000000");
    sampler.row_now().unwrap();
    b.kill();
    b.reap();
    sampler.row_now().unwrap();
    a.kill();
    a.reap();
    let series = sampler.finish();
    assert_eq!(value(&series, "client_processes", 1), 1);
    assert!(growth(&series, "client_cpu_ns", 0) >= 0, "its time stays");
    assert!(
        growth(&series, "client_rss_kib", 0) <= -24 * 1024,
        "its memory does not"
    );
    assert!(
        growth(&series, "client_rss_peak_kib", 0) >= 0,
        "a peak does not fall"
    );
    assert_eq!(series.columns["client_cpu_ns"][2], None, "nobody is left");
}

#[test]
fn descendants_count_and_what_they_used_stays() {
    let mut root = Fake::start();
    let sampler = watch(&[&root]);
    sampler.row_now().unwrap();
    root.tell("child threads 4");
    root.tell("child child fds 50");
    root.tell("child child spin 60000000");
    sampler.row_now().unwrap();
    // A zombie first: it has no memory and no threads, and is still found below its parent.
    root.tell("child abandon");
    sampler.row_now().unwrap();
    sampler.row_now().unwrap();
    root.tell("reap");
    let series = sampler.finish();
    let processes: Vec<_> = (0..5)
        .map(|row| value(&series, "client_processes", row))
        .collect();
    assert_eq!(processes, [1, 3, 2, 2, 1]);
    let threads: Vec<_> = (0..5)
        .map(|row| value(&series, "client_os_threads", row))
        .collect();
    assert_eq!(threads, [1, 7, 6, 6, 1]);
    assert!(growth(&series, "client_fds", 0) >= 50);
    assert!(growth(&series, "client_cpu_ns", 0) >= 60_000_000);
    let metrics = [
        "client_cpu_ns",
        "client_cpu_user_ns",
        "client_cpu_system_ns",
        "client_run_wait_ns",
        "client_switches_voluntary",
        "client_switches_involuntary",
        "client_rss_peak_kib",
    ];
    for metric in metrics {
        let column: Vec<_> = (0..5).map(|row| value(&series, metric, row)).collect();
        assert!(column.is_sorted(), "{metric} fell: {column:?}");
    }
    // Counted once, although it was seen twice as a zombie: less than twice what it used.
    let all = value(&series, "client_cpu_ns", 4) - value(&series, "client_cpu_ns", 1);
    assert!(all < 60_000_000, "{all} ns more while nobody worked");
}

#[test]
fn user_and_system_time_are_parts_of_the_whole() {
    let mut fake = Fake::start();
    let sampler = watch(&[&fake]);
    sampler.row_now().unwrap();
    fake.tell("spin 100000000");
    let series = sampler.finish();
    let (user, system) = (
        growth(&series, "client_cpu_user_ns", 0),
        growth(&series, "client_cpu_system_ns", 0),
    );
    let whole = growth(&series, "client_cpu_ns", 0);
    // Each is cut down to a tick, at both edges.
    const TICKS: i64 = 40_000_000;
    assert!(
        (user + system - whole).abs() <= TICKS,
        "{user} + {system}, of {whole}"
    );
}

#[test]
fn switches_and_waits_are_those_of_all_threads() {
    let mut fake = Fake::start();
    fake.tell("threads 3");
    let sampler = watch(&[&fake]);
    sampler.row_now().unwrap();
    for _ in 0..200 {
        fake.tell("fds 0");
    }
    let series = sampler.finish();
    // Law: it cannot answer before it was asked, so it slept or lost its CPU before most of the answers.
    let voluntary = growth(&series, "client_switches_voluntary", 0);
    let involuntary = growth(&series, "client_switches_involuntary", 0);
    assert!(
        voluntary + involuntary >= 100,
        "{voluntary} and {involuntary}, for 200 answers"
    );
    assert!(voluntary <= 1000, "{voluntary}, for 200 answers");
    // Threads that sleep all the time have begun to: one switch each, at least.
    assert!(value(&series, "client_switches_voluntary", 0) >= 3);
    assert!(growth(&series, "client_run_wait_ns", 0) >= 0);
}

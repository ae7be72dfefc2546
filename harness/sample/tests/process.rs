//! What the sampler says of a process, against what the process did.

mod fake;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fake::Fake;
use yieldpoint_sample::{METRICS, Sampler, Subject};
use yieldpoint_terms::clock::now_ns;
use yieldpoint_terms::{Behaviour, SampleSeries};

/// Only bounds a hang.
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR_NS: u64 = 3_600_000_000_000;

fn subject(client: &Fake, target: Option<&Fake>) -> Subject {
    Subject {
        client_pids: vec![client.pid()],
        target_pid: target.map(Fake::pid),
        net_pid: std::process::id(),
        client_cpus: vec![0],
        target_cpus: vec![],
        port: None,
        sock_diag: None,
        target_net: None,
    }
}

/// A sampler that takes rows only when it is asked: its first deadline is far away.
fn watch(client: &Fake, target: Option<&Fake>) -> Sampler {
    Sampler::start(subject(client, target), now_ns() + HOUR_NS, HOUR_NS).unwrap()
}

fn value(series: &SampleSeries, metric: &str, row: usize) -> i64 {
    series.columns[metric][row].unwrap_or_else(|| panic!("\"{metric}\" is missing in row {row}"))
}
/// How much a metric grew from one row to the next.
fn growth(series: &SampleSeries, metric: &str, row: usize) -> i64 {
    value(series, metric, row + 1) - value(series, metric, row)
}

#[test]
fn cpu_time_contains_what_the_process_saw_of_itself() {
    let mut fake = Fake::start();
    let sampler = watch(&fake, None);
    sampler.row_now().unwrap();
    let own = fake.tell("spin 50000000");
    let series = sampler.finish();
    let (begin, end) = own.split_once(' ').unwrap();
    let (begin, end): (i64, i64) = (begin.parse().unwrap(), end.parse().unwrap());
    // One clock read by two processes: row ≤ begin ≤ end ≤ row, to the nanosecond.
    let (before, after) = (
        value(&series, "client_cpu_ns", 0),
        value(&series, "client_cpu_ns", 1),
    );
    assert!(
        before <= begin && end <= after,
        "{before} ≤ {begin} … {end} ≤ {after}"
    );
    assert!(after - before >= 50_000_000);
}

#[test]
fn memory_grows_by_what_was_touched_and_the_peak_stays() {
    // The kernel batches its count of pages per CPU; libc and the stack add some of their own.
    const SLACK_KIB: i64 = 4096;
    const TOUCHED_KIB: i64 = 64 * 1024;
    let mut fake = Fake::start();
    let sampler = watch(&fake, None);
    sampler.row_now().unwrap();
    fake.tell("memory 64");
    sampler.row_now().unwrap();
    fake.tell("release");
    let series = sampler.finish();
    for metric in [
        "client_rss_kib",
        "client_rss_anon_kib",
        "client_rss_peak_kib",
    ] {
        let grown = growth(&series, metric, 0);
        assert!(
            (grown - TOUCHED_KIB).abs() <= SLACK_KIB,
            "{metric} grew by {grown} KiB"
        );
    }
    let fallen = -growth(&series, "client_rss_kib", 1);
    assert!(
        (fallen - TOUCHED_KIB).abs() <= SLACK_KIB,
        "it fell by {fallen} KiB"
    );
    let peak = value(&series, "client_rss_peak_kib", 2);
    assert!(
        peak >= value(&series, "client_rss_kib", 1) - SLACK_KIB,
        "the peak does not fall"
    );
    for row in 0..series.t_ns.len() {
        assert!(
            value(&series, "client_rss_peak_kib", row) >= value(&series, "client_rss_kib", row)
        );
    }
}

#[test]
fn threads_and_descriptors_are_exact() {
    let (mut client, mut target) = (Fake::start(), Fake::start());
    let sampler = watch(&client, Some(&target));
    sampler.row_now().unwrap();
    client.tell("threads 5");
    client.tell("fds 300");
    target.tell("threads 2");
    target.tell("fds 7");
    let series = sampler.finish();
    assert_eq!(value(&series, "client_os_threads", 0), 1);
    assert_eq!(value(&series, "client_os_threads", 1), 6);
    assert_eq!(
        value(&series, "target_os_threads", 1),
        3,
        "client and target are not mixed up"
    );
    assert_eq!(growth(&series, "client_fds", 0), 300);
    assert_eq!(growth(&series, "target_fds", 0), 7);
}

#[test]
fn a_death_leaves_nothing_from_then_on() {
    let (mut client, mut target) = (Fake::start(), Fake::start());
    let sampler = watch(&client, Some(&target));
    sampler.row_now().unwrap();
    target.kill();
    target.reap();
    sampler.row_now().unwrap();
    assert_eq!(sampler.live("target_cpu_ns"), None);
    assert!(sampler.live("client_cpu_ns").is_some());
    client.kill();
    // Not reaped: a zombie, which has CPU time and a thread but no memory. It is dead all the same.
    let start = Instant::now();
    while start.elapsed() < PATIENCE
        && std::fs::read_to_string(format!("/proc/{}/stat", client.pid()))
            .unwrap()
            .rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.starts_with('Z'))
    {
        std::thread::yield_now();
    }
    let series = sampler.finish();
    let of = |metric: &str| {
        series.columns[metric]
            .iter()
            .map(Option::is_some)
            .collect::<Vec<_>>()
    };
    for metric in METRICS {
        let want = match metric.name.split_once('_') {
            Some(("target", rest)) if !rest.starts_with("set") => [true, false, false],
            Some(("client", rest)) if !rest.starts_with("set") => [true, true, false],
            _ => continue,
        };
        assert_eq!(of(metric.name), want, "{}", metric.name);
    }
}

#[test]
fn a_process_that_is_gone_at_the_start_is_an_error() {
    let mut fake = Fake::start();
    let pid = fake.pid();
    fake.kill();
    fake.reap();
    let mut subject = subject(&Fake::start(), None);
    subject.client_pids = vec![pid];
    let error = Sampler::start(subject, 0, HOUR_NS).unwrap_err();
    assert!(
        error.to_string().contains(&format!("/proc/{pid}/status")),
        "{error}"
    );
}

#[test]
fn rows_come_by_the_clock_and_the_end_comes_at_once() {
    const PERIOD_NS: u64 = 5_000_000;
    let fake = Fake::start();
    let start = now_ns() + 4 * PERIOD_NS;
    let sampler = Sampler::start(subject(&fake, None), start, PERIOD_NS).unwrap();
    // Until three rows have been seen, as each has used more CPU time than the one before.
    let mut costs = BTreeSet::new();
    let begun = Instant::now();
    while costs.len() < 3 && begun.elapsed() < PATIENCE {
        costs.extend(sampler.live("sampler_cpu_ns"));
        std::thread::sleep(Duration::from_millis(1));
    }
    let asked = now_ns();
    let series = sampler.finish();
    let rows = series.t_ns.len();
    assert!(series.t_ns[0] >= start, "no row before the start");
    assert!(series.t_ns.windows(2).all(|w| w[0] < w[1]));
    // At most one row a deadline that has passed, and the last one: missed deadlines are never made up for.
    let deadlines = (series.t_ns[rows - 1] - start) / PERIOD_NS + 1;
    assert!(
        rows >= 4 && rows as u64 <= deadlines + 1,
        "{rows} rows, {deadlines} deadlines"
    );
    for (i, t) in series.t_ns[..rows - 1].iter().enumerate() {
        assert!(
            *t >= start + i as u64 * PERIOD_NS,
            "row {i} came before its deadline"
        );
    }
    assert!(
        series.t_ns[rows - 1] >= asked,
        "the last row is taken when the end is asked for"
    );
    for metric in METRICS {
        let column = &series.columns[metric.name];
        assert_eq!(column.len(), rows, "{}: one value a row", metric.name);
        if metric.behaviour == Behaviour::Counter {
            let values: Vec<_> = column.iter().flatten().collect();
            assert!(values.is_sorted(), "{}: a counter never falls", metric.name);
        }
    }
    assert!(
        series.columns["target_cpu_ns"].iter().all(Option::is_none),
        "no target, no values"
    );
    let cost = value(&series, "sampler_cpu_ns", rows - 1);
    assert!(cost > 0, "the sampler sees its own cost");
}

#[test]
fn deadlines_that_were_missed_are_not_made_up_for() {
    // A first deadline at boot and a period of 1 ms: as many deadlines have passed as ms since boot.
    let fake = Fake::start();
    let begun = now_ns();
    let sampler = Sampler::start(subject(&fake, None), 1, 1_000_000).unwrap();
    while sampler.live("sampler_cpu_ns").is_none() && now_ns() < begun + 60_000_000_000 {
        std::thread::yield_now();
    }
    let series = sampler.finish();
    let rows = series.t_ns.len() as u64;
    let lived = series.t_ns[series.t_ns.len() - 1] - begun;
    // One for the past, one at the end, and those of the time in which it ran.
    assert!(
        rows >= 2 && rows <= lived / 1_000_000 + 3,
        "{rows} rows in {lived} ns"
    );
}

#[test]
fn sockets_are_those_of_the_namespace_of_net_pid() {
    // This namespace has connections; the other is new and has one listening socket.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut fake = Fake::start();
    let answer = fake.tell("namespace");
    if answer != "done" {
        eprintln!("not tested, this system gives no namespace: {answer}");
        return;
    }
    let mut inside = subject(&fake, None);
    inside.net_pid = fake.pid();
    let far = now_ns() + HOUR_NS;
    let inside = Sampler::start(inside, far, HOUR_NS).unwrap().finish();
    let outside = Sampler::start(subject(&fake, None), far, HOUR_NS)
        .unwrap()
        .finish();
    assert_eq!(value(&inside, "sockets_inuse", 0), 1);
    assert_eq!(value(&inside, "sockets_time_wait", 0), 0);
    assert_eq!(value(&inside, "tcp_active_opens", 0), 0);
    assert!(value(&outside, "sockets_inuse", 0) >= 3);
    assert!(value(&outside, "tcp_active_opens", 0) >= 1);
    // The process is seen across the border, its descriptors too.
    assert!(
        value(&inside, "client_fds", 0) >= 4,
        "0, 1, 2 and the listening socket"
    );
    drop(client);
}

#[test]
fn an_end_far_before_the_next_deadline_does_not_wait_for_it() {
    // If it did wait, this test would take an hour.
    let fake = Fake::start();
    let series = watch(&fake, None).finish();
    assert_eq!(series.t_ns.len(), 1);
}

#[test]
fn a_period_of_nothing_is_refused() {
    let fake = Fake::start();
    let error = Sampler::start(subject(&fake, None), 0, 0).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

//! Evidence read from made-up trials.

use super::*;
use crate::synthetic;
use yieldpoint_terms::Value;

fn of(change: impl Fn(&mut Trial)) -> Evidence {
    let mut trial = synthetic::trial("ureq", 1);
    change(&mut trial);
    let mut manifest = synthetic::manifest(&[]);
    manifest.lab.client_cpus = "0".into();
    manifest.lab.target_cpus = "1".into();
    Evidence::of(&manifest, &trial, &Times::default()).unwrap()
}

#[test]
fn a_trial_is_read_as_it_is() {
    let e = of(|_| ());
    assert_eq!(
        (e.window_s, e.users, e.ports),
        (2.0, Some(1.0), Some(2_000.0))
    );
    assert_eq!(e.good_per_s, Some(1_000.0));
    // 20 entries at the client for 20 connections in the last 60 s.
    assert_eq!(e.client_closes, Some(1.0));
    // 40 ms of one core in 2 s.
    assert!((e.client_cpu.unwrap() - 0.02).abs() < 1e-9);
    // What was not sampled is not 0.
    assert_eq!((e.target_cpu, e.listen_drops, e.steal), (None, None, None));
    assert_eq!(e.course.phases.len(), 1);
    // A trial that could not be measured has no evidence.
    let failed = synthetic::failed(synthetic::trial("ureq", 1), Status::Error, "no");
    let manifest = synthetic::manifest(&[]);
    assert_eq!(Evidence::of(&manifest, &failed, &Times::default()), None);
}

#[test]
fn knobs_and_sysctls_say_how_ports_are_used() {
    let sysctl = |name: &'static str, value: &'static str| {
        move |t: &mut Trial| {
            t.sysctls.insert(format!("net.ipv4.{name}"), value.into());
        }
    };
    // Reuse: off, on, on loopback, and not without timestamps.
    assert_eq!(of(sysctl("tcp_tw_reuse", "0")).reuse_after_s, None);
    assert_eq!(of(sysctl("tcp_tw_reuse", "1")).reuse_after_s, Some(1.0));
    assert_eq!(of(sysctl("tcp_tw_reuse", "2")).reuse_after_s, Some(1.0));
    let veth = |t: &mut Trial| {
        sysctl("tcp_tw_reuse", "2")(t);
        t.knobs.set("lab.network", Value::Text("veth".into()));
    };
    assert_eq!(of(veth).reuse_after_s, None);
    let no_timestamps = |t: &mut Trial| {
        sysctl("tcp_tw_reuse", "1")(t);
        sysctl("tcp_timestamps", "0")(t);
    };
    assert_eq!(of(no_timestamps).reuse_after_s, None);
    let slow = |t: &mut Trial| {
        sysctl("tcp_tw_reuse", "1")(t);
        sysctl("tcp_tw_reuse_delay", "10000")(t);
    };
    assert_eq!(of(slow).reuse_after_s, Some(10.0));
    // Source addresses multiply the ports, one for each user.
    for (text, ports) in [
        ("127.0.0.1", 2_000.0),
        ("127.0.0.1-127.0.0.4", 8_000.0),
        ("127.0.0.1,127.0.0.9", 4_000.0),
        ("nonsense", 2_000.0), // at least the one that connect() takes
    ] {
        let set = |t: &mut Trial| {
            t.knobs.set("users_per_thread", Value::Int(9));
            t.knobs.set("source_addresses", Value::Text(text.into()));
        };
        assert_eq!(of(set).ports, Some(ports), "{text}");
    }
}

#[test]
fn a_user_alone_has_the_ports_of_one_address() {
    let set = |t: &mut Trial| {
        let four = Value::Text("127.0.0.1-127.0.0.4".into());
        t.knobs.set("source_addresses", four);
    };
    assert_eq!(of(set).ports, Some(2_000.0));
}

#[test]
fn entries_of_the_target_take_no_port() {
    let e = of(|t| {
        let left = t.time_wait.as_mut().unwrap();
        (left.client, left.target) = (Some(5), Some(15));
    });
    // 20 at most in any sample, a quarter of them the client's.
    assert_eq!(e.time_wait_peak, Some(5.0));
}

#[test]
fn requests_on_a_connection_follow_from_the_knobs() {
    for (keep_alive, same_user, limit, want, bound) in [
        (false, false, 1_000, Some(1.0), None),    // closed after each
        (true, false, 1_000, Some(100.0), None),   // dropped after the iteration of 100
        (true, false, 50, Some(50.0), Some(50.0)), // the target closes before that
        (true, true, 1_000, Some(1_000.0), Some(1_000.0)), // kept until the target closes
    ] {
        let e = of(|t| {
            t.knobs.set("keep_alive", Value::Bool(keep_alive));
            t.knobs.set("same_user", Value::Bool(same_user));
            t.knobs.set("target.keepalive_requests", Value::Int(limit));
        });
        assert_eq!(
            e.requests_per_connection, want,
            "{keep_alive} {same_user} {limit}"
        );
        assert_eq!(e.keepalive_limit, bound, "{keep_alive} {same_user} {limit}");
    }
}

#[test]
fn loads_of_one_target_are_comparable_and_other_targets_are_not() {
    let key = |name: &str, value: i64| of(|t| t.knobs.set(name, Value::Int(value)));
    let base = of(|_| ());
    assert_eq!(key("threads", 8).target_key, base.target_key);
    assert_eq!(key("options.ureq.x", 1).target_key, base.target_key);
    assert_ne!(key("options.ureq.x", 1).client_key, base.client_key);
    assert_ne!(key("target.workers", 2).target_key, base.target_key);
    assert_ne!(key("requests_per_iteration", 1).target_key, base.target_key);
    let other = of(|t| t.knobs.set("client", Value::Text("hyper".into())));
    assert_eq!(other.target_key, base.target_key);
    assert_ne!(other.client_key, base.client_key);
}

#[test]
fn others_count_where_a_program_waits_for_its_cpu() {
    // ms of the window of 2 s: busy, own CPU, soft interrupts, waits of its threads → others, waited, crowded?
    let table = [
        // A busy program beside it has half of the CPU, and the client waits for it.
        ([2_000, 1_000, 0, 1_000], 0.5, 0.5, true),
        // Soft interrupts are the network, which is the load.
        ([2_000, 1_000, 900, 1_000], 0.05, 0.5, false),
        // Something runs whenever the client sleeps: it waits for nothing.
        ([2_000, 200, 0, 20], 0.9, 0.01, false),
        // Threads of the client wait for one another.
        ([2_000, 1_950, 0, 14_000], 0.025, 7.0, false),
    ];
    for (ms, others, waited, crowded) in table {
        let e = of(|t| {
            let samples = t.samples.as_mut().unwrap();
            let names = [
                "client_set_busy_ns",
                "client_cpu_ns",
                "client_set_softirq_ns",
                "client_run_wait_ns",
            ];
            let last = samples.t_ns.len() as i64 - 1;
            for (name, ms) in names.into_iter().zip(ms) {
                // The samples reach over the whole window.
                let rising = (0..=last).map(|i| Some(ms * 1_000_000 * i / last));
                samples.columns.insert(name.into(), rising.collect());
            }
        });
        let near = |got: Option<f64>, want: f64| (got.unwrap() - want).abs() < 0.02 * want.max(1.0);
        assert!(near(e.others, others) && near(e.waited, waited), "{e:?}");
        assert_eq!(e.crowded(), crowded, "{ms:?}");
    }
}

//! Verdicts on made-up evidence: every row is invented, none was measured.

use super::*;
use crate::why::phases::{Course, Phase};
use crate::why::{ceilings, phases};
use yieldpoint_protocol::ErrorKind::{
    AddressNotAvailable, BadStatus, ClosedEarly, ConnectTimeout, FdLimit, Other, Reset, Timeout,
};

/// A made-up trial in which nothing is short: 10 s, 4 users, 4,000/s of 1 ms each, both ends half idle.
fn calm() -> Evidence {
    Evidence {
        client: "a".into(),
        cell: "a".into(),
        window_s: 10.0,
        users: Some(4.0),
        threads: Some(1.0),
        requests_per_connection: Some(100.0),
        ports: Some(28_232.0),
        client_closes: Some(1.0),
        time_wait_peak: Some(400.0),
        good_per_s: Some(4_000.0),
        attempts: 40_000.0,
        connections: 400.0,
        latency_mean_s: Some(0.001),
        connect_mean_s: Some(0.000_05),
        connect_p99_s: Some(0.000_1),
        client_cpu: Some(0.5),
        client_cores: Some(1.0),
        target_cpu: Some(0.4),
        target_cores: Some(1.0),
        client_cpu_s_per_good: Some(0.000_125),
        listen_drops: Some(0.0),
        listen_queue_peak: Some(1.0),
        backlog: Some(511.0),
        closed_by_target: Some(0.0),
        course: Course {
            sustained_per_s: Some(4_000.0),
            ..Course::default()
        },
        ..Evidence::default()
    }
}

fn phase(name: &'static str, start_ms: u64, end_ms: u64, good_per_s: f64) -> Phase {
    Phase {
        name,
        start_ms,
        end_ms,
        good_per_s,
    }
}

/// A made-up client that burned its ports and searched for free ones.
fn searching() -> Evidence {
    Evidence {
        window_s: 130.0,
        ports: Some(64_511.0),
        time_wait_peak: Some(39_000.0),
        half_used_s: Some(5.1),
        burst_cpu_s: Some(60e-6),
        search_cpu_s: Some(6e-3),
        // Searching costs CPU, and that is not a second cause.
        client_cpu: Some(0.98),
        course: Course {
            phases: vec![
                phase(phases::BURST, 0, 5_100, 6_400.0),
                phase(phases::SEARCH, 5_100, 61_000, 152.0),
            ],
            sustained_per_s: Some(640.0),
            ..Course::default()
        },
        ..calm()
    }
}

type Change = fn(&mut Evidence);

fn name(base: Evidence, change: Change) -> String {
    let mut e = base;
    change(&mut e);
    verdict(&e, &[]).name()
}

#[test]
fn each_cause_is_named_and_nothing_is_guessed() {
    let table: &[(&str, Change)] = &[
        // Nobody is short of anything: the users wait.
        ("target_latency", |_| ()),
        // A tenth of the users' time is something else: still mostly waiting.
        ("target_latency", |e| e.good_per_s = Some(3_600.0)),
        // Half of it is: nothing that was measured says what.
        ("unexplained", |e| e.good_per_s = Some(2_000.0)),
        // One in five requests is late: that is the latency, whatever the mean of the others.
        ("target_latency", |e| e.errors = [(Timeout, 8_000.0)].into()),
        // The CPU of the target was not sampled: it may have been what they waited for.
        ("unexplained", |e| e.target_cpu = None),
        // Nothing was sampled at all.
        ("unexplained", |e| {
            *e = Evidence {
                window_s: 1.0,
                ..Evidence::default()
            }
        }),
        // One core, used up.
        ("client_cpu", |e| e.client_cpu = Some(0.97)),
        ("target_cpu", |e| e.target_cpu = Some(0.95)),
        // Both: they stand side by side.
        ("client_cpu,target_cpu", |e| {
            e.client_cpu = Some(0.93);
            e.target_cpu = Some(0.94);
        }),
        // Four fifths of a core are not all of it.
        ("target_latency", |e| e.client_cpu = Some(0.8)),
        // The kernel booked interrupts apart: the set is full, most of it by the client.
        ("client_cpu", |e| {
            e.client_cpu = Some(0.7);
            e.client_set_busy = Some(0.99);
        }),
        // The set is full, but of others.
        ("target_latency", |e| {
            e.client_cpu = Some(0.2);
            e.client_set_busy = Some(0.99);
        }),
        // One user takes turns with the target, and three quarters of its time is the client's own CPU.
        ("client_cpu", |e| {
            e.users = Some(1.0);
            e.good_per_s = Some(1_000.0);
            e.client_cpu = Some(0.75);
            e.target_cpu = Some(0.2);
        }),
        // Or the target's.
        ("target_cpu", |e| {
            e.users = Some(1.0);
            e.good_per_s = Some(1_000.0);
            e.client_cpu = Some(0.2);
            e.target_cpu = Some(0.75);
        }),
        // Or mostly neither: it waits.
        ("target_latency", |e| {
            e.users = Some(1.0);
            e.good_per_s = Some(1_000.0);
            e.client_cpu = Some(0.4);
            e.target_cpu = Some(0.3);
        }),
        // The asked rate was met, and no CPU is a second cause.
        ("pacing", |e| {
            e.rate = Some(4_000.0);
            e.client_cpu = Some(0.95);
        }),
        // 4,000 random starts are 4,000 ± 190: 5 % fewer are chance at 400/s for 10 s, not at an even pace.
        ("pacing", |e| {
            (e.rate, e.poisson) = (Some(400.0), true);
            e.good_per_s = Some(381.0);
        }),
        ("unexplained", |e| {
            e.rate = Some(400.0);
            e.good_per_s = Some(381.0);
        }),
        // It was missed, because the client had no CPU left.
        ("client_cpu", |e| {
            e.rate = Some(8_000.0);
            e.client_cpu = Some(0.95);
        }),
        // It was missed, because every user waited for a response.
        ("target_latency", |e| e.rate = Some(8_000.0)),
        // It was missed, and the users were idle half of the time: something else held the starts back.
        ("unexplained", |e| {
            e.rate = Some(8_000.0);
            e.good_per_s = Some(2_000.0);
        }),
        // A full link.
        ("bandwidth", |e| {
            e.link_bit_per_s = Some(1e8);
            e.link_used_bit_per_s = Some(9.7e7);
        }),
        // Half of it is not full.
        ("target_latency", |e| {
            e.link_bit_per_s = Some(1e8);
            e.link_used_bit_per_s = Some(5e7);
        }),
        // The target closes after every second response: a round trip in three opens a connection.
        ("keepalive_limit", |e| {
            e.keepalive_limit = Some(2.0);
            e.connections = 20_000.0;
            e.closed_by_target = Some(20_000.0);
        }),
        // After every tenth, and connects are slow.
        ("keepalive_limit", |e| {
            e.keepalive_limit = Some(10.0);
            e.connections = 4_000.0;
            e.closed_by_target = Some(4_000.0);
            e.connect_mean_s = Some(0.001_1);
        }),
        // Closed by the target long before the limit: for another reason, whatever it costs.
        ("target_latency", |e| {
            e.keepalive_limit = Some(1_000_000.0);
            e.connections = 8_000.0;
            e.closed_by_target = Some(8_000.0);
            e.connect_mean_s = Some(0.001);
        }),
        // The same limit at 100: reconnecting takes hardly any time.
        ("target_latency", |e| {
            e.keepalive_limit = Some(100.0);
            e.closed_by_target = Some(400.0);
        }),
        // The hypervisor took a quarter of a CPU.
        ("noisy_machine", |e| e.steal = Some(0.25)),
        ("noisy_machine", |e| e.noisy = true),
        // Late samples, of programs that had a CPU whenever they wanted one.
        ("target_latency", |e| {
            e.noisy = true;
            e.others = Some(0.0);
            e.waited = Some(0.01);
        }),
        ("noisy_machine", |e| {
            e.throttled = true;
            e.waited = Some(0.01);
        }),
        // Others had most of the client's CPU, and tasks waited for it: the latency is theirs.
        ("noisy_machine", |e| {
            e.client_cpu = Some(0.18);
            e.client_set_busy = Some(1.0);
            e.others = Some(0.82);
            e.waited = Some(0.99);
        }),
        // Others use CPU that nobody here waits for.
        ("target_latency", |e| {
            e.others = Some(0.2);
            e.waited = Some(0.02);
        }),
        // A crowded set is not a client that lacks CPU.
        ("noisy_machine", |e| {
            e.client_cpu = Some(0.7);
            e.client_set_busy = Some(0.99);
            e.others = Some(0.29);
            e.waited = Some(0.6);
        }),
        // Noise does not hide a cause that is plain.
        ("client_cpu", |e| {
            e.noisy = true;
            e.client_cpu = Some(0.97);
        }),
        // Memory: of the machine, or refused.
        ("client_memory", |e| e.client_memory_share = Some(0.9)),
        ("client_memory", |e| {
            e.errors = [(Other, 4_000.0)].into();
            e.other_example = Some("Cannot allocate memory (os error 12)".into());
        }),
        // Another unknown error is not memory, and failed requests void Little's law.
        ("unexplained", |e| {
            e.errors = [(Other, 4_000.0)].into();
            e.other_example = Some("No route to host (os error 113)".into());
        }),
    ];
    for (i, (want, change)) in table.iter().enumerate() {
        assert_eq!(name(calm(), *change), *want, "row {i}");
    }
}

#[test]
fn failures_name_what_failed() {
    let table: &[(&str, Change)] = &[
        // One in ten requests found no port.
        ("ports_exhausted", |e| {
            e.errors = [(AddressNotAvailable, 4_000.0)].into()
        }),
        // A handful at the very end of a long trial bind nothing.
        ("target_latency", |e| {
            e.errors = [(AddressNotAvailable, 4.0)].into()
        }),
        // Without one connection it was the address, not the ports.
        ("unexplained", |e| {
            e.errors = [(AddressNotAvailable, 40_000.0)].into();
            e.connections = 0.0;
        }),
        ("fd_limit", |e| e.errors = [(FdLimit, 4_000.0)].into()),
        // The target has no descriptor left to accept with.
        ("fd_limit", |e| {
            e.fd_limit = Some(64.0);
            e.target_fds_peak = Some(64.0);
            e.errors = [(ConnectTimeout, 10.0)].into();
        }),
        ("target_errors", |e| e.errors = [(BadStatus, 400.0)].into()),
        ("target_errors", |e| {
            e.errors = [(Reset, 300.0), (ClosedEarly, 300.0)].into()
        }),
        // One in a thousand is not what binds.
        ("target_latency", |e| e.errors = [(BadStatus, 40.0)].into()),
        // Connects dropped, and sent again after a second.
        ("accept_queue", |e| {
            e.listen_drops = Some(300.0);
            e.connect_p99_s = Some(1.02);
        }),
        // Two drops when all users connected at once.
        ("target_latency", |e| {
            e.listen_drops = Some(2.0);
        }),
        // Slow connects without a drop are no accept queue.
        ("target_latency", |e| e.connect_p99_s = Some(1.02)),
        // Two causes at once.
        ("ports_exhausted,target_errors", |e| {
            e.errors = [(AddressNotAvailable, 4_000.0), (BadStatus, 4_000.0)].into();
        }),
        // Failures of ports are tried again at once: one in three of what reached the target failed there.
        ("ports_exhausted,target_errors", |e| {
            e.attempts = 1_000_000.0;
            e.errors = [(AddressNotAvailable, 997_000.0), (BadStatus, 1_000.0)].into();
        }),
        // A full link, of whose responses some are failures.
        ("target_errors,bandwidth", |e| {
            e.errors = [(BadStatus, 4_000.0)].into();
            e.link_bit_per_s = Some(1e8);
            e.link_used_bit_per_s = Some(9.7e7);
        }),
        // Users without a descriptor burn the client's CPU, not the target's.
        ("fd_limit", |e| {
            e.errors = [(FdLimit, 39_000.0)].into();
            e.client_cpu = Some(1.0);
        }),
        ("fd_limit,target_cpu", |e| {
            e.errors = [(FdLimit, 39_000.0)].into();
            (e.client_cpu, e.target_cpu) = (Some(1.0), Some(0.99));
        }),
        // 100 users for 10 s: 20 drops took 2 % of their time, 200 took a fifth.
        ("target_latency", |e| {
            (e.users, e.good_per_s) = (Some(100.0), Some(100_000.0));
            e.listen_drops = Some(20.0);
        }),
        ("accept_queue", |e| {
            (e.users, e.good_per_s) = (Some(100.0), Some(100_000.0));
            e.listen_drops = Some(200.0);
        }),
        ("accept_queue,target_errors", |e| {
            e.listen_drops = Some(300.0);
            e.connect_p99_s = Some(1.02);
            e.errors = [(Reset, 4_000.0)].into();
        }),
    ];
    for (i, (want, change)) in table.iter().enumerate() {
        assert_eq!(name(calm(), *change), *want, "row {i}");
    }
}

#[test]
fn a_search_for_ports_needs_all_of_its_evidence() {
    let table: &[(&str, Change)] = &[
        ("port_search", |_| ()),
        // Exhaustion is the stronger word: every port was used in the cycle, searched for or not.
        ("ports_exhausted", |e| {
            e.errors = [(AddressNotAvailable, 4_000.0)].into();
        }),
        // Fewer than half of the ports were in use: the fall has another cause.
        ("client_cpu", |e| e.half_used_s = None),
        // A connection costs what it cost before: nothing searched.
        ("client_cpu", |e| e.search_cpu_s = Some(80e-6)),
        // No CPU was sampled: the fall alone is no proof.
        ("unexplained", |e| {
            e.search_cpu_s = None;
            e.client_cpu = None;
        }),
        // No fall.
        ("client_cpu", |e| e.course.phases.truncate(1)),
    ];
    for (i, (want, change)) in table.iter().enumerate() {
        assert_eq!(name(searching(), *change), *want, "row {i}");
    }
}

#[test]
fn evidence_and_remedy_are_in_figures() {
    let ceiling = |kind, per_s| Ceiling {
        kind,
        per_s,
        from: String::new(),
    };
    let mut e = searching();
    e.errors = [(AddressNotAvailable, 7_021.0)].into();
    e.attempts = 78_583.0;
    e.ports = Some(28_232.0);
    e.time_wait_peak = Some(28_232.0);
    e.no_port_s = Some(37.4);
    e.requests_per_connection = Some(1.0);
    e.course.sustained_per_s = Some(463.0);
    e.course
        .phases
        .push(phase(phases::EXHAUSTED, 37_400, 60_400, 0.0));
    let got = verdict(
        &e,
        &[
            ceiling(ceilings::PORTS, 462.8),
            ceiling(ceilings::TARGET, 9_260.0),
        ],
    );
    assert_eq!(
        got.evidence(),
        "TIME_WAIT 28,232 of 28,232 ports, none free from second 37.4; 8.93 % of the requests found no port; exhausted for 23.0 s of 130"
    );
    assert_eq!(
        got.remedy(),
        "Set net.ipv4.tcp_tw_reuse = 1 (with timestamps): a port is free after 1 s, which allows 28,232/s. \
         Or open fewer connections (same_user, keep_alive, more requests an iteration), or use more \
         source_addresses: n of them have n times the ports. The next known bound is target at 9,260/s, 20.0× of now."
    );
    assert_eq!(
        verdict(&searching(), &[]).evidence(),
        "over half of 64,511 ports in TIME_WAIT from second 5.1; from then on 152/s against 6,400/s in the \
         burst, and 6.00 ms of client CPU a connection against 60.0 µs"
    );
}

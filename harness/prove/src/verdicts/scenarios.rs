//! What is injected, and why it must bind.
//!
//! The truth of a proof lies here: each scenario says by which law its cause bounds the trial for every draw of its
//! parameters, in terms of times that are far apart. A request of a client of ours takes 20 to 150 µs of CPU, a
//! connection 100 to 300 µs more; a machine that is five times slower does not turn a verdict around.

use yieldpoint_statistics::Random;

use super::draw::Draw;

/// A cause, or two, and how it is put in.
pub struct Scenario {
    /// verdicts that it must lead to, in alphabetical order
    causes: &'static [&'static str],
    /// why it binds, whatever is drawn
    why: &'static str,
    /// clients that can do it; empty: all
    clients: &'static [&'static str],
    draw: fn(&mut Draw),
}

/// One draw of a scenario.
pub struct Injection {
    /// "ports_exhausted+target_errors-3"
    pub label: String,
    /// why it binds
    pub why: &'static str,
    /// knobs and their values, as a matrix has them
    pub knobs: Vec<(String, String)>,
    /// the clients that meet it
    pub clients: Vec<String>,
}

/// Clients that run many users on one thread, so that descriptors are those of connections.
const MANY_USERS: &[&str] = &["reference", "hyper"];
/// Clients whose request costs more CPU than the target's response: libraries, not bare sockets.
const DEAR: &[&str] = &["hyper", "ureq", "isahc"];
/// Clients that open connections fast enough to use half of a wide range within a few seconds.
const FAST: &[&str] = &["reference", "hyper", "ureq"];

/// Clients of which one user leaves a CPU some rest: isahc's own thread and ours share one without a pause.
const LIGHT: &[&str] = &["reference", "hyper", "ureq"];

/// Every scenario.
pub const ALL: &[Scenario] = &[
    Scenario {
        causes: &["ports_exhausted"],
        why: "ports × time of a connection ≤ 600 × 0.5 ms = 0.3 s, a seventh of the window; none is free again before 60 s",
        clients: &[],
        draw: few_ports,
    },
    Scenario {
        causes: &["port_search"],
        why: "half of the ports, at most 22,000, are used within 11 s at 2,000 connections/s; the other half is found by search, far slower, and outlasts the window",
        clients: FAST,
        draw: |d| {
            let ports = d.int(40_000..=44_000);
            range(d, ports);
            forget(d, 1);
            d.set("threads", 1);
            d.text("duration", "12s");
        },
    },
    Scenario {
        causes: &["client_cpu"],
        why: "users ≥ 6 keep both ends busy, each has one CPU, and a request costs the client more of it than the target",
        clients: DEAR,
        draw: |d| {
            let threads = d.int(6..=12);
            d.set("threads", threads);
            cpus(d);
        },
    },
    Scenario {
        causes: &["client_memory"],
        why: "stacks of 2 MiB × threads ≥ 128 MiB, and the limit is 48 MiB at most",
        clients: &[],
        draw: |d| {
            let (threads, memory) = (d.int(64..=120), d.int(24..=48));
            d.set("threads", threads);
            d.set("lab.memory", memory);
        },
    },
    Scenario {
        causes: &["target_cpu"],
        why: "users × client's CPU ≤ 6 × 0.15 ms is hidden behind a burn of 0.4 ms or more: the target's CPU is the slowest station of a closed loop of 4 users or more",
        clients: &[],
        draw: |d| {
            burn(d);
            cpus(d);
        },
    },
    Scenario {
        causes: &["target_latency"],
        why: "a delay of 10 ms or more is over 95 % of each user's time, and 4 users use under a tenth of a CPU",
        clients: &[],
        draw: |d| {
            let (users, delay) = (d.int(1..=4), d.int(10_000..=50_000));
            let distribution = d.one(&["fixed", "lognormal"]);
            d.set("threads", users);
            d.text("target.delay", format_args!("{delay}us"));
            d.text("target.delay_distribution", distribution);
        },
    },
    Scenario {
        causes: &["accept_queue"],
        why: "a fixed delay keeps 100 users or more in step, so that they connect all at once, from the CPU on which the target would have to accept; the queue holds 5 at most, and who is dropped waits a second instead of 120 ms",
        clients: MANY_USERS,
        draw: storm,
    },
    Scenario {
        causes: &["fd_limit"],
        why: "users need more descriptors than a process may have, those of the client or, by processes × users, those of the target; the others wait for 20 ms or more, so that no more than 5,000 requests/s use a CPU",
        clients: MANY_USERS,
        draw: few_descriptors,
    },
    Scenario {
        causes: &["bandwidth"],
        why: "link ÷ response ≤ 100 Mbit/s ÷ 160 kbit = 625/s, a tenth of what the CPUs do, and 3 users or more keep it full while one asks",
        clients: &[],
        draw: |d| {
            link(d);
            let users = d.int(3..=6);
            d.set("threads", users);
        },
    },
    Scenario {
        causes: &["target_errors"],
        why: "5 to 30 % of the responses are failures; one user uses up no CPU",
        clients: LIGHT,
        draw: |d| {
            let knob = d.one(&[
                "target.error_rate",
                "target.early_close_rate",
                "target.reset_rate",
            ]);
            let share = d.share(5..=30);
            d.set(knob, share);
            d.set("threads", 1);
        },
    },
    Scenario {
        causes: &["keepalive_limit"],
        why: "one user opens a connection for every 4 requests or fewer: a round trip of 5 or more, and dearer than the others",
        clients: LIGHT,
        draw: few_responses,
    },
    Scenario {
        causes: &["pacing"],
        why: "800 requests/s × 0.5 ms are less than half of a CPU, and each user has twice the time that it needs",
        clients: &[],
        draw: |d| {
            let (rate, users) = (d.int(100..=800), d.int(2..=4));
            let arrival = d.one(&["constant", "poisson"]);
            d.set("rate", rate);
            d.set("threads", users);
            d.text("arrival", arrival);
        },
    },
    Scenario {
        causes: &["noisy_machine"],
        why: "4 users or more want a whole CPU at one end, and each of k busy programs beside it takes a k+1-th",
        clients: &[],
        draw: |d| {
            let (users, busy) = (d.int(4..=8), d.int(1..=3));
            d.set("threads", users);
            d.set("lab.disturb", busy);
            cpus(d);
        },
    },
    Scenario {
        causes: &["ports_exhausted", "target_errors"],
        why: "ports as alone; 10 to 30 % of what the target answers are failures",
        clients: &[],
        draw: |d| {
            few_ports(d);
            errors(d);
        },
    },
    Scenario {
        causes: &["bandwidth", "target_errors"],
        why: "a failure is small on the link, so that good responses fill it as alone; 10 to 30 % of the responses are failures",
        clients: &[],
        draw: |d| {
            link(d);
            let users = d.int(4..=8);
            d.set("threads", users);
            errors(d);
        },
    },
    Scenario {
        causes: &["target_cpu", "target_errors"],
        why: "the target burns as much for a failure as for a good response; 10 to 30 % are failures",
        clients: &[],
        draw: |d| {
            burn(d);
            errors(d);
            cpus(d);
        },
    },
    Scenario {
        causes: &["keepalive_limit", "target_errors"],
        why: "a connection for every 4 responses or fewer, failures included, of which there are 10 to 30 %",
        clients: LIGHT,
        draw: |d| {
            few_responses(d);
            errors(d);
        },
    },
    Scenario {
        causes: &["fd_limit", "target_errors"],
        why: "most users have no descriptor; 10 to 30 % of what the others get, after 20 ms or more, are failures",
        clients: MANY_USERS,
        draw: |d| {
            wait(d);
            few_at_the_client(d);
            errors(d);
        },
    },
    Scenario {
        causes: &["fd_limit", "target_cpu"],
        why: "most users have no descriptor; those that have one, 8 or more, keep a target busy that burns 0.4 ms or more a request",
        clients: MANY_USERS,
        draw: |d| {
            few_at_the_client(d);
            let us = d.int(1_000..=2_000);
            d.text("target.cpu_burn", format_args!("{us}us"));
            cpus(d);
        },
    },
    Scenario {
        causes: &["accept_queue", "target_errors"],
        why: "the storm as alone; 10 to 30 % of the responses are failures",
        clients: MANY_USERS,
        draw: |d| {
            storm(d);
            errors(d);
        },
    },
];

/// A connection an iteration of so many requests, the client closing first.
fn forget(d: &mut Draw, requests: u32) {
    d.set("same_user", false);
    d.set("requests_per_iteration", requests);
}

fn range(d: &mut Draw, ports: u32) {
    let first = d.int(10_000..=20_000);
    let range = format!("{first} {}", first + ports - 1);
    d.text("lab.sysctl.net.ipv4.ip_local_port_range", range);
}

fn few_ports(d: &mut Draw) {
    let (ports, requests, users) = (d.int(200..=600), d.int(1..=2), d.int(1..=3));
    range(d, ports);
    forget(d, requests);
    d.set("threads", users);
}

fn burn(d: &mut Draw) {
    let (us, users) = (d.int(400..=1_500), d.int(4..=6));
    d.text("target.cpu_burn", format_args!("{us}us"));
    d.set("threads", users);
}

fn storm(d: &mut Draw) {
    // 200 users ÷ 80 ms × 0.15 ms of CPU a connection at both ends are under half of the one CPU.
    let (users, backlog, delay) = (d.int(100..=200), d.int(1..=4), d.int(80..=120));
    d.text("lab.cpus.client", 0);
    d.text("lab.cpus.target", 0);
    forget(d, 1);
    d.set("users_per_thread", users);
    d.set("target.backlog", backlog);
    d.text("target.delay", format_args!("{delay}ms"));
}

/// Whoever has a descriptor waits for a delay, or 30 of them would use up the target's CPU as well.
fn wait(d: &mut Draw) {
    let delay = d.int(20..=40);
    d.text("target.delay", format_args!("{delay}ms"));
}

fn few_descriptors(d: &mut Draw) {
    wait(d);
    if d.one(&[true, false]) {
        return few_at_the_client(d);
    }
    // Each process has enough; together they hold more connections than the target can accept.
    let (processes, users) = (d.int(3..=4), d.int(20..=24));
    d.set("processes", processes);
    d.set("users_per_thread", users);
    d.set("lab.nofile", users + 20);
    d.text("request_timeout", "300ms");
}

fn few_at_the_client(d: &mut Draw) {
    let (users, limit) = (d.int(80..=120), d.int(32..=48));
    d.set("users_per_thread", users);
    d.set("lab.nofile", limit);
    d.text("request_timeout", "300ms");
}

fn link(d: &mut Draw) {
    let (mbit, body) = (d.int(20..=100), d.int(20_000..=60_000));
    d.text("lab.network", "veth");
    d.text("lab.rate", format_args!("{mbit}mbit"));
    d.set("target.body_bytes", body);
}

fn few_responses(d: &mut Draw) {
    let limit = d.int(1..=4);
    d.set("target.keepalive_requests", limit);
    d.set("threads", 1);
}

fn errors(d: &mut Draw) {
    let share = d.share(10..=30);
    d.set("target.error_rate", share);
}

/// Client and target have a CPU of their own each, whatever the machine has.
fn cpus(d: &mut Draw) {
    d.text("lab.cpus.client", 0);
    d.text("lab.cpus.target", 1);
}

impl Scenario {
    /// Its causes, joined by "+".
    pub fn name(&self) -> String {
        self.causes.join("+")
    }
}

/// The name of every scenario.
pub fn names() -> Vec<String> {
    ALL.iter().map(Scenario::name).collect()
}

/// Draws `repeats` injections of each scenario that is `wanted`, each for two of the clients.
pub fn draw_all(
    random: &mut Random,
    repeats: u32,
    clients: &[String],
    wanted: impl Fn(&Scenario) -> bool,
) -> Vec<Injection> {
    let mut all = Vec::new();
    for scenario in ALL {
        let can: Vec<&String> = clients
            .iter()
            .filter(|c| scenario.clients.is_empty() || scenario.clients.contains(&c.as_str()))
            .collect();
        for n in 1..=repeats {
            // Drawn even where it is not wanted, so that a part of a proof repeats that part of the whole.
            let first = random.below(can.len());
            let mut draw = Draw::new(random);
            // Two draws are never the same cell, and failures fall on other requests each time.
            let seed = draw.int(1..=1_000_000_000);
            draw.set("target.delay_seed", seed);
            (scenario.draw)(&mut draw);
            let knobs = draw.knobs();
            if can.len() < 2 || !wanted(scenario) {
                continue;
            }
            let two = [can[first], can[(first + 1) % can.len()]];
            all.push(Injection {
                label: format!("{}-{n}", scenario.name()),
                why: scenario.why,
                knobs,
                clients: two.into_iter().cloned().collect(),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all(seed: u64, wanted: impl Fn(&Scenario) -> bool) -> Vec<Injection> {
        let clients = ["reference", "hyper", "ureq", "isahc"].map(str::to_owned);
        draw_all(&mut Random::new(seed), 5, &clients, wanted)
    }

    #[test]
    fn every_scenario_is_drawn_for_two_clients_and_no_draw_is_another() {
        let drawn = all(7, |_| true);
        assert_eq!(drawn.len(), 5 * ALL.len());
        let labels: BTreeSet<_> = drawn.iter().map(|i| &i.label).collect();
        assert_eq!(labels.len(), drawn.len());
        let knobs: BTreeSet<_> = drawn.iter().map(|i| &i.knobs).collect();
        assert_eq!(knobs.len(), drawn.len(), "equal cells would collapse");
        for i in &drawn {
            assert_eq!(i.clients.len(), 2, "{}", i.label);
            assert_ne!(i.clients[0], i.clients[1], "{}", i.label);
        }
        for s in ALL {
            assert!(s.causes.is_sorted(), "{:?}", s.causes);
        }
    }

    #[test]
    fn a_part_of_a_proof_has_the_parameters_of_the_whole() {
        let whole = all(7, |_| true);
        let part = all(7, |s| s.causes == ["pacing"]);
        assert_eq!(part.len(), 5);
        for i in &part {
            let same = whole.iter().find(|w| w.label == i.label);
            assert_eq!(same.map(|w| &w.knobs), Some(&i.knobs));
        }
        // Another seed, other parameters.
        assert_ne!(part[0].knobs, all(8, |s| s.causes == ["pacing"])[0].knobs);
    }
}

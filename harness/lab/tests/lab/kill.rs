//! Nothing outlives the runner, whoever is killed.

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use yieldpoint_lab::Mode;

use crate::roles::{MARKER, MODE, NETWORK, ROLE};
use crate::tools::{
    Talk, Tests, has_ended, in_namespace, marker, stubborn, until, up, with_argument,
};

pub const TESTS: Tests<fn(Mode)> = &[
    ("nothing_outlives_down", nothing_outlives_down),
    ("nothing_outlives_drop", nothing_outlives_drop),
    ("nothing_outlives_the_runner", |m| {
        after_kill(m, "loopback", Victim::Runner);
    }),
    ("nothing_outlives_the_runner_behind_a_stopped_init", |m| {
        after_kill(m, "loopback", Victim::RunnerBehindInit);
    }),
    ("nothing_outlives_the_guard", |m| {
        after_kill(m, "loopback", Victim::Guard);
    }),
    ("nothing_outlives_init", |m| {
        after_kill(m, "loopback", Victim::Init);
    }),
    ("a_thread_of_the_runner_may_end", a_thread_may_end),
    ("many_labs", many_labs),
];

pub const ONCE: Tests<fn()> = &[("nothing_outlives_a_link", || {
    for victim in [
        Victim::Runner,
        Victim::RunnerBehindInit,
        Victim::Guard,
        Victim::Init,
    ] {
        after_kill(Mode::Private, "veth", victim);
    }
})];

fn nothing_outlives_down(mode: Mode) {
    let marker = marker();
    let mut lab = up(mode);
    let mut talk = Talk::sh(&mut lab, "x", &stubborn(&marker));
    talk.hear(&["child\n", "grandchild\n"]);
    until("child and grandchild run", || {
        with_argument(&marker).len() >= 2
    });
    lab.down().unwrap();
    // At once: `down` returns when they are gone, not when they have been asked to go.
    assert_eq!(with_argument(&marker), [0; 0]);
}

fn nothing_outlives_drop(mode: Mode) {
    let marker = marker();
    {
        let mut lab = up(mode);
        let mut talk = Talk::sh(&mut lab, "x", &stubborn(&marker));
        talk.hear(&["child\n", "grandchild\n"]);
    }
    assert_eq!(with_argument(&marker), [0; 0]);
}

#[derive(Clone, Copy)]
enum Victim {
    Runner,
    /// the runner, while init is stopped and cannot see it
    RunnerBehindInit,
    Guard,
    Init,
}

/// A runner of its own, so that it can be killed.
fn after_kill(mode: Mode, network: &str, victim: Victim) {
    let marker = marker();
    let mut runner = Command::new(std::env::current_exe().unwrap())
        .envs([(ROLE, "runner"), (MODE, mode.as_str()), (MARKER, &marker)])
        .env(NETWORK, network)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(runner.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let [guard, init, nets @ ..] = &words[..] else {
        panic!("{line:?}")
    };
    let open = |pid: &str| -> OwnedFd {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        pidfd_open(pid, PidfdFlags::empty()).unwrap()
    };
    let (guard, init) = (open(guard), open(init));
    until("child and grandchild run", || {
        with_argument(&marker).len() >= 2
    });

    match victim {
        Victim::Runner => runner.kill().unwrap(),
        Victim::RunnerBehindInit => {
            pidfd_send_signal(&init, Signal::STOP).unwrap();
            runner.kill().unwrap();
        }
        Victim::Guard => pidfd_send_signal(&guard, Signal::KILL).unwrap(),
        Victim::Init => pidfd_send_signal(&init, Signal::KILL).unwrap(),
    }
    until("guard and init ended", || {
        has_ended(&guard) && has_ended(&init)
    });
    until("no process left", || with_argument(&marker).is_empty());
    if matches!(victim, Victim::Guard | Victim::Init) {
        // A runner that lives on takes down what is down already.
        drop(runner.stdin.take());
        assert!(runner.wait().unwrap().success());
    }
    runner.wait().unwrap();
    if mode == Mode::Private {
        assert_eq!(nets.len(), 2, "{line:?}");
        until("no process in the namespaces", || {
            nets.iter().all(|net| in_namespace(net).is_empty())
        });
    }
}

fn a_thread_may_end(mode: Mode) {
    // PDEATHSIG from the runner's thread would kill this lab.
    let mut lab = std::thread::spawn(move || up(mode)).join().unwrap();
    let talk = Talk::sh(&mut lab, "x", "cat");
    assert_eq!(talk.finish(), "");
    lab.down().unwrap();
}

fn many_labs(mode: Mode) {
    // What one lab costs a run, in an output to read; noise forbids a bound.
    let (mut ups, mut downs) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let start = std::time::Instant::now();
        let lab = up(mode);
        ups.push(start.elapsed());
        let start = std::time::Instant::now();
        let init = lab.init_pid();
        lab.down().unwrap();
        downs.push(start.elapsed());
        assert!(
            !std::fs::exists(format!("/proc/{init}/ns")).unwrap(),
            "init is gone"
        );
    }
    ups.sort();
    downs.sort();
    println!(
        "{mode} lab, median of 20: up {:?}, down {:?}",
        ups[10], downs[10]
    );
}

//! Namespaces, sysctls, the sock_diag socket.

use std::fs;

use yieldpoint_lab::sysctl::ALWAYS_RECORDED;
use yieldpoint_lab::{Lab, Mode, probe};

use crate::roles::{PORT, spawn_as};
use crate::tools::{Talk, Tests, listening_ports, namespace, program, run, sh, spec, up};

pub const TESTS: Tests<fn(Mode)> = &[
    ("which_namespaces", which_namespaces),
    ("sysctls_are_recorded", sysctls_are_recorded),
];

pub const ONCE: Tests<fn()> = &[
    ("private_sysctls_leave_the_host_alone", sysctls),
    ("two_labs_do_not_see_each_others_port", two_labs),
    ("sock_diag_sees_the_lab", sock_diag),
    ("loopback_carries_traffic", loopback),
    ("ipc_and_pids_are_private", ipc_and_pids),
];

fn which_namespaces(mode: Mode) {
    let lab = up(mode);
    assert_eq!(lab.mode(), mode);
    for kind in ["user", "net", "pid", "ipc"] {
        let inside = namespace(lab.init_pid(), kind).unwrap();
        let outside = namespace(std::process::id(), kind).unwrap();
        assert_eq!(inside != outside, mode == Mode::Private, "{kind}");
    }
    lab.down().unwrap();
}

fn host_has(name: &str) -> Option<String> {
    let file = format!("/proc/sys/{}", name.replace('.', "/"));
    let text = fs::read_to_string(file).ok()?;
    Some(yieldpoint_lab::sysctl::normalise(&text))
}

fn sysctls_are_recorded(mode: Mode) {
    let lab = up(mode);
    for name in ALWAYS_RECORDED {
        let has = lab.effective().contains_key(*name);
        assert_eq!(has, host_has(name).is_some(), "{name}");
    }
    if mode == Mode::Host {
        for (name, value) in lab.effective() {
            assert_eq!(Some(value), host_has(name).as_ref(), "{name}");
        }
    }
    lab.down().unwrap();
}

const RANGE: &str = "net.ipv4.ip_local_port_range";

fn sysctls() {
    let before = host_has(RANGE).unwrap();
    let want = "20011 20013";
    assert_ne!(before, want);
    let asked = [
        (RANGE, "20011\t20013"), // as the kernel writes it
        ("net.ipv4.tcp_tw_reuse", "0"),
        ("net.ipv4.tcp_keepalive_time", "77"), // recorded because it is asked for
        ("kernel.shmmni", "99"),
    ];
    let mut lab = Lab::up(&spec(Mode::Private, &asked)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(lab.effective()[RANGE], want);
    assert_eq!(lab.effective()["net.ipv4.tcp_tw_reuse"], "0");
    assert_eq!(lab.effective()["net.ipv4.tcp_keepalive_time"], "77");
    let script = "cat /proc/sys/net/ipv4/ip_local_port_range /proc/sys/kernel/shmmni";
    let (text, _) = run(&mut lab, &sh("x", script));
    assert_eq!(
        yieldpoint_lab::sysctl::normalise(&text),
        format!("{want} 99")
    );
    assert_eq!(host_has(RANGE).unwrap(), before);
    assert_ne!(host_has("kernel.shmmni").unwrap(), "99");
    lab.down().unwrap();
}

fn two_labs() {
    let (mut a, mut b) = (up(Mode::Private), up(Mode::Private));
    let mut in_a = Talk::spawn(&mut a, &spawn_as("listen", "one")).unwrap();
    in_a.hear(&["listening\n"]);
    let mut in_b = Talk::spawn(&mut b, &spawn_as("listen", "one")).unwrap();
    in_b.hear(&["listening\n"]);
    // In one lab the port is taken: otherwise the two above would prove nothing.
    let second = Talk::spawn(&mut a, &spawn_as("listen", "two")).unwrap();
    assert!(second.finish().starts_with("refused"));
    a.down().unwrap();
    b.down().unwrap();
}

fn sock_diag() {
    let mut lab = up(Mode::Private);
    assert_eq!(
        listening_ports(lab.sock_diag()),
        [0; 0],
        "a fresh namespace"
    );
    let mut talk = Talk::spawn(&mut lab, &spawn_as("listen", "x")).unwrap();
    talk.hear(&["listening\n"]);
    assert_eq!(listening_ports(lab.sock_diag()), [PORT]);
    // On loopback the target's side is the client's.
    assert_eq!(listening_ports(lab.sock_diag_target()), [PORT]);
    lab.down().unwrap();
    // The host's own socket answers as well.
    listening_ports(up(Mode::Host).sock_diag());
}

fn loopback() {
    let report = probe(&program());
    assert!(report.refusal.is_none(), "{report}");
    assert_eq!(report.mode(), Mode::Private);
    println!("{report}");
}

fn ipc_and_pids() {
    let mut lab = up(Mode::Private);
    // Spawned processes count from 2; the caller is root of the namespace.
    let (text, _) = run(&mut lab, &sh("x", "echo $$; id -u; id -g"));
    assert_eq!(text, "2\n0\n0\n");
    lab.down().unwrap();
}

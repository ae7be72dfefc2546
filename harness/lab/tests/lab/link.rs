//! A lab of two network namespaces: who sees whom, and how fast.

use std::net::Ipv4Addr;

use yieldpoint_lab::{Lab, LabError, LabSpec, Link, Mode, Network, Rate, Side, Spawn, Step};
use yieldpoint_terms::Nanos;

use crate::roles::{self, PORT, spawn_as};
use crate::tools::{Talk, Tests, listening_ports, namespace, run, sh, spec, up};

pub const ONCE: Tests<fn()> = &[
    ("two_namespaces_see_each_other", see_each_other),
    ("two_links_do_not_see_each_other", two_links),
    ("sysctls_hold_on_both_sides", sysctls_on_both_sides),
    ("a_link_carries_from_the_start", carries_from_the_start),
    ("a_rate_holds_in_both_directions", rate_holds),
    ("a_delay_holds_or_is_refused", delay_holds_or_is_refused),
    ("a_host_lab_has_no_link", no_link_on_the_host),
];

fn linked(link: Link) -> LabSpec {
    LabSpec {
        network: Network::Veth(link),
        ..spec(Mode::Private, &[])
    }
}

fn up_linked(link: Link) -> Lab {
    Lab::up(&linked(link)).unwrap_or_else(|e| panic!("{e}"))
}

fn at_target(cmd: Spawn) -> Spawn {
    Spawn {
        side: Side::Target,
        ..cmd
    }
}

/// What this executable's role `connect` says of an address.
fn connect(lab: &mut Lab, address: Ipv4Addr) -> String {
    let mut cmd = spawn_as("connect", "connect");
    cmd.env
        .push((roles::ADDRESS.to_owned(), address.to_string()));
    run(lab, &cmd).0
}

fn listen(lab: &mut Lab, name: &str, address: Ipv4Addr) -> Talk {
    let mut cmd = at_target(spawn_as("listen", name));
    cmd.env
        .push((roles::ADDRESS.to_owned(), address.to_string()));
    let mut talk = Talk::spawn(lab, &cmd).unwrap();
    talk.hear(&["listening\n"]);
    talk
}

fn see_each_other() {
    let mut lab = up_linked(Link::default());
    assert_eq!(lab.target_address(), Network::VETH_TARGET);
    assert_eq!(up(Mode::Private).target_address(), Ipv4Addr::LOCALHOST);
    let talk = listen(&mut lab, "target", Network::VETH_TARGET);

    // Three namespaces: the host's, the client's, the target's.
    let net = |pid| namespace(pid, "net").unwrap();
    let nets = [std::process::id(), lab.init_pid(), talk.process.pid].map(net);
    assert!(
        nets[0] != nets[1] && nets[1] != nets[2] && nets[0] != nets[2],
        "{nets:?}"
    );
    // Each has its sockets, and its own socket to ask about them.
    assert_eq!(listening_ports(lab.sock_diag()), [0; 0]);
    assert_eq!(listening_ports(lab.sock_diag_target()), [PORT]);

    // The way to the target is the link, and there is no other way to anywhere.
    assert_eq!(connect(&mut lab, Network::VETH_TARGET), "connected\n");
    let refused = connect(&mut lab, Ipv4Addr::LOCALHOST);
    assert!(refused.contains("os error 111"), "{refused}");
    let documentation = Ipv4Addr::new(192, 0, 2, 1);
    let unreachable = connect(&mut lab, documentation);
    assert!(unreachable.contains("os error 101"), "{unreachable}");
    // What listens on the target's own loopback is not the client's to reach.
    drop(talk.finish());
    let talk = listen(&mut lab, "loopback", Ipv4Addr::LOCALHOST);
    let refused = connect(&mut lab, Network::VETH_TARGET);
    assert!(refused.contains("os error 111"), "{refused}");
    drop(talk);
    for (side, link) in [(Side::Client, "to-target"), (Side::Target, "to-client")] {
        let interfaces = "cat /proc/net/dev";
        let cmd = Spawn {
            side,
            ..sh("interfaces", interfaces)
        };
        let (text, _) = run(&mut lab, &cmd);
        assert!(text.contains("lo:") && text.contains(link), "{text}");
        assert!(!text.contains("eth"), "{text}");
        // All routes but those of loopback: one, to the link's own network.
        let cmd = Spawn {
            side,
            ..sh("routes", "cat /proc/net/route")
        };
        let (text, _) = run(&mut lab, &cmd);
        assert_eq!(text.lines().count(), 2, "a heading and one route: {text}");
        assert!(text.contains(link), "{text}");
    }
    lab.down().unwrap();
}

fn two_links() {
    let (mut a, mut b) = (up_linked(Link::default()), up_linked(Link::default()));
    let address = a.target_address();
    let in_a = listen(&mut a, "one", address);
    assert_eq!(connect(&mut a, address), "connected\n");
    let refused = connect(&mut b, address);
    assert!(refused.contains("os error 111"), "{refused}");
    drop(in_a);
    a.down().unwrap();
    b.down().unwrap();
}

fn sysctls_on_both_sides() {
    let range = ("net.ipv4.ip_local_port_range", "20011 20013");
    let mut lab = Lab::up(&LabSpec {
        sysctls: crate::tools::owned(&[range]),
        ..linked(Link::default())
    })
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(lab.effective()[range.0], range.1);
    // Recorded only where it differs.
    let target: Vec<_> = lab
        .effective()
        .keys()
        .filter(|k| k.starts_with("target:"))
        .collect();
    assert_eq!(target, [""; 0]);
    for side in [Side::Client, Side::Target] {
        let cmd = Spawn {
            side,
            ..sh("x", "cat /proc/sys/net/ipv4/ip_local_port_range")
        };
        let (text, _) = run(&mut lab, &cmd);
        assert_eq!(yieldpoint_lab::sysctl::normalise(&text), range.1);
    }
    lab.down().unwrap();
    // What cannot be had is one error, though there are two namespaces.
    let error = Lab::up(&LabSpec {
        sysctls: crate::tools::owned(&[("net.ipv4.tcp_fin_timeout", "soon")]),
        ..linked(Link::default())
    });
    let Err(LabError::Sysctls(errors)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(errors.len(), 1, "{errors:?}");
}

/// A link that drops its first packets costs the first connection a second.
fn carries_from_the_start() {
    let rate = Some("1gbit".parse().unwrap());
    for link in [
        Link::default(),
        Link {
            rate,
            ..Link::default()
        },
    ] {
        for _ in 0..10 {
            let mut lab = up_linked(link);
            let address = lab.target_address();
            let talk = listen(&mut lab, "target", address);
            assert_eq!(connect(&mut lab, address), "connected\n");
            for pid in [lab.init_pid(), talk.process.pid] {
                assert_eq!(counter(pid, "TCPSynRetrans"), 0);
            }
            drop(talk);
            lab.down().unwrap();
        }
    }
}

/// A counter of the namespace of a process, from the two lines of /proc/<pid>/net/netstat.
fn counter(pid: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/netstat")).unwrap();
    let mut lines = text.lines().filter(|l| l.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut both = names.split(' ').zip(values.split(' '));
    let (_, value) = both.find(|(n, _)| *n == name).unwrap();
    value.parse().unwrap()
}

fn rate_holds() {
    const BYTES: u64 = 4_000_000;
    let rate: Rate = "40mbit".parse().unwrap();
    // The bucket may be full before the first byte; it holds 4 ms, here 20 kB.
    let at_once = 20_000.0;
    let link = Link {
        rate: Some(rate),
        ..Link::default()
    };
    for sender in [Side::Client, Side::Target] {
        let mut best: f64 = 0.0;
        // On a machine that stalls, a queue of 50 ms runs empty and the share of the rate falls.
        for _ in 0..10 {
            let mut lab = up_linked(link);
            let seconds = transfer(&mut lab, sender, BYTES);
            lab.down().unwrap();
            let allowed = rate.bytes_per_s() as f64 * seconds + at_once;
            assert!(BYTES as f64 <= allowed, "{sender:?} sends: {seconds} s");
            best = best.max(BYTES as f64 / (rate.bytes_per_s() as f64 * seconds));
            if best >= 0.8 {
                break;
            }
        }
        println!("{sender:?} sends: {:.1} % of the rate", best * 100.0);
        assert!(best >= 0.8, "{sender:?} sends at {best} of the rate");
    }
}

/// Sends bytes over the link and returns the time from before the connect to the last byte, s.
fn transfer(lab: &mut Lab, sender: Side, bytes: u64) -> f64 {
    let role = |side, role| {
        let mut cmd = spawn_as(role, role);
        cmd.side = side;
        cmd.env
            .push((roles::ADDRESS.to_owned(), lab.target_address().to_string()));
        let bytes = if side == sender { bytes } else { 0 };
        cmd.env.push((roles::BYTES.to_owned(), bytes.to_string()));
        cmd
    };
    let (near, far) = (
        role(Side::Client, "exchange"),
        role(Side::Target, "exchange-listen"),
    );
    let mut far = Talk::spawn(lab, &far).unwrap();
    far.hear(&["listening\n"]);
    let near = Talk::spawn(lab, &near).unwrap().finish();
    let far = far.finish();
    let said = |text: &str, what: &str| -> u64 {
        let line = text.lines().find_map(|l| l.strip_prefix(what));
        line.unwrap_or_else(|| panic!("no {what:?} in {text:?}"))
            .parse()
            .unwrap()
    };
    let receiver = if sender == Side::Client { &far } else { &near };
    assert_eq!(said(receiver, "received "), bytes);
    (said(receiver, "end ") - said(&near, "start ")) as f64 / 1e9
}

fn delay_holds_or_is_refused() {
    let delay = Nanos::from_millis(30);
    for rate in [None, Some("40mbit".parse().unwrap())] {
        match Lab::up(&linked(Link { rate, delay })) {
            Ok(mut lab) => {
                // There and back once: the handshake alone takes two delays.
                let seconds = transfer(&mut lab, Side::Client, 1);
                assert!(seconds >= 2.0 * delay.as_secs_f64(), "{seconds} s");
                lab.down().unwrap();
            }
            // A kernel without netem.
            Err(LabError::Refused { mode, refusal }) => {
                assert_eq!((mode, refusal.step), (Mode::Private, Step::Delay));
                let text = refusal.to_string();
                assert!(
                    text.contains("netem") && text.contains("lab.rate does without it"),
                    "{text}"
                );
                println!("{text}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn no_link_on_the_host() {
    let error = Lab::up(&LabSpec {
        mode: Mode::Host,
        ..linked(Link::default())
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("lab.mode = \"private\""), "{text}");
    assert!(text.contains("lab.network = \"loopback\""), "{text}");
}

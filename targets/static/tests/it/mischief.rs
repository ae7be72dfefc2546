//! Misbehaviour on request: counts, order, and times that physics bounds from below.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use yieldpoint_protocol::FromProgram;
use yieldpoint_terms::Value;
use yieldpoint_terms::clock::now_ns;

use crate::client::{Client, GET};
use crate::program::{PATIENCE, Program, int, ms, text};

/// The order in which the connections of one burst are answered.
fn order(address: SocketAddr, connections: usize) -> Vec<usize> {
    let mut clients: Vec<_> = (0..connections).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        client.send(GET);
    }
    let mut open: Vec<(usize, Client)> = clients.into_iter().enumerate().collect();
    let mut order = Vec::new();
    while !open.is_empty() {
        let mut fds: Vec<_> = open
            .iter()
            .map(|(_, c)| PollFd::new(c.stream(), PollFlags::IN))
            .collect();
        poll(&mut fds, None).unwrap();
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        open.retain_mut(|(i, client)| {
            let answered = ready.next().unwrap();
            if answered {
                assert_eq!(client.response().status, 200);
                order.push(*i);
            }
            !answered
        });
    }
    order
}

#[test]
fn a_fixed_delay_delays_each_response_and_no_other() {
    let (mut target, address) = Program::serving(&[("delay", ms(50))]);
    // Twenty at once wait together: were they one behind the other, it would take a second.
    let mut clients: Vec<_> = (0..20).map(|_| Client::connect(address)).collect();
    let started = Instant::now();
    for client in &mut clients {
        client.send(&GET.repeat(2));
    }
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
    assert!(started.elapsed() >= Duration::from_millis(50));
    // Pipelined ones wait one behind the other.
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
    assert!(started.elapsed() >= Duration::from_millis(100));
    drop(clients);
    let t = target.testimony();
    assert_eq!(
        (t.requests, t.responses[&200], t.closed_by_client),
        (40, 40, 20)
    );
    target.bye();
}

#[test]
fn drawn_delays_put_responses_into_another_order_and_a_fixed_one_does_not() {
    let knobs = [
        ("delay", ms(100)),
        ("delay_distribution", text("lognormal")),
        ("delay_sigma", Value::Float(1.0)),
    ];
    let (target, address) = Program::serving(&knobs);
    let drawn = order(address, 12);
    target.bye();
    let (target, address) = Program::serving(&[("delay", ms(100))]);
    // Two that are read in one turn are due at the same time, and answered in that order.
    let fixed = order(address, 12);
    target.bye();
    let sorted: Vec<usize> = (0..12).collect();
    assert_ne!(drawn, sorted);
    assert_eq!(fixed, sorted);
}

#[test]
fn in_a_stall_nothing_is_answered_and_then_everything() {
    let mut program = Program::spawn();
    // From go on: requests before it are answered.
    let knobs = [("stall_at", ms(0)), ("stall_for", ms(1200))];
    let FromProgram::Ready { listens } = program.job(&knobs) else {
        panic!("ready");
    };
    let address = listens.parse().unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        assert_eq!(client.get().status, 200);
    }
    let start_ns = now_ns();
    program.go(start_ns);
    // A tick says that go was heard.
    while !matches!(program.hear(), FromProgram::Tick { .. }) {}
    for client in &mut clients {
        client.send(GET);
    }
    let sent_ns = now_ns();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
        // If this machine was so slow that they were sent after the stall, nothing can be said.
        if sent_ns < start_ns + 1_200_000_000 {
            assert!(now_ns() >= start_ns + 1_200_000_000);
        }
    }
    assert_eq!(clients[0].get().status, 200);
    program.bye();
}

#[test]
fn errors_cuts_and_resets_come_at_their_rates() {
    const N: usize = 300;
    let knobs = [
        ("error_rate", Value::Float(0.25)),
        ("early_close_rate", Value::Float(0.25)),
        ("reset_rate", Value::Float(0.25)),
        ("delay_seed", int(7)),
    ];
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (mut target, address) = Program::serving(&knobs);
        let mut ends = BTreeMap::new();
        let mut course = String::new();
        let mut client = Client::connect(address);
        for _ in 0..N {
            client.send(GET);
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            let end = loop {
                match client.stream().read(&mut piece) {
                    Ok(0) => break 'c',
                    Err(e) if e.kind() == ErrorKind::ConnectionReset => break 'r',
                    Err(e) => panic!("{e}"),
                    Ok(n) => bytes.extend_from_slice(&piece[..n]),
                }
                let text = String::from_utf8_lossy(&bytes);
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head.split_once("Content-Length: ").unwrap().1;
                if body.len().to_string() == length.lines().next().unwrap() {
                    break if head.starts_with("HTTP/1.1 200") {
                        'g'
                    } else {
                        'e'
                    };
                }
            };
            if end == 'c' {
                let text = String::from_utf8_lossy(&bytes);
                assert_eq!(text.split_once("\r\n\r\n").unwrap().1.len(), 306);
            }
            if end == 'r' {
                assert!(bytes.is_empty());
            }
            if "cr".contains(end) {
                client = Client::connect(address);
            }
            *ends.entry(end).or_insert(0) += 1;
            course.push(end);
        }
        drop(client);
        let t = target.testimony();
        let count = |end: char| ends.get(&end).copied().unwrap_or(0);
        assert_eq!(t.requests, N as u64);
        assert_eq!(
            t.responses,
            BTreeMap::from([(200, count('g')), (500, count('e'))])
        );
        assert_eq!((t.closed_by_target, t.reset), (count('c'), count('r')));
        for end in ['g', 'e', 'c', 'r'] {
            assert!((30..150).contains(&count(end)), "{end}: {}", count(end));
        }
        seen.push(course);
        target.bye();
    }
    assert_eq!(
        seen[0], seen[1],
        "one worker, one client, one seed: one course"
    );
}

#[test]
fn a_slow_body_comes_in_pieces_with_pauses() {
    let knobs = [
        ("slow_body", ms(60)),
        ("slow_body_pieces", int(4)),
        ("body_bytes", int(20_000)),
    ];
    let (mut target, address) = Program::serving(&knobs);
    let mut client = Client::connect(address);
    let started = Instant::now();
    client.send(GET);
    let mut arrived = Vec::new();
    let head = client.head();
    let mut left = 20_000;
    while left > 0 {
        left -= client.some(left);
        arrived.push((20_000 - left, started.elapsed()));
    }
    // No byte of a piece comes before its pauses; 5,000 bytes a piece.
    for (bytes, after) in arrived {
        let pauses = (bytes - 1) / 5000;
        assert!(
            after >= Duration::from_millis(60) * pauses as u32,
            "{bytes} bytes after {after:?}"
        );
    }
    assert_eq!(head.status, 200);
    assert_eq!(client.get().body.len(), 20_000, "the connection is kept");
    assert_eq!(target.testimony().responses[&200], 2);
    target.bye();
}

#[test]
fn cpu_is_burnt_for_each_request() {
    let (mut target, address) = Program::serving(&[("cpu_burn", ms(10))]);
    let mut client = Client::connect(address);
    let before = target.testimony().cpu_ns;
    for _ in 0..20 {
        client.get();
    }
    let burnt = target.testimony().cpu_ns - before;
    assert!(burnt >= 200_000_000, "{burnt} ns");
    target.bye();
}

#[test]
fn a_client_that_goes_while_it_waits_leaves_nothing_behind() {
    let (mut target, address) = Program::serving(&[("delay", ms(200))]);
    for _ in 0..10 {
        let mut client = Client::connect(address);
        client.send(GET);
    }
    let started = Instant::now();
    loop {
        let t = target.testimony();
        if t.requests == 10 && t.active == 0 {
            assert_eq!(t.closed_by_client + t.reset, 10);
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{t:?}");
    }
    target.bye();
}

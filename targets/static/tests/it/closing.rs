//! Who closes, when, and who keeps the TIME_WAIT entry.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::set_socket_linger;
use yieldpoint_terms::Value;

use crate::client::{Client, GET, GET_CLOSE};
use crate::program::{PATIENCE, Program, int, ms, text};

const CONNECTIONS: u64 = 50;

/// TIME_WAIT entries of a target's port: (at the client's end, at the target's end).
fn time_wait(address: SocketAddr) -> (u64, u64) {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!(":{:04X}", address.port());
    let (mut client, mut target) = (0, 0);
    for line in table.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        // sl, local, remote, state; 06 is TIME_WAIT
        if let [_, local, remote, "06", ..] = fields[..] {
            target += u64::from(local.ends_with(&port));
            client += u64::from(remote.ends_with(&port));
        }
    }
    (client, target)
}

/// The last segment of the last connection may still be under way.
fn expect_time_wait(address: SocketAddr, want: (u64, u64)) {
    let started = Instant::now();
    while time_wait(address) != want {
        assert!(
            started.elapsed() < PATIENCE,
            "(client, target): {:?}, expected {want:?}",
            time_wait(address)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn keepalive_requests_closes_after_exactly_that_many() {
    let (mut target, address) = Program::serving(&[("keepalive_requests", int(3))]);
    let mut client = Client::connect(address);
    assert_eq!(client.get().header("connection"), "keep-alive");
    assert_eq!(client.get().header("connection"), "keep-alive");
    assert_eq!(client.get().header("connection"), "close");
    client.expect_end();
    drop(client);
    // Those that were sent in vain must not turn the answers into a reset.
    let mut client = Client::connect(address);
    client.send(&GET.repeat(20));
    for _ in 0..3 {
        assert_eq!(client.response().status, 200);
    }
    client.expect_end();
    drop(client);
    let t = target.testimony();
    assert_eq!((t.connections, t.requests), (2, 6));
    assert_eq!(
        (t.closed_by_target, t.closed_by_client, t.reset, t.active),
        (2, 0, 0, 0)
    );
    target.bye();
}

#[test]
fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let (mut target, address) = Program::serving(&[("keepalive_timeout", ms(300))]);
    let mut silent = Client::connect(address);
    silent.get();
    silent.expect_end();
    let t = target.testimony();
    assert_eq!(
        (t.connections, t.closed_by_target, t.closed_by_client),
        (1, 1, 0)
    );
    // One that has not asked yet is not idle after an answer: it has longer.
    let mut fresh = Client::connect(address);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(fresh.get().status, 200);
    target.bye();
}

#[test]
fn without_keep_alive_the_target_closes_every_connection() {
    let (mut target, address) = Program::serving(&[("keep_alive", Value::Bool(false))]);
    for _ in 0..10 {
        let mut client = Client::connect(address);
        assert_eq!(client.get().header("connection"), "close");
        client.expect_end();
    }
    let t = target.testimony();
    assert_eq!(
        (t.connections, t.requests, t.closed_by_target),
        (10, 10, 10)
    );
    target.bye();
}

/// Connections on which the first sign of the response carried the FIN too.
fn together(address: SocketAddr, request: &str) -> usize {
    let mut together = 0;
    for _ in 0..CONNECTIONS {
        let mut client = Client::connect(address);
        client.send(request);
        let mut fds = [PollFd::new(
            client.stream(),
            PollFlags::IN | PollFlags::RDHUP,
        )];
        poll(&mut fds, None).unwrap();
        together += usize::from(fds[0].revents().contains(PollFlags::RDHUP));
        assert_eq!(client.response().status, 200);
        // The client closes as soon as it has the body.
    }
    together
}

#[test]
fn with_data_the_fin_comes_with_the_response_and_the_target_keeps_time_wait() {
    // each row: request, whether the target honours keep-alive
    for (request, keep_alive) in [(GET_CLOSE, true), (GET, false)] {
        let (mut target, address) = Program::serving(&[("keep_alive", Value::Bool(keep_alive))]);
        let n = together(address, request);
        // poll() looks at FIN and data one after the other, so it may once see the data alone.
        assert!(n as u64 >= CONNECTIONS * 9 / 10, "{n} of {CONNECTIONS}");
        let t = target.testimony();
        assert_eq!(
            (t.closed_by_target, t.closed_by_client, t.reset),
            (CONNECTIONS, 0, 0)
        );
        expect_time_wait(address, (0, CONNECTIONS));
        target.bye();
    }
}

#[test]
fn after_the_client_may_close_first_and_keeps_time_wait() {
    // Longer than any pause of a client on a noisy machine.
    let (mut target, address) =
        Program::serving(&[("close", text("after")), ("close_delay", ms(20_000))]);
    assert_eq!(together(address, GET_CLOSE), 0);
    let t = target.testimony();
    assert_eq!(
        (t.closed_by_client, t.closed_by_target, t.reset),
        (CONNECTIONS, 0, 0)
    );
    expect_time_wait(address, (CONNECTIONS, 0));
    target.bye();
}

#[test]
fn after_the_target_closes_for_a_client_that_waits() {
    let (mut target, address) = Program::serving(&[("close", text("after"))]);
    for _ in 0..CONNECTIONS {
        let mut client = Client::connect(address);
        client.send(GET_CLOSE);
        assert_eq!(client.response().status, 200);
        client.expect_end();
    }
    let t = target.testimony();
    assert_eq!((t.closed_by_target, t.closed_by_client), (CONNECTIONS, 0));
    expect_time_wait(address, (0, CONNECTIONS));
    target.bye();
}

#[test]
fn a_reset_and_a_half_closed_connection_are_told_apart() {
    let (mut target, address) = Program::serving(&[]);
    for _ in 0..5 {
        let mut client = Client::connect(address);
        client.get();
        set_socket_linger(client.stream(), Some(Duration::ZERO)).unwrap();
    }
    let mut client = Client::connect(address);
    client.stream().write_all(GET.as_bytes()).unwrap();
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.response().status, 200, "it still reads");
    client.expect_end();
    let t = target.testimony();
    assert_eq!((t.reset, t.closed_by_client, t.closed_by_target), (5, 1, 0));
    assert_eq!((t.requests, t.active), (6, 0));
    target.bye();
}

#[test]
fn a_half_closed_connection_is_not_kept_for_ever() {
    let (mut target, address) = Program::serving(&[("keep_alive", Value::Bool(false))]);
    let mut client = Client::connect(address);
    // The second is not read: the target lingers, lest a reset destroy its first answer.
    client.send(&GET.repeat(2));
    assert_eq!(client.response().status, 200);
    // Our FIN never comes; the target gives up by itself.
    let started = Instant::now();
    while target.testimony().active > 0 {
        assert!(started.elapsed() < PATIENCE, "still half open");
    }
    target.bye();
}

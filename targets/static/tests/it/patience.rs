//! Slow clients, and an end that lets others finish.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Client, GET};
use crate::program::{PATIENCE, Program, int, ms};

#[test]
fn a_head_that_does_not_end_is_a_408_however_steadily_it_comes() {
    let (mut target, address) = Program::serving(&[("header_timeout", ms(300))]);
    let mut client = Client::connect(address);
    assert_eq!(client.get().status, 200);
    // One byte now and then does not buy time; writes after the end may fail.
    let mut stream = client.stream().try_clone().unwrap();
    let drip = std::thread::spawn(move || {
        use std::io::Write;
        for byte in GET.bytes().take(20).chain([b'a'; 2000]) {
            if stream.write_all(&[byte]).is_err() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    });
    let late = client.response();
    assert_eq!((late.status, late.header("connection")), (408, "close"));
    client.expect_end();
    // Ends the drip at once, and the target's patience with it.
    client.stream().shutdown(Shutdown::Both).unwrap();
    drop(client);
    // Nothing at all is not worth an answer.
    let mut silent = Client::connect(address);
    silent.expect_end();
    drop(silent);
    assert!(
        drip.join().unwrap(),
        "the connection was closed in its face"
    );
    let t = target.testimony();
    assert_eq!(
        (t.requests, t.responses[&408], t.closed_by_target),
        (1, 1, 2)
    );
    target.bye();
}

#[test]
fn a_body_may_come_slowly_but_not_stop() {
    let (mut target, address) = Program::serving(&[("body_timeout", ms(600))]);
    let mut client = Client::connect(address);
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n";
    client.send(post);
    // Together longer than the timeout.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(35));
        client.send("a");
    }
    assert_eq!(client.response().status, 200);
    client.send(post);
    client.send("aaa");
    assert_eq!(client.response().status, 408);
    client.expect_end();
    assert_eq!(target.testimony().requests, 1);
    target.bye();
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let knobs = [("send_timeout", ms(300)), ("body_bytes", int(50_000_000))];
    let (mut target, address) = Program::serving(&knobs);
    let mut client = Client::connect(address);
    client.send(GET);
    let started = Instant::now();
    let t = loop {
        let t = target.testimony();
        if t.requests == 1 && t.active == 0 {
            break t;
        }
        assert!(started.elapsed() < PATIENCE, "still sending");
    };
    assert!(t.responses.is_empty() && t.closed_by_target == 1);
    target.bye();
}

#[test]
fn sigterm_finishes_what_has_begun_and_nothing_else() {
    // Longer than the pauses below, even on a noisy machine.
    let (mut target, address) = Program::serving(&[("delay", ms(1500))]);
    let mut idle = Client::connect(address);
    let mut waiting = Client::connect(address);
    let mut half = Client::connect(address);
    waiting.send(GET);
    half.send(&GET[..10]);
    let started = Instant::now();
    while target.testimony().requests < 1 {
        assert!(started.elapsed() < PATIENCE, "not read");
    }
    kill_process(Pid::from_child(&target.child), Signal::TERM).unwrap();
    idle.expect_end();
    // The door is shut: refused, or (if it was queued at that moment) closed at once.
    let refused = || match TcpStream::connect(address) {
        Err(_) => true,
        Ok(mut stream) => !matches!(stream.read(&mut [0; 1]), Ok(1..)),
    };
    assert!(refused());
    half.send(&GET[10..]);
    assert_eq!(waiting.response().status, 200);
    waiting.expect_end();
    let last = half.response();
    assert_eq!((last.status, last.header("connection")), (200, "close"));
    half.expect_end();
    drop((waiting, half));
    assert!(target.ended().success());
}

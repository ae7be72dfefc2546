//! What is asked and what is answered.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use yieldpoint_terms::Value;

use crate::client::{Client, GET, GET_CLOSE};
use crate::program::{Program, int};

#[test]
fn every_connection_and_request_is_counted() {
    const CONNECTIONS: u64 = 20;
    const REQUESTS: u64 = 30;
    for workers in [1, 3] {
        let (mut target, address) = Program::serving(&[("workers", int(workers))]);
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut client = Client::connect(address);
                    for _ in 0..REQUESTS {
                        let response = client.get();
                        assert_eq!((response.status, response.body.len()), (200, 612));
                        assert_eq!(response.header("connection"), "keep-alive");
                    }
                    client.bytes
                })
            })
            .collect();
        let bytes: u64 = clients.into_iter().map(|c| c.join().unwrap()).sum();
        let t = target.testimony();
        assert_eq!(t.connections, CONNECTIONS);
        assert_eq!(t.requests, CONNECTIONS * REQUESTS);
        assert_eq!(t.responses, BTreeMap::from([(200, CONNECTIONS * REQUESTS)]));
        assert_eq!(t.bytes_in, CONNECTIONS * REQUESTS * GET.len() as u64);
        assert_eq!(t.bytes_out, bytes);
        assert_eq!(
            (t.closed_by_client, t.closed_by_target, t.reset),
            (CONNECTIONS, 0, 0)
        );
        assert_eq!(t.active, 0);
        assert!(t.cpu_ns > 0);
        target.bye();
    }
}

#[test]
fn a_thousand_connections_at_once() {
    // Both processes need more descriptors than some systems give at first.
    let nofile = rustix::process::Resource::Nofile;
    let mut limit = rustix::process::getrlimit(nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(nofile, limit).unwrap();

    let (mut target, address) = Program::serving(&[("workers", int(2))]);
    let mut clients: Vec<_> = (0..1000).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        client.send(GET);
    }
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
    let t = target.testimony();
    assert_eq!((t.connections, t.requests, t.active), (1000, 1000, 1000));
    drop(clients);
    let t = target.testimony();
    assert_eq!((t.closed_by_client, t.active), (1000, 0));
    target.bye();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (mut target, address) = Program::serving(&[]);
    let mut client = Client::connect(address);
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /";
    let put = post.replace("POST", "PUT");
    client.send(&format!("{}{post}", GET.repeat(50)));
    for _ in 0..50 {
        assert_eq!(client.response().status, 200);
    }
    let posted = client.response();
    assert_eq!((posted.status, posted.body.len()), (200, 612));
    client.send(&format!("{put}{GET}{GET_CLOSE}"));
    let refused = client.response();
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, "GET, HEAD, POST")
    );
    assert_eq!(client.response().header("connection"), "keep-alive");
    assert_eq!(client.response().header("connection"), "close");
    client.expect_end();
    let t = target.testimony();
    assert_eq!(t.responses, BTreeMap::from([(200, 53), (405, 1)]));
    assert_eq!((t.requests, t.closed_by_target), (54, 1));
    target.bye();
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let (mut target, address) = Program::serving(&[]);
    let mut client = Client::connect(address);
    let post = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
    for request in [GET, post, GET] {
        for byte in request.chars() {
            client.send(&byte.to_string());
        }
        assert_eq!(client.response().status, 200);
    }
    drop(client);
    let t = target.testimony();
    assert_eq!((t.requests, t.connections), (3, 1));
    assert_eq!(t.bytes_in, (2 * GET.len() + post.len()) as u64);
    target.bye();
}

#[test]
fn what_is_not_a_request_is_refused_and_the_connection_closed() {
    let (mut target, address) = Program::serving(&[]);
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(9000));
    // A megabyte that nobody reads: the answer must survive it.
    let large = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n{}",
        "a".repeat(1_000_000)
    );
    let table = [
        ("\u{1}\u{2}\u{3}\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400), // no Host
        (long.as_str(), 431),
        (large.as_str(), 413),
        (
            "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            501,
        ),
        (
            "PUT / HTTP/1.1\r\nHost: x\r\nExpect: mercy\r\nContent-Length: 9\r\n\r\n",
            417,
        ),
    ];
    for (text, status) in table {
        let mut client = Client::connect(address);
        client.send(text);
        let response = client.response();
        assert_eq!(
            (response.status, response.header("connection")),
            (status, "close"),
            "{text:.40}"
        );
        client.expect_end();
    }
    let t = target.testimony();
    assert_eq!(t.requests, 0, "none was read to its end");
    assert_eq!(
        t.responses,
        BTreeMap::from([(400, 2), (413, 1), (417, 1), (431, 1), (501, 1)])
    );
    assert_eq!((t.closed_by_target, t.reset, t.active), (6, 0, 0));
    target.bye();
}

#[test]
fn http_1_0_closes_unless_it_asks_for_more() {
    let (mut target, address) = Program::serving(&[]);
    let mut client = Client::connect(address);
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.response().header("connection"), "keep-alive");
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.response().header("connection"), "close");
    client.expect_end();
    assert_eq!(target.testimony().requests, 2);
    target.bye();
}

#[test]
fn head_has_the_head_of_get_and_no_body() {
    let (target, address) = Program::serving(&[("body_bytes", int(100_000))]);
    let mut client = Client::connect(address);
    client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = client.head();
    // The next bytes are the next response's, or this would read nonsense.
    let get = client.get();
    assert_eq!(get.body.len(), 100_000);
    for name in ["server", "content-type", "content-length", "connection"] {
        assert_eq!(head.header(name), get.header(name));
        assert_ne!(get.header(name), "");
    }
    let date = get.header("date");
    assert!(
        date.len() == 29 && date.ends_with(" GMT") && !date.contains("1970"),
        "{date}"
    );
    target.bye();
}

#[test]
fn ten_megabytes_through_a_slow_reader() {
    const LENGTH: usize = 10_000_000;
    let mut page = b"<p>yieldpoint</p>\n".repeat(LENGTH / 18 + 1);
    page.truncate(LENGTH);
    for close in ["with_data", "after"] {
        let knobs = [
            ("body_bytes", int(LENGTH as i64)),
            ("close", Value::Text(close.into())),
        ];
        let (mut target, address) = Program::serving(&knobs);
        let mut client = Client::connect(address);
        // Three at once: the second and third wait behind the first.
        client.send(&format!("{GET}{GET}{GET_CLOSE}"));
        for nth in 0..3 {
            std::thread::sleep(Duration::from_millis(30));
            let body = client.response().body;
            // Not assert_eq, which would print them.
            assert!(body == page, "response {nth}");
        }
        client.expect_end();
        let t = target.testimony();
        assert_eq!((t.requests, t.responses[&200]), (3, 3));
        assert_eq!(t.bytes_out, client.bytes);
        assert_eq!((t.closed_by_target, t.active), (1, 0));
        target.bye();
    }
}

#[test]
fn a_reader_that_goes_away_in_the_middle_is_a_reset() {
    let (mut target, address) = Program::serving(&[("body_bytes", int(50_000_000))]);
    let mut client = Client::connect(address);
    client.send(GET);
    let mut some = [0; 1000];
    client.stream().read_exact(&mut some).unwrap();
    drop(client);
    let t = target.testimony();
    assert_eq!((t.requests, t.reset, t.active), (1, 1, 0));
    assert!(t.responses.is_empty(), "it was not completed");
    target.bye();
}

#[test]
fn a_client_that_waits_with_its_body_is_told_to_go_ahead() {
    let (mut target, address) = Program::serving(&[("max_body_bytes", int(10))]);
    let mut client = Client::connect(address);
    for _ in 0..2 {
        client.send(
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
        );
        assert_eq!(client.head().status, 100);
        client.send("0123456789");
        assert_eq!(client.response().status, 200);
    }
    // One byte too many is refused before it is sent.
    client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
    assert_eq!(client.response().status, 413);
    client.expect_end();
    let t = target.testimony();
    assert_eq!(t.responses, BTreeMap::from([(200, 2), (413, 1)]));
    assert_eq!((t.requests, t.bytes_out), (2, client.bytes));
    target.bye();
}

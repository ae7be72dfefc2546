//! A server of std alone that counts what it sees.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const LAST_HELLO: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
/// A bound on hangs, not a measure.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What the server does with each request.
#[derive(Clone, Copy)]
pub enum Answer {
    /// Answers, and closes only after the client.
    Hello,
    /// Answers and closes after that many requests, saying so in the last response or not.
    CloseAfter { requests: u64, announced: bool },
    /// Sends these bytes and closes.
    Bytes(&'static str),
    /// Never answers.
    Silence,
    /// Closes with a reset.
    Reset,
}

#[derive(Default)]
pub struct Seen {
    pub accepts: AtomicU64,
    pub requests: AtomicU64,
    pub client_closed_first: AtomicU64,
    pub open: AtomicU64,
    pub last_request: Mutex<String>,
}

impl Seen {
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::SeqCst)
    }
    /// Waits until every connection has ended.
    pub fn settle(&self) {
        self.settle_at(0);
    }
    pub fn settle_at(&self, open: u64) {
        wait_for(
            || Self::get(&self.open) == open,
            "a connection too many is open",
        );
    }
}

pub fn wait_for(done: impl Fn() -> bool, what: &str) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A server for the life of the test process.
pub fn server(answer: Answer) -> (SocketAddr, Arc<Seen>) {
    server_on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
}

pub fn server_on(listener: TcpListener, answer: Answer) -> (SocketAddr, Arc<Seen>) {
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Seen::default());
    let counters = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            counters.accepts.fetch_add(1, Ordering::SeqCst);
            counters.open.fetch_add(1, Ordering::SeqCst);
            let counters = counters.clone();
            std::thread::spawn(move || {
                serve(stream, answer, &counters);
                counters.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (address, seen)
}

fn serve(mut stream: TcpStream, answer: Answer, seen: &Seen) {
    let mut buffer = [0; 4096];
    let mut request = String::new();
    let mut served = 0;
    loop {
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => request.push_str(std::str::from_utf8(&buffer[..n]).unwrap()),
            _ => {
                seen.client_closed_first.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
        if !request.ends_with("\r\n\r\n") {
            continue;
        }
        seen.requests.fetch_add(1, Ordering::SeqCst);
        *seen.last_request.lock().unwrap() = std::mem::take(&mut request);
        served += 1;
        match answer {
            Answer::Hello => stream.write_all(HELLO.as_bytes()).unwrap(),
            Answer::CloseAfter {
                requests,
                announced,
            } => {
                let last = served == requests;
                let text = if last && announced { LAST_HELLO } else { HELLO };
                stream.write_all(text.as_bytes()).unwrap();
                if last {
                    return;
                }
            }
            Answer::Bytes(text) => return stream.write_all(text.as_bytes()).unwrap(),
            Answer::Silence => {}
            Answer::Reset => {
                let linger = Some(Duration::ZERO);
                return socket2::SockRef::from(&stream).set_linger(linger).unwrap();
            }
        }
    }
}

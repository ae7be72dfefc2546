//! A tiny server with bad manners on demand. It counts what it sees.

#![allow(dead_code)] // Not every test needs all of it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// 200, five bytes; closes if it was asked to
    Good,
    /// the same in three chunks
    Chunked,
    /// the same without a length: the body ends with the connection
    ToClose,
    /// one byte a read, as far as the network lets it
    Trickle,
    /// good, but every second response of a connection says `Connection: close`
    LimitTwo,
    /// good, but after every second response of a connection it closes without a word
    SilentLimitTwo,
    /// 500
    Failing,
    /// four bytes where five are expected
    Short,
    /// closes in the middle of the body
    Half,
    /// resets as soon as the request is read
    Reset,
    /// closes as soon as the request is read
    Deaf,
    /// reads and never answers
    Silent,
    /// answers something else
    Garbage,
    /// these bytes, then it closes
    Bytes(&'static str),
    /// good, but the first answer of all takes [`STALL`]
    StallFirst,
    /// good, but it closes [`PAUSE`] after the response that it closes after
    SlowClose,
    /// good, but it never closes first
    KeepOpen,
}

/// How long the first answer of [`Manner::StallFirst`] takes.
pub const STALL: Duration = Duration::from_millis(300);
/// How long [`Manner::SlowClose`] waits.
pub const PAUSE: Duration = Duration::from_millis(20);

/// What it saw.
#[derive(Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    /// accepted connections whose predecessor the client had not closed yet; the accept may come
    /// late, so that some are missed, but none is invented
    pub overlaps: AtomicU64,
    /// connections that the server has closed first or after the client, as far as it closes at all
    pub ended: AtomicU64,
    /// of those the ones whose client had closed before
    pub late_to_close: AtomicU64,
    /// connections by the client's address
    pub peers: Mutex<BTreeMap<IpAddr, u64>>,
    /// the last request, as it came
    pub last: Mutex<String>,
}

/// A server on a free port of 127.0.0.1; ends when dropped.
pub struct Server {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    listener: TcpListener,
    accept: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(manner: Manner) -> Self {
        Self::start_on(0, manner)
    }

    pub fn start_on(port: u16, manner: Manner) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (s, at) = (Arc::clone(&seen), listener.try_clone().unwrap());
        let accept = std::thread::spawn(move || {
            let mut handlers = Vec::new();
            let mut before: Option<TcpStream> = None;
            while let Ok((stream, peer)) = at.accept() {
                *s.peers.lock().unwrap().entry(peer.ip()).or_default() += 1;
                s.connections.fetch_add(1, Ordering::SeqCst);
                if before.is_some_and(|b| !has_ended(&b)) {
                    s.overlaps.fetch_add(1, Ordering::SeqCst);
                }
                // Not of a server that closes first: its sockets must close when it does.
                before = (manner == Manner::Good).then(|| stream.try_clone().unwrap());
                let seen = Arc::clone(&s);
                handlers.push(std::thread::spawn(move || serve(stream, manner, &seen)));
            }
            for handler in handlers {
                handler.join().unwrap();
            }
        });
        Self {
            address,
            seen,
            listener,
            accept: Some(accept),
        }
    }

    /// Connections and requests so far.
    pub fn counts(&self) -> (u64, u64) {
        let read = |n: &AtomicU64| n.load(Ordering::SeqCst);
        (read(&self.seen.connections), read(&self.seen.requests))
    }

    /// Connections that it has closed; their ends are at the clients'.
    pub fn ended(&self) -> u64 {
        self.seen.ended.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends accept() with an error. A connection of our own would need a port.
        let _ = socket2::SockRef::from(&self.listener).shutdown(Shutdown::Both);
        if let Some(accept) = self.accept.take() {
            let ended = accept.join();
            assert!(
                std::thread::panicking() || ended.is_ok(),
                "the server panicked"
            );
        }
    }
}

/// Serves one connection to its end.
fn serve(mut stream: TcpStream, manner: Manner, seen: &Seen) {
    // A client that neither sends nor closes must not hold the test for ever.
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    for turn in 1.. {
        let Some(request) = read_request(&mut stream) else {
            return;
        };
        let number = seen.requests.fetch_add(1, Ordering::SeqCst);
        let close = request.to_ascii_lowercase().contains("connection: close");
        *seen.last.lock().unwrap() = request;
        let end = |stream: &TcpStream| {
            if manner == Manner::SlowClose {
                std::thread::sleep(PAUSE);
            }
            let late = u64::from(has_ended(stream));
            seen.late_to_close.fetch_add(late, Ordering::SeqCst);
            let _ = stream.shutdown(Shutdown::Write);
            seen.ended.fetch_add(1, Ordering::SeqCst);
        };
        if manner == Manner::StallFirst && number == 0 {
            std::thread::sleep(STALL);
        }
        const HEAD: &str = "HTTP/1.1 200 OK\r\n";
        let (text, last) = match manner {
            Manner::Bytes(text) => (text.to_owned(), true),
            Manner::KeepOpen => (format!("{HEAD}content-length: 5\r\n\r\nhello"), false),
            Manner::Good
            | Manner::StallFirst
            | Manner::SlowClose
            | Manner::Trickle
            | Manner::SilentLimitTwo => (
                format!("{HEAD}content-length: 5\r\n\r\nhello"),
                close || manner == Manner::SilentLimitTwo && turn % 2 == 0,
            ),
            Manner::LimitTwo if turn % 2 == 0 => (
                format!("{HEAD}content-length: 5\r\nconnection: close\r\n\r\nhello"),
                true,
            ),
            Manner::LimitTwo => (format!("{HEAD}content-length: 5\r\n\r\nhello"), close),
            Manner::Chunked => (
                format!("{HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
                close,
            ),
            Manner::ToClose => (format!("{HEAD}connection: close\r\n\r\nhello"), true),
            Manner::Failing => (
                "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 5\r\n\r\nhello".to_owned(),
                close,
            ),
            Manner::Short => (format!("{HEAD}content-length: 4\r\n\r\nhell"), close),
            Manner::Half => (format!("{HEAD}content-length: 5\r\n\r\nhe"), true),
            Manner::Garbage => ("SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(), true),
            Manner::Deaf => (String::new(), true),
            Manner::Silent => continue,
            Manner::Reset => {
                reset(stream);
                return;
            }
        };
        let sent = if manner == Manner::Trickle {
            stream.set_nodelay(true).unwrap();
            text.bytes().try_for_each(|byte| stream.write_all(&[byte]))
        } else {
            stream.write_all(text.as_bytes())
        };
        if sent.is_err() {
            return;
        }
        if last {
            end(&stream);
            // Until the client closes too: a close with unread bytes would be a reset.
            while stream.read(&mut [0; 512]).is_ok_and(|n| n > 0) {}
            return;
        }
    }
}

/// The request up to its empty line; `None` at the end of the connection.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => request.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
    Some(String::from_utf8(request).unwrap())
}

/// Whether the client's end-of-file has arrived, and nothing else is unread.
fn has_ended(stream: &TcpStream) -> bool {
    use rustix::net::{RecvFlags, recv};

    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(stream, &mut [0; 1], flags).is_ok_and(|(n, _)| n == 0)
}

/// Ends a connection with RST.
fn reset(stream: TcpStream) {
    let socket = socket2::Socket::from(stream);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

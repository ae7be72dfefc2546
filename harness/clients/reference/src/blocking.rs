//! The blocking mode: one thread, one user, one socket with the kernel's own timeouts.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use socket2::{Domain, Socket, Type};
use yieldpoint_clients_core::{Failure, Meter, Response, Session, Setup, bind};
use yieldpoint_protocol::ErrorKind;
use yieldpoint_terms::clock;

use crate::request;
use crate::response::{Parser, Progress};

/// Bytes of one read.
const READ: usize = 64 * 1024;

/// The session of one user.
pub struct User {
    address: SocketAddr,
    source: Option<Ipv4Addr>,
    request: Vec<u8>,
    keep_alive: bool,
    // A user that waits for its next start may meanwhile lose its connection.
    waits: bool,
    connect_timeout: Duration,
    request_timeout: Duration,
    stream: Option<Stream>,
    parser: Parser,
    buffer: Box<[u8]>,
}

impl User {
    /// A user without a connection.
    pub fn new(setup: &Setup, user: usize) -> Self {
        Self {
            address: setup.address,
            source: setup.sources.of_user(user),
            request: request::bytes(setup),
            keep_alive: setup.keep_alive,
            waits: setup.rate.is_some(),
            connect_timeout: setup.connect_timeout.as_duration(),
            request_timeout: setup.request_timeout.as_duration(),
            stream: None,
            parser: Parser::default(),
            buffer: vec![0; READ].into_boxed_slice(),
        }
    }

    fn connect(&self, started_ns: u64, meter: &mut dyn Meter) -> Result<Stream, Failure> {
        let patience = self.connect_timeout.min(self.request_timeout);
        let tcp = self.open(patience).map_err(|e| {
            meter.connect_failed();
            let mut failure = Failure::of_connect(&e);
            if failure.kind == ErrorKind::ConnectTimeout && patience < self.connect_timeout {
                failure.kind = ErrorKind::Timeout;
            }
            failure
        })?;
        meter.connected(Some(clock::now_ns() - started_ns));
        tcp.set_write_timeout(Some(self.request_timeout))
            .map_err(|e| Failure::of_exchange(&e, ErrorKind::Other))?;
        Ok(Stream {
            tcp,
            patience: Duration::MAX,
        })
    }

    fn open(&self, patience: Duration) -> io::Result<TcpStream> {
        let Some(source) = self.source else {
            return TcpStream::connect_timeout(&self.address, patience);
        };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        bind(&socket, source)?;
        socket.connect_timeout(&self.address.into(), patience)?;
        Ok(socket.into())
    }

    /// The request and its whole response; whether the connection may be used again.
    fn exchange(
        &mut self,
        stream: &mut Stream,
        deadline_ns: u64,
    ) -> Result<(Response, bool), Failure> {
        let io = |e: io::Error| Failure::of_exchange(&e, ErrorKind::Other);
        self.parser.reset();
        stream.tcp.write_all(&self.request).map_err(io)?;
        loop {
            let n = match stream.tcp.read(&mut self.buffer) {
                Ok(0) => {
                    let response = self.parser.end();
                    let early = || io(io::ErrorKind::UnexpectedEof.into());
                    return Ok((response.ok_or_else(early)?, false));
                }
                Ok(n) => n,
                // A socket with a timeout says so after a stop signal.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
                Err(e) => return Err(io(e)),
            };
            match self.parser.feed(&self.buffer[..n]) {
                Ok(Progress::More) => {}
                Ok(Progress::Done { response, reusable }) => return Ok((response, reusable)),
                Err(e) => return Err(Failure::of_exchange(&e, ErrorKind::Protocol)),
            }
            // The kernel's timeout is for one read, ours for all of them.
            let left = deadline_ns.saturating_sub(clock::now_ns());
            stream.be_patient(Duration::from_nanos(left)).map_err(io)?;
        }
    }
}

/// A connection, and how long one read waits on it.
struct Stream {
    tcp: TcpStream,
    patience: Duration,
}

impl Stream {
    /// Whether the peer has neither closed nor said anything that answers nothing.
    fn is_open(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(&self.tcp, &mut [0; 1], flags).is_err_and(|e| e == Errno::AGAIN)
    }

    /// Sets the timeout of the next read, if it is not the standing one.
    fn be_patient(&mut self, patience: Duration) -> io::Result<()> {
        if patience.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if patience != self.patience {
            self.tcp.set_read_timeout(Some(patience))?;
            self.patience = patience;
        }
        Ok(())
    }
}

impl Session for User {
    fn reset(&mut self) {
        self.stream = None;
    }

    fn request(&mut self, meter: &mut dyn Meter) -> Result<Response, Failure> {
        let started = clock::now_ns();
        // At most a day, so it fits.
        let deadline_ns = started + self.request_timeout.as_nanos() as u64;
        let kept = self.stream.take().filter(|s| !self.waits || s.is_open());
        let (mut stream, patience) = match kept {
            Some(stream) => (stream, self.request_timeout),
            None => {
                let stream = self.connect(started, meter)?;
                let left = deadline_ns.saturating_sub(clock::now_ns());
                (stream, Duration::from_nanos(left))
            }
        };
        stream
            .be_patient(patience)
            .map_err(|e| Failure::of_exchange(&e, ErrorKind::Other))?;
        let (response, reusable) = self.exchange(&mut stream, deadline_ns)?;
        if reusable && self.keep_alive {
            self.stream = Some(stream);
        }
        Ok(response)
    }
}

//! One virtual user on one isahc client.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use isahc::config::{Configurable, RedirectPolicy, VersionNegotiation};
use isahc::{Error, HttpClient, Request, ResponseExt};
use yieldpoint_clients_core::{BlockingClient, Failure, Meter, Response, Session, Setup};
use yieldpoint_protocol::{ErrorKind, Hello, Role, VERSION};
use yieldpoint_terms::{Knob, Nanos, Value};

use crate::witness::User;

/// Knobs of this client alone.
const KNOBS: &[Knob] = &[Knob::bool(
    "tcp_nodelay",
    true,
    "TCP_NODELAY on every connection; false is refused: curl sets it and isahc cannot unset it",
)];

/// The bundled curl waits with select(), which knows no descriptor from 1,024 on: such a connection opens and is
/// given up at once ("Could not connect to server"). A user has 8 descriptors, its connection included.
const MOST_THREADS: i64 = 120;

/// Bodies are read through a buffer of this size, in bytes, and never kept.
const BUFFER: usize = 16 * 1024;

/// The client.
pub struct Isahc;

impl BlockingClient for Isahc {
    type Session = IsahcSession;

    fn hello(&self) -> Hello {
        Hello {
            protocol: VERSION,
            role: Role::Client,
            name: "isahc".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            // Names the version of curl underneath, too.
            library: isahc::version().into(),
            about:
                "isahc 2 on its own curl, one client (with a thread of its own) per virtual user"
                    .into(),
            honours: yieldpoint_clients_core::common(),
            limits: BTreeMap::from([
                ("users_per_thread".into(), 1),
                ("threads".into(), MOST_THREADS),
            ]),
            knobs: KNOBS.to_vec(),
        }
    }

    fn session(&self, setup: &Setup, user: usize) -> Result<IsahcSession, String> {
        if setup.options.get("tcp_nodelay") == Some(&Value::Bool(false)) {
            return Err("\"options.isahc.tcp_nodelay\": expected true, got false; isahc cannot switch it off, leave it out".into());
        }
        let source = setup.sources.of_user(user);
        let user = User::new();
        let options = Options {
            keep_alive: setup.keep_alive,
            connect_timeout: setup.connect_timeout,
            request_timeout: setup.request_timeout,
            source,
        };
        let client = options.client(user).map_err(|e| {
            format!("isahc's client: expected a thread and 7 descriptors, got \"{e}\"; raise the limits of threads and descriptors")
        })?;
        Ok(IsahcSession {
            client: Ok(client),
            user,
            options,
            url: setup.url.clone(),
            connection: None,
            buffer: vec![0; BUFFER].into(),
        })
    }
}

/// What a client is built from.
#[derive(Clone, Copy)]
struct Options {
    keep_alive: bool,
    connect_timeout: Nanos,
    request_timeout: Nanos,
    source: Option<Ipv4Addr>,
}

impl Options {
    fn client(self, user: User) -> Result<HttpClient, Error> {
        let mut builder = HttpClient::builder()
            .automatic_decompression(false)
            .redirect_policy(RedirectPolicy::None)
            .version_negotiation(VersionNegotiation::http11())
            .proxy(None)
            .tcp_nodelay()
            .connect_timeout(self.connect_timeout.as_duration())
            .timeout(self.request_timeout.as_duration())
            // The time of connect(), and the cost of it: one callback per step of a transfer.
            .metrics(true)
            // 0: nothing is kept. 1: the one connection that a user can have.
            .connection_cache_size(usize::from(self.keep_alive));
        if let Some(source) = self.source {
            // curl binds with IP_BIND_ADDRESS_NO_PORT, so the port is chosen at connect().
            builder = builder.interface(IpAddr::V4(source));
        }
        user.build(|| builder.build())
    }
}

/// One virtual user.
pub struct IsahcSession {
    /// An error where the last reset found no thread or descriptor for the next client.
    client: Result<HttpClient, Error>,
    user: User,
    options: Options,
    url: String,
    /// The local end of the connection that the next request may use.
    connection: Option<SocketAddr>,
    buffer: Box<[u8]>,
}

impl Session for IsahcSession {
    fn reset(&mut self) {
        self.connection = None;
        // Drops the old client first: it closes its connection and joins its thread. A connection
        // belongs to its client, and there is no other way to close it before the server does.
        self.client = Err(isahc::error::ErrorKind::ClientInitialization.into());
        self.client = self.options.client(self.user);
    }

    fn request(&mut self, meter: &mut dyn Meter) -> Result<Response, Failure> {
        let before = self.connection.take();
        let opened = |local: Option<SocketAddr>| local.is_some() && local != before;
        match self.exchange() {
            Ok(done) => {
                if opened(done.local) {
                    meter.connected(done.connect_ns);
                }
                self.connection = done.local.filter(|_| done.kept);
                Ok(done.response)
            }
            Err(e) => {
                // curl knows the local end as soon as it has a connection.
                match e.local_addr() {
                    None => meter.connect_failed(),
                    local if opened(local) => meter.connected(None),
                    Some(_) => {}
                }
                Err(Failure {
                    kind: kind(&e, self.user.take_errno()),
                    example: words(&e),
                })
            }
        }
    }
}

/// A complete exchange.
struct Exchange {
    response: Response,
    local: Option<SocketAddr>,
    /// The connection may serve the next request.
    kept: bool,
    connect_ns: Option<u64>,
}

impl IsahcSession {
    fn exchange(&mut self) -> Result<Exchange, Error> {
        if self.client.is_err() {
            self.client = self.options.client(self.user);
        }
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let mut request = Request::get(&self.url)
            // isahc can empty these two but not leave them out.
            .header("accept", "")
            .header("user-agent", "");
        if !self.options.keep_alive {
            request = request.header("connection", "close");
        }
        let mut response = client.send(request.body(()).map_err(io::Error::other)?)?;
        let mut body_bytes = 0;
        loop {
            // isahc wraps its own errors in I/O errors here; the conversion takes them out again.
            match response.body_mut().read(&mut self.buffer)? {
                0 => break,
                n => body_bytes += n as u64,
            }
        }
        let closes = response
            .headers()
            .get("connection")
            .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"close"));
        let connect_time = response.metrics().map(|m| m.connect_time());
        Ok(Exchange {
            response: Response {
                status: response.status().as_u16(),
                body_bytes,
            },
            local: response.local_addr(),
            kept: self.options.keep_alive && !closes,
            // 2^64 ns are 584 years; connect_timeout is far below.
            connect_ns: connect_time.map(|t| t.as_nanos() as u64),
        })
    }
}

/// The kind of a failure; `errno`: what the witness saw.
fn kind(e: &Error, errno: i32) -> ErrorKind {
    let source = e.source();
    if let Some(io) = source.and_then(|s| s.downcast_ref::<io::Error>()) {
        // The parts of a client that is being built: its thread, its poll descriptors.
        return match ErrorKind::of_connect(io) {
            ErrorKind::FdLimit => ErrorKind::FdLimit,
            _ => ErrorKind::Other,
        };
    }
    let Some(curl) = source.and_then(|s| s.downcast_ref::<curl::Error>()) else {
        return ErrorKind::Other;
    };
    if curl.is_couldnt_connect() {
        match ErrorKind::of_connect(&io::Error::from_raw_os_error(errno)) {
            // Not an outcome of connect(): errno is what another call has left.
            ErrorKind::ConnectTimeout | ErrorKind::Reset => ErrorKind::Other,
            kind => kind,
        }
    } else if curl.is_operation_timedout() {
        match e.local_addr() {
            None => ErrorKind::ConnectTimeout,
            Some(_) => ErrorKind::Timeout,
        }
    } else if curl.is_recv_error() || curl.is_send_error() {
        ErrorKind::Reset
    } else if curl.is_partial_file() || curl.is_got_nothing() {
        ErrorKind::ClosedEarly
    } else if curl.is_unsupported_protocol() || curl.code() == WEIRD_SERVER_REPLY {
        ErrorKind::Protocol
    } else {
        ErrorKind::Other
    }
}

/// CURLE_WEIRD_SERVER_REPLY: the response is not HTTP.
const WEIRD_SERVER_REPLY: u32 = 8;

/// isahc's words and those of curl or the system underneath.
fn words(e: &Error) -> String {
    e.source()
        .map_or_else(|| e.to_string(), |source| format!("{e}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance as must;

    #[test]
    fn a_closed_connection_is_replaced() {
        must::a_connection_closed_by_the_server_is_replaced_and_counted(&Isahc);
    }

    #[test]
    fn responses() {
        must::any_complete_response_is_a_response(&Isahc);
    }

    #[test]
    fn cut_in_its_head() {
        // curl takes it for complete; the driver then finds the length wrong.
        let taken = Response {
            status: 200,
            body_bytes: 0,
        };
        assert_eq!(must::cut_in_its_head(&Isahc), Ok(taken));
    }

    #[test]
    fn bytes_of_a_request() {
        let headers = "Host: ADDRESS\r\naccept:\r\nuser-agent:\r\n";
        must::the_request_is(&Isahc, true, headers);
        // This one is written by curl itself, which saw ours and agreed.
        must::the_request_is(&Isahc, false, &format!("{headers}Connection: close\r\n"));
    }

    #[test]
    fn leaves_nothing() {
        // One thread for each client.
        must::iterations_leave_nothing("session::tests::leaves_nothing", &Isahc, 1);
    }

    #[test]
    fn descriptors_run_out() {
        must::descriptors_run_out("session::tests::descriptors_run_out", &Isahc);
    }

    #[test]
    fn every_user_sees_its_own_errno() {
        must::failures_are_told_apart_by_user(&Isahc);
    }
}

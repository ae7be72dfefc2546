//! One virtual user on hyper: at most one connection, driven by a task of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, timeout_at};
use yieldpoint_clients_core::{Failure, Meter, Response, Setup, bind, chain, io_error_of};
use yieldpoint_clients_core_async::AsyncSession;
use yieldpoint_protocol::ErrorKind;
use yieldpoint_terms::clock;

type Body = Empty<Bytes>;

/// The session of one user.
pub struct User {
    address: SocketAddr,
    source: Option<Ipv4Addr>,
    request: Request<Body>,
    keep_alive: bool,
    connect_timeout: Duration,
    request_timeout: Duration,
    connection: Option<Connection>,
}

struct Connection {
    requests: SendRequest<Body>,
    // Owns the socket; ends when the connection is closed.
    task: JoinHandle<()>,
}

impl Connection {
    /// Closes as hyper does when its user lets go; the socket is closed on return.
    async fn close(self) {
        drop(self.requests);
        // The task cannot be cancelled here, and has nothing to say if it panicked.
        let _ = self.task.await;
    }

    /// Closes in the middle of a response; the socket is closed on return.
    async fn abort(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

impl User {
    /// Builds the request once; it is cloned for every use.
    pub fn new(setup: &Setup, user: usize) -> Result<Self, String> {
        let url = |e: &dyn std::fmt::Display| format!("url \"{}\": {e}", setup.url);
        let uri: Uri = setup.path.parse().map_err(|e| url(&e))?;
        let host = HeaderValue::from_str(&setup.host).map_err(|e| url(&e))?;
        let mut request = Request::new(Body::new());
        *request.uri_mut() = uri;
        request.headers_mut().insert(HOST, host);
        if !setup.keep_alive {
            let close = HeaderValue::from_static("close");
            request.headers_mut().insert(CONNECTION, close);
        }
        Ok(Self {
            address: setup.address,
            source: setup.sources.of_user(user),
            request,
            keep_alive: setup.keep_alive,
            connect_timeout: setup.connect_timeout.as_duration(),
            request_timeout: setup.request_timeout.as_duration(),
            connection: None,
        })
    }

    /// The connection of the last request if the server still wants it, else a new one.
    async fn connection(
        &mut self,
        deadline: Instant,
        meter: &mut dyn Meter,
    ) -> Result<Connection, Failure> {
        if let Some(mut connection) = self.connection.take() {
            if connection.requests.ready().await.is_ok() {
                return Ok(connection);
            }
            connection.close().await;
        }
        self.connect(deadline, meter).await
    }

    async fn connect(
        &self,
        deadline: Instant,
        meter: &mut dyn Meter,
    ) -> Result<Connection, Failure> {
        let started = clock::now_ns();
        let patience = Instant::now() + self.connect_timeout;
        let connect = open(self.address, self.source);
        let stream = match timeout_at(patience.min(deadline), connect).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(e)) => {
                meter.connect_failed();
                return Err(Failure::of_connect(&e));
            }
            Err(_) => {
                meter.connect_failed();
                return Err(if patience <= deadline {
                    Failure {
                        kind: ErrorKind::ConnectTimeout,
                        example: format!("no connection within {:?}", self.connect_timeout),
                    }
                } else {
                    self.too_late()
                });
            }
        };
        meter.connected(Some(clock::now_ns() - started));
        // Sends nothing: HTTP/1 has no handshake.
        let (requests, connection) = handshake(TokioIo::new(stream)).await.map_err(failure)?;
        let task = spawn_local(async move {
            // What went wrong is told to the request that it went wrong for.
            let _ = connection.await;
        });
        Ok(Connection { requests, task })
    }

    fn too_late(&self) -> Failure {
        Failure {
            kind: ErrorKind::Timeout,
            example: format!("no complete response within {:?}", self.request_timeout),
        }
    }
}

impl AsyncSession for User {
    async fn reset(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
    }

    async fn request(&mut self, meter: &mut dyn Meter) -> Result<Response, Failure> {
        let deadline = Instant::now() + self.request_timeout;
        let mut connection = self.connection(deadline, meter).await?;
        let exchange = exchange(&mut connection.requests, self.request.clone());
        let result = match timeout_at(deadline, exchange).await {
            Ok(result) => result.map_err(failure),
            Err(_) => Err(self.too_late()),
        };
        match &result {
            Ok(_) if self.keep_alive => self.connection = Some(connection),
            Ok(_) => connection.close().await,
            Err(_) => connection.abort().await,
        }
        result
    }
}

/// A connected socket from the source address, or from where the kernel likes.
async fn open(address: SocketAddr, source: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let Some(source) = source else {
        return TcpStream::connect(address).await;
    };
    let socket = TcpSocket::new_v4()?;
    bind(&socket, source)?;
    socket.connect(address).await
}

/// One request and its whole response.
async fn exchange(
    requests: &mut SendRequest<Body>,
    request: Request<Body>,
) -> Result<Response, hyper::Error> {
    requests.ready().await?;
    let response = requests.send_request(request).await?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut body_bytes = 0;
    while let Some(frame) = body.frame().await {
        body_bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(Response { status, body_bytes })
}

/// What hyper's error means.
fn failure(e: hyper::Error) -> Failure {
    let kind = match io_error_of(&e) {
        // How hyper reports chunks that are none.
        Some(io) if io.kind() == std::io::ErrorKind::InvalidInput => ErrorKind::Protocol,
        Some(io) => ErrorKind::of_exchange(io),
        None if e.is_incomplete_message() || e.is_canceled() || e.is_closed() => {
            ErrorKind::ClosedEarly
        }
        None if e.is_parse() => ErrorKind::Protocol,
        None => ErrorKind::Other,
    };
    Failure {
        kind,
        example: chain(&e),
    }
}

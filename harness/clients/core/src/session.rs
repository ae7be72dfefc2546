//! What a blocking HTTP stack must offer to be driven: the only thing a client program writes.

use yieldpoint_protocol::{ErrorKind, Hello};

use crate::Setup;

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// status code
    pub status: u16,
    /// bytes of the body, read to its end
    pub body_bytes: u64,
}

/// A request that got no complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// the kind
    pub kind: ErrorKind,
    /// the library's own words
    pub example: String,
}

/// Connections that a session opened, counted where they are opened.
pub trait Meter {
    /// A connection was opened; `connect_ns` is the time of its connect(), `None` where the library hides it.
    fn connected(&mut self, connect_ns: Option<u64>);
    /// A connection was asked for and not got.
    fn connect_failed(&mut self);
}

/// One virtual user's connection, pool and cookies over one HTTP stack.
pub trait Session {
    /// Drops connection, pool and cookies; the client closes first. Nothing is opened yet.
    fn reset(&mut self);

    /// One GET of the job's URL, the body read to its end. Opens a connection if there is none;
    /// with `keep_alive` false it carries `Connection: close` and leaves no connection behind.
    /// Status and length are judged by the caller, who also measures: what this call does after
    /// the last byte, such as a close, is part of the request's latency.
    fn request(&mut self, meter: &mut dyn Meter) -> Result<Response, Failure>;
}

/// A client program on a blocking stack.
pub trait BlockingClient: Sync {
    /// The session of one virtual user.
    type Session: Session;

    /// Who this client is (`honours` starts from [`crate::common`]).
    fn hello(&self) -> Hello;

    /// Allocates the session of one user, whose number in the process (from 0) chooses its
    /// source address; opens no connection. An error is one sentence for the runner (`failed`).
    fn session(&self, setup: &Setup, user: usize) -> Result<Self::Session, String>;
}

//! Where a connection stands, and what becomes of it.

use crate::dialogue::{self, Then};
use crate::outgoing::Outgoing;
use crate::site::Decided;

/// An answer of ours.
pub type Answer = dialogue::Answer<Decided>;

/// Whether a connection is still needed; dropping it closes its descriptor.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Stay,
    Gone,
}

/// What follows an attempt to answer.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// it is out: serve the next request
    Serve,
    /// it is not, or was the last
    Rest(Fate),
}

#[derive(Clone, Copy, Debug)]
pub enum Side {
    Client,
    Target,
}

/// Where a connection stands.
#[derive(Debug)]
pub enum Phase {
    /// reads requests
    Open,
    /// a request has been read whose answer is due later; what follows it stays unread
    Waiting(Box<Answer>),
    /// waits until the rest of a response fits into the socket
    Sending(Box<Unsent>),
    /// waits until the next piece of a slow response is due
    Pausing(Box<Unsent>),
    /// the last response is out, our FIN is not yet due (`close = "after"`)
    FinDue(Then),
    /// our FIN is out; what the client still sends is read and dropped, because close() with
    /// unread data would send a reset that can destroy the response on its way
    Lingering,
}

/// The rest of a response.
#[derive(Debug)]
pub struct Unsent {
    pub out: Outgoing,
    pub status_index: usize,
    pub then: Then,
    pub cut_short: bool,
}

//! ureq's own TCP connector with a counter around it, and a resolver that resolves nothing.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, NextTimeout, TcpConnector, Transport,
};

/// What the connector did since the session last asked.
///
/// ureq opens connections on its own account (a pooled one may have been closed by the server),
/// so they are counted here and nowhere else.
#[derive(Clone, Debug, Default)]
pub struct Connects(Arc<Mutex<Vec<Connect>>>);

/// One call of connect().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// A connection, with the time of its connect() in ns.
    Opened(u64),
    /// None.
    Failed,
}

impl Connects {
    fn push(&self, connect: Connect) {
        // A list of plain values is whole even if a thread panicked while it held the lock.
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connect);
    }

    /// Hands every call since the last time to `tell`, in order; the list keeps its memory.
    pub fn drain(&self, tell: impl FnMut(Connect)) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.drain(..).for_each(tell);
    }
}

/// Counts around the connector that every user of ureq gets, so that the transport is ureq's own.
#[derive(Debug)]
pub struct Counting {
    connects: Connects,
    tcp: TcpConnector,
}

impl Counting {
    /// A connector that reports to `connects`.
    pub fn new(connects: Connects) -> Self {
        Self {
            connects,
            tcp: TcpConnector::default(),
        }
    }
}

impl<In: Transport> Connector<In> for Counting {
    type Out = <TcpConnector as Connector<In>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let start = Instant::now();
        let result = self.tcp.connect(details, chained);
        // 2^64 ns are 584 years; connect_timeout is far below.
        let ns = start.elapsed().as_nanos() as u64;
        self.connects.push(match result {
            Ok(Some(_)) => Connect::Opened(ns),
            Ok(None) | Err(_) => Connect::Failed,
        });
        result
    }
}

/// The job's address, whatever is asked: with any other resolver a timeout costs a thread per request.
#[derive(Debug)]
pub struct Fixed(pub SocketAddr);

impl Resolver for Fixed {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(self.0);
        Ok(addresses)
    }
}

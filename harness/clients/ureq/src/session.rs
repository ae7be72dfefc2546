//! One virtual user on one ureq agent.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;

use ureq::config::Config;
use ureq::{Agent, Error};
use yieldpoint_clients_core::{BlockingClient, Failure, Meter, Response, Session, Setup};
use yieldpoint_protocol::{ErrorKind, Hello, Role, VERSION};
use yieldpoint_terms::{Knob, Value};

use crate::connector::{Connect, Connects, Counting, Fixed};

/// Knobs of this client alone.
const KNOBS: &[Knob] = &[Knob::bool(
    "tcp_nodelay",
    true,
    "TCP_NODELAY on every connection",
)];

/// Bodies are read through a buffer of this size, in bytes, and never kept.
const BUFFER: usize = 16 * 1024;

/// The client.
pub struct Ureq;

impl BlockingClient for Ureq {
    type Session = UreqSession;

    fn hello(&self) -> Hello {
        Hello {
            protocol: VERSION,
            role: Role::Client,
            name: "ureq".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            // The root Cargo.toml pins exactly this version.
            library: "ureq 3.5.2".into(),
            about: "ureq 3, blocking, one agent (and its pool) per virtual user".into(),
            // ureq's TCP transport opens its socket itself and takes no address; another
            // transport would no longer be what users of ureq get.
            honours: yieldpoint_clients_core::common_without(&["source_addresses"]),
            limits: BTreeMap::from([("users_per_thread".into(), 1)]),
            knobs: KNOBS.to_vec(),
        }
    }

    fn session(&self, setup: &Setup, _: usize) -> Result<UreqSession, String> {
        let config = Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .no_delay(setup.options.get("tcp_nodelay") != Some(&Value::Bool(false)))
            // Nothing but the Host header, as other stacks send it.
            .user_agent("")
            .accept("")
            .accept_encoding("")
            .timeout_connect(Some(setup.connect_timeout.as_duration()))
            .timeout_global(Some(setup.request_timeout.as_duration()))
            .max_idle_connections(usize::from(setup.keep_alive))
            .build();
        let connects = Connects::default();
        Ok(UreqSession {
            agent: agent(&config, &connects, setup.address),
            config,
            connects,
            address: setup.address,
            url: setup.url.clone(),
            keep_alive: setup.keep_alive,
            buffer: vec![0; BUFFER].into(),
        })
    }
}

/// One virtual user.
pub struct UreqSession {
    agent: Agent,
    config: Config,
    connects: Connects,
    address: SocketAddr,
    url: String,
    keep_alive: bool,
    buffer: Box<[u8]>,
}

fn agent(config: &Config, connects: &Connects, address: SocketAddr) -> Agent {
    Agent::with_parts(
        config.clone(),
        Counting::new(connects.clone()),
        Fixed(address),
    )
}

impl Session for UreqSession {
    fn reset(&mut self) {
        // The assignment drops the old agent and with it the pool: its connection is closed here.
        self.agent = agent(&self.config, &self.connects, self.address);
    }

    fn request(&mut self, meter: &mut dyn Meter) -> Result<Response, Failure> {
        let result = self.exchange();
        let mut connect_failed = false;
        self.connects.drain(|connect| match connect {
            Connect::Opened(ns) => meter.connected(Some(ns)),
            Connect::Failed => {
                connect_failed = true;
                meter.connect_failed();
            }
        });
        result.map_err(|e| Failure {
            kind: kind(&e, connect_failed),
            example: e.to_string(),
        })
    }
}

impl UreqSession {
    fn exchange(&mut self) -> Result<Response, Error> {
        let mut request = self.agent.get(&self.url);
        if !self.keep_alive {
            request = request.header("connection", "close");
        }
        let mut response = request.call()?;
        let status = response.status().as_u16();
        let mut body = response.body_mut().as_reader();
        let mut body_bytes = 0;
        loop {
            // ureq wraps its own errors in I/O errors here; the conversion takes them out again.
            match body.read(&mut self.buffer)? {
                0 => return Ok(Response { status, body_bytes }),
                n => body_bytes += n as u64,
            }
        }
    }
}

/// The kind of a failure; `connecting`: the connector was the one to fail.
fn kind(e: &Error, connecting: bool) -> ErrorKind {
    match e {
        Error::Io(io) if connecting => ErrorKind::of_connect(io),
        // Whichever of the two timeouts ended it, there was no connection.
        Error::Timeout(_) if connecting => ErrorKind::ConnectTimeout,
        Error::Io(io) => ErrorKind::of_exchange(io),
        Error::Timeout(_) => ErrorKind::Timeout,
        Error::Protocol(_) | Error::Http(_) | Error::LargeResponseHeader(..) => ErrorKind::Protocol,
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance as must;

    #[test]
    fn a_closed_connection_is_replaced() {
        must::a_connection_closed_by_the_server_is_replaced_and_counted(&Ureq);
    }

    #[test]
    fn responses() {
        must::any_complete_response_is_a_response(&Ureq);
    }

    #[test]
    fn cut_in_its_head() {
        assert_eq!(must::cut_in_its_head(&Ureq), Err(ErrorKind::ClosedEarly));
    }

    #[test]
    fn bytes_of_a_request() {
        must::the_request_is(&Ureq, true, "host: ADDRESS\r\n");
        must::the_request_is(&Ureq, false, "host: ADDRESS\r\nconnection: close\r\n");
    }

    #[test]
    fn leaves_nothing() {
        // No thread but the caller's: neither the timeout nor the resolver spawns one.
        must::iterations_leave_nothing("session::tests::leaves_nothing", &Ureq, 0);
    }

    #[test]
    fn descriptors_run_out() {
        must::descriptors_run_out("session::tests::descriptors_run_out", &Ureq);
    }

    #[test]
    fn every_user_sees_its_own_errors() {
        must::failures_are_told_apart_by_user(&Ureq);
    }
}

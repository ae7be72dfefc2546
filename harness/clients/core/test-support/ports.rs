//! Few local ports: what this project is about.

use yieldpoint_protocol::ErrorKind;
use yieldpoint_terms::Value;

use super::alone::with_ports;
use super::client::{Knob, run};
use super::server::{Manner, Server};
use super::{is_consistent, with};

/// Local ports of the namespace.
const PORTS: u64 = 300;
/// Iterations beyond them.
const MORE: u64 = 7;
/// Outside the local ports.
const SERVER: u16 = 20_000;

/// A user that forgets its connection gets exactly as many as there are ports, and then the error
/// that says so. `test` is the calling test: it is run again inside a namespace.
pub fn ports_run_out(test: &str, program: &str, options: &[Knob<'_>]) {
    with_ports(test, PORTS, || exhaust(program, options, &[None]));
}

/// Every source address has all ports of its own, since the port is chosen at connect().
pub fn source_addresses_multiply_ports(test: &str, program: &str, options: &[Knob<'_>]) {
    let sources = [Some("127.0.0.2"), Some("127.0.0.3")];
    with_ports(test, PORTS, || exhaust(program, options, &sources));
}

/// One user for each source, each with more iterations than there are ports.
fn exhaust(program: &str, options: &[Knob<'_>], sources: &[Option<&str>]) {
    let server = Server::start_on(SERVER, Manner::Good);
    let users = sources.len() as u64;
    let mut knobs = with(
        options,
        &[
            ("same_user", Value::Bool(false)),
            ("threads", Value::Int(users as i64)),
            // 300 + 7 fits.
            ("iterations", Value::Int((PORTS + MORE) as i64)),
            ("expect.body_bytes", Value::Int(5)),
        ],
    );
    let named: Vec<_> = sources.iter().copied().flatten().collect();
    if !named.is_empty() {
        knobs.push(("source_addresses", Value::Text(named.join(","))));
    }
    let o = run(program, &format!("http://{}/", server.address), &knobs);
    is_consistent(&o);
    let got = (o.total.good, o.total.connections, o.total.connect_failures);
    assert_eq!(got, (users * PORTS, users * PORTS, users * MORE), "{o:?}");
    assert_eq!(server.counts(), (users * PORTS, users * PORTS));
    let errors: Vec<_> = o.errors.iter().map(|e| (e.kind, e.count)).collect();
    assert_eq!(
        errors,
        [(ErrorKind::AddressNotAvailable, users * MORE)],
        "{o:?}"
    );
    let peers = server.seen.peers.lock().unwrap();
    for source in sources {
        let source = source.unwrap_or("127.0.0.1").parse().unwrap();
        assert_eq!(peers.get(&source), Some(&PORTS), "{peers:?}");
    }
}

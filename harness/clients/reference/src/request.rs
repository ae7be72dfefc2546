//! The bytes of the one request of a job.

use yieldpoint_clients_core::Setup;

/// The same bytes as hyper's client sends: `host`, and `connection: close` where it is needed.
pub fn bytes(setup: &Setup) -> Vec<u8> {
    let connection = if setup.keep_alive {
        ""
    } else {
        "connection: close\r\n"
    };
    format!(
        "GET {} HTTP/1.1\r\nhost: {}\r\n{connection}\r\n",
        setup.path, setup.host
    )
    .into_bytes()
}

//! Load client on hyper 1: `conn::http1` over its own sockets, so that connections are counted
//! exactly and the time of connect() is known.

mod session;

use std::process::ExitCode;

use session::User;
use yieldpoint_clients_core::{Setup, common};
use yieldpoint_clients_core_async::{AsyncClient, main_async};
use yieldpoint_protocol::{Hello, Role, VERSION};

struct Client;

impl AsyncClient for Client {
    type Session = User;

    fn hello(&self) -> Hello {
        Hello {
            protocol: VERSION,
            role: Role::Client,
            name: "hyper".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            library: env!("YIELDPOINT_LIBRARY").into(),
            about: "hyper's HTTP/1.1 connection on tokio, one connection a user, no pool".into(),
            honours: common(),
            limits: [].into(),
            knobs: Vec::new(),
        }
    }

    fn session(&self, setup: &Setup, user: usize) -> Result<User, String> {
        User::new(setup, user)
    }
}

fn main() -> ExitCode {
    main_async(&Client)
}

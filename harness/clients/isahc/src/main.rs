//! The load client `yieldpoint-client-isahc`: isahc 2 on its own curl, one client per virtual user.

mod session;
mod witness;

#[cfg(test)]
#[path = "../../core/test-support/session.rs"]
mod conformance;

use std::process::ExitCode;

fn main() -> ExitCode {
    yieldpoint_clients_core::main_blocking(&session::Isahc)
}

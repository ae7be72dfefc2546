//! The load client `yieldpoint-client-ureq`: ureq 3, blocking, one agent per virtual user.

mod connector;
mod session;

#[cfg(test)]
#[path = "../../core/test-support/session.rs"]
mod conformance;

use std::process::ExitCode;

fn main() -> ExitCode {
    yieldpoint_clients_core::main_blocking(&session::Ureq)
}

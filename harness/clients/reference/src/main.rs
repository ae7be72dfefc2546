//! The reference load client: hand-written HTTP/1.1, as little as the protocol needs.
//! `io` chooses between one blocking user a thread and many users on an epoll loop.

mod blocking;
mod connection;
mod epoll;
mod request;
mod response;
mod timer;

use std::borrow::Cow;
use std::process::ExitCode;

use yieldpoint_clients_core::{BlockingClient, Refusal, Setup, blocking_thread, common, serve};
use yieldpoint_protocol::{Hello, Role, VERSION};
use yieldpoint_terms::Knob;

const IO: &[Cow<'static, str>] = &[Cow::Borrowed("epoll"), Cow::Borrowed("blocking")];
const CLOSE: &[Cow<'static, str>] = &[Cow::Borrowed("now"), Cow::Borrowed("after_peer")];

struct Blocking;

impl BlockingClient for Blocking {
    type Session = blocking::User;

    fn hello(&self) -> Hello {
        hello()
    }

    fn session(&self, setup: &Setup, user: usize) -> Result<blocking::User, String> {
        Ok(blocking::User::new(setup, user))
    }
}

fn hello() -> Hello {
    Hello {
        protocol: VERSION,
        role: Role::Client,
        name: "reference".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        library: env!("YIELDPOINT_LIBRARY").into(),
        about: "hand-written HTTP/1.1 on bare sockets: what a client could do here".into(),
        honours: common(),
        limits: [].into(),
        knobs: vec![
            Knob::choice(
                "io",
                IO,
                "epoll: many users on one loop a thread; blocking: one user a thread",
            ),
            Knob::choice(
                "close",
                CLOSE,
                "with keep_alive false, after the response: now, close at once; after_peer, once the target has closed (at most request_timeout after the start)",
            ),
        ],
    }
}

fn is_blocking(setup: &Setup) -> bool {
    // The knob is a choice with a default, so it is there and one of the two.
    setup.options.text("io") == Ok("blocking")
}

fn closes_after_peer(setup: &Setup) -> bool {
    setup.options.text("close") == Ok("after_peer")
}

fn check(setup: &Setup) -> Result<(), Refusal> {
    if is_blocking(setup) && setup.users_per_thread > 1 {
        return Err(Refusal::Unsupported(format!(
            "\"users_per_thread\": at most 1 with io \"blocking\", got {}; take io \"epoll\" or more threads",
            setup.users_per_thread
        )));
    }
    if is_blocking(setup) && closes_after_peer(setup) {
        return Err(Refusal::Unsupported(
            "\"options.reference.close\": expected \"now\" with io \"blocking\", got \"after_peer\"; take io \"epoll\"".into(),
        ));
    }
    Ok(())
}

fn main() -> ExitCode {
    serve(hello(), check, |setup, gate| {
        if is_blocking(setup) {
            blocking_thread(&Blocking, setup, gate)
        } else {
            epoll::thread(setup, gate)
        }
    })
}

//! What a client says when one of its own threads lets it down. This program is the test and,
//! started by itself with FAKE set, the client.

#[path = "../test-support/client.rs"]
mod client;

use std::time::Duration;

use client::{Client, job};
use yieldpoint_clients_core::{
    BlockingClient, Failure, Meter, Response, Session, Setup, common, main_blocking,
};
use yieldpoint_protocol::{FromProgram, Hello, Role, ToProgram, VERSION};
use yieldpoint_terms::{Nanos, Value, clock};

/// A client without a stack; its fault is in the environment.
struct Fake(String);

impl BlockingClient for Fake {
    type Session = Fake;

    fn hello(&self) -> Hello {
        Hello {
            protocol: VERSION,
            role: Role::Client,
            name: "fake".into(),
            version: String::new(),
            library: String::new(),
            about: String::new(),
            honours: common(),
            limits: [].into(),
            knobs: Vec::new(),
        }
    }

    fn session(&self, _: &Setup, _: usize) -> Result<Fake, String> {
        match self.0.as_str() {
            "no session" => Err("no memory for a session".into()),
            "panic early" => panic!("a broken session"),
            fault => Ok(Fake(fault.into())),
        }
    }
}

impl Session for Fake {
    fn reset(&mut self) {}

    fn request(&mut self, _: &mut dyn Meter) -> Result<Response, Failure> {
        match self.0.as_str() {
            "panic" => panic!("a broken request"),
            _ => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
        }
    }
}

fn main() -> std::process::ExitCode {
    if let Ok(fault) = std::env::var("FAKE") {
        return main_blocking(&Fake(fault));
    }
    // each row: fault, whether it is ready before, what it says
    let table = [
        ("no session", false, "no memory for a session"),
        (
            "panic early",
            false,
            "a load thread panicked: a broken session",
        ),
        ("panic", true, "a load thread panicked: a broken request"),
        ("hang", true, "2 of 2 load threads did not stop"),
    ];
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("a path in UTF-8");
    for (fault, ready, want) in table {
        let mut client = Client::start_with(program, "FAKE", fault);
        let moment = Value::Duration(Nanos::from_millis(1));
        let mut answer = client.offer(job(
            "http://127.0.0.1:1/",
            &[
                ("threads", Value::Int(2)),
                // Long enough for a starved thread to make its first request within.
                ("duration", Value::Duration(Nanos::from_secs(3))),
                ("connect_timeout", moment.clone()),
                ("request_timeout", moment),
            ],
        ));
        if ready {
            assert!(
                matches!(answer, FromProgram::Ready { .. }),
                "{fault}: {answer:?}"
            );
            client.tell(&ToProgram::Go {
                start_at_ns: clock::now_ns(),
            });
            answer = client.hear().expect("an answer to go");
        }
        let FromProgram::Failed { reason } = &answer else {
            panic!("{fault}: expected failed, got {answer:?}");
        };
        assert!(reason.starts_with(want), "{fault}: {reason}");
        assert!(!client.wait().success(), "{fault}");
        println!("{fault}: {reason}");
    }
    std::process::ExitCode::SUCCESS
}

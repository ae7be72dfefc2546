//! A client program under test: the runner's end of the protocol.

#![allow(dead_code)] // Not every test needs all of it.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use yieldpoint_protocol::{FromProgram, Job, LineReader, Outcome, ToProgram, VERSION, send};
use yieldpoint_terms::{Nanos, Value, clock};

/// Bounds a hang; nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running client; killed when dropped.
pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<FromProgram>,
}

impl Client {
    pub fn start(program: &str) -> Self {
        Self::start_with(program, "LC_ALL", "C")
    }

    /// With a variable in its environment.
    pub fn start_with(program: &str, variable: &str, value: &str) -> Self {
        let mut child = Command::new(program)
            .env(variable, value)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = LineReader::new(child.stdout.take().unwrap());
        let (to_test, messages) = channel();
        // Ends with the program's stdout.
        std::thread::spawn(move || {
            while let Ok(message) = lines.next::<FromProgram>("a message") {
                if to_test.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            messages,
        }
    }

    /// The next message; `None` when there will be none.
    pub fn hear(&self) -> Option<FromProgram> {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => Some(message),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(e) => panic!("silent: {e}"),
        }
    }

    pub fn tell(&mut self, message: &ToProgram) {
        send(self.stdin.as_mut().unwrap(), message).unwrap();
    }

    pub fn hang_up(&mut self) {
        if let Some(mut stdin) = self.stdin.take() {
            let _ = stdin.flush();
        }
    }

    pub fn wait(&mut self) -> ExitStatus {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("the program does not exit");
    }

    /// hello and the answer to the job.
    pub fn offer(&mut self, job: Job) -> FromProgram {
        assert!(matches!(self.hear(), Some(FromProgram::Hello(_))));
        self.tell(&ToProgram::Job(job));
        self.hear().expect("an answer to the job")
    }

    /// From `go` to the exit.
    pub fn load(mut self) -> Outcome {
        let start_at_ns = clock::now_ns() + 5_000_000;
        self.tell(&ToProgram::Go { start_at_ns });
        let Some(FromProgram::End { at_ns }) = self.hear() else {
            panic!("expected end");
        };
        let Some(FromProgram::Outcome(outcome)) = self.hear() else {
            panic!("expected an outcome");
        };
        assert!(at_ns >= outcome.window_end_ns, "measured to its end");
        assert_eq!(self.child.try_wait().unwrap(), None, "lives until bye");
        self.tell(&ToProgram::Bye);
        assert!(self.wait().success());
        *outcome
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A setting of a test.
pub type Knob<'a> = (&'a str, Value);

/// The job of a test: all defaults, then `knobs` in turn.
pub fn job(url: &str, knobs: &[Knob<'_>]) -> Job {
    let mut job = Job {
        protocol: VERSION,
        ..Job::default()
    };
    for knob in yieldpoint_clients_core::KNOBS {
        if let Some(default) = knob.default_value() {
            job.knobs.set(knob.name.as_ref(), default);
        }
    }
    job.knobs.set("url", Value::Text(url.to_owned()));
    // Counted runs end by their count; this only bounds them.
    job.knobs
        .set("duration", Value::Duration(Nanos::from_secs(50)));
    for (name, value) in knobs {
        job.knobs.set(*name, value.clone());
    }
    job
}

/// One whole trial.
pub fn run(program: &str, url: &str, knobs: &[Knob<'_>]) -> Outcome {
    let mut client = Client::start(program);
    match client.offer(job(url, knobs)) {
        FromProgram::Ready { .. } => client.load(),
        other => panic!("expected ready, got {other:?}"),
    }
}

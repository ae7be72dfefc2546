//! The target as a runner sees it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use yieldpoint_protocol::{
    FromProgram, Hello, Job, LineReader, Testimony, ToProgram, VERSION, send,
};
use yieldpoint_terms::clock::now_ns;
use yieldpoint_terms::{Knobs, Nanos, Value};

/// Bounds a hang; nothing is expected to take this long.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn int(i: i64) -> Value {
    Value::Int(i)
}
pub fn text(t: &str) -> Value {
    Value::Text(t.into())
}
pub fn ms(n: u64) -> Value {
    Value::Duration(Nanos::from_millis(n))
}

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_yieldpoint-target-static"))
}

/// A target process; killed and reaped when dropped.
pub struct Program {
    pub child: Child,
    pub hello: Hello,
    lines: Option<LineReader<UnixStream>>,
    to: Option<UnixStream>,
}

impl Program {
    /// Starts it and reads its `hello`.
    pub fn spawn() -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let theirs = OwnedFd::from(theirs);
        let child = command()
            .stdin(Stdio::from(theirs.try_clone().unwrap()))
            .stdout(Stdio::from(theirs))
            .spawn()
            .unwrap();
        let mut lines = LineReader::new(ours.try_clone().unwrap());
        let FromProgram::Hello(hello) = lines.next("hello").unwrap() else {
            panic!("the first line is hello");
        };
        Self {
            child,
            hello,
            lines: Some(lines),
            to: Some(ours),
        }
    }

    pub fn tell(&mut self, message: &ToProgram) {
        send(self.to.as_mut().unwrap(), message).unwrap();
    }

    pub fn hear(&mut self) -> FromProgram {
        let lines = self.lines.as_mut().unwrap();
        let mut line: serde_json::Value = lines.next("a message").unwrap();
        // A tagged enum reads map keys as texts only, and those of `responses` are numbers: the
        // testimony is read without its tag.
        if line["type"] == "testimony" {
            line.as_object_mut().unwrap().remove("type");
            return FromProgram::Testimony(serde_json::from_value(line).unwrap());
        }
        serde_json::from_value(line).unwrap()
    }

    /// Sends a job on any free port, unless the knobs say otherwise; gives the answer.
    pub fn job(&mut self, knobs: &[(&str, Value)]) -> FromProgram {
        let mut all = Knobs::default();
        all.set("port", int(0));
        for (name, value) in knobs {
            all.set(*name, value.clone());
        }
        self.tell(&ToProgram::Job(Job {
            protocol: VERSION,
            knobs: all,
        }));
        self.hear()
    }

    pub fn go(&mut self, start_at_ns: u64) {
        self.tell(&ToProgram::Go { start_at_ns });
    }

    /// A target that listens, after `go`.
    pub fn serving(knobs: &[(&str, Value)]) -> (Self, SocketAddr) {
        let mut program = Self::spawn();
        let FromProgram::Ready { listens } = program.job(knobs) else {
            panic!("ready");
        };
        program.go(now_ns());
        (program, listens.parse().unwrap())
    }

    /// Asks for the testimony; checks what holds of every one of them.
    pub fn testimony(&mut self) -> Testimony {
        self.tell(&ToProgram::Report);
        let t = loop {
            match self.hear() {
                FromProgram::Tick { .. } => {}
                FromProgram::Testimony(t) => break *t,
                other => panic!("expected a testimony, got {other:?}"),
            }
        };
        let s = &t.series;
        assert_eq!(s.slot_ns, 100_000_000);
        assert_eq!(
            s.responses.iter().sum::<u64>(),
            t.responses.values().sum::<u64>()
        );
        assert_eq!(s.connections.iter().sum::<u64>(), t.connections);
        assert_eq!(s.bytes_out.iter().sum::<u64>(), t.bytes_out);
        for column in [&s.connections, &s.bytes_out, &s.active, &s.listen_queue] {
            assert_eq!(column.len(), s.responses.len());
        }
        t
    }

    /// Closes our end of the socket pair, as a runner that was killed.
    pub fn hang_up(&mut self) {
        self.lines = None;
        self.to = None;
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "the program does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// `bye`, and a good end.
    pub fn bye(mut self) {
        self.tell(&ToProgram::Bye);
        assert!(self.ended().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill and wait() returns at once.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

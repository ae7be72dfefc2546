//! Starts the fake process and talks to it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running fake; killed and reaped when dropped.
pub struct Fake {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Fake {
    /// Starts one; it answers, so it has been loaded.
    pub fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_yieldpoint-sample-fake"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut fake = Self {
            child,
            stdin,
            stdout,
        };
        fake.tell("fds 0");
        fake
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    /// Sends a command and waits for its answer.
    pub fn tell(&mut self, command: &str) -> String {
        writeln!(self.stdin, "{command}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }
    /// Kills it; it stays a zombie until it is reaped.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }
    pub fn reap(&mut self) {
        self.child.wait().unwrap();
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! What the tests share: labs, pipes, and finding what was left behind.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::{PipeFlags, pipe_with};
use yieldpoint_lab::{Exit, Lab, LabError, LabSpec, Mode, Process, Spawn};
use yieldpoint_terms::clock::now_ns;

/// Tests by name.
pub type Tests<T> = &'static [(&'static str, T)];

/// Path of the lab program, where it is not the one cargo built.
pub const PROGRAM: &str = "YIELDPOINT_LAB_TEST_PROGRAM";
/// Bounds a test that hangs; nothing here takes long.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_yieldpoint-lab")),
        PathBuf::from,
    )
}

pub fn spec(mode: Mode, sysctls: &[(&str, &str)]) -> LabSpec {
    LabSpec {
        sysctls: owned(sysctls),
        ..LabSpec::new(mode, program())
    }
}

pub fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    pairs.iter().map(own).collect()
}

pub fn up(mode: Mode) -> Lab {
    Lab::up(&spec(mode, &[])).unwrap_or_else(|e| panic!("{e}"))
}

pub fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).unwrap()
}

pub fn null() -> OwnedFd {
    let options = File::options().read(true).write(true).open("/dev/null");
    options.unwrap().into()
}

/// A process with its standard input and output in our hands; stderr goes to stdout.
pub struct Talk {
    pub process: Process,
    pub stdin: Option<File>,
    stdout: File,
    heard: String,
}

impl Talk {
    pub fn spawn(lab: &mut Lab, cmd: &Spawn) -> Result<Self, LabError> {
        let (stdin, our_stdin) = pipe();
        let (our_stdout, stdout) = pipe();
        let stderr = stdout.try_clone().unwrap();
        let process = lab.spawn(cmd, stdin, stdout, stderr)?;
        Ok(Self {
            process,
            stdin: Some(our_stdin.into()),
            stdout: our_stdout.into(),
            heard: String::new(),
        })
    }

    /// A shell script; its PATH is ours.
    pub fn sh(lab: &mut Lab, name: &str, script: &str) -> Self {
        Self::spawn(lab, &sh(name, script)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Waits until all of `words` were printed, in any order.
    pub fn hear(&mut self, words: &[&str]) {
        let mut bytes = [0; 4096];
        while !words.iter().all(|w| self.heard.contains(w)) {
            let n = self.stdout.read(&mut bytes).unwrap();
            assert!(n > 0, "ended; expected {words:?}, heard {:?}", self.heard);
            self.heard.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    }

    /// Closes its input and returns all it printed, at its end.
    pub fn finish(mut self) -> String {
        drop(self.stdin.take());
        self.stdout.read_to_string(&mut self.heard).unwrap();
        self.heard
    }

    pub fn say(&mut self, text: &str) {
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }
}

pub fn sh(name: &str, script: &str) -> Spawn {
    Spawn {
        env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        ..Spawn::new(name, ["/bin/sh", "-c", script])
    }
}

/// Runs a script to its end; what it printed and how it ended.
pub fn run(lab: &mut Lab, cmd: &Spawn) -> (String, Exit) {
    let talk = Talk::spawn(lab, cmd).unwrap_or_else(|e| panic!("{e}"));
    let name = talk.process.name.clone();
    let text = talk.finish();
    (text, wait(lab, &name))
}

pub fn wait(lab: &mut Lab, name: &str) -> Exit {
    // A minute in ns fits.
    let deadline = now_ns() + PATIENCE.as_nanos() as u64;
    lab.wait(name, deadline).unwrap().expect("it ends in time")
}

/// A duration for sleep(1) that is in no other process's arguments: "86400." and 16 digits.
pub fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("86400.{:010}{n:06}", std::process::id())
}

/// A child and a grandchild that has left its parent and its session; both ignore what is polite.
/// They print "child" and "grandchild" once they do.
pub fn stubborn(marker: &str) -> String {
    format!(
        "trap '' TERM HUP INT
         (setsid sh -c \"trap '' TERM HUP INT; echo grandchild; sleep {marker}\" &)
         echo child; sleep {marker}"
    )
}

/// Processes, not ended ones, whose arguments hold a text.
pub fn with_argument(text: &str) -> Vec<u32> {
    let text = text.as_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let arguments = fs::read(entry.path().join("cmdline")).ok()?;
            let holds = arguments.windows(text.len()).any(|w| w == text);
            (holds && pid != std::process::id()).then_some(pid)
        })
        .collect()
}

/// Processes in a namespace ("net:[4026531840]").
pub fn in_namespace(link: &str) -> Vec<u32> {
    let kind = link.split(':').next().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            (namespace(pid, kind).ok()? == link).then_some(pid)
        })
        .collect()
}

pub fn namespace(pid: u32, kind: &str) -> io::Result<String> {
    let link = fs::read_link(format!("/proc/{pid}/ns/{kind}"))?;
    Ok(link.to_string_lossy().into_owned())
}

/// Field of /proc/<pid>/stat after the name: 0 state, 1 parent, 2 group, 3 session.
pub fn stat(pid: u32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(field).map(str::to_owned)
}

/// Waits until something is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a pidfd's process has ended.
pub fn has_ended(pidfd: impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&now)).unwrap() > 0
}

/// Ports of TCP sockets that listen, asked through a socket of the lab (sock_diag(7)).
pub fn listening_ports(sock_diag: BorrowedFd<'_>) -> Vec<u16> {
    const LISTEN: u32 = 10;
    let mut request = [0; 72];
    request[0..4].copy_from_slice(&72_u32.to_ne_bytes());
    request[4..6].copy_from_slice(&20_u16.to_ne_bytes()); // SOCK_DIAG_BY_FAMILY
    request[6..8].copy_from_slice(&0x301_u16.to_ne_bytes()); // NLM_F_REQUEST | NLM_F_DUMP
    request[16] = 2; // AF_INET
    request[17] = 6; // IPPROTO_TCP
    request[20..24].copy_from_slice(&(1_u32 << LISTEN).to_ne_bytes());
    send(sock_diag, &request, SendFlags::empty()).unwrap();
    let mut ports = Vec::new();
    let mut answer = vec![0; 65536];
    loop {
        let (n, _) = recv(sock_diag, &mut answer[..], RecvFlags::empty()).unwrap();
        let mut rest = &answer[..n];
        while rest.len() >= 16 {
            let len = u32::from_ne_bytes(rest[0..4].try_into().unwrap()) as usize;
            match u16::from_ne_bytes(rest[4..6].try_into().unwrap()) {
                3 => return ports, // NLMSG_DONE
                20 => ports.push(u16::from_be_bytes(rest[20..22].try_into().unwrap())),
                other => panic!("message {other}"),
            }
            rest = &rest[len.next_multiple_of(4).min(rest.len())..];
        }
    }
}

//! A process that does exactly what it is told, so that a reader of processes can be checked against it.
//!
//! One command a line on stdin, one answer a line on stdout; it ends with its stdin.
//! `memory MIB` touches that much; `release` frees it; `threads N` starts N more that sleep;
//! `fds N` opens N more descriptors; `spin NS` uses that much CPU time and answers "BEGIN END",
//! its own CPU clock in ns around it; `child COMMAND` has a child do it, which is started if there is none;
//! `reap` ends the child and waits for it; `abandon` ends it and does not; `namespace` moves into a new network namespace and listens there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::UnshareFlags;
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let mut memory: Vec<Vec<u8>> = Vec::new();
    let mut files = Vec::new();
    let mut listeners = Vec::new();
    let mut children: Vec<Child> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("stdin is text");
        let (command, amount) = line.split_once(' ').unwrap_or((&line, "0"));
        if command == "child" {
            println!("{}", ask_child(&mut children, amount));
            continue;
        }
        let amount: u64 = amount.parse().expect("an amount is a number");
        let answer = match command {
            "reap" => {
                let mut child = children.pop().expect("there is a child");
                drop(child.stdin.take());
                child.wait().expect("it ends");
                "done".to_owned()
            }
            "abandon" => {
                let child = children.last_mut().expect("there is a child");
                drop(child.stdin.take());
                // Until it is a zombie, and it stays one.
                let id = WaitId::Pid(Pid::from_child(child));
                waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it ends");
                "done".to_owned()
            }
            "memory" => {
                let bytes = usize::try_from(amount << 20).expect("an amount of MiB fits");
                // Not 0, which the kernel could leave untouched.
                memory.push(vec![1; bytes]);
                "done".to_owned()
            }
            "release" => {
                memory.clear();
                "done".to_owned()
            }
            "threads" => {
                for _ in 0..amount {
                    std::thread::spawn(|| {
                        loop {
                            std::thread::park();
                        }
                    });
                }
                "done".to_owned()
            }
            "fds" => {
                for _ in 0..amount {
                    files.push(std::fs::File::open("/dev/null").expect("/dev/null opens"));
                }
                "done".to_owned()
            }
            "namespace" => enter_namespace().map_or_else(
                |error| error.to_string(),
                |listener| {
                    listeners.push(listener);
                    "done".to_owned()
                },
            ),
            "spin" => {
                let begin = cpu_ns();
                while cpu_ns() - begin < amount {}
                format!("{begin} {}", cpu_ns())
            }
            other => panic!("expected a command, got \"{other}\""),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("the parent reads");
    }
}

/// What the newest child answers to a command; starts one if there is none.
fn ask_child(children: &mut Vec<Child>, command: &str) -> String {
    if children.is_empty() {
        let program = std::env::current_exe().expect("this program has a name");
        let child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        children.push(child.expect("it starts"));
    }
    let child = children.last_mut().expect("there is one");
    let (to, from) = (child.stdin.as_mut(), child.stdout.as_mut());
    writeln!(to.expect("it is open"), "{command}").expect("the child reads");
    let mut answer = String::new();
    // One answer a command, so that nothing is lost in the reader that is dropped here.
    let mut from = BufReader::new(from.expect("it is open"));
    from.read_line(&mut answer).expect("the child answers");
    answer.trim_end().to_owned()
}

/// A new user and network namespace, and one listening socket in it.
fn enter_namespace() -> std::io::Result<std::net::TcpListener> {
    // SAFETY: what makes unshare unsafe is CLONE_FILES, which is not asked for.
    #[allow(unsafe_code)]
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    }
    // The loopback interface of a new namespace is down and has no address; nothing can come in.
    std::net::TcpListener::bind("0.0.0.0:0")
}

/// CPU time of this process, ns.
fn cpu_ns() -> u64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    // A CPU clock starts at 0 and only rises.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

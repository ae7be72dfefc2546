//! A load client that misbehaves on purpose: `fake BEHAVIOUR`. Started under the name of a target it
//! is a target that does (`target.rs`).
//!
//! Where it works, it makes 50 real requests over one connection and tells the truth.

#[path = "target.rs"]
mod target;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

use yieldpoint_protocol::{
    Counts, ErrorCount, ErrorKind, FromProgram, Hello, Histogram, LineReader, Outcome, Role,
    Second, ToProgram, VERSION, send,
};
use yieldpoint_terms::clock::{now_ns, sleep_until};

const REQUESTS: u64 = 50;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let is_target = arguments[0].contains("yieldpoint-target-");
    let behaviour = arguments
        .get(1)
        .filter(|a| !a.starts_with("--"))
        .cloned()
        .unwrap_or_default();
    let role = if is_target {
        Role::Target
    } else {
        Role::Client
    };
    let mut hello = hello(role);
    let mut out = std::io::stdout();
    if arguments.iter().any(|a| a == "--describe") {
        if behaviour == "old-description" {
            hello.protocol = VERSION + 1;
        }
        send(&mut out, &FromProgram::Hello(hello)).expect("stdout is open");
        return ExitCode::SUCCESS;
    }
    if is_target {
        return target::run(&arguments[0], hello);
    }
    match behaviour.as_str() {
        "sleeps" => {
            // The grandchild: it outlives its parent and holds whatever it inherited.
            std::thread::sleep(Duration::from_secs(3600));
            return ExitCode::SUCCESS;
        }
        "other-version" => hello.protocol = VERSION + 1,
        "mute" => hang(),
        _ => {}
    }
    send(&mut out, &FromProgram::Hello(hello)).expect("stdout is open");

    let mut lines = LineReader::new(std::io::stdin());
    let mut next = || lines.next::<ToProgram>("a message of the runner");
    let url = match next() {
        Ok(ToProgram::Job(job)) => job
            .knobs
            .text("url")
            .expect("the runner sets it")
            .to_owned(),
        other => panic!("expected a job, got {other:?}"),
    };
    if behaviour == "refuses" {
        let reason = "this fake can do nothing".to_owned();
        send(&mut out, &FromProgram::Unsupported { reason }).expect("stdout is open");
        return ExitCode::SUCCESS;
    }
    send(
        &mut out,
        &FromProgram::Ready {
            listens: String::new(),
        },
    )
    .expect("stdout is open");
    let start = match next() {
        Ok(ToProgram::Go { start_at_ns }) => start_at_ns,
        other => panic!("expected go, got {other:?}"),
    };
    sleep_until(start);
    match behaviour.as_str() {
        "floods" => {
            // Never a newline. The runner stops to read long before this ends; then the write fails.
            let chunk = [b'x'; 65_536];
            while out.write_all(&chunk).and_then(|()| out.flush()).is_ok() {}
            return ExitCode::SUCCESS;
        }
        "orphans" => {
            fork_grandchild();
            return ExitCode::from(4);
        }
        "half-and-hangs" => {
            out.write_all(b"{\"type\":\"end\",\"at")
                .and_then(|()| out.flush())
                .expect("stdout is open");
            hang();
        }
        "closes-stdout" => {
            close_standard_streams();
        }
        "exhausts" => {
            let mut held = Vec::new();
            let reason = loop {
                match std::fs::File::open("/dev/null") {
                    Ok(file) => held.push(file),
                    Err(e) => break format!("no descriptor is left after {}: {e}", held.len()),
                }
            };
            send(&mut out, &FromProgram::Failed { reason }).expect("stdout is open");
            return ExitCode::SUCCESS;
        }
        "hangs" => hang(),
        "aborts" => std::process::abort(),
        "exits" => return ExitCode::from(4),
        "half-line" => {
            out.write_all(b"{\"type\":\"end\",\"at")
                .expect("stdout is open");
            return ExitCode::SUCCESS;
        }
        "garbage" => {
            out.write_all(b"all went well!\n").expect("stdout is open");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    load(&url);
    let mut outcome = outcome(start, REQUESTS);
    match behaviour.as_str() {
        "claims-more" => outcome = self::outcome(start, REQUESTS + 7),
        "claims-less" => outcome = self::outcome(start, REQUESTS - 7),
        "cannot-add" => outcome.window.errors += 1,
        // 200 ms of window and one user have no room for an hour.
        "claims-more-time" => outcome.latency_sum_ns = 3_600_000_000_000,
        "claims-everything" => outcome.total.attempts = u64::MAX,
        "ends-before-it-starts" => outcome.window_end_ns = outcome.window_start_ns - 1,
        "ends-tomorrow" => outcome.window_end_ns += 86_400_000_000_000,
        "errs-before-go" => {
            outcome.errors.push(ErrorCount {
                kind: ErrorKind::AddressNotAvailable,
                count: 1,
                first_ns: start - 1,
                example: "too early".into(),
            });
            outcome.total.attempts += 1;
            outcome.total.errors += 1;
        }
        "no-histogram" => outcome.iteration = Histogram("all went well!".into()),
        "grandchild" => fork_grandchild(),
        _ => {}
    }
    send(&mut out, &FromProgram::End { at_ns: now_ns() }).expect("stdout is open");
    send(&mut out, &FromProgram::Outcome(Box::new(outcome))).expect("stdout is open");
    // Lives until bye, so that its memory can be read.
    let _ = next();
    ExitCode::SUCCESS
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// A child with all our descriptors, in a session of its own, that nobody waits for: that is the fault.
#[allow(clippy::zombie_processes)]
fn fork_grandchild() {
    let own = std::env::current_exe().expect("/proc is there");
    std::process::Command::new("setsid")
        .arg(own)
        .arg("sleeps")
        .spawn()
        .expect("setsid is part of util-linux");
}

/// Ends what the runner hears, and lives on: stdin and stdout are one socket pair, so both must go.
fn close_standard_streams() -> ! {
    use std::os::unix::process::CommandExt;
    let e = std::process::Command::new("sh")
        .args(["-c", "exec sleep 3600 <&- >&-"])
        .exec();
    panic!("sh is part of every system: {e}");
}

fn hello(role: Role) -> Hello {
    Hello {
        protocol: VERSION,
        role,
        name: "fake".into(),
        version: "0".into(),
        library: String::new(),
        about: "misbehaves on purpose".into(),
        honours: yieldpoint_clients_core::common(),
        limits: [].into(),
        knobs: vec![],
    }
}

/// 50 requests over one connection, bodies read to the end.
fn load(url: &str) {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let mut to = TcpStream::connect(host).expect("the target listens");
    let mut from = BufReader::new(to.try_clone().expect("a descriptor is left"));
    for _ in 0..REQUESTS {
        write!(to, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("the target reads");
        let mut length = 0;
        loop {
            let mut line = String::new();
            from.read_line(&mut line).expect("the target answers");
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().expect("a length is a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)
            .expect("the target sends its whole body");
    }
}

fn outcome(start: u64, good: u64) -> Outcome {
    let counts = Counts {
        attempts: good,
        good,
        connections: 1,
        ..Counts::default()
    };
    Outcome {
        window_start_ns: start,
        window_end_ns: now_ns(),
        window: counts,
        total: counts,
        errors: vec![],
        series: vec![Second {
            attempts: good,
            good,
            connections: 1,
            ..Second::default()
        }],
        latency: Histogram::default(),
        latency_intended: Histogram::default(),
        connect: Histogram::default(),
        iteration: Histogram::default(),
        saturated: 0,
        users: 1,
        latency_sum_ns: 0,
    }
}

//! A client as a process: arguments, and the protocol on stdin and stdout.
//!
//! Nothing is written between `ready` and `end`. One more thread stands at stdin while the load
//! runs: it costs nothing, and when the runner is gone it ends the process at once.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use yieldpoint_protocol::{ChannelError, FromProgram, Hello, LineReader, ToProgram, send};
use yieldpoint_terms::clock;

use crate::gate::{Gate, Threads};
use crate::{Recorder, Refusal, Setup, Window, job};

type Stdin = LineReader<std::io::Stdin>;

/// The whole `main` of a client program: speaks the protocol and runs `thread` on each of the
/// job's threads. `thread` allocates, passes the gate, makes load, closes its connections and
/// returns what it recorded. `check` may refuse a job that `hello` alone would let pass.
pub fn serve(
    hello: Hello,
    check: impl FnOnce(&Setup) -> Result<(), Refusal>,
    thread: impl Fn(&Setup, Gate) -> Result<Recorder, String> + Sync,
) -> ExitCode {
    let name = format!("yieldpoint-client-{}", hello.name);
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
    let result = match arguments.join(" ").as_str() {
        "" => talk(hello, check, thread),
        "--describe" => say(&FromProgram::Hello(hello)).map(|()| ExitCode::SUCCESS),
        "--help" | "-h" => {
            println!("{}", help(&name, &hello));
            Ok(ExitCode::SUCCESS)
        }
        other => {
            eprintln!("{name}: expected no argument, --describe or --help, got \"{other}\"");
            Ok(ExitCode::from(2))
        }
    };
    result.unwrap_or_else(|e| {
        eprintln!("{name}: {e}");
        ExitCode::FAILURE
    })
}

fn help(name: &str, hello: &Hello) -> String {
    format!(
        "{}\n\nUsage: {name} [--describe]\n\n\
         Without an argument it speaks the protocol of yieldpoint, version {}, on stdin and stdout.\n\
         --describe prints who it is and what it can do, one line of JSON.",
        hello.about, hello.protocol
    )
}

fn talk(
    hello: Hello,
    check: impl FnOnce(&Setup) -> Result<(), Refusal>,
    thread: impl Fn(&Setup, Gate) -> Result<Recorder, String> + Sync,
) -> Result<ExitCode, ChannelError> {
    say(&FromProgram::Hello(hello.clone()))?;
    let mut stdin = Stdin::new(std::io::stdin());
    let job = match stdin.next("job")? {
        ToProgram::Job(job) => job,
        ToProgram::Bye => return Ok(ExitCode::SUCCESS),
        other => return refuse(unexpected("job", &other)),
    };
    let setup = match job::setup(&hello, &job).and_then(|s| check(&s).map(|()| s)) {
        Ok(setup) => setup,
        Err(refusal) => return refuse(refusal),
    };
    std::thread::scope(|scope| {
        let threads = match Threads::start(scope, &setup, &thread) {
            Ok(threads) => threads,
            Err(why) => return refuse(Refusal::Failed(why)),
        };
        say(&FromProgram::Ready {
            listens: String::new(),
        })?;
        let window = match stdin.next("go")? {
            ToProgram::Go { start_at_ns } => Window::new(&setup, start_at_ns),
            ToProgram::Bye => return Ok(ExitCode::SUCCESS),
            other => return refuse(unexpected("go", &other)),
        };
        let finished = Arc::new(AtomicBool::new(false));
        let bye = scope.spawn({
            let finished = Arc::clone(&finished);
            move || stand_at_stdin(stdin, &finished)
        });
        if let Err(why) = load(threads, &setup, window, &finished) {
            eprintln!("{}: {why}", hello.name);
            // A hanging thread, or the one at stdin, cannot be joined.
            std::process::exit(1);
        }
        // The watcher cannot panic; if it did, there is still nothing left to do.
        let _ = bye.join();
        Ok(ExitCode::SUCCESS)
    })
}

/// From `go` to the outcome, or the reason why there is none.
fn load(
    threads: Threads,
    setup: &Setup,
    window: Window,
    finished: &AtomicBool,
) -> Result<(), ChannelError> {
    let recorders = match threads.run(setup, window) {
        Ok(recorders) => recorders,
        Err(lost) => {
            refuse(Refusal::Failed(lost.0))?;
            std::process::exit(1);
        }
    };
    let outcome = Recorder::outcome(setup, window, recorders);
    // An open loop may have nothing left to start before the window ends; it is measured to its end.
    clock::sleep_until(outcome.window_end_ns);
    say(&FromProgram::End {
        at_ns: clock::now_ns(),
    })?;
    // Set before the outcome leaves: the answer to it may come at once.
    finished.store(true, Ordering::SeqCst);
    say(&FromProgram::Outcome(Box::new(outcome)))
}

/// Returns at `bye` or end-of-file after the outcome; before it, ends the process.
fn stand_at_stdin(mut stdin: Stdin, finished: &AtomicBool) {
    let why = match stdin.next("bye") {
        Ok(ToProgram::Bye) => "bye before the outcome".to_owned(),
        Ok(other) => format!("expected bye, got {other:?}"),
        Err(e) => e.to_string(),
    };
    if !finished.load(Ordering::SeqCst) {
        eprintln!("the load was given up: {why}");
        std::process::exit(1);
    }
}

fn unexpected(expected: &str, got: &ToProgram) -> Refusal {
    Refusal::Failed(format!("expected {expected}, got {got:?}"))
}

fn refuse(refusal: Refusal) -> Result<ExitCode, ChannelError> {
    match refusal {
        Refusal::Unsupported(reason) => {
            say(&FromProgram::Unsupported { reason })?;
            Ok(ExitCode::SUCCESS)
        }
        Refusal::Failed(reason) => {
            eprintln!("{reason}");
            say(&FromProgram::Failed { reason })?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn say(message: &FromProgram) -> Result<(), ChannelError> {
    Ok(send(&mut std::io::stdout().lock(), message)?)
}

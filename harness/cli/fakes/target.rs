//! Targets that misbehave on purpose, by the end of their name: `yieldpoint-target-<behaviour>`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use yieldpoint_protocol::{
    FromProgram, Hello, LineReader, TargetSeries, Testimony, ToProgram, send,
};
use yieldpoint_terms::clock::sleep_until;

/// One trial of a target.
pub fn run(program: &str, hello: Hello) -> ExitCode {
    let behaviour = program.rsplit('-').next().unwrap_or_default();
    if behaviour == "dies" {
        eprintln!("this target does not start");
        return ExitCode::from(7);
    }
    let mut out = std::io::stdout();
    send(&mut out, &FromProgram::Hello(hello)).expect("stdout is open");
    let mut lines = LineReader::new(std::io::stdin());
    let mut next = || lines.next::<ToProgram>("a message of the runner");
    let Ok(ToProgram::Job(_)) = next() else {
        panic!("expected a job");
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let listens = listener.local_addr().expect("it is bound").to_string();
    let served = Arc::new(AtomicU64::new(0));
    if behaviour == "garbles" {
        let (listener, served) = (listener.try_clone().expect("a descriptor"), served.clone());
        std::thread::spawn(move || garble(&listener, &served));
    }
    send(&mut out, &FromProgram::Ready { listens }).expect("stdout is open");
    let Ok(ToProgram::Go { start_at_ns }) = next() else {
        panic!("expected go");
    };
    if behaviour == "collapses" {
        sleep_until(start_at_ns + 100_000_000);
        return ExitCode::from(9);
    }
    if behaviour == "chatters" {
        // Ticks without end, in the window and where the testimony is expected.
        let tick = FromProgram::Tick {
            requests: 0,
            connections: 0,
        };
        while send(&mut out, &tick).is_ok() {}
        return ExitCode::SUCCESS;
    }
    // "deaf" never accepts: the kernel completes handshakes until the queue is full.
    let Ok(ToProgram::Report) = next() else {
        panic!("expected report");
    };
    let served = served.load(Ordering::SeqCst);
    let testimony = Testimony {
        connections: served,
        requests: served,
        closed_by_target: served,
        series: TargetSeries {
            start_ns: start_at_ns,
            slot_ns: 100_000_000,
            ..TargetSeries::default()
        },
        ..Testimony::default()
    };
    send(&mut out, &FromProgram::Testimony(Box::new(testimony))).expect("stdout is open");
    // Lives until bye.
    let _ = next();
    ExitCode::SUCCESS
}

/// Answers every request with what is no HTTP, and closes.
fn garble(listener: &TcpListener, served: &AtomicU64) {
    for connection in listener.incoming() {
        let mut connection = connection.expect("a descriptor is left");
        let patience = Some(Duration::from_secs(5));
        connection.set_read_timeout(patience).expect("not zero");
        let mut chunk = [0; 4096];
        // A request of the clients under test is one small write.
        if connection.read(&mut chunk).is_ok_and(|n| n > 0) {
            served.fetch_add(1, Ordering::SeqCst);
            // A client that is gone by now is gone.
            let _ = connection.write_all(b"all went well!\r\n\r\n");
        }
    }
}

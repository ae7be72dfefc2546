//! Prints what a row of samples costs on this machine: CPU time of the sampler's thread, and the
//! share of one CPU that it takes at ten rows a second.

use std::process::ExitCode;

use yieldpoint_sample::{Sampler, Subject, open_sock_diag};

const ROWS: u32 = 1000;

fn main() -> ExitCode {
    match cost_ns() {
        Ok(ns) => {
            let (micros, share) = (ns / 1e3, ns * 10.0 / 1e9 * 100.0);
            println!(
                "a row costs {micros:.1} µs of CPU time; 10 a second take {share:.2} % of one CPU"
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Mean over many rows of this process, which stands for client and target.
fn cost_ns() -> Result<f64, Box<dyn std::error::Error>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let pid = std::process::id();
    let subject = Subject {
        client_pids: vec![pid],
        target_pid: Some(pid),
        net_pid: pid,
        client_cpus: vec![0],
        target_cpus: vec![0],
        port: Some(listener.local_addr()?.port()),
        sock_diag: Some(open_sock_diag()?),
    };
    // The first deadline is never reached: rows come when they are asked for.
    let sampler = Sampler::start(subject, u64::MAX / 4, 1_000_000_000)?;
    sampler.row_now()?;
    let before = sampler.live("sampler_cpu_ns");
    for _ in 0..ROWS {
        sampler.row_now()?;
    }
    let after = sampler.live("sampler_cpu_ns");
    let (before, after) = before
        .zip(after)
        .ok_or("the sampler's CPU clock cannot be read")?;
    Ok((after - before) as f64 / f64::from(ROWS))
}

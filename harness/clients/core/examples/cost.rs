//! What the core itself costs a request: the virtual user's steps and the recording, without any
//! HTTP stack. Prints one `name value` a line; the least of some passes, since noise only adds.
//!
//! Usage: cargo run --profile measured -p yieldpoint-clients-core --example cost

use std::hint::black_box;

use yieldpoint_clients_core::{Pace, Recorder, Response, Setup, Step, VirtualUser, Window};
use yieldpoint_protocol::{Job, VERSION};
use yieldpoint_terms::{Nanos, Value, clock};

const PASSES: usize = 7;
const REQUESTS: u64 = 1_000_000;

fn setup() -> Result<Setup, Box<dyn std::error::Error>> {
    let mut job = Job {
        protocol: VERSION,
        ..Job::default()
    };
    for knob in yieldpoint_clients_core::KNOBS {
        if let Some(default) = knob.default_value() {
            job.knobs.set(knob.name.as_ref(), default);
        }
    }
    let url = Value::Text("http://127.0.0.1:1/".into());
    job.knobs.set("url", url);
    let hour = Value::Duration(Nanos::from_secs(3_600));
    job.knobs.set("duration", hour);
    Ok(Setup::from_job(&job)?)
}

/// The loop of a driver whose requests take no time of their own; ns a request.
///
/// `time` is the clock of the loop, read once a request, or an invented one.
fn whole(setup: &Setup, mut time: impl FnMut() -> u64) -> Result<f64, String> {
    let mut recorder = Recorder::new(setup)?;
    let mut now = time();
    let window = Window::new(setup, now);
    recorder.begin(window);
    let mut user = VirtualUser::new(setup, window);
    let mut pace = Pace::new(setup, window, 0);
    let started = clock::now_ns();
    let mut requests = 0;
    while requests < REQUESTS {
        match user.next(now, &mut pace) {
            Step::Request { intended_ns } => {
                let start = now;
                now = time();
                let response = black_box(Response {
                    status: 200,
                    body_bytes: 612,
                });
                let good = recorder.request(start, intended_ns, now, Ok(response));
                if let Some(since) = user.done(good) {
                    recorder.iteration(since, now);
                }
                requests += 1;
            }
            Step::Connect | Step::Wait { .. } => now = time(),
            Step::Stop => return Err("the window ended before the requests did".to_owned()),
        }
    }
    let ns = (clock::now_ns() - started) as f64 / REQUESTS as f64;
    black_box(&recorder);
    Ok(ns)
}

/// The recording alone, latencies spread as those of a real run; ns a request.
fn recording(setup: &Setup) -> Result<f64, String> {
    let mut recorder = Recorder::new(setup)?;
    let window = Window::new(setup, 0);
    recorder.begin(window);
    let started = clock::now_ns();
    for i in 0..REQUESTS {
        let now = 1_000_000 + i * 1_000;
        let latency = 20_000 + (i.wrapping_mul(0x9e37_79b9) & 0xffff);
        let response = Response {
            status: 200,
            body_bytes: 612,
        };
        black_box(recorder.request(now - latency, None, now, Ok(response)));
    }
    Ok((clock::now_ns() - started) as f64 / REQUESTS as f64)
}

fn least(mut pass: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let mut least = f64::INFINITY;
    for _ in 0..PASSES {
        least = least.min(pass()?);
    }
    Ok(least)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let setup = setup()?;
    let invented = || {
        let mut ns = 0;
        move || {
            ns += 1_000;
            ns
        }
    };
    println!("record_ns {:.1}", least(|| recording(&setup))?);
    println!(
        "step_and_record_ns {:.1}",
        least(|| whole(&setup, invented()))?
    );
    let clocked = least(|| whole(&setup, clock::now_ns))?;
    println!("step_record_and_clock_ns {clocked:.1}");
    Ok(())
}

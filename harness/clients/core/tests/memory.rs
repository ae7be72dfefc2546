//! Two million requests cost not one allocation, so memory cannot grow with them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use yieldpoint_clients_core::{Pace, Recorder, Response, Setup, Step, VirtualUser, Window};
use yieldpoint_protocol::{Job, VERSION};
use yieldpoint_terms::{Nanos, Value};

/// The system's allocator with a counter.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// An allocator is an unsafe trait; every call is handed on unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that System asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn setup(rate: Option<f64>) -> Setup {
    let mut job = Job {
        protocol: VERSION,
        ..Job::default()
    };
    for knob in yieldpoint_clients_core::KNOBS {
        if let Some(default) = knob.default_value() {
            job.knobs.set(knob.name.as_ref(), default);
        }
    }
    job.knobs
        .set("url", Value::Text("http://127.0.0.1:1/".into()));
    job.knobs.set("requests_per_iteration", Value::Int(10));
    job.knobs
        .set("duration", Value::Duration(Nanos::from_secs(3_600)));
    if let Some(rate) = rate {
        job.knobs.set("rate", Value::Float(rate));
    }
    Setup::from_job(&job).unwrap()
}

/// Requests of 1 ms each in an invented time, so that they spread over 2,000 seconds.
fn two_million_requests(setup: &Setup) {
    let window = Window::new(setup, 0);
    let mut recorder = Recorder::new(setup).unwrap();
    recorder.begin(window);
    let mut user = VirtualUser::new(setup, window);
    let mut pace = Pace::new(setup, window, 0);
    let (mut now, mut requests) = (0, 0);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    while requests < 2_000_000 {
        match user.next(now, &mut pace) {
            Step::Wait { until_ns } => now = until_ns,
            Step::Connect => recorder.connected_at(now, Some(10_000)),
            Step::Request { intended_ns } => {
                let start = now;
                now += 900_000 + (requests % 1_000) * 200;
                let response = Response {
                    status: 200,
                    body_bytes: 612,
                };
                let good = recorder.request(start, intended_ns, now, Ok(response));
                requests += 1;
                if let Some(since) = user.done(good) {
                    recorder.iteration(since, now);
                }
            }
            Step::Stop => panic!("the window ended after {requests} requests"),
        }
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
    let outcome = Recorder::outcome(setup, window, vec![recorder]);
    assert_eq!(outcome.window.good, 2_000_000);
}

// One test, so that no other thread allocates meanwhile.
#[test]
fn a_request_allocates_nothing() {
    two_million_requests(&setup(None));
    two_million_requests(&setup(Some(1_000.0)));
}

//! The blocking driver: one virtual user a thread.

use std::process::ExitCode;

use yieldpoint_protocol::Hello;
use yieldpoint_terms::clock;

use crate::{BlockingClient, Gate, Pace, Recorder, Session, Setup, Step, VirtualUser, program};

/// The whole `main` of a client program on a blocking stack.
pub fn main_blocking<C: BlockingClient>(client: &C) -> ExitCode {
    program::serve(
        limited(client.hello()),
        |_| Ok(()),
        |setup, gate| thread(client, setup, gate),
    )
}

/// A blocking thread drives one user.
fn limited(mut hello: Hello) -> Hello {
    hello.limits.entry("users_per_thread".into()).or_insert(1);
    hello
}

/// One load thread: allocates its session, waits for `go`, drives its user to the end.
pub fn thread<C: BlockingClient>(
    client: &C,
    setup: &Setup,
    gate: Gate,
) -> Result<Recorder, String> {
    let mut recorder = Recorder::new(setup)?;
    let number = gate.thread();
    // One user a thread, so the thread's number is the user's.
    let mut session = client.session(setup, number)?;
    let window = gate.wait()?;
    recorder.begin(window);
    let user = VirtualUser::new(setup, window);
    let pace = Pace::new(setup, window, number);
    drive(&mut session, &mut recorder, user, pace);
    Ok(recorder)
}

/// The loop. One clock read a request: its end is the start of the next one.
fn drive(
    session: &mut impl Session,
    recorder: &mut Recorder,
    mut user: VirtualUser,
    mut pace: Pace,
) {
    let mut now = clock::now_ns();
    loop {
        match user.next(now, &mut pace) {
            Step::Wait { until_ns } => {
                clock::sleep_until(until_ns);
                now = clock::now_ns();
            }
            Step::Connect => {
                session.reset();
                now = clock::now_ns();
            }
            Step::Request { intended_ns } => {
                let start = now;
                let result = session.request(recorder);
                now = clock::now_ns();
                let good = recorder.request(start, intended_ns, now, result);
                if let Some(since) = user.done(good) {
                    recorder.iteration(since, now);
                }
            }
            Step::Stop => break,
        }
    }
    recorder.stopped(&user);
}

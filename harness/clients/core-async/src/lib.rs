//! The tokio driver: many virtual users on each thread, one current-thread runtime a thread.
//!
//! A crate of its own, so that no blocking client links tokio.

mod turns;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;

use tokio::task::{LocalSet, spawn_local, yield_now};
use turns::Turns;
use yieldpoint_clients_core::{
    Failure, Gate, Meter, Pace, Recorder, Response, Setup, Step, VirtualUser, serve,
};
use yieldpoint_protocol::Hello;
use yieldpoint_terms::clock;

/// One virtual user's connection, pool and cookies over one asynchronous HTTP stack.
///
/// A session never leaves its thread; it may `spawn_local`.
pub trait AsyncSession: 'static {
    /// Drops connection, pool and cookies; the client closes first. When it returns, the sockets
    /// are closed. Nothing is opened yet.
    fn reset(&mut self) -> impl Future<Output = ()>;

    /// One GET of the job's URL, the body read to its end; keeps the timeouts of the job. Opens a
    /// connection if there is none; with `keep_alive` false it carries `Connection: close` and
    /// leaves no connection behind. Status and length are judged by the caller.
    fn request(&mut self, meter: &mut dyn Meter)
    -> impl Future<Output = Result<Response, Failure>>;
}

/// A client program on an asynchronous stack.
pub trait AsyncClient: Sync {
    /// The session of one virtual user.
    type Session: AsyncSession;

    /// Who this client is (`honours` starts from [`yieldpoint_clients_core::common`]).
    fn hello(&self) -> Hello;

    /// Allocates the session of one user, whose number in the process (from 0) chooses its source
    /// address; opens no connection. An error is one sentence for the runner (`failed`).
    fn session(&self, setup: &Setup, user: usize) -> Result<Self::Session, String>;
}

/// The whole `main` of a client program on an asynchronous stack.
pub fn main_async<C: AsyncClient>(client: &C) -> ExitCode {
    serve(
        client.hello(),
        |_| Ok(()),
        |setup, gate| thread(client, setup, gate),
    )
}

/// One load thread: allocates its sessions, waits for `go`, drives its users to the end.
fn thread<C: AsyncClient>(client: &C, setup: &Setup, gate: Gate) -> Result<Recorder, String> {
    let recorder = Rc::new(RefCell::new(Recorder::new(setup)?));
    let number = gate.thread();
    let first = number * setup.users_per_thread;
    let sessions: Vec<_> = (first..first + setup.users_per_thread)
        .map(|user| client.session(setup, user))
        .collect::<Result<_, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| {
            format!("no runtime for a load thread: {e}; raise the limit of descriptors")
        })?;
    let turns = {
        let _in_its_context = runtime.enter();
        Turns::new().map_err(|e| {
            format!("no timer for a load thread: {e}; raise the limit of descriptors")
        })?
    };
    let tasks = LocalSet::new();

    let window = gate.wait()?;
    recorder.borrow_mut().begin(window);
    // This start is common to all clients.
    clock::sleep_until(window.go_ns);
    let shared = Shared {
        recorder: Rc::clone(&recorder),
        pace: Rc::new(RefCell::new(Pace::new(setup, window, number))),
        turns: Rc::new(turns),
    };
    tasks.block_on(&runtime, async {
        let users: Vec<_> = sessions
            .into_iter()
            .map(|session| {
                let user = VirtualUser::new(setup, window);
                spawn_local(drive(session, user, shared.clone()))
            })
            .collect();
        for user in users {
            if let Err(end) = user.await {
                // Nobody cancels a user, so it panicked; the thread's owner reports it.
                std::panic::resume_unwind(end.into_panic());
            }
        }
    });
    drop(shared);
    // Tasks of connections that a session left behind end here, and close their sockets.
    drop(tasks);
    drop(runtime);
    // The users were the only other owners.
    Rc::into_inner(recorder)
        .map(RefCell::into_inner)
        .ok_or_else(|| "a virtual user outlived its thread".to_owned())
}

/// The loop. One clock read a request: its end is the start of the next one.
async fn drive(mut session: impl AsyncSession, mut user: VirtualUser, mut shared: Shared) {
    let mut now = clock::now_ns();
    loop {
        let step = user.next(now, &mut shared.pace.borrow_mut());
        match step {
            Step::Wait { until_ns } => {
                shared.turns.sleep_until(until_ns).await;
                now = clock::now_ns();
            }
            Step::Connect => {
                session.reset().await;
                now = clock::now_ns();
            }
            Step::Request { intended_ns } => {
                let start = now;
                let result = session.request(&mut shared).await;
                now = clock::now_ns();
                let good = shared
                    .recorder
                    .borrow_mut()
                    .request(start, intended_ns, now, result);
                if let Some(since) = user.done(good) {
                    shared.recorder.borrow_mut().iteration(since, now);
                }
                if !good {
                    // A connect that fails at once never waits: without this, one user without
                    // a port would keep the thread from all others.
                    yield_now().await;
                    now = clock::now_ns();
                }
            }
            Step::Stop => break,
        }
    }
    shared.recorder.borrow_mut().stopped(&user);
}

/// What the users of a thread share. Nothing of it is borrowed across an await.
#[derive(Clone)]
struct Shared {
    recorder: Rc<RefCell<Recorder>>,
    pace: Rc<RefCell<Pace>>,
    turns: Rc<Turns>,
}

impl Meter for Shared {
    fn connected(&mut self, connect_ns: Option<u64>) {
        self.recorder.borrow_mut().connected(connect_ns);
    }
    fn connect_failed(&mut self) {
        self.recorder.borrow_mut().connect_failed();
    }
}

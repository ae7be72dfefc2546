//! The errno of a failed connect(), which isahc does not hand on.
//!
//! isahc reports no free port, a refused connection and no free descriptor by the same words
//! ("Could not connect to server", no extra text). But curl leaves the errno in its thread
//! (`SET_SOCKERRNO` in cf-socket.c), and on that thread, before anything else can fail, isahc logs
//! a warning. A subscriber that wakes for this warning alone reads the errno there. A good request
//! pays nothing: every other event and span is disabled where it is raised, once and for all.
//!
//! Which user's thread it is: isahc makes a span for each of its threads in the thread that builds
//! the client, and enters it in the new one. The span's id is the user's number.
//!
//! Limit: a connect() that fails late (beyond loopback) passes through calls that overwrite the
//! errno; its kind is then `other`. No free port and no free descriptor always fail at once.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::{Mutex, Once, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Last errno of each user.
static LAST: Mutex<Vec<i32>> = Mutex::new(Vec::new());

thread_local! {
    /// The user whose client this thread builds, or whose connections this thread opens.
    static USER: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
}

/// One user's number, counted from 1 as the ids of spans are.
#[derive(Clone, Copy, Debug)]
pub struct User(NonZeroU64);

impl User {
    /// The next number; the first call installs the subscriber.
    pub fn new() -> Self {
        static INSTALL: Once = Once::new();
        // It fails only where another subscriber was installed, and nothing else here installs one.
        INSTALL.call_once(|| drop(tracing::subscriber::set_global_default(Witness)));
        let mut last = lock();
        last.push(0);
        // The length is at least 1 after the push.
        Self(NonZeroU64::MIN.saturating_add(last.len() as u64 - 1))
    }

    /// Builds a client in whose thread this user's errors are seen.
    pub fn build<T>(self, build: impl FnOnce() -> T) -> T {
        USER.set(Some(self.0));
        let built = build();
        USER.set(None);
        built
    }

    /// Takes the errno of the last failed request, 0 if none was seen since the last call.
    pub fn take_errno(self) -> i32 {
        std::mem::take(&mut lock()[self.index()])
    }

    fn index(self) -> usize {
        // A number given by `new` is an index + 1 of a list that never shrinks.
        self.0.get() as usize - 1
    }
}

fn lock() -> std::sync::MutexGuard<'static, Vec<i32>> {
    // A list of plain values is whole even if a thread panicked while it held the lock.
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes for a failed request and for the span of isahc's thread.
struct Witness;

impl Subscriber for Witness {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.target().starts_with("isahc")
            && if of.is_span() {
                of.name() == "agent_thread"
            } else {
                *of.level() == Level::WARN
            }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // `build` surrounds every client; 1 keeps a span without one from being invalid.
        Id::from_non_zero_u64(USER.get().unwrap_or(NonZeroU64::MIN))
    }

    fn enter(&self, span: &Id) {
        USER.set(NonZeroU64::new(span.into_u64()));
    }

    fn exit(&self, _: &Id) {
        USER.set(None);
    }

    fn event(&self, _: &Event<'_>) {
        // First of all: whatever comes next may change it.
        let errno = std::io::Error::last_os_error().raw_os_error();
        if let (Some(user), Some(errno)) = (USER.get(), errno) {
            lock()[User(user).index()] = errno;
        }
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
}

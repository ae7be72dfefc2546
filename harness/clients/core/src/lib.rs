//! The virtual user as a pure state machine, the blocking driver, the bounded recorder.

mod session;
mod setup;

pub use session::{BlockingClient, Failure, Meter, Response, Session};
pub use setup::{KNOBS, Setup, SetupError, common};

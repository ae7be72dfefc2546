//! Everything of a load client but its HTTP stack: the virtual user as a pure state machine, the
//! blocking driver, the bounded recorder, the client's end of the protocol.

mod blocking;
mod gate;
mod io_error;
mod job;
mod pace;
mod program;
mod recorder;
mod seconds;
mod session;
mod setup;
mod sources;
mod user;

pub use blocking::{main_blocking, thread as blocking_thread};
pub use gate::Gate;
pub use io_error::{chain, io_error_of};
pub use job::Refusal;
pub use pace::{Arrival, Pace, Schedule};
pub use program::serve;
pub use recorder::Recorder;
pub use session::{BlockingClient, Failure, Meter, Response, Session};
pub use setup::{KNOBS, Setup, SetupError, common, common_without};
pub use sources::{Sources, SourcesError, bind};
pub use user::{Step, VirtualUser, Window};

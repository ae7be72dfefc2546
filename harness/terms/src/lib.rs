//! The vocabulary of yieldpoint as code: values and knobs, metrics, units, the clock.
//!
//! A leaf crate: everything may use it, it uses nothing of ours.

pub mod clock;
mod duration;
mod knob;
mod metric;
mod nearest;
mod rounds;
mod samples;
mod value;

pub use duration::{DurationError, Nanos};
pub use knob::{Catalog, Kind, Knob, KnobError};
pub use metric::{Behaviour, Metric, Unit};
pub use nearest::nearest;
pub use rounds::{Rounds, RoundsError};
pub use samples::SampleSeries;
pub use value::{Knobs, MissingKnob, Value};

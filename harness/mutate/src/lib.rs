//! Sound inputs, broken in a thousand ways, and a driver that says which of them broke a parser.

mod drive;
mod mutator;
mod operations;

pub use drive::{Report, arguments, drive};
pub use mutator::Mutator;

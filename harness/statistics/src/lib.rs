//! Statistics as pure functions (see README.md).
//!
//! Every ratio is `changed ÷ base`, every interval is two-sided, every random number comes from a seed.

mod random;
mod ratio;

pub use random::Random;
pub use ratio::{Ratio, paired_ratio};

//! Statistics as pure functions (see README.md).
//!
//! Every ratio is `changed ÷ base`, every interval is two-sided, every random number comes from a seed.

mod changes;
mod compare;
mod curve;
mod knee;
mod random;
mod ratio;
mod scalability;
mod search;
mod sequential;

pub use changes::changes;
pub use compare::{
    AT_LEAST, Comparison, ROUNDS_FOR_A_VERDICT, ROUNDS_FOR_AT_LEAST, at_least, compare,
};
pub use curve::{BEYOND, Breaks, NOISE, REACHED, breaks};
pub use knee::{FALL, Knee, LEVELS_FOR_A_KNEE, Level, RISE, Step, knee, step};
pub use random::Random;
pub use ratio::{Ratio, paired_ratio};
pub use scalability::{LEVELS_FOR_A_FIT, NoFit, Scalability, WORST_MISS, scalability};
pub use search::Search;
pub use sequential::{BadPlan, Decision, Repeated, Sequential};

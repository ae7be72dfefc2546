//! What a ratio of enough rounds allows to say.
//!
//! Sources: the duality of interval and test, Neyman, "Outline of a theory of statistical estimation",
//! Philosophical Transactions A 236 (1937); "at least as fast" as a test of non-inferiority, Schuirmann,
//! "A comparison of the two one-sided tests procedure", Journal of Pharmacokinetics 15 (1987).

use crate::Ratio;

/// Paired rounds below which no difference is called one: the sign-flip test of fewer can barely reach 5 %,
/// and a t interval of fewer leans on the noise being log-normal.
pub const ROUNDS_FOR_A_VERDICT: usize = 8;

/// Paired rounds below which "at least" is not decided.
pub const ROUNDS_FOR_AT_LEAST: usize = 20;

/// How far below 1 the lower 95 % bound of the ratio may lie for "at least".
pub const AT_LEAST: f64 = 0.95;

/// What the rounds say about two things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// fewer than [`ROUNDS_FOR_A_VERDICT`] rounds: nothing is said
    TooFewRounds,
    /// the 95 % interval holds 1: no difference was found, which does not prove that there is none
    NoDifference,
    /// the 95 % interval lies above 1
    Greater,
    /// the 95 % interval lies below 1
    Less,
}

/// Whether `changed ÷ base` differs from 1 at the 95 % level.
pub fn compare(ratio: &Ratio) -> Comparison {
    if ratio.n < ROUNDS_FOR_A_VERDICT {
        Comparison::TooFewRounds
    } else if ratio.low > 1.0 {
        Comparison::Greater
    } else if ratio.high < 1.0 {
        Comparison::Less
    } else {
        Comparison::NoDifference
    }
}

/// Whether `changed` gives at least what `base` gives: lower bound ≥ [`AT_LEAST`] over at least
/// [`ROUNDS_FOR_AT_LEAST`] rounds. `None` with fewer rounds; `Some(false)` means "not shown".
pub fn at_least(ratio: &Ratio) -> Option<bool> {
    (ratio.n >= ROUNDS_FOR_AT_LEAST).then_some(ratio.low >= AT_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n: usize, low: f64, high: f64) -> Ratio {
        Ratio {
            ratio: (low * high).sqrt(),
            low,
            high,
            n,
            sign_flip_p: 1.0,
        }
    }

    #[test]
    fn rounds_come_before_verdicts() {
        for (ratio, compared, at_least_is) in [
            // A clear fall over seven rounds is not called one yet.
            (of(7, 0.1, 0.2), Comparison::TooFewRounds, None),
            // Eight rounds carry a verdict, but no "at least".
            (of(8, 0.1, 0.2), Comparison::Less, None),
            (of(8, 1.01, 1.2), Comparison::Greater, None),
            // An interval that touches 1 holds it.
            (of(8, 1.0, 1.2), Comparison::NoDifference, None),
            // Slower for certain, and still "at least" within the allowed 5 %.
            (of(20, 0.96, 0.98), Comparison::Less, Some(true)),
            // Perhaps much faster, perhaps not: not shown.
            (of(20, 0.94, 1.5), Comparison::NoDifference, Some(false)),
            (of(20, 0.95, 1.0), Comparison::NoDifference, Some(true)),
        ] {
            assert_eq!(compare(&ratio), compared, "{ratio:?}");
            assert_eq!(at_least(&ratio), at_least_is, "{ratio:?}");
        }
    }
}

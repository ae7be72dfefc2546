//! Parameters of an injection, drawn from a seed, as the values of a matrix.

use std::ops::RangeInclusive;

use yieldpoint_statistics::Random;

/// Draws numbers, and collects the knobs that were set with them.
pub struct Draw<'a> {
    random: &'a mut Random,
    knobs: Vec<(String, String)>,
}

impl<'a> Draw<'a> {
    pub fn new(random: &'a mut Random) -> Self {
        Self {
            random,
            knobs: Vec::new(),
        }
    }

    /// A whole number of a range, each as likely.
    pub fn int(&mut self, of: RangeInclusive<u32>) -> u32 {
        let n = (of.end() - of.start()) as usize + 1;
        // Below `n`, which is at most 2^32.
        of.start() + u32::try_from(self.random.below(n)).unwrap_or(0)
    }

    /// A share of two digits.
    pub fn share(&mut self, percent: RangeInclusive<u32>) -> f64 {
        f64::from(self.int(percent)) / 100.0
    }

    /// One of several, each as likely.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len())]
    }

    /// Sets a knob to a number or a truth value.
    pub fn set(&mut self, knob: &str, value: impl ToString) {
        self.knobs.push((knob.to_owned(), value.to_string()));
    }

    /// Sets a knob to a text or a duration.
    pub fn text(&mut self, knob: &str, value: impl std::fmt::Display) {
        self.set(knob, format!("\"{value}\""));
    }

    /// The knobs in the order in which they were set.
    pub fn knobs(self) -> Vec<(String, String)> {
        self.knobs
    }
}

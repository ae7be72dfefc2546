//! From a seed and a number to an input.

use fastrand::Rng;

use crate::operations;

/// Longest input in bytes; mutations that would make a longer one are cut there.
pub const MAX_BYTES: usize = 256 * 1024;

/// Makes inputs out of sound ones.
#[derive(Clone, Debug)]
pub struct Mutator {
    seed: u64,
    corpus: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Mutator {
    /// `corpus`: sound inputs, at least one; `words`: pieces of the format worth inserting.
    ///
    /// # Panics
    /// With an empty corpus, which is a slip of the caller.
    #[must_use]
    pub fn new(seed: u64, corpus: &[&[u8]], words: &[&str]) -> Self {
        assert!(!corpus.is_empty(), "a mutator needs a sound input");
        Self {
            seed,
            corpus: corpus.iter().map(|c| c.to_vec()).collect(),
            words: words.iter().map(|w| w.as_bytes().to_vec()).collect(),
        }
    }

    /// The seed it was made with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Input `n`: always the same for a seed and a corpus. Most have one to four slips, a few many.
    #[must_use]
    pub fn input(&self, n: u64) -> Vec<u8> {
        // An odd factor (2^64 ÷ golden ratio) spreads neighbouring numbers; the generator mixes the rest.
        let mut rng = Rng::with_seed(self.seed ^ n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut input = self.corpus[rng.usize(..self.corpus.len())].clone();
        let slips = 1 + rng.u32(..).trailing_zeros().min(12);
        for _ in 0..slips {
            let other = &self.corpus[rng.usize(..self.corpus.len())];
            operations::any(&mut rng, &mut input, other, &self.words);
            input.truncate(MAX_BYTES);
        }
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const SOUND: &[u8] = b"threads = [1, 20, 300]\nname = \"x\"\n";

    #[test]
    fn an_input_is_found_again_and_differs_from_the_others() {
        let mutator = Mutator::new(7, &[SOUND, b"{\"a\": 1}"], &["true"]);
        let inputs: Vec<_> = (0..2000).map(|n| mutator.input(n)).collect();
        assert!((0..2000).all(|n| mutator.input(n) == inputs[n as usize]));
        let distinct: HashSet<_> = inputs.iter().collect();
        // Short inputs collide now and then (the same bit, the same cut); a stuck generator nearly always.
        assert!(distinct.len() > 1500, "{} distinct", distinct.len());
        let other = Mutator::new(8, &[SOUND, b"{\"a\": 1}"], &["true"]);
        assert!((0..2000).any(|n| other.input(n) != inputs[n as usize]));
    }

    #[test]
    fn every_kind_of_slip_happens() {
        let mutator = Mutator::new(1, &[SOUND], &["KEYWORD"]);
        let inputs: Vec<_> = (0..5000).map(|n| mutator.input(n)).collect();
        let some = |what: &str, holds: &dyn Fn(&[u8]) -> bool| {
            assert!(inputs.iter().any(|i| holds(i)), "no input {what}");
        };
        let has = |i: &[u8], piece: &[u8]| i.windows(piece.len()).any(|w| w == piece);
        some("is shorter", &|i| i.len() < SOUND.len());
        some("is longer", &|i| i.len() > SOUND.len());
        some("is empty or nearly so", &|i| i.len() < 3);
        some("has the word", &|i| has(i, b"KEYWORD"));
        some("has an extreme number", &|i| has(i, b"9223372036854775808"));
        some("nests deeply", &|i| has(i, &[b'['; 500]));
        some("is not UTF-8", &|i| std::str::from_utf8(i).is_err());
        some("has letters beyond ASCII", &|i| {
            std::str::from_utf8(i).is_ok_and(|t| !t.is_ascii())
        });
        some("has a line twice", &|i| {
            i.split(|b| *b == b'\n')
                .filter(|l| l.starts_with(b"threads"))
                .count()
                == 2
        });
    }

    #[test]
    fn no_input_is_too_long_and_an_empty_corpus_text_is_fine() {
        let big = vec![b'{'; MAX_BYTES];
        let mutator = Mutator::new(3, &[&big, b""], &[]);
        assert!((0..500).all(|n| mutator.input(n).len() <= MAX_BYTES));
    }
}

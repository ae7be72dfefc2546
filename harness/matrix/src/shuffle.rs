//! A seeded order that is the same for ever, on every machine and with every version.
//!
//! The generator is our own because a library's may change between versions, and then the seed in
//! an old manifest would name another order.

/// SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators").
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0. The bias of the multiplication is below n ÷ 2^64.
    fn below(&mut self, n: usize) -> usize {
        // The product's upper half is below n, so it fits.
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// The order of the trials of each round, for ever: permutations of the numbers 0 to `trials` − 1
/// (Fisher–Yates), a function of the number of trials and of the seed alone.
pub struct Shuffled {
    random: SplitMix64,
    trials: usize,
}

impl Shuffled {
    /// From the first round on.
    #[must_use]
    pub const fn new(trials: usize, seed: u64) -> Self {
        Self {
            random: SplitMix64(seed),
            trials,
        }
    }

    /// The order of the next round.
    pub fn round(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.trials).collect();
        for last in (1..self.trials).rev() {
            order.swap(last, self.random.below(last + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(trials: usize, rounds: u32, seed: u64) -> Vec<Vec<usize>> {
        let mut orders = Shuffled::new(trials, seed);
        (0..rounds).map(|_| orders.round()).collect()
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first numbers of the reference implementation for seed 1234567.
        let mut random = SplitMix64(1_234_567);
        let want = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(want.map(|_| random.next()), want);
    }

    #[test]
    fn the_order_never_changes() {
        // A seed in an old manifest must name the same order: these are not to be updated.
        assert_eq!(
            shuffled(6, 2, 1),
            [vec![2, 0, 1, 4, 5, 3], vec![3, 1, 0, 2, 5, 4]]
        );
    }

    #[test]
    fn every_round_holds_every_cell_once_and_more_rounds_change_none() {
        for cells in [0, 1, 2, 17] {
            let all = shuffled(cells, 5, 7);
            assert_eq!(shuffled(cells, 3, 7), all[..3]);
            for round in all {
                let mut sorted = round.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..cells).collect::<Vec<_>>());
            }
        }
        assert_ne!(shuffled(17, 1, 7), shuffled(17, 1, 8), "the seed decides");
    }

    #[test]
    fn every_order_is_as_likely_as_every_other() {
        let mut seen = std::collections::BTreeMap::new();
        for order in shuffled(3, 6_000, 42) {
            *seen.entry(order).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        // 1,000 expected of each; ±150 is more than five standard deviations, and the seed is fixed.
        assert!(seen.values().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}

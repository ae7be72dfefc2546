//! Seeded random numbers: the same seed gives the same statistics on every machine.
//!
//! Sources: SplitMix64 after Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
//! OOPSLA 2014; normal numbers after Box and Muller, "A note on the generation of random normal
//! deviates", Annals of Mathematical Statistics 29 (1958).

/// A SplitMix64 generator. Good enough for bootstraps and simulations, never for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that always repeats the sequence of its seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in the half-open interval (0, 1]: its logarithm is always finite.
    pub fn uniform(&mut self) -> f64 {
        // 53 bits and 1 fit the mantissa exactly.
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Uniform among `0..n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        // The high half of a product of two u64 is below both factors, so it fits a usize again.
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// A number of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs of the reference implementation for the seed 1234567.
        let mut random = Random::new(1_234_567);
        for want in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ] {
            assert_eq!(random.bits(), want);
        }
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let (mut random, n) = (Random::new(1), 200_000);
        let normals: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(n);
        let variance = normals.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        // Four standard errors: 1 ÷ √n of the mean, √(2 ÷ n) of the variance.
        assert!(mean.abs() < 4.0 / f64::from(n).sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 4.0 * (2.0 / f64::from(n)).sqrt());
        let mut counts = [0u32; 7];
        for _ in 0..n {
            counts[random.below(7)] += 1;
        }
        let expected = f64::from(n) / 7.0;
        for count in counts {
            assert!((f64::from(count) - expected).abs() < 4.0 * expected.sqrt());
        }
        assert_eq!(random.below(0), 0);
    }
}

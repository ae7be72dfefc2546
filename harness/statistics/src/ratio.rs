//! By how much two things differ, paired by round.
//!
//! Sources: Student, "The probable error of a mean", Biometrika 6 (1908), for the interval of the mean of
//! the log ratios; Fisher, "The design of experiments" (1935), section 21, for the exact sign-flip test.
//! Logs, because a ratio has no symmetric spread: twice as fast and half as fast are equally far from 1.
//! Paired by round, because the machine drifts between rounds and its drift is no difference.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Random;

/// A ratio `changed ÷ base` over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// geometric mean of the rounds' ratios
    pub ratio: f64,
    /// lower end of the 95 % t interval; 0 of a single round, which says nothing about its spread
    pub low: f64,
    /// upper end of the 95 % t interval; infinite of a single round
    pub high: f64,
    /// paired rounds
    pub n: usize,
    /// two-sided p value of the sign-flip test of "no difference"; it cannot be less than 2 ÷ 2ⁿ
    pub sign_flip_p: f64,
}

/// Up to this many rounds every assignment of signs is counted; above, [`DRAWS`] of them are drawn.
const EXACT_ROUNDS: usize = 20;
/// Drawn assignments of signs: the standard error of a p value of 0.05 is 0.0007.
const DRAWS: u32 = 100_000;

/// Mean log ratio `changed ÷ base` of the pairs `(base, changed)` of each round, with a 95 % t interval.
///
/// `None` without a pair, and if a value is not finite and above 0: such a value has no logarithm, and
/// leaving its round out would favour the side that failed.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let logs = log_ratios(pairs)?;
    let (mean, error) = mean_and_error(&logs);
    let half = match error {
        Some(error) => t_quantile(0.975, logs.len() - 1) * error,
        None => f64::INFINITY,
    };
    Some(Ratio {
        ratio: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        n: logs.len(),
        sign_flip_p: sign_flip(&logs),
    })
}

/// The logarithms of `changed ÷ base`; `None` where there is none, or one does not exist.
pub(crate) fn log_ratios(pairs: &[(f64, f64)]) -> Option<Vec<f64>> {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    let all = pairs
        .iter()
        .all(|(base, changed)| positive(*base) && positive(*changed));
    (all && !pairs.is_empty()).then(|| {
        pairs
            .iter()
            .map(|(base, changed)| changed.ln() - base.ln())
            .collect()
    })
}

/// Mean and its standard error; no error of fewer than two values.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let error = (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
    (mean, error)
}

/// The quantile `p` of Student's t with `df` ≥ 1 degrees of freedom.
pub(crate) fn t_quantile(p: f64, df: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, df as f64) {
        Ok(t) => t.inverse_cdf(p),
        // No degree of freedom: nothing is known about the spread.
        Err(_) => f64::INFINITY,
    }
}

/// Share of the assignments of signs whose sum is at least as far from 0 as the one seen.
///
/// If nothing differs, each round's ratio could as well have been its inverse.
fn sign_flip(logs: &[f64]) -> f64 {
    let seen = logs.iter().sum::<f64>().abs();
    // Sums that are equal on paper differ by rounding; they count as equal.
    let bar = seen - 1e-9 * logs.iter().map(|l| l.abs()).sum::<f64>();
    if logs.len() <= EXACT_ROUNDS {
        exact(logs, bar)
    } else {
        drawn(logs, bar)
    }
}

/// All assignments in Gray-code order, so that each costs one addition. The first sign stays as it is:
/// the other half of the assignments are mirror images.
fn exact(logs: &[f64], bar: f64) -> f64 {
    let flips = 1u32 << (logs.len() - 1);
    let mut signed = logs.to_vec();
    let mut sum: f64 = signed.iter().sum();
    let mut as_far = 1u32; // the assignment that was seen
    for i in 1..flips {
        // Below 20, as `flips` is at most 2^19.
        let turned = 1 + i.trailing_zeros() as usize;
        sum -= 2.0 * signed[turned];
        signed[turned] = -signed[turned];
        as_far += u32::from(sum.abs() >= bar);
    }
    f64::from(as_far) / f64::from(flips)
}

/// Drawn assignments; the one seen counts as drawn too, so that p is never 0 (Phipson and Smyth 2010).
fn drawn(logs: &[f64], bar: f64) -> f64 {
    let mut random = Random::new(logs.len() as u64);
    let mut as_far = 1u32;
    for _ in 0..DRAWS {
        let mut sum = 0.0;
        for chunk in logs.chunks(64) {
            let mut bits = random.bits();
            for log in chunk {
                sum += if bits & 1 == 0 { *log } else { -log };
                bits >>= 1;
            }
        }
        as_far += u32::from(sum.abs() >= bar);
    }
    f64::from(as_far) / f64::from(DRAWS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, by: f64) {
        assert!((got - want).abs() <= by, "{got}, expected {want} ± {by}");
    }

    #[test]
    fn a_ratio_is_paired_by_round() {
        // Drift of the machine by a factor of 10 between the rounds leaves the ratio alone.
        let drift = paired_ratio(&[(100.0, 200.0), (10.0, 20.0)]).unwrap();
        near(drift.ratio, 2.0, 1e-12);
        near(drift.low, 2.0, 1e-9);
        // A geometric mean: ×4 and ÷4 are no change.
        near(
            paired_ratio(&[(1.0, 4.0), (4.0, 1.0)]).unwrap().ratio,
            1.0,
            1e-12,
        );
        // One round has a ratio, and an interval that admits to knowing nothing.
        let one = paired_ratio(&[(1.0, 3.0)]).unwrap();
        near(one.ratio, 3.0, 1e-12);
        assert_eq!((one.low, one.high, one.n), (0.0, f64::INFINITY, 1));
        for none in [
            &[][..],                   // nothing is not 1
            &[(1.0, 1.0), (0.0, 5.0)], // 0 has no logarithm
            &[(1.0, f64::NAN)],        // nor has what was not measured
            &[(1.0, -1.0)],            // nor has what cannot be
            &[(f64::INFINITY, 1.0)],   // nor has what was divided by 0
        ] {
            assert_eq!(paired_ratio(none), None, "{none:?}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (df, want) in [
            (1, 12.7062), // no shortcut for large df would hold here
            (2, 4.3027),
            (7, 2.3646), // eight rounds
            (19, 2.0930),
            (120, 1.9799), // the last row of most tables
        ] {
            near(t_quantile(0.975, df), want, 1e-4);
        }
    }

    #[test]
    fn the_interval_is_that_of_a_textbook() {
        // Student's own data of 1908: additional hours of sleep by ten patients, as published in
        // "sleep" of every statistics package: mean 1.58, 95 % interval 0.700 to 2.460, t = 4.0621.
        let hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let pairs: Vec<_> = hours.iter().map(|h: &f64| (1.0, h.exp())).collect();
        let ratio = paired_ratio(&pairs).unwrap();
        near(ratio.ratio.ln(), 1.58, 1e-9);
        near(ratio.low.ln(), 0.7001, 1e-4);
        near(ratio.high.ln(), 2.4599, 1e-4);
    }

    #[test]
    fn sign_flips_are_counted_exactly() {
        let p = |logs: &[f64]| {
            let pairs: Vec<_> = logs.iter().map(|l| (1.0, l.exp())).collect();
            paired_ratio(&pairs).unwrap().sign_flip_p
        };
        for (logs, want) in [
            (&[1.0][..], 1.0),  // one sign: both ways are as far
            (&[1.0, 1.0], 0.5), // ++ and -- of four
            (&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2.0 / 256.0), // the least of eight rounds
            (&[0.0, 0.0, 0.0], 1.0), // nothing differs at all
            (&[3.0, -1.0, 2.0], 4.0 / 8.0), // the sums 6 and 4, and their mirror images
        ] {
            let n = logs.len();
            let seen = logs.iter().sum::<f64>().abs();
            let by_hand = (0..1u32 << n)
                .filter(|mask| {
                    let sum: f64 = (0..n)
                        .map(|i| {
                            if mask >> i & 1 == 0 {
                                logs[i]
                            } else {
                                -logs[i]
                            }
                        })
                        .sum();
                    sum.abs() >= seen - 1e-9
                })
                .count() as f64
                / f64::from(1u32 << n);
            near(p(logs), by_hand, 1e-12);
            near(p(logs), want, 1e-12);
        }
    }

    #[test]
    fn drawn_flips_agree_with_counted_ones() {
        let mut random = Random::new(3);
        let logs: Vec<f64> = (0..20).map(|_| random.normal() + 0.4).collect();
        let bar = logs.iter().sum::<f64>().abs() - 1e-9;
        let (counted, drawn) = (exact(&logs, bar), drawn(&logs, bar));
        // Four standard errors of the draws.
        let error = (counted * (1.0 - counted) / f64::from(DRAWS)).sqrt();
        near(drawn, counted, 4.0 * error + 1e-5);
        assert!(
            counted < 0.2,
            "{counted}: a table of p near 1 would prove nothing"
        );
    }

    /// The false alarms of A/A comparisons are 5 %, whatever the noise and however few the rounds.
    #[test]
    fn a_control_alarms_in_one_of_twenty() {
        const SIMULATIONS: u32 = 2000;
        // Rounds and the spread of the noise: log-normal, from quiet to a factor of e.
        for (rounds, sigma) in [(3u32, 0.02), (8, 0.1), (14, 1.0)] {
            let mut random = Random::new(u64::from(rounds));
            let mut interval = 0;
            let mut flips = 0;
            for _ in 0..SIMULATIONS {
                let pairs: Vec<_> = (0..rounds)
                    .map(|_| {
                        let drift = random.normal();
                        let mut one = || (drift + sigma * random.normal()).exp();
                        (one(), one())
                    })
                    .collect();
                let ratio = paired_ratio(&pairs).unwrap();
                interval += u32::from(ratio.low > 1.0 || ratio.high < 1.0);
                flips += u32::from(ratio.sign_flip_p <= 0.05);
            }
            let n = f64::from(SIMULATIONS);
            // Four binomial standard errors around the nominal 5 %.
            let error = 4.0 * (0.05 * 0.95 / n).sqrt();
            near(f64::from(interval) / n, 0.05, error);
            // The flips of few rounds are coarse: never above the nominal level, and exact from eight on
            // to within one step of 2 ÷ 256.
            let level = f64::from(flips) / n;
            assert!(level <= 0.05 + error, "{rounds}: {level}");
            assert!(rounds < 8 || level >= 0.05 - 2.0 / 256.0 - error, "{level}");
        }
    }
}

//! Stopping early without more false alarms: alpha spending at planned looks.
//!
//! Sources: Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983), with
//! their spending function of the O'Brien–Fleming type, α(t) = 4 − 4Φ(z(1 − α/4) ÷ √t), which is half the
//! level on each side; the recursion over looks after Armitage, McPherson and Rowe, Journal of the Royal Statistical Society A 132 (1969); the t
//! statistic held against the nominal level of its look, and the repeated interval, after Jennison and
//! Turnbull, "Group sequential methods" (2000), sections 3.8 and 9.
//!
//! Stopping as soon as an interval is narrow, or as soon as p falls below 5 %, alarms falsely in 15 % and
//! more of all comparisons of a thing with itself. Here the looks are fixed before the first round.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf::{erfc, erfc_inv};
use thiserror::Error;

use crate::ratio::{log_ratios, mean_and_error, t_quantile};

/// Points of the grid on which the density of the undecided is kept; odd, for Simpson's rule. 401 give
/// the boundaries to four digits.
const POINTS: usize = 401;
/// Standard deviations beyond which nothing is: 2 · 10⁻¹⁵ lies outside.
const FAR: f64 = 8.0;

/// A plan that is none.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BadPlan {
    /// The looks are not rising, or too early.
    #[error("looks {0:?}: expected at least one, each later than the one before, from 2 rounds on")]
    Looks(Vec<usize>),
    /// The level is none.
    #[error("alpha {0}: expected a share between 0 and 0.5, for example 0.05")]
    Alpha(f64),
}

/// The stop rule of `rounds = "auto"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    looks: Vec<usize>,
    /// two-sided nominal level of each look
    levels: Vec<f64>,
}

/// What to do after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// run on until so many rounds are complete; the next look is then
    Continue {
        /// rounds of the next look
        until: usize,
    },
    /// stop: the two differ
    Different(Repeated),
    /// stop: the last look found no difference
    NotDifferent(Repeated),
    /// stop: a value is not above 0, so that there is no ratio
    NoRatio,
}

/// A ratio `changed ÷ base` with an interval that stays valid although several looks were taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeated {
    /// geometric mean of the rounds' ratios
    pub ratio: f64,
    /// lower end of the repeated interval
    pub low: f64,
    /// upper end of the repeated interval
    pub high: f64,
}

impl Sequential {
    /// A plan to look after each of `looks` rounds, with `alpha` false alarms over all looks together.
    pub fn new(looks: &[usize], alpha: f64) -> Result<Self, BadPlan> {
        let rising = looks.windows(2).all(|w| w[0] < w[1]);
        if !rising || looks.first().is_none_or(|first| *first < 2) {
            return Err(BadPlan::Looks(looks.to_vec()));
        }
        if !(alpha > 0.0 && alpha < 0.5) {
            return Err(BadPlan::Alpha(alpha));
        }
        Ok(Self {
            looks: looks.to_vec(),
            levels: levels(looks, alpha),
        })
    }

    /// Rounds of the last look: more are never needed.
    pub fn most_rounds(&self) -> usize {
        self.looks.last().copied().unwrap_or(0)
    }

    /// What the pairs `(base, changed)` of all rounds so far say. Between two looks nothing is decided.
    /// Rounds beyond the last look are left out: they were not in the plan.
    pub fn look(&self, pairs: &[(f64, f64)]) -> Decision {
        let most = self.most_rounds();
        let rounds = pairs.len().min(most);
        let Some(at) = self.looks.iter().position(|look| *look >= rounds) else {
            return Decision::NoRatio;
        };
        if self.looks[at] != rounds {
            return Decision::Continue {
                until: self.looks[at],
            };
        }
        let Some(logs) = log_ratios(&pairs[..rounds]) else {
            return Decision::NoRatio;
        };
        let (mean, Some(error)) = mean_and_error(&logs) else {
            return Decision::NoRatio;
        };
        let level = self.levels[at];
        let half = t_quantile(1.0 - level / 2.0, rounds - 1) * error;
        let repeated = Repeated {
            ratio: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
        };
        if p_value(mean, error, rounds - 1) <= level {
            Decision::Different(repeated)
        } else if rounds == most {
            Decision::NotDifferent(repeated)
        } else {
            Decision::Continue {
                until: self.looks[at + 1],
            }
        }
    }
}

/// Two-sided p value of "the mean is 0".
fn p_value(mean: f64, error: f64, df: usize) -> f64 {
    if mean == 0.0 {
        return 1.0;
    }
    match StudentsT::new(0.0, 1.0, df as f64) {
        // An error of 0 gives an infinite t: all rounds agree to the last digit.
        Ok(t) if error > 0.0 => 2.0 * t.sf((mean / error).abs()),
        Ok(_) => 0.0,
        Err(_) => 1.0,
    }
}

/// P(Z > z) of a standard normal Z.
fn upper_tail(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// False alarms that may have been spent when the share `t` of the rounds is complete.
fn spent(t: f64, alpha: f64) -> f64 {
    let z = std::f64::consts::SQRT_2 * erfc_inv(alpha / 2.0);
    4.0 * upper_tail(z / t.sqrt())
}

/// The two-sided nominal level of each look.
///
/// The score is a Brownian motion in the share `t` of the rounds. `density` is that of the comparisons not
/// yet decided; each look moves it on by the rounds since and cuts it at the boundary that lets out exactly
/// what may be spent.
fn levels(looks: &[usize], alpha: f64) -> Vec<f64> {
    let most = looks.last().copied().unwrap_or(1) as f64;
    let mut levels = Vec::with_capacity(looks.len());
    let mut density: Option<Density> = None;
    let mut before = (0.0, 0.0);
    for look in looks {
        let t = *look as f64 / most;
        let now = spent(t, alpha);
        let step = (t - before.0).sqrt();
        let leaves = |bound: f64| match &density {
            None => 2.0 * upper_tail(bound / step),
            Some(d) => d.integrate(|u, f| {
                f * (upper_tail((bound - u) / step) + upper_tail((bound + u) / step))
            }),
        };
        let bound = bisect(leaves, now - before.1, FAR * t.sqrt());
        levels.push(2.0 * upper_tail(bound / t.sqrt()));
        let next = Density::new(bound, |s| match &density {
            None => bell(s / step) / step,
            Some(d) => d.integrate(|u, f| f * bell((s - u) / step) / step),
        });
        density = Some(next);
        before = (t, now);
    }
    levels
}

/// The density of the standard normal distribution.
fn bell(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// Where the falling function `f` reaches `want`, between 0 and `far`.
fn bisect(f: impl Fn(f64) -> f64, want: f64, far: f64) -> f64 {
    let (mut low, mut high) = (0.0, far);
    for _ in 0..60 {
        let mid = f64::midpoint(low, high);
        if f(mid) > want {
            low = mid;
        } else {
            high = mid;
        }
    }
    f64::midpoint(low, high)
}

/// A density on an even grid from `-bound` to `bound`.
struct Density {
    bound: f64,
    values: Vec<f64>,
}

impl Density {
    fn new(bound: f64, f: impl Fn(f64) -> f64) -> Self {
        let values = (0..POINTS).map(|i| f(Self::place(bound, i))).collect();
        Self { bound, values }
    }

    fn place(bound: f64, i: usize) -> f64 {
        bound * (2.0 * i as f64 / (POINTS - 1) as f64 - 1.0)
    }

    /// The integral of `f(place, density there)`, by Simpson's rule.
    fn integrate(&self, f: impl Fn(f64, f64) -> f64) -> f64 {
        let width = 2.0 * self.bound / (POINTS - 1) as f64;
        let sum: f64 = self
            .values
            .iter()
            .enumerate()
            .map(|(i, value)| {
                let weight = match i {
                    0 => 1.0,
                    _ if i == POINTS - 1 => 1.0,
                    _ if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                weight * f(Self::place(self.bound, i), *value)
            })
            .sum();
        sum * width / 3.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn boundaries_are_the_published_ones() {
        // Five even looks, two-sided 5 %: the boundaries of the O'Brien–Fleming-type spending function as
        // tabulated for Lan and DeMets' method (z of each look).
        let levels = levels(&[1, 2, 3, 4, 5], 0.05);
        for (level, z) in levels.iter().zip([4.8769, 3.3569, 2.6803, 2.2898, 2.0310]) {
            let got = std::f64::consts::SQRT_2 * erfc_inv(*level);
            assert!((got - z).abs() < 2e-3, "{got}, expected {z}");
        }
        // A single look spends everything at once: the plain test.
        assert!((super::levels(&[20], 0.05)[0] - 0.05).abs() < 1e-9);
    }

    #[test]
    fn a_plan_has_rising_looks_and_a_level() {
        for (looks, alpha) in [
            (&[][..], 0.05),  // no look
            (&[8, 8], 0.05),  // the same twice
            (&[12, 8], 0.05), // falling
            (&[1, 8], 0.05),  // one round has no spread
            (&[8, 12], 0.0),  // never alarms, never finds
            (&[8, 12], 0.5),  // tosses a coin
            (&[8], f64::NAN),
        ] {
            assert!(Sequential::new(looks, alpha).is_err(), "{looks:?} {alpha}");
        }
    }

    #[test]
    fn it_decides_at_its_looks_only() {
        let plan = Sequential::new(&[8, 12, 20], 0.05).unwrap();
        let doubled =
            |n: usize| -> Vec<_> { (0..n).map(|i| (1.0 + i as f64 * 1e-3, 2.0)).collect() };
        let same = |n: usize| -> Vec<_> {
            (0..n)
                .map(|i| if i % 2 == 0 { (1.0, 1.1) } else { (1.1, 1.0) })
                .collect()
        };
        // Before the first look, and between looks, even a clear difference waits.
        assert_eq!(plan.look(&[]), Decision::Continue { until: 8 });
        assert_eq!(plan.look(&doubled(7)), Decision::Continue { until: 8 });
        assert_eq!(plan.look(&doubled(9)), Decision::Continue { until: 12 });
        let Decision::Different(found) = plan.look(&doubled(8)) else {
            panic!("twice as much in every round is a difference");
        };
        assert!(found.low > 1.9 && found.low < found.ratio && found.ratio < found.high);
        // No difference is said at the last look only; rounds beyond it change nothing.
        assert_eq!(plan.look(&same(8)), Decision::Continue { until: 12 });
        for n in [20, 24] {
            assert!(matches!(plan.look(&same(n)), Decision::NotDifferent(r) if r.low < 1.0));
        }
        // A failed side has no ratio.
        assert_eq!(plan.look(&[(1.0, 0.0); 8]), Decision::NoRatio);
        assert_eq!(plan.most_rounds(), 20);
    }

    /// All looks together alarm in at most 5 % of the comparisons of a thing with itself, and a small true
    /// difference is found before the last look.
    #[test]
    fn all_looks_together_keep_the_level() {
        const SIMULATIONS: u32 = 4000;
        let plan = Sequential::new(&[8, 12, 16, 20, 30, 40], 0.05).unwrap();
        let run = |seed: u64, effect: f64| {
            let mut random = Random::new(seed);
            let mut pairs: Vec<(f64, f64)> = Vec::new();
            loop {
                let mut noise = || (0.05 * random.normal()).exp();
                pairs.push((noise(), noise() * effect));
                match plan.look(&pairs) {
                    Decision::Continue { .. } => {}
                    decision => return (decision, pairs.len()),
                }
            }
        };
        let different = |d: &(Decision, usize)| matches!(d.0, Decision::Different(_));
        let alarms = (0..SIMULATIONS)
            .filter(|seed| different(&run(u64::from(*seed), 1.0)))
            .count();
        let share = alarms as f64 / f64::from(SIMULATIONS);
        // Three binomial standard errors above the nominal 5 %; and not so few that the rule would be
        // needlessly blind.
        let error = (0.05 * 0.95 / f64::from(SIMULATIONS)).sqrt();
        assert!(share <= 0.05 + 3.0 * error, "{share}");
        assert!(share >= 0.05 - 5.0 * error, "{share}");
        // 5 % less, with noise of 5 % a side: theory gives a power above 99 % at 40 rounds.
        let found: Vec<_> = (0..400).map(|s| run(s, 0.95)).filter(different).collect();
        assert!(found.len() >= 380, "{}", found.len());
        let mean = found.iter().map(|d| d.1).sum::<usize>() / found.len();
        assert!(mean < 32, "stops early: {mean} rounds");
    }
}

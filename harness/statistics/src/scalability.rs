//! The Universal Scalability Law: X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)).
//!
//! Source: Gunther, "Guerrilla capacity planning" (2007), chapters 4 to 6: λ is the throughput of one, σ the
//! share that waits for one another (contention), κ the cost of agreeing with one another (coherency). The
//! fit is his: N ÷ X is a parabola in N. Each level is weighted by (X ÷ N)², so that the *relative* errors of
//! X are what is least, as they are what is alike at all levels.
//!
//! The law describes one mechanism. Where another resource binds from some level on, a fit would still give
//! three numbers that mean nothing; so it refuses rather than fits, and says why.

use thiserror::Error;

/// Levels below which three parameters are not fitted.
pub const LEVELS_FOR_A_FIT: usize = 6;
/// A level further than this from the fitted curve, as a share, means that the law does not hold.
pub const WORST_MISS: f64 = 0.10;

/// A fitted law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalability {
    /// throughput of one, in the unit of the levels (λ)
    pub of_one: f64,
    /// contention (σ), 0 to 1
    pub contention: f64,
    /// coherency (κ), at least 0
    pub coherency: f64,
    /// the N of greatest throughput; `None` where it grows for ever (κ = 0)
    pub peak: Option<f64>,
    /// greatest distance of a level from the curve, as a share of the level
    pub worst_miss: f64,
}

impl Scalability {
    /// Throughput at `n`, in the unit of the levels.
    pub fn at(&self, n: f64) -> f64 {
        self.of_one * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }
}

/// Why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum NoFit {
    /// fewer than [`LEVELS_FOR_A_FIT`] different levels
    #[error("{0} levels, the scalability law needs {LEVELS_FOR_A_FIT}")]
    TooFewLevels(usize),
    /// a level or its throughput is not above 0
    #[error("a level without throughput: something broke there, which no law of scaling describes")]
    NotPositive,
    /// throughput grows faster than the level
    #[error(
        "throughput grows faster than the level, which neither contention nor coherency explains"
    )]
    Superlinear,
    /// a level misses the curve
    #[error("a level misses the scalability law by {:.0} %: another cause binds there", .0 * 100.0)]
    Misses(f64),
}

/// Fits the law to `(N, throughput)` of each level; the order does not matter.
pub fn scalability(levels: &[(f64, f64)]) -> Result<Scalability, NoFit> {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    if !levels.iter().all(|(n, x)| positive(*n) && positive(*x)) {
        return Err(NoFit::NotPositive);
    }
    let mut different: Vec<f64> = levels.iter().map(|l| l.0).collect();
    different.sort_by(f64::total_cmp);
    different.dedup();
    if different.len() < LEVELS_FOR_A_FIT {
        return Err(NoFit::TooFewLevels(different.len()));
    }
    let fit = fit(levels).ok_or(NoFit::Superlinear)?;
    if fit.worst_miss > WORST_MISS {
        return Err(NoFit::Misses(fit.worst_miss));
    }
    Ok(fit)
}

/// The least squares of the relative errors. A parameter that would be below 0 is a sign of noise if it is
/// small: it is held at 0 and the others are fitted again. `None` if nothing of the law is left.
fn fit(levels: &[(f64, f64)]) -> Option<Scalability> {
    // N ÷ X = one · 1 ÷ λ + (N − 1) · σ ÷ λ + N (N − 1) · κ ÷ λ
    let terms = |n: f64| [1.0, n - 1.0, n * (n - 1.0)];
    let attempt = |with: [bool; 3]| -> Option<[f64; 3]> {
        let mut normal = [[0.0; 4]; 3];
        for (n, x) in levels {
            let (y, weight) = (n / x, (x / n).powi(2));
            let t = terms(*n);
            for row in 0..3 {
                for column in 0..3 {
                    normal[row][column] += weight * t[row] * t[column];
                }
                normal[row][3] += weight * t[row] * y;
            }
        }
        for (i, used) in with.iter().enumerate() {
            if !used {
                normal[i] = [0.0; 4];
                for row in &mut normal {
                    row[i] = 0.0;
                }
                normal[i][i] = 1.0;
            }
        }
        solve(normal)
    };
    let admissible = |b: &[f64; 3]| b[0] > 0.0 && b[1] >= 0.0 && b[2] >= 0.0;
    let miss = |b: &[f64; 3]| {
        let relative = |(n, x): &(f64, f64)| {
            let t = terms(*n);
            let curve = n / (b[0] * t[0] + b[1] * t[1] + b[2] * t[2]);
            (curve / x - 1.0).abs()
        };
        levels.iter().map(relative).fold(0.0, f64::max)
    };
    let smaller = [
        [true, true, false],
        [true, false, true],
        [true, false, false],
    ];
    let whole = attempt([true; 3]).filter(admissible);
    let b = whole.or_else(|| {
        let fits = smaller.into_iter().filter_map(attempt).filter(admissible);
        fits.min_by(|a, b| miss(a).total_cmp(&miss(b)))
    })?;
    let (contention, coherency) = (b[1] / b[0], b[2] / b[0]);
    Some(Scalability {
        of_one: 1.0 / b[0],
        contention,
        coherency,
        peak: (coherency > 0.0 && contention < 1.0)
            .then(|| ((1.0 - contention) / coherency).sqrt()),
        worst_miss: miss(&b),
    })
}

/// Solves three equations by elimination with pivots; `None` if they are not independent.
fn solve(mut m: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for i in 0..3 {
        let pivot = (i..3).max_by(|a, b| m[*a][i].abs().total_cmp(&m[*b][i].abs()))?;
        m.swap(i, pivot);
        if m[i][i].abs() < 1e-300 {
            return None;
        }
        for row in 0..3 {
            if row != i {
                let (factor, pivot) = (m[row][i] / m[i][i], m[i]);
                for (value, above) in m[row].iter_mut().zip(pivot) {
                    *value -= factor * above;
                }
            }
        }
    }
    Some([m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    const N: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

    fn law(of_one: f64, contention: f64, coherency: f64) -> Scalability {
        Scalability {
            of_one,
            contention,
            coherency,
            peak: None,
            worst_miss: 0.0,
        }
    }

    #[test]
    fn exact_data_give_back_their_parameters() {
        for (of_one, contention, coherency, peak) in [
            (1000.0, 0.05, 0.0005, Some(43.589)), // falls after 43 or 44
            (5.0, 0.0, 0.01, Some(10.0)),         // coherency alone
            (5.0, 0.2, 0.0, None),                // Amdahl's law: it flattens, it never falls
            (70_000.0, 0.0, 0.0, None),           // proportional
        ] {
            let true_law = law(of_one, contention, coherency);
            let levels = N.map(|n| (n, true_law.at(n)));
            let got = scalability(&levels).unwrap();
            assert!((got.of_one / of_one - 1.0).abs() < 1e-6, "{got:?}");
            assert!((got.contention - contention).abs() < 1e-6, "{got:?}");
            assert!((got.coherency - coherency).abs() < 1e-8, "{got:?}");
            assert!(got.worst_miss < 1e-6, "{got:?}");
            if let Some(peak) = peak {
                assert!((got.peak.unwrap() - peak).abs() < 1e-2, "{got:?}");
            }
        }
    }

    #[test]
    fn noise_moves_the_peak_a_little() {
        let true_law = law(1000.0, 0.05, 0.002);
        let peak = (0.95f64 / 0.002).sqrt();
        let mut random = Random::new(9);
        for _ in 0..200 {
            let levels = N.map(|n| (n, true_law.at(n) * (0.01 * random.normal()).exp()));
            let got = scalability(&levels).unwrap();
            assert!((got.peak.unwrap() / peak - 1.0).abs() < 0.15, "{got:?}");
        }
    }

    #[test]
    fn it_refuses_what_the_law_does_not_describe() {
        let falls_off: Vec<_> = N
            .map(|n| (n, if n < 8.0 { 100.0 * n } else { 50.0 }))
            .into();
        let superlinear: Vec<_> = N.map(|n| (n, n.powi(3))).into();
        let broken: Vec<_> = N.map(|n| (n, if n < 60.0 { n } else { 0.0 })).into();
        assert_eq!(scalability(&[]), Err(NoFit::TooFewLevels(0)));
        // Six rows of two levels are two levels.
        let twice = [
            (1.0, 1.0),
            (1.0, 1.1),
            (1.0, 0.9),
            (2.0, 2.0),
            (2.0, 2.1),
            (2.0, 1.9),
        ];
        assert_eq!(scalability(&twice), Err(NoFit::TooFewLevels(2)));
        assert_eq!(scalability(&broken), Err(NoFit::NotPositive));
        // A cliff: ports ran out from 8 on.
        assert!(matches!(scalability(&falls_off), Err(NoFit::Misses(_))));
        assert!(matches!(
            scalability(&superlinear),
            Err(NoFit::Misses(_) | NoFit::Superlinear)
        ));
    }
}

//! Where along an axis throughput stops rising (knee), and where it falls (cliff).
//!
//! Sources: the knee as the joint of two straight lines in logarithms, Hinkley, "Inference about the
//! intersection in two-phase regression", Biometrika 56 (1969); its interval by resampling whole rounds,
//! Efron and Tibshirani, "An introduction to the bootstrap" (1993), chapters 8 and 13. Logarithms, because
//! throughput that follows the axis then has the slope 1 and throughput that ignores it the slope 0.

use crate::{Random, ratio::log_ratios};

/// Levels below which two lines are not told from one.
pub const LEVELS_FOR_A_KNEE: usize = 5;
/// Throughput "falls" from one level to the next if it loses at least this share in every round: less is
/// within what the machine does by itself.
pub const FALL: f64 = 0.10;
/// Throughput "rises" from one level to the next if it gains at least this share of what it would gain in
/// proportion to the axis: between this and a fall it is flat.
pub const RISE: f64 = 0.25;

/// What throughput does from one level of an axis to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// it gains at least [`RISE`] of the proportional gain
    Rises,
    /// it neither rises nor falls, or the rounds disagree
    Flat,
    /// it loses at least [`FALL`]
    Falls,
}

/// Classifies a step from its rounds: `(below, above)` throughput each, at the axis values `from` < `to`.
/// `None` without a ratio: where a round has throughput on one side only, and not every round fell. A fall must
/// show in every round: an interval of few rounds could hide one round in which nothing happened.
pub fn step(from: f64, to: f64, rounds: &[(f64, f64)]) -> Option<Step> {
    // A round without throughput on either side says nothing of the step between them. What a round lost
    // entirely has no logarithm, and is a fall for certain.
    let told = rounds.iter().filter(|(a, b)| *a > 0.0 || *b > 0.0);
    let told: Vec<(f64, f64)> = told.copied().collect();
    let fell = |(below, above): &(f64, f64)| *above <= (1.0 - FALL) * below;
    if !told.is_empty() && told.iter().all(fell) {
        return Some(Step::Falls);
    }
    let logs = log_ratios(&told)?;
    let proportional = if from > 0.0 { (to / from).ln() } else { 0.0 };
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    Some(if proportional > 0.0 && mean >= RISE * proportional {
        Step::Rises
    } else {
        Step::Flat
    })
}

/// Throughput at one value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// the value on the axis, above 0
    pub at: f64,
    /// throughput of each round, above 0, the same rounds at all levels
    pub rounds: Vec<f64>,
}

/// A joint of two lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// where on the axis
    pub at: f64,
    /// lower end of the 95 % interval over rounds
    pub low: f64,
    /// upper end
    pub high: f64,
    /// slope before it: 1 is in proportion to the axis
    pub before: f64,
    /// slope after it: 0 is flat, below 0 falls
    pub after: f64,
}

/// Resampled sets of rounds.
const DRAWS: usize = 400;
/// Places tried between the first level and the last, evenly in logarithms.
const PLACES: usize = 100;

/// The joint of the two lines that fit best; `levels` ascend. `None` with fewer than
/// [`LEVELS_FOR_A_KNEE`] levels, with rounds missing or without throughput, and where the slope does not
/// fall at the joint by at least [`RISE`] in 95 % of the resampled sets.
pub fn knee(levels: &[Level], seed: u64) -> Option<Knee> {
    let rounds = levels.first()?.rounds.len();
    let positive = |x: &f64| x.is_finite() && *x > 0.0;
    let whole =
        |l: &Level| positive(&l.at) && l.rounds.len() == rounds && l.rounds.iter().all(positive);
    let ascend = levels.windows(2).all(|w| w[0].at < w[1].at);
    if levels.len() < LEVELS_FOR_A_KNEE || rounds == 0 || !ascend || !levels.iter().all(whole) {
        return None;
    }
    let x: Vec<f64> = levels.iter().map(|l| l.at.ln()).collect();
    let logs: Vec<Vec<f64>> = levels
        .iter()
        .map(|l| l.rounds.iter().map(|y| y.ln()).collect())
        .collect();
    let mean_of = |chosen: &[usize]| -> Vec<f64> {
        let mean = |l: &Vec<f64>| chosen.iter().map(|r| l[*r]).sum::<f64>() / chosen.len() as f64;
        logs.iter().map(mean).collect()
    };
    let all: Vec<usize> = (0..rounds).collect();
    let best = two_lines(&x, &mean_of(&all))?;
    let mut random = Random::new(seed);
    let mut joints = Vec::with_capacity(DRAWS);
    let mut bends = 0;
    for _ in 0..DRAWS {
        let chosen: Vec<usize> = (0..rounds).map(|_| random.below(rounds)).collect();
        let joint = two_lines(&x, &mean_of(&chosen))?;
        bends += usize::from(joint.before - joint.after >= RISE);
        joints.push(joint.at);
    }
    if best.before - best.after < RISE || bends * 100 < DRAWS * 95 {
        return None;
    }
    joints.sort_by(f64::total_cmp);
    // 2.5 % and 97.5 % of the draws; the indices are within them, as DRAWS is at least 40.
    let (low, high) = (joints[DRAWS / 40], joints[DRAWS - 1 - DRAWS / 40]);
    Some(Knee {
        at: best.at.exp(),
        low: low.exp(),
        high: high.exp(),
        before: best.before,
        after: best.after,
    })
}

/// A joint in logarithms.
struct Joint {
    at: f64,
    before: f64,
    after: f64,
}

/// The continuous two-line fit of least squares: for each place of the joint a regression on what lies
/// before it and what lies after it.
fn two_lines(x: &[f64], y: &[f64]) -> Option<Joint> {
    // A joint before the second level or after the last but one would be a line through one point.
    let (from, to) = (*x.get(1)?, *x.get(x.len().checked_sub(2)?)?);
    let mut best: Option<(f64, Joint)> = None;
    for i in 0..=PLACES {
        let at = from + (to - from) * i as f64 / PLACES as f64;
        let before: Vec<f64> = x.iter().map(|x| x.min(at)).collect();
        let after: Vec<f64> = x.iter().map(|x| (x - at).max(0.0)).collect();
        let Some((slopes, rest)) = regress(&before, &after, y) else {
            continue;
        };
        if best.as_ref().is_none_or(|(least, _)| rest < *least - 1e-15) {
            let joint = Joint {
                at,
                before: slopes.0,
                after: slopes.1,
            };
            best = Some((rest, joint));
        }
    }
    best.map(|(_, joint)| joint)
}

/// Least squares of y on two variables and a constant: the slopes and the sum of squares left.
fn regress(a: &[f64], b: &[f64], y: &[f64]) -> Option<((f64, f64), f64)> {
    let centred = |v: &[f64]| -> Vec<f64> {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        v.iter().map(|x| x - mean).collect()
    };
    let dot = |u: &[f64], v: &[f64]| -> f64 { u.iter().zip(v).map(|(u, v)| u * v).sum() };
    let (a, b, y) = (centred(a), centred(b), centred(y));
    let (aa, bb, ab) = (dot(&a, &a), dot(&b, &b), dot(&a, &b));
    let (ay, by) = (dot(&a, &y), dot(&b, &y));
    let determinant = aa * bb - ab * ab;
    if determinant <= 1e-12 * aa * bb {
        return None;
    }
    let slopes = (
        (ay * bb - by * ab) / determinant,
        (by * aa - ay * ab) / determinant,
    );
    Some((slopes, dot(&y, &y) - slopes.0 * ay - slopes.1 * by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_rise_are_flat_or_fall() {
        use Step::{Falls, Flat, Rises};
        for (from, to, rounds, want) in [
            (1.0, 2.0, &[(10.0, 20.0), (11.0, 21.0)][..], Some(Rises)),
            (1.0, 2.0, &[(10.0, 13.0)], Some(Rises)), // 2^0.38: above a quarter
            (1.0, 2.0, &[(10.0, 11.0)], Some(Flat)),  // 2^0.14: hardly anything
            (1.0, 2.0, &[(10.0, 8.0), (10.0, 8.9)], Some(Falls)),
            (1.0, 2.0, &[(10.0, 5.0), (10.0, 9.5)], Some(Flat)), // one round hardly fell
            (1.0, 2.0, &[(10.0, 0.0), (9.0, 0.0)], Some(Falls)), // nothing is left
            (1.0, 2.0, &[(10.0, 0.0), (9.0, 2.0)], Some(Falls)), // nothing, or little
            (1.0, 2.0, &[(10.0, 2.0), (0.0, 0.0)], Some(Falls)), // one round says nothing
            (1.0, 2.0, &[(10.0, 20.0), (0.0, 0.0)], Some(Rises)), // nor of a rise
            (1.0, 2.0, &[(10.0, 0.0), (9.0, 9.0)], None),        // nothing is left in one: no ratio
            (1.0, 2.0, &[(10.0, 2.0), (0.0, 5.0)], None),        // the rounds contradict each other
            (1.0, 2.0, &[(0.0, 0.0)], None),                     // nothing on either side
            (0.0, 2.0, &[(10.0, 20.0)], Some(Flat)),             // nothing is in proportion to 0
            (1.0, 2.0, &[], None),
        ] {
            assert_eq!(step(from, to, rounds), want, "{from} {to} {rounds:?}");
        }
    }

    /// Throughput of slope `before` up to `at` and of slope `after` beyond.
    fn bent(at: f64, before: f64, after: f64, noise: f64, seed: u64) -> Vec<Level> {
        let mut random = Random::new(seed);
        [1.0f64, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
            .map(|x| {
                let y = 100.0 * x.min(at).powf(before) * (x / at).max(1.0).powf(after);
                Level {
                    at: x,
                    rounds: (0..8)
                        .map(|_| y * (noise * random.normal()).exp())
                        .collect(),
                }
            })
            .into()
    }

    #[test]
    fn a_knee_is_found_where_it_is() {
        for (at, before, after) in [
            (8.0, 1.0, 0.0),   // the plain knee: in proportion, then flat
            (11.0, 1.0, 0.0),  // between two levels
            (16.0, 0.5, -1.0), // a peak
        ] {
            let exact = knee(&bent(at, before, after, 0.0, 0), 1).unwrap();
            assert!((exact.at / at - 1.0).abs() < 0.02, "{exact:?}");
            assert!((exact.before - before).abs() < 0.02, "{exact:?}");
            assert!((exact.after - after).abs() < 0.02, "{exact:?}");
        }
    }

    #[test]
    fn a_straight_line_has_no_knee() {
        let straight = (0..100)
            .filter(|seed| knee(&bent(8.0, 0.8, 0.8, 0.05, *seed), 1).is_some())
            .count();
        assert!(straight <= 5, "{straight} of 100");
        // Too few levels, rounds missing, nothing to take the logarithm of.
        let levels = bent(8.0, 1.0, 0.0, 0.0, 0);
        assert_eq!(knee(&levels[..4], 1), None);
        assert_eq!(knee(&[], 1), None);
        for change in [
            |l: &mut Vec<Level>| l[3].rounds.truncate(7),
            |l: &mut Vec<Level>| l[3].rounds[0] = 0.0,
            |l: &mut Vec<Level>| l.swap(0, 1),
        ] {
            let mut changed = levels.clone();
            change(&mut changed);
            assert_eq!(knee(&changed, 1), None);
        }
    }

    /// The interval over eight rounds holds the true joint nearly as often as it says. (Resampling few
    /// rounds is known to be a little narrow; the bar says by how much.)
    #[test]
    fn the_interval_holds_the_joint() {
        let holds = (0..100)
            .filter(|seed| {
                knee(&bent(10.0, 1.0, 0.0, 0.05, *seed), *seed)
                    .is_some_and(|k| k.low <= 10.2 && k.high >= 9.8)
            })
            .count();
        assert!(holds >= 85, "{holds} of 100");
    }
}

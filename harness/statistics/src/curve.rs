//! Where a curve of throughput reaches its plateau (knee) and leaves it (cliff), from levels that were
//! measured unequally often.
//!
//! Every pair of places tells a story: levels before the knee rise freely, levels from there to the cliff
//! share one mean, levels beyond it fell. The story that fits best wins. A free level fits whatever was
//! measured, so it costs what a parameter costs: Schwarz, "Estimating the dimension of a model", Annals of
//! Statistics 6 (1978), with a prior that is uniform below the plateau.
//!
//! [`crate::knee`] tells where two lines join, which needs the same rounds at five levels; this needs
//! neither, but throughput must have a plateau, or at least a peak.

use std::collections::BTreeMap;

use crate::knee::FALL;

/// Below this share of the best, throughput has not reached its plateau. What lies between it and the plateau is
/// told by the nearer of the two, the more surely the more trials a level has.
pub const REACHED: f64 = 0.95;
/// Standard deviation of one trial as a share of its throughput: what a story must stand.
pub const NOISE: f64 = 0.05;
/// By what factor an axis must go on beyond a knee: in a shorter stretch a rise that goes on gains no more
/// than noise could.
pub const BEYOND: f64 = 1.2;
/// What a free level costs beside the logarithm of its trials, in squared standard deviations:
/// 2 ln(range ÷ (√2π · [`NOISE`])), the range being the upper half of what lies below the plateau, where
/// the levels lie that are near a breakpoint.
const FREE: f64 = 3.0;

/// The two breakpoints of a curve, each as (last level before it, first level after it): indices of the
/// axis, neighbours among the measured ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaks {
    /// throughput reaches [`REACHED`] of its plateau; none where it never rose, or rises to the end
    pub knee: Option<(usize, usize)>,
    /// throughput falls below 1 − [`FALL`] of its plateau
    pub cliff: Option<(usize, usize)>,
}

/// Finds knee and cliff. `values` are those of the axis, ascending; `measured` are the trials in any order:
/// an index into `values`, and good requests per second, `None` where the trial failed.
#[must_use]
pub fn breaks(values: &[f64], measured: &[(usize, Option<f64>)]) -> Breaks {
    let levels = levels(measured);
    let Some(curve) = Curve::of(&levels) else {
        return Breaks::default();
    };
    Breaks {
        knee: curve.knee(&levels).filter(|_| curve.ends(values, &levels)),
        cliff: curve.cliff(&levels),
    }
}

/// All trials of one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// on the axis
    pub index: usize,
    /// how many have a throughput, at least 1
    pub trials: f64,
    /// of their throughputs
    pub mean: f64,
}

/// The levels of which there is throughput, ascending.
pub(crate) fn levels(measured: &[(usize, Option<f64>)]) -> Vec<Level> {
    let mut sums = BTreeMap::<usize, (f64, f64)>::new();
    for (level, throughput) in measured {
        if let Some(y) = throughput.filter(|y| y.is_finite() && *y >= 0.0) {
            let (trials, sum) = sums.entry(*level).or_default();
            *trials += 1.0;
            *sum += y;
        }
    }
    let level = |(index, (trials, sum)): (usize, (f64, f64))| Level {
        index,
        trials,
        mean: sum / trials,
    };
    sums.into_iter().map(level).collect()
}

/// The best story: indices among the measured levels, `first` < `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    /// the first level on the plateau
    pub first: usize,
    /// the first that fell; as many as there are if none did
    pub after: usize,
}

impl Curve {
    /// `None` with fewer than two levels, or without any throughput.
    pub fn of(levels: &[Level]) -> Option<Self> {
        if levels.len() < 2 {
            return None;
        }
        let mut best: Option<(f64, Self)> = None;
        for first in 0..levels.len() {
            let (mut trials, mut sum) = (0.0, 0.0);
            for (after, level) in (first + 1..).zip(&levels[first..]) {
                trials += level.trials;
                sum += level.trials * level.mean;
                let curve = Self { first, after };
                let cost = curve.cost(levels, sum / trials);
                if sum > 0.0 && best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, curve));
                }
            }
        }
        best.map(|(_, curve)| curve)
    }

    /// By how much the levels miss the story, in squared standard deviations; `plateau` is the mean of the
    /// levels on it.
    fn cost(self, levels: &[Level], plateau: f64) -> f64 {
        let of = |(i, level): (usize, &Level)| {
            let share = level.mean / plateau;
            let (miss, free) = if i < self.first {
                ((share - REACHED).max(0.0), true)
            } else if i < self.after {
                (share - 1.0, false)
            } else {
                ((share - (1.0 - FALL)).max(0.0), true)
            };
            let parameter = if free { FREE + level.trials.ln() } else { 0.0 };
            level.trials * (miss / NOISE).powi(2) + parameter
        };
        // Where a breakpoint lies is chosen among all levels: as many chances for noise to look like one.
        let places = usize::from(self.first > 0) + usize::from(self.after < levels.len());
        let chosen = 2.0 * places as f64 * (levels.len() as f64).ln();
        levels.iter().enumerate().map(of).sum::<f64>() + chosen
    }

    /// The levels around the end of the rise, on the axis.
    pub fn knee(self, levels: &[Level]) -> Option<(usize, usize)> {
        let below = self.first.checked_sub(1)?;
        Some((levels.get(below)?.index, levels.get(self.first)?.index))
    }

    /// The levels around the fall, on the axis.
    pub fn cliff(self, levels: &[Level]) -> Option<(usize, usize)> {
        let below = self.after.checked_sub(1)?;
        Some((levels.get(below)?.index, levels.get(self.after)?.index))
    }

    /// Whether the rise ends on the axis, and not merely the axis.
    fn ends(self, values: &[f64], levels: &[Level]) -> bool {
        // A fall shows that a rise has ended, however soon it comes.
        if self.after < levels.len() {
            return true;
        }
        let at = |i: usize| {
            let level = levels.get(i)?;
            Some((*values.get(level.index)?, level.mean))
        };
        let Some(((from, low), (to, high))) = at(self.first).zip(at(self.after - 1)) else {
            return false;
        };
        // Half of what a rise in proportion would have gained decides.
        from > 0.0 && to / from >= BEYOND && (high / low).ln() < (to / from).ln() / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knees_and_cliffs_are_told_from_their_levels() {
        let found = |knee, cliff| Breaks { knee, cliff };
        for (curve, want) in [
            // In proportion to the end: nothing but the axis ends.
            (&[100.0, 200.0, 400.0, 800.0][..], found(None, None)),
            (&[100.0, 101.0, 100.0, 99.0], found(None, None)),
            (&[100.0, 200.0, 400.0, 405.0], found(Some((1, 2)), None)),
            // At 93 % the plateau has not been reached.
            (
                &[100.0, 200.0, 300.0, 400.0, 372.0, 400.0],
                found(Some((2, 3)), None),
            ),
            // A fall after a plateau, after a peak, and of everything.
            (
                &[100.0, 200.0, 400.0, 405.0, 100.0],
                found(Some((1, 2)), Some((3, 4))),
            ),
            (&[100.0, 200.0, 80.0], found(Some((0, 1)), Some((1, 2)))),
            (&[100.0, 100.0, 0.0], found(None, Some((1, 2)))),
            (&[400.0, 200.0, 100.0], found(None, Some((0, 1)))),
            // A twentieth less is no fall.
            (&[100.0, 95.0], found(None, None)),
            (&[0.0, 0.0], found(None, None)),
            (&[7.0], found(None, None)),
            (&[], found(None, None)),
        ] {
            let values: Vec<f64> = (0..curve.len()).map(|i| f64::from(1 << i)).collect();
            let measured: Vec<_> = curve.iter().map(|y| Some(*y)).enumerate().collect();
            assert_eq!(breaks(&values, &measured), want, "{curve:?}");
        }
    }

    #[test]
    fn levels_may_be_missing_and_repeated() {
        let values: Vec<f64> = (1..=40).map(f64::from).collect();
        let measured = [
            (0, Some(50.0)),
            (39, Some(1_000.0)),
            (19, Some(990.0)),
            (9, None), // a failed trial says nothing
            (10, Some(550.0)),
            (10, Some(f64::NAN)),
            (15, Some(800.0)),
            (19, Some(1_020.0)),
            (15, Some(790.0)),
        ];
        let want = Breaks {
            knee: Some((15, 19)),
            cliff: None,
        };
        assert_eq!(breaks(&values, &measured), want);
        let mut backwards = measured;
        backwards.reverse();
        assert_eq!(breaks(&values, &backwards), want);
    }

    #[test]
    fn many_trials_tell_what_one_cannot() {
        let values = [1.0, 2.0, 4.0, 8.0];
        let curve = |trials: usize| -> Vec<(usize, Option<f64>)> {
            let level = |y: f64| std::iter::repeat_n(Some(y), trials);
            let levels = [500.0, 920.0, 1_000.0, 1_000.0];
            (0..)
                .zip(levels)
                .flat_map(|(i, y)| level(y).map(move |y| (i, y)))
                .collect()
        };
        // 8 % less are one and a half standard deviations of one trial, and six of sixteen.
        assert_eq!(breaks(&values, &curve(1)).knee, Some((0, 1)));
        assert_eq!(breaks(&values, &curve(16)).knee, Some((1, 2)));
    }
}

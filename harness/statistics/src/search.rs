//! Which level of an axis to measure next, so that a knee and a cliff are found in few trials.
//!
//! A grid measures every level as often as any other, though all but the two at a breakpoint say little.
//! The search takes both ends and the middle, halves the stretch between the levels around each
//! breakpoint until they are neighbours, and spends what is left on those neighbours and on the plateau.
//! All trials are judged anew before every other one ([`crate::breaks`]), so that a level which noise put on
//! the wrong side is repeated as an edge, and the bracket moves back.
//!
//! Source: bisection under noise in which every answer counts, as in Horstein, "Sequential transmission using
//! noiseless feedback", IEEE Transactions on Information Theory 9 (1963), with the best of all stories in
//! place of the median of a posterior.
//!
//! Limits: one knee and one cliff a curve, which rises to its best and stays or falls from there. A hump or
//! a dip between two measured levels that leaves both as they are is not seen. With noise of 5 % a trial
//! (simulated below) a knee is within one level in 95 % of searches where neighbours differ by a fifth, and,
//! from five rounds on, where they differ by a twentieth; with three rounds of 64 levels in even steps, in
//! about nine of ten.

use crate::curve::{Breaks, Curve, breaks, levels};

/// A search along one numeric axis, all other knobs held. It keeps nothing: what it asks for is a function
/// of what was measured, so that a run which is resumed goes on as it would have.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    values: Vec<f64>,
    budget: usize,
}

impl Search {
    /// Over the values of an axis, ascending, in at most `budget` trials; see [`Search::needs`].
    #[must_use]
    pub fn new(values: &[f64], budget: usize) -> Self {
        Self {
            values: values.to_vec(),
            budget,
        }
    }

    /// The trials that hold ends, middle and both bisections of an axis; with fewer a search would end
    /// before its brackets do.
    #[must_use]
    pub fn needs(levels: usize) -> usize {
        // A stretch of n steps is halved ⌈log₂ n⌉ times until its ends are neighbours.
        let halves = (levels / 2).max(1).next_power_of_two().trailing_zeros();
        // At most 64, so it fits.
        levels.min(3 + 2 * halves as usize)
    }

    /// The most trials it asks for.
    #[must_use]
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// The index of the level to measure next; `None` once it is done. `measured` holds every trial so far:
    /// its level and good requests per second, `None` where it failed.
    #[must_use]
    pub fn next(&self, measured: &[(usize, Option<f64>)]) -> Option<usize> {
        let last = self.values.len().checked_sub(1)?;
        if measured.len() >= self.budget {
            return None;
        }
        let mut tried = vec![0usize; self.values.len()];
        for (level, _) in measured {
            // What is not of this axis is nobody's.
            *tried.get_mut(*level)? += 1;
        }
        let untried = |level: &usize| tried[*level] == 0;
        if let Some(level) = [0, last, last / 2].into_iter().find(untried) {
            return Some(level);
        }
        let levels = levels(measured);
        let Some(curve) = Curve::of(&levels) else {
            return widest(&tried, 0, last);
        };
        let brackets = [curve.cliff(&levels), curve.knee(&levels)];
        let open = brackets.iter().flatten();
        let open = open.filter_map(|(from, to)| Some((to - from, middle(&tried, *from, *to)?)));
        // The wider one first. Where they are equal the cliff: its levels tell more about the plateau.
        if let Some((_, level)) = open.reduce(|a, b| if b.0 > a.0 { b } else { a }) {
            return Some(level);
        }
        if brackets == [None, None] {
            // Flat so far; there may be more between the three.
            return [last / 4, last - last / 4].into_iter().find(untried);
        }
        repeat(
            curve,
            &levels.iter().map(|l| l.index).collect::<Vec<_>>(),
            &tried,
        )
    }

    /// What the trials say.
    #[must_use]
    pub fn breaks(&self, measured: &[(usize, Option<f64>)]) -> Breaks {
        breaks(&self.values, measured)
    }
}

/// The edge that was measured least, of those around both breakpoints; without a breakpoint the plateau's
/// own end. In turn with them a new level of the plateau: it is what the edges are measured by, and a
/// higher one may hide there.
fn repeat(curve: Curve, levels: &[usize], tried: &[usize]) -> Option<usize> {
    let end = curve.after - 1;
    let edges = [curve.first.wrapping_sub(1), curve.first, end, curve.after];
    let edges = edges.iter().filter_map(|i| levels.get(*i).copied());
    let edge = edges.min_by_key(|level| tried[*level])?;
    let inside = end.saturating_sub(curve.first + 1);
    if inside < tried[edge] {
        widest(tried, levels[curve.first], levels[end]).or(Some(edge))
    } else {
        Some(edge)
    }
}

/// The untried level nearest to the middle between two levels.
fn middle(tried: &[usize], from: usize, to: usize) -> Option<usize> {
    let between = (from + 1..to).filter(|level| tried[*level] == 0);
    between.min_by_key(|level| (2 * level).abs_diff(from + to))
}

/// The middle of the widest stretch without a trial between two levels.
fn widest(tried: &[usize], from: usize, to: usize) -> Option<usize> {
    let (mut last, mut widest) = (from, (from, from));
    for at in (from + 1..=to).filter(|level| tried[*level] > 0) {
        if at - last > widest.1 - widest.0 {
            widest = (last, at);
        }
        last = at;
    }
    middle(tried, widest.0, widest.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{REACHED, Random};

    /// Runs a search over a made-up curve, and says what it found and what it took.
    fn search(
        values: &[f64],
        budget: usize,
        curve: impl Fn(f64) -> f64,
        noise: f64,
        seed: u64,
    ) -> (Breaks, Vec<usize>) {
        let search = Search::new(values, budget);
        let mut random = Random::new(seed);
        let mut measured = Vec::new();
        while let Some(level) = search.next(&measured) {
            let y = curve(values[level]) * (noise * random.normal()).exp();
            measured.push((level, Some(y)));
            assert!(measured.len() <= budget, "over budget: {measured:?}");
        }
        let asked = measured.iter().map(|(level, _)| *level).collect();
        (search.breaks(&measured), asked)
    }

    /// Even steps, or steps of a factor.
    fn axis(levels: usize, factor: Option<f64>) -> Vec<f64> {
        let at = |i: usize| factor.map_or(i as f64 + 1.0, |f| f.powf(i as f64));
        (0..levels).map(at).collect()
    }

    /// The first level at which min(aN, C) has reached its plateau.
    fn reaches(values: &[f64], knee: f64) -> usize {
        let reached = |x: &f64| *x >= REACHED * knee;
        values.iter().position(reached).unwrap()
    }

    #[test]
    fn the_order_is_ends_middle_halves_and_edges() {
        // A knee at the level 11 of 20, without noise.
        let values = axis(20, None);
        let (found, asked) = search(&values, 20, |x| x.min(12.0), 0.0, 0);
        assert_eq!(found.knee, Some((10, 11)));
        assert_eq!(found.cliff, None);
        assert_eq!(asked[..6], [0, 19, 9, 14, 11, 10], "{asked:?}");
        assert_eq!(asked.len(), 20);
        // Flat: five levels are enough.
        let (found, asked) = search(&values, 20, |_| 7.0, 0.0, 0);
        assert_eq!(
            (found, asked.as_slice()),
            (Breaks::default(), &[0, 19, 9, 4, 15][..])
        );
    }

    #[test]
    fn curves_without_noise() {
        for (levels, factor) in [(20, None), (64, None), (20, Some(1.25)), (64, Some(1.1))] {
            let values = axis(levels, factor);
            let budget = levels;
            // In proportion to the end, and no breakpoint.
            let (found, _) = search(&values, budget, |x| x, 0.0, 0);
            assert_eq!(found, Breaks::default());
            // Falling from the start: a cliff at the first level below nine tenths, and no knee.
            let (found, _) = search(&values, budget, |x| 1.0 / x, 0.0, 0);
            let fell = values.iter().position(|x| 1.0 / x < 0.9).unwrap();
            assert_eq!(found.knee, None);
            assert!(found.cliff.unwrap().1.abs_diff(fell) <= 1, "{found:?}");
            // A knee, and a cliff down to a third.
            let (knee, cliff) = (values[levels / 3], values[levels * 2 / 3]);
            let curve = |x: f64| x.min(knee) * if x < cliff { 1.0 } else { 0.3 };
            let (found, _) = search(&values, budget, curve, 0.0, 0);
            let at = reaches(&values, knee);
            assert!(found.knee.unwrap().1.abs_diff(at) <= 1, "{found:?}");
            assert_eq!(found.cliff, Some((levels * 2 / 3 - 1, levels * 2 / 3)));
        }
    }

    /// With noise of 5 % a trial: of so many seeds, how many find it within one level, knees and cliffs
    /// anywhere in the axis; all within a fifth of the grid.
    #[test]
    fn noise_moves_a_breakpoint_by_one_level_at_most() {
        let seeds = 100;
        let mut all = vec![];
        for levels in [20, 32, 64] {
            for (rounds, factor) in [(3, Some(1.2)), (8, Some(1.2)), (5, None)] {
                let values = axis(levels, factor);
                let budget = levels * rounds / 5;
                let (mut knees, mut both) = (0, [0, 0]);
                let mut nothing = 0;
                for seed in 0..seeds {
                    let mut random = Random::new(seed);
                    let knee = 2 + random.below(levels / 2);
                    let cliff = knee + 2 + random.below(levels - knee - 4);
                    let (at, fall) = (values[knee], values[cliff]);
                    let near = |place: Option<(usize, usize)>, level: usize| {
                        place.is_some_and(|(_, above)| above.abs_diff(level) <= 1)
                    };
                    let truth = reaches(&values, at);

                    let (found, _) = search(&values, budget, |x| x.min(at), 0.05, seed);
                    knees += u64::from(near(found.knee, truth) && found.cliff.is_none());

                    let curve = |x: f64| x.min(at) * if x < fall { 1.0 } else { 0.4 };
                    let (found, _) = search(&values, budget, curve, 0.05, seed);
                    both[0] += u64::from(near(found.knee, truth));
                    both[1] += u64::from(near(found.cliff, cliff));

                    let flat = search(&values, budget, |_| 1.0, 0.05, seed).0;
                    let rise = search(&values, budget, |x| x, 0.05, seed).0;
                    nothing += u64::from(flat == Breaks::default() && rise == Breaks::default());
                }
                let shown = format!("{levels} levels, {rounds} rounds, factor {factor:?}");
                println!("{shown}: {knees} {both:?} {nothing}");
                all.push((shown, knees, both, nothing));
            }
        }
        for (shown, knees, both, nothing) in all {
            for found in [knees, both[0], both[1], nothing] {
                assert!(
                    found * 100 >= seeds * 95,
                    "{shown}: {knees} {both:?} {nothing}"
                );
            }
        }
    }

    #[test]
    fn a_fifth_of_five_rounds_holds_a_search() {
        for (levels, needs) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (5, 5),
            (10, 9),
            (20, 11),
            (40, 13),
            (64, 13),
        ] {
            assert_eq!(Search::needs(levels), needs, "{levels}");
        }
        for levels in 2..500 {
            assert!(Search::needs(levels) <= levels, "{levels}");
            // As many are really asked for: both brackets are closed within it.
            let values = axis(levels, Some(1.3));
            let (knee, cliff) = (levels / 3, levels * 2 / 3);
            let curve = |x: f64| x.min(values[knee]) * if x < values[cliff] { 1.0 } else { 0.1 };
            let (found, asked) = search(&values, Search::needs(levels), curve, 0.0, 0);
            assert_eq!(asked.len(), Search::needs(levels));
            let closed = |place: Option<(usize, usize)>| place.is_none_or(|(a, b)| b == a + 1);
            assert!(
                closed(found.knee) && closed(found.cliff),
                "{levels}: {found:?}"
            );
        }
    }

    #[test]
    fn failed_trials_are_worked_around() {
        let search = Search::new(&axis(20, None), 20);
        // A level without throughput is tried once; its neighbours take its place.
        let mut measured = vec![];
        while let Some(level) = search.next(&measured) {
            let y = (level != 11 && level != 14).then(|| (level as f64 + 1.0).min(12.0));
            measured.push((level, y));
        }
        assert_eq!(search.breaks(&measured).knee, Some((10, 12)));
        let tries = measured.iter().filter(|(l, _)| *l == 14).count();
        assert_eq!(tries, 1, "{measured:?}");
        // Nothing but failures: it looks elsewhere, and ends.
        let mut measured = vec![];
        while let Some(level) = search.next(&measured) {
            measured.push((level, None));
        }
        assert_eq!(measured.len(), 20);
        // No axis, no budget, levels of another axis: nothing to ask.
        assert_eq!(Search::new(&[], 5).next(&[]), None);
        assert_eq!(Search::new(&[1.0], 0).next(&[]), None);
        assert_eq!(search.next(&[(20, None)]), None);
    }
}

//! Where the level of a series of counts changes.
//!
//! Source: Killick, Fearnhead and Eckley, "Optimal detection of changepoints with a linear computational
//! cost", Journal of the American Statistical Association 107 (2012): penalised cost, minimised exactly by
//! dynamic programming with pruning (PELT). The cost is that of counts whose variance is a multiple of
//! their mean (quasi-likelihood: McCullagh and Nelder, "Generalized linear models" (1989), chapter 9),
//! because requests per slot scatter more than independent arrivals would. The penalty is 3 ln n a change
//! (Zhang and Siegmund, "A modified Bayes information criterion", Biometrics 63 (2007)).
//!
//! Pruning makes PELT linear only where changes are many; a constant series would cost n². So the places
//! that may hold a change are screened first: the maxima of the contrast between the windows before and
//! after each slot, for windows of doubling length (Hao, Niu and Zhang, "Multiple change-point detection via
//! a screening and ranking algorithm", Statistica Sinica 23 (2013)). The cost is then n log n.

/// The first slot of every new level, rising; empty where the level never changes.
///
/// `counts` are events per slot, all slots of one length. No level is shorter than `min_segment` slots
/// (at least 1), so a shorter one is not seen.
pub fn changes(counts: &[u64], min_segment: usize) -> Vec<usize> {
    let series = Series::new(counts);
    let min_segment = min_segment.max(1);
    if counts.len() < 2 * min_segment {
        return Vec::new();
    }
    let places = series.screen(min_segment);
    let mut found = series.partition(&places, min_segment);
    // Twice, because moving one change moves the best place of its neighbours.
    for _ in 0..2 {
        series.refine(&mut found, min_segment);
    }
    found
}

/// Prefix sums and the scatter of a series.
struct Series {
    /// sum of the counts before each slot
    sums: Vec<f64>,
    /// variance ÷ mean of the counts of a level
    dispersion: f64,
}

impl Series {
    fn new(counts: &[u64]) -> Self {
        let mut sums = Vec::with_capacity(counts.len() + 1);
        sums.push(0.0);
        let mut sum = 0.0;
        for count in counts {
            sum += *count as f64;
            sums.push(sum);
        }
        Self {
            sums,
            dispersion: dispersion(counts),
        }
    }

    fn slots(&self) -> usize {
        self.sums.len() - 1
    }

    /// Twice the negative quasi-log-likelihood of the slots `from..to` as one level, up to terms that are
    /// the same for every partition.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let sum = self.sums[to] - self.sums[from];
        if sum <= 0.0 {
            return 0.0;
        }
        -2.0 * sum * (sum / (to - from) as f64).ln() / self.dispersion
    }

    /// Where the ends of levels may lie, rising: 0, every place of notable contrast, and the end.
    ///
    /// A contrast of ln n is notable: a third of what a change must gain, because a window holds only part
    /// of a long level.
    fn screen(&self, min_segment: usize) -> Vec<usize> {
        let n = self.slots();
        let notable = (n as f64).ln();
        let mut places = vec![0, n];
        let mut window = min_segment;
        while window <= n / 2 {
            // What only a long window shows has no sharp place anyway.
            let stride = (window / 8).max(1);
            let at = |i: usize| min_segment + i * stride;
            let last = (n - 2 * min_segment) / stride;
            let contrasts: Vec<f64> = (0..=last).map(|i| self.contrast(at(i), window)).collect();
            let reach = window.div_ceil(2 * stride);
            places.extend(peaks(&contrasts, reach, notable).map(at));
            window *= 2;
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// How much a change at `at` gains over one level, looking at `window` slots on each side.
    fn contrast(&self, at: usize, window: usize) -> f64 {
        let from = at.saturating_sub(window);
        let to = (at + window).min(self.slots());
        self.cost(from, to) - self.cost(from, at) - self.cost(at, to)
    }

    /// Moves each change to the best slot around it, its neighbours held.
    fn refine(&self, found: &mut [usize], min_segment: usize) {
        let reach = 2 * min_segment;
        for i in 0..found.len() {
            let before = if i == 0 { 0 } else { found[i - 1] };
            let after = found.get(i + 1).copied().unwrap_or(self.slots());
            let first = found[i].saturating_sub(reach).max(before + min_segment);
            let last = (found[i] + reach).min(after.saturating_sub(min_segment));
            let cost = |at: usize| self.cost(before, at) + self.cost(at, after);
            if let Some(at) = (first..=last).min_by(|a, b| cost(*a).total_cmp(&cost(*b))) {
                found[i] = at;
            }
        }
    }

    /// The best partition whose changes lie at `places`.
    fn partition(&self, places: &[usize], min_segment: usize) -> Vec<usize> {
        let penalty = 3.0 * (self.slots() as f64).ln();
        let mut best = vec![f64::INFINITY; places.len()];
        let mut last = vec![0usize; places.len()];
        best[0] = -penalty;
        let mut candidates: Vec<usize> = Vec::new();
        let mut admitted = 0;
        for end in 1..places.len() {
            // A start becomes a candidate once a level of full length fits behind it.
            while places[admitted] + min_segment <= places[end] {
                if best[admitted].is_finite() {
                    candidates.push(admitted);
                }
                admitted += 1;
            }
            for start in &candidates {
                let total = best[*start] + self.cost(places[*start], places[end]) + penalty;
                if total < best[end] {
                    (best[end], last[end]) = (total, *start);
                }
            }
            // A start that is already worse without its penalty can never win again (Killick, theorem 3.1).
            let bar = best[end];
            candidates.retain(|s| best[*s] + self.cost(places[*s], places[end]) <= bar);
        }
        let mut found = Vec::new();
        let mut at = places.len() - 1;
        while last[at] > 0 {
            at = last[at];
            found.push(places[at]);
        }
        found.reverse();
        found
    }
}

/// The indices of values above `bar` that no value within `reach` exceeds; of equal ones the first.
fn peaks(values: &[f64], reach: usize, bar: f64) -> impl Iterator<Item = usize> {
    // A queue of the falling maxima of the sliding window, so that the cost does not grow with `reach`.
    let mut queue = std::collections::VecDeque::new();
    let mut ahead = 0;
    (0..values.len()).filter(move |&i| {
        while ahead < values.len() && ahead <= i + reach {
            while queue
                .back()
                .is_some_and(|&q: &usize| values[q] < values[ahead])
            {
                queue.pop_back();
            }
            queue.push_back(ahead);
            ahead += 1;
        }
        while queue.front().is_some_and(|&q| q + reach < i) {
            queue.pop_front();
        }
        queue.front() == Some(&i) && values[i] > bar
    })
}

/// Variance ÷ mean within a level, from the steps between neighbouring slots, so that changes of level
/// do not count: the median of step² ÷ (sum of the two) over that of a squared normal number. Never below
/// 1, the value of independent arrivals: a generator paced more evenly than that would split on nothing.
fn dispersion(counts: &[u64]) -> f64 {
    /// Median of χ² with one degree of freedom.
    const MEDIAN_CHI_SQUARE: f64 = 0.454_936;
    let mut steps: Vec<f64> = counts
        .windows(2)
        .filter(|w| w[0] + w[1] > 0)
        .map(|w| (w[1] as f64 - w[0] as f64).powi(2) / (w[0] + w[1]) as f64)
        .collect();
    if steps.is_empty() {
        return 1.0;
    }
    let mid = steps.len() / 2;
    let (_, median, _) = steps.select_nth_unstable_by(mid, f64::total_cmp);
    (*median / MEDIAN_CHI_SQUARE).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// Counts around levels of `(slots, mean)`, with a variance of `scatter` means.
    fn series(seed: u64, scatter: f64, levels: &[(usize, f64)]) -> Vec<u64> {
        let mut random = Random::new(seed);
        let mut counts = Vec::new();
        for (slots, mean) in levels {
            for _ in 0..*slots {
                let x = mean + (scatter * mean).sqrt() * random.normal();
                counts.push(x.round().max(0.0) as u64);
            }
        }
        counts
    }

    #[test]
    fn changes_are_found_where_they_are() {
        for (name, scatter, within, levels) in [
            // The four phases of ports that run out, at 100 ms a slot: burst, search, exhausted, recovery.
            (
                "ports",
                4.0,
                1,
                vec![
                    (25, 1100.0),
                    (310, 40.0),
                    (270, 0.0),
                    (15, 900.0),
                    (680, 45.0),
                ],
            ),
            // A level that halves once.
            ("half", 1.0, 1, vec![(60, 200.0), (60, 100.0)]),
            // A step of two standard deviations: certain to be there, its place less so.
            ("tenth", 2.0, 12, vec![(500, 1000.0), (500, 900.0)]),
            // Nothing at first: a client that starts late.
            ("late", 1.0, 1, vec![(20, 0.0), (180, 50.0)]),
            // A long trial.
            (
                "long",
                4.0,
                1,
                vec![(3333, 500.0), (1234, 100.0), (5433, 450.0)],
            ),
        ] {
            let mut want = Vec::new();
            let mut at = 0;
            for (slots, _) in &levels[..levels.len() - 1] {
                at += slots;
                want.push(at);
            }
            for seed in 0..20 {
                let found = changes(&series(seed, scatter, &levels), 10);
                assert_eq!(found.len(), want.len(), "{name} {seed}: {found:?}");
                for (got, want) in found.iter().zip(&want) {
                    assert!(
                        got.abs_diff(*want) <= within,
                        "{name} {seed}: {found:?}, {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn small_and_empty_series_have_no_changes() {
        for counts in [
            &[][..],
            &[7],
            &[0; 50],         // never anything
            &[5; 50],         // never another
            &[0, 0, 9, 9, 9], // shorter than two levels
        ] {
            assert_eq!(changes(counts, 3), Vec::<usize>::new(), "{counts:?}");
        }
        assert_eq!(changes(&[0, 0, 0, 90, 90, 90], 3), [3], "just long enough");
        // 0 slots are as good as 1, and one step says nothing about the scatter.
        assert!(changes(&[0, 90], 0).is_empty());
    }

    /// At most 2 % of constant series are cut, at any scatter and length in use.
    #[test]
    fn a_constant_series_is_left_whole() {
        for (slots, mean, scatter) in [(100, 1000.0, 10.0), (1300, 40.0, 1.0), (1300, 1200.0, 8.0)]
        {
            let cut = (0..1000)
                .filter(|seed| !changes(&series(*seed, scatter, &[(slots, mean)]), 10).is_empty())
                .count();
            assert!(cut <= 20, "{slots} {mean} {scatter}: {cut} of 1000");
        }
    }

    #[test]
    fn peaks_are_the_highest_of_their_surroundings() {
        for (values, reach, want) in [
            (&[0.0, 2.0, 0.0][..], 1, &[1][..]),
            (&[3.0, 1.0, 2.0], 1, &[0, 2]), // the ends may be peaks
            (&[3.0, 1.0, 2.0], 2, &[0]),    // the higher one is in reach
            (&[2.0, 2.0, 2.0], 1, &[0]),    // of a plateau the first
            (&[1.0, 0.5, 1.0], 1, &[]),     // nothing above the bar of 1
            (&[], 3, &[]),
        ] {
            let got: Vec<_> = peaks(values, reach, 1.0).collect();
            assert_eq!(got, want, "{values:?} {reach}");
        }
    }

    #[test]
    fn the_scatter_is_that_of_a_level_not_of_the_changes() {
        let counts = series(5, 6.0, &[(400, 100.0), (400, 1000.0), (400, 30.0)]);
        let got = dispersion(&counts);
        assert!((got - 6.0).abs() < 1.5, "{got}");
    }
}

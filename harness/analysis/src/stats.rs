//! Statistics of few numbers: pure functions.

/// Middle and ends of the rounds of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// median
    pub mid: f64,
    /// least
    pub low: f64,
    /// greatest
    pub high: f64,
}

/// Median, least and greatest; `None` of nothing. Values that are not finite are left out.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut v: Vec<f64> = values.into_iter().filter(|x| x.is_finite()).collect();
    v.sort_by(f64::total_cmp);
    let (low, high) = (*v.first()?, *v.last()?);
    let (half, odd) = (v.len() / 2, v.len() % 2 == 1);
    let mid = if odd {
        v[half]
    } else {
        f64::midpoint(v[half - 1], v[half])
    };
    Some(Spread { mid, low, high })
}

/// A ratio of two cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// geometric mean of the ratios of the rounds
    pub mean: f64,
    /// 95 % t interval; `None` below [`ROUNDS_FOR_AN_INTERVAL`]
    pub interval: Option<(f64, f64)>,
    /// rounds that have both values
    pub rounds: usize,
}

/// Below this many paired rounds an interval would promise more than it holds.
pub(crate) const ROUNDS_FOR_AN_INTERVAL: usize = yieldpoint_statistics::ROUNDS_FOR_A_VERDICT;

/// Mean log ratio, paired by round, with a t interval: `changed ÷ base`.
pub(crate) fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let ratio = yieldpoint_statistics::paired_ratio(pairs)?;
    Some(Ratio {
        mean: ratio.ratio,
        interval: (ratio.n >= ROUNDS_FOR_AN_INTERVAL).then_some((ratio.low, ratio.high)),
        rounds: ratio.n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_between_the_ends() {
        let s = |mid, low, high| Some(Spread { mid, low, high });
        let table: [(&[f64], _); 6] = [
            (&[], None),                          // nothing is not 0
            (&[7.0], s(7.0, 7.0, 7.0)),           // one round has no spread
            (&[3.0, 1.0], s(2.0, 1.0, 3.0)),      // even: between the middle two
            (&[9.0, 1.0, 2.0], s(2.0, 1.0, 9.0)), // odd: the middle one, not the mean
            (&[f64::NAN, 4.0], s(4.0, 4.0, 4.0)), // a value that is none is left out
            (&[4.0, 1.0, 3.0, 2.0], s(2.5, 1.0, 4.0)),
        ];
        for (values, want) in table {
            assert_eq!(spread(values.iter().copied()), want, "{values:?}");
        }
    }

    #[test]
    fn a_ratio_is_paired_by_round() {
        // Drift of the machine by a factor of 10 between the rounds leaves the ratio alone.
        let drift = paired_ratio(&[(100.0, 200.0), (10.0, 20.0)]).unwrap();
        assert!((drift.mean - 2.0).abs() < 1e-12);
        assert_eq!(
            (drift.interval, drift.rounds),
            (None, 2),
            "two rounds carry no interval"
        );
        // A geometric mean: ×4 and ÷4 are no change.
        let both_ways = paired_ratio(&[(1.0, 4.0), (4.0, 1.0)]).unwrap();
        assert!((both_ways.mean - 1.0).abs() < 1e-12);
        // Eight rounds do.
        let eight = paired_ratio(&[(1.0, 2.0); 8]).unwrap();
        let (low, high) = eight.interval.unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 2.0).abs() < 1e-9);
        assert_eq!(paired_ratio(&[]), None);
        assert_eq!(
            paired_ratio(&[(1.0, 1.0), (0.0, 5.0)]),
            None,
            "0 has no logarithm"
        );
    }
}

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
pub(crate) const ROUNDS_FOR_AN_INTERVAL: usize = 8;

/// Mean log ratio, paired by round, with a t interval: `changed ÷ base`.
///
/// A pair with a value of 0 or below has no logarithm: then there is no ratio at all, because leaving
/// such a round out would favour the side that failed.
pub(crate) fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    if pairs.is_empty()
        || pairs
            .iter()
            .any(|(base, changed)| *base <= 0.0 || *changed <= 0.0)
    {
        return None;
    }
    let n = pairs.len() as f64;
    let logs: Vec<f64> = pairs
        .iter()
        .map(|(base, changed)| (changed / base).ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / n;
    let interval = (pairs.len() >= ROUNDS_FOR_AN_INTERVAL).then(|| {
        let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = t_975(n - 1.0) * (variance / n).sqrt();
        ((mean - half).exp(), (mean + half).exp())
    });
    Some(Ratio {
        mean: mean.exp(),
        interval,
        rounds: pairs.len(),
    })
}

/// The 97.5 % quantile of Student's t with `df` ≥ 7 degrees of freedom, within 0.001.
///
/// The expansion of Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
fn t_975(df: f64) -> f64 {
    let z: f64 = 1.959_964;
    let g1 = (z.powi(3) + z) / 4.0;
    let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + g1 / df + g2 / df.powi(2) + g3 / df.powi(3)
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
        assert_eq!(paired_ratio(&[]), None);
        assert_eq!(
            paired_ratio(&[(1.0, 1.0), (0.0, 5.0)]),
            None,
            "0 has no logarithm"
        );
    }

    #[test]
    fn the_interval_is_the_textbooks() {
        // Tabulated quantiles of Student's t.
        for (df, want) in [
            (7.0, 2.3646),
            (9.0, 2.2622),
            (19.0, 2.0930),
            (29.0, 2.0452),
            (1e6, 1.9600),
        ] {
            assert!((t_975(df) - want).abs() < 1e-3, "{df}: {}", t_975(df));
        }
        // Logs of the ratios: four times 0 and four times ln 2. Mean ln 2 ÷ 2, s = ln 2 · sqrt(2 ÷ 7).
        let pairs: Vec<_> = (0..8)
            .map(|i| (1.0, if i < 4 { 1.0 } else { 2.0 }))
            .collect();
        let ratio = paired_ratio(&pairs).unwrap();
        let (low, high) = ratio.interval.unwrap();
        let half = 2.3646 * 2f64.ln() * (2.0f64 / 7.0).sqrt() / 8f64.sqrt();
        assert!((ratio.mean - 2f64.sqrt()).abs() < 1e-12);
        assert!((low.ln() - (2f64.ln() / 2.0 - half)).abs() < 1e-3, "{low}");
        assert!(
            (high.ln() - (2f64.ln() / 2.0 + half)).abs() < 1e-3,
            "{high}"
        );
    }
}

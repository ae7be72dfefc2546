//! A median with a 95 % interval from order statistics. Pure.
//!
//! Source: W. R. Thompson, "On confidence ranges for the median and other expectation distributions for
//! populations of unknown distribution form", Annals of Mathematical Statistics 7 (1936): the number of
//! values below the true median is binomial with p = 1/2, whatever the distribution.

/// A median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// the middle value, or the mean of the two
    pub median: f64,
    /// lower end
    pub low: f64,
    /// upper end
    pub high: f64,
    /// values
    pub n: usize,
    /// The interval is one of at least 95 %; with fewer than six values it is their whole span, which is less.
    pub covers: bool,
}

/// The median of some values; `None` without one, or with one that is no number.
pub fn median(mut values: Vec<f64>) -> Option<Median> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let skip = skipped(n);
    Some(Median {
        median: f64::midpoint(values[(n - 1) / 2], values[n / 2]),
        low: values[skip.unwrap_or(0)],
        high: values[n - 1 - skip.unwrap_or(0)],
        n,
        covers: skip.is_some(),
    })
}

/// How many values at each end lie outside the interval: the greatest number k for which the chance of k
/// or fewer values on one side of the median is at most 2.5 %. `None`: even all of them cover less.
fn skipped(n: usize) -> Option<usize> {
    // Thousands of values would need logarithms of binomials; no figure has as many.
    let mut chance = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut below = chance;
    let mut outside = None;
    let mut k = 0;
    while below <= 0.025 && k < n / 2 {
        outside = Some(k);
        chance *= (n - k) as f64 / (k + 1) as f64;
        below += chance;
        k += 1;
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // each row: values, ranks outside at each end (Conover, Practical Nonparametric Statistics, table A3)
        let table = [
            (1, None),
            (5, None),      // 2 ÷ 2⁵ = 6.25 % outside the whole span
            (6, Some(0)),   // 3.1 %
            (8, Some(0)),   // 0.8 %; 7.0 % one rank further in
            (9, Some(1)),   // 3.9 %
            (10, Some(1)),  // 2.1 %
            (20, Some(5)),  // 4.1 %: the 6th to the 15th value
            (40, Some(13)), // 3.8 %: the 14th to the 27th
        ];
        for (n, want) in table {
            assert_eq!(skipped(n), want, "{n} values");
        }
    }

    #[test]
    fn a_median_is_in_the_middle_of_any_order() {
        let m = median(vec![3.0, 1.0, 2.0, 5.0, 4.0, 6.0]).unwrap();
        assert_eq!(
            (m.median, m.low, m.high, m.n, m.covers),
            (3.5, 1.0, 6.0, 6, true)
        );
        let m = median(vec![2.0]).unwrap();
        assert_eq!((m.median, m.low, m.high, m.covers), (2.0, 2.0, 2.0, false));
        assert_eq!(median(vec![]), None);
        assert_eq!(
            median(vec![1.0, f64::NAN]),
            None,
            "a round that failed is not left out"
        );
    }
}

//! What a figure says, and when it is reached. Pure.

use yieldpoint_statistics::paired_ratio;

use crate::medians;

/// Paired rounds that "at least" needs.
const ROUNDS: usize = 20;
/// "At least as good" allows this much less, so that equals can be told from worse.
const AT_LEAST: f64 = 0.95;

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// ours ÷ peer, or measured ÷ limit
    pub ratio: f64,
    /// lower end
    pub low: f64,
    /// upper end
    pub high: f64,
    /// rounds, or repetitions
    pub n: usize,
}

/// What became of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// shown to be so
    Reached,
    /// shown not to be so
    NotReached,
    /// neither; why
    Inconclusive(&'static str),
    /// no figure was set
    Information,
    /// it could not be measured; why
    Unmeasured(String),
}

impl Verdict {
    /// Whether the exit code may be 0. A quick run asks only whether everything can be measured.
    pub fn passes(&self, quick: bool) -> bool {
        match self {
            Self::Reached | Self::Information => true,
            Self::NotReached | Self::Inconclusive(_) => quick,
            Self::Unmeasured(_) => false,
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// what is measured, with its unit
    pub figure: String,
    /// our value
    pub ours: String,
    /// the peer's, or the limit
    pub peer: String,
    /// the comparison
    pub interval: Option<Interval>,
    /// what became of it
    pub verdict: Verdict,
    /// what a reader should know
    pub note: String,
}

impl Row {
    /// `pairs`: (peer, ours) of each round, more is better; `figure` says the unit.
    pub fn at_least(figure: &str, pairs: &[(f64, f64)], note: String) -> Self {
        let mut row = Self::information(figure, pairs, note);
        row.verdict = match row.interval {
            Some(i) => at_least(i),
            None => Verdict::Unmeasured("a round without a result".to_owned()),
        };
        row
    }

    /// The same without a verdict.
    pub fn information(figure: &str, pairs: &[(f64, f64)], note: String) -> Self {
        let interval = paired_ratio(pairs).map(|r| Interval {
            ratio: r.ratio,
            low: r.low,
            high: r.high,
            n: r.n,
        });
        let median = |side: fn(&(f64, f64)) -> f64| {
            medians::median(pairs.iter().map(side).collect())
                .map_or_else(String::new, |m| number(m.median))
        };
        Self {
            figure: figure.to_owned(),
            ours: median(|p| p.1),
            peer: median(|p| p.0),
            interval,
            verdict: Verdict::Information,
            note,
        }
    }

    /// `values`: measured in each round, less is better; `figure` says the unit.
    pub fn at_most(figure: &str, values: Vec<f64>, limit: f64, note: String) -> Self {
        let Some(m) = medians::median(values) else {
            return Self::unmeasured(figure, "no result");
        };
        let interval = Interval {
            ratio: m.median / limit,
            low: m.low / limit,
            high: m.high / limit,
            n: m.n,
        };
        Self {
            figure: figure.to_owned(),
            ours: number(m.median),
            peer: format!("at most {}", number(limit)),
            interval: Some(interval),
            verdict: at_most(interval, m.covers),
            note,
        }
    }

    /// A figure without a result.
    pub fn unmeasured(figure: &str, why: &str) -> Self {
        Self {
            figure: figure.to_owned(),
            ours: String::new(),
            peer: String::new(),
            interval: None,
            verdict: Verdict::Unmeasured(why.to_owned()),
            note: String::new(),
        }
    }
}

fn at_least(i: Interval) -> Verdict {
    if i.n < ROUNDS {
        Verdict::Inconclusive("fewer than 20 rounds")
    } else if i.low >= AT_LEAST {
        Verdict::Reached
    } else if i.high < AT_LEAST {
        Verdict::NotReached
    } else {
        Verdict::Inconclusive("the interval holds 0.95")
    }
}

/// `covers`: the interval is one of 95 % (a median of fewer than six values has none).
fn at_most(i: Interval, covers: bool) -> Verdict {
    if !covers {
        Verdict::Inconclusive("fewer than 6 repetitions")
    } else if i.high <= 1.0 {
        Verdict::Reached
    } else if i.low > 1.0 {
        Verdict::NotReached
    } else {
        Verdict::Inconclusive("the interval holds the limit")
    }
}

/// Three significant digits, thousands apart.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if size >= 1000.0 {
        let whole = format!("{:.0}", x.abs());
        let mut grouped = String::new();
        for (i, digit) in whole.chars().enumerate() {
            if i > 0 && (whole.len() - i) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        return if x < 0.0 {
            format!("-{grouped}")
        } else {
            grouped
        };
    }
    let decimals = match size {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 || s == 0.0 => 2,
        _ => 3,
    };
    format!("{x:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64, n: usize) -> Interval {
        Interval {
            ratio: (low + high) / 2.0,
            low,
            high,
            n,
        }
    }

    #[test]
    fn at_least_is_shown_by_the_lower_bound_over_twenty_rounds() {
        use Verdict::{Inconclusive, NotReached, Reached};
        let table = [
            (interval(0.95, 1.1, 20), Reached), // the bound itself counts
            (
                interval(0.949, 1.1, 20),
                Inconclusive("the interval holds 0.95"),
            ),
            (interval(0.90, 0.949, 20), NotReached), // even the upper end is too low
            (interval(1.2, 1.3, 19), Inconclusive("fewer than 20 rounds")), // however good
        ];
        for (given, want) in table {
            assert_eq!(at_least(given), want, "{given:?}");
        }
    }

    #[test]
    fn at_most_is_shown_by_the_upper_bound_of_an_interval_that_covers() {
        use Verdict::{Inconclusive, NotReached, Reached};
        let table = [
            (interval(0.1, 1.0, 6), true, Reached), // the limit itself is within it
            (
                interval(0.9, 1.1, 6),
                true,
                Inconclusive("the interval holds the limit"),
            ),
            (interval(1.1, 1.2, 6), true, NotReached),
            (
                interval(0.1, 0.2, 3),
                false,
                Inconclusive("fewer than 6 repetitions"),
            ),
        ];
        for (given, covers, want) in table {
            assert_eq!(at_most(given, covers), want, "{given:?}");
        }
    }

    #[test]
    fn a_quick_run_passes_unless_something_cannot_be_measured() {
        let table = [
            (Verdict::Reached, true, true),
            (Verdict::Information, true, true),
            (Verdict::NotReached, false, true),
            (Verdict::Inconclusive(""), false, true), // not shown is not reached
            (Verdict::Unmeasured(String::new()), false, false),
        ];
        for (verdict, full, quick) in table {
            assert_eq!(
                (verdict.passes(false), verdict.passes(true)),
                (full, quick),
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn a_ratio_is_ours_by_the_peers() {
        let pairs: Vec<_> = (0..20)
            .map(|i| (100.0 + f64::from(i), 2.0 * (100.0 + f64::from(i))))
            .collect();
        let row = Row::at_least("x", &pairs, String::new());
        assert!((row.interval.unwrap().ratio - 2.0).abs() < 1e-9);
        assert_eq!((row.ours.as_str(), row.peer.as_str()), ("219", "110"));
        assert_eq!(row.verdict, Verdict::Reached);
        let broken = Row::at_least("x", &[(1.0, 0.0)], String::new());
        assert!(
            matches!(broken.verdict, Verdict::Unmeasured(_)),
            "a round that failed"
        );
    }

    #[test]
    fn numbers_show_three_digits() {
        let table = [
            (1_234_567.4, "1,234,567"),
            (-1234.0, "-1,234"),
            (999.6, "1000"), // below the limit of grouping
            (123.4, "123"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (0.1234, "0.123"),
            (0.0, "0.00"),
        ];
        for (x, want) in table {
            assert_eq!(number(x), want, "{x}");
        }
    }
}

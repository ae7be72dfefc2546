//! From values to fractions of an axis, and where its ticks are. Total: no value makes it panic.

use crate::number;

/// Below that, steps and decades are subnormal and vanish: such a value is drawn as 0.
const TINY: f64 = 1e-290;

/// A value axis: its ends and its labelled ticks.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    log: bool,
    /// lower end; the logarithm of it on a log axis
    lo: f64,
    /// upper end, always above `lo`
    hi: f64,
    /// value and label, upwards
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// From 0 (or the least value, if that is negative) to a round number above the greatest,
    /// with at most `most` steps. Values that are not finite count for nothing.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>, most: usize) -> Self {
        let (lo, hi) = bounds(values, |v| v.is_finite()).unwrap_or((0.0, 0.0));
        let hi = if hi - lo.min(0.0) < TINY { 1.0 } else { hi };
        let (first, last, step) = steps(lo.min(0.0), hi.max(0.0), most);
        let at = |k: i64| k as f64 * step;
        let ticks: Vec<f64> = (first..=last).map(at).filter(|t| t.is_finite()).collect();
        let labels = number::linear(&ticks);
        let end = |k: i64, or: f64| if at(k).is_finite() { at(k) } else { or };
        Self {
            log: false,
            lo: end(first, lo),
            hi: end(last, hi),
            ticks: ticks.into_iter().zip(labels).collect(),
        }
    }

    /// From `lo` to exactly `hi`, as a time axis needs it: a trial has no round end.
    pub(crate) fn exact(lo: f64, hi: f64, most: usize) -> Self {
        let mut scale = Self::linear([lo, hi], most);
        if lo.is_finite() && hi.is_finite() && hi - lo > TINY {
            (scale.lo, scale.hi) = (lo, hi);
            scale.ticks.retain(|(t, _)| (lo..=hi).contains(t));
        }
        scale
    }

    /// Whole decades around the positive values (1 to 10 if there are none), with at most `most` labels.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>, most: usize) -> Self {
        let (lo, hi) = bounds(values, |v| v.is_finite() && v > TINY).unwrap_or((1.0, 10.0));
        let (first, mut last) = (lo.log10().floor(), hi.log10().ceil());
        if last <= first {
            last = first + 1.0;
        }
        // Exponents of floats lie between -324 and 309.
        let (from, to) = (first as i32, last as i32);
        let decades = usize::try_from(to - from).unwrap_or(1);
        let every = decades.div_ceil(most.max(1)).max(1);
        // One or two decades alone would leave an axis of two or three labels.
        let within: &[f64] = match decades {
            1 if most >= 3 => &[1.0, 2.0, 5.0],
            2 if most >= 4 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let ticks = (from..=to)
            .step_by(every)
            .flat_map(|e| within.iter().map(move |m| m * 10f64.powi(e)))
            .filter(|t| t.is_finite() && *t > 0.0 && t.log10() <= last)
            .map(|t| (t, number::decade(t)))
            .collect();
        Self {
            log: true,
            lo: first,
            hi: last,
            ticks,
        }
    }

    /// Where a value lies: 0 at the lower end, 1 at the upper; outside values are held at the
    /// ends (0 and below at the lower end of a log axis). `None`: not a number.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        let v = match (self.log, value > 0.0) {
            (false, _) => value,
            (true, true) => value.log10(),
            (true, false) => self.lo,
        };
        // Halves, because the difference of two huge numbers overflows.
        let f = (v / 2.0 - self.lo / 2.0) / (self.hi / 2.0 - self.lo / 2.0);
        Some(f.clamp(0.0, 1.0))
    }

    /// Whether a value is held at the lower end although it belongs below it.
    pub(crate) fn is_below(&self, value: f64) -> bool {
        self.log && value <= 0.0
    }
}

fn bounds(values: impl IntoIterator<Item = f64>, keep: impl Fn(f64) -> bool) -> Option<(f64, f64)> {
    values
        .into_iter()
        .filter(|v| keep(*v))
        .fold(None, |b, v| match b {
            None => Some((v, v)),
            Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
        })
}

/// First and last multiple of the step, and the step: 1, 2 or 5 times a power of ten.
fn steps(lo: f64, hi: f64, most: usize) -> (i64, i64, f64) {
    let most = most.clamp(1, 20) as f64;
    let raw = hi / most - lo / most;
    let power = 10f64.powf(raw.log10().floor());
    // The last one always fits: raw < 10 · power; a negative end may need one step more.
    for factor in [1.0, 2.0, 5.0, 10.0, 20.0] {
        let step = factor * power;
        let (first, last) = ((lo / step).floor(), (hi / step - 1e-9).ceil());
        if last - first <= most && step.is_finite() {
            // |lo| and |hi| are at most `most` steps, so at most 20.
            return (first as i64, (last as i64).max(first as i64 + 1), step);
        }
    }
    (0, 1, if hi > 0.0 { hi } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, l)| l.as_str()).collect()
    }

    #[test]
    fn linear_axes_start_at_zero_and_end_round() {
        let table: [(&[f64], usize, &[&str]); 7] = [
            (&[12_771.0], 5, &["0", "5,000", "10,000", "15,000"]),
            (&[100.0], 5, &["0", "20", "40", "60", "80", "100"]), // a round maximum gets no step more
            (&[-3.0, 5.0], 4, &["−5", "0", "5"]),
            (&[], 4, &["0", "0.5", "1.0"]), // nothing measured
            (&[0.0, f64::NAN, f64::INFINITY], 2, &["0", "0.5", "1.0"]),
            (&[1e-310], 2, &["0", "0.5", "1.0"]), // subnormal
            (&[3.0], 1, &["0", "5"]),
        ];
        for (values, most, want) in table {
            let scale = Scale::linear(values.iter().copied(), most);
            assert_eq!(labels(&scale), want, "{values:?}");
        }
    }

    #[test]
    fn log_axes_cover_whole_decades() {
        let table: [(&[f64], usize, &[&str]); 6] = [
            (
                &[150.0, 40_000.0],
                6,
                &["100", "1,000", "10,000", "100,000"],
            ),
            (&[20.0, 40.0], 6, &["10", "20", "50", "100"]), // one decade needs more labels
            (&[0.0, -1.0], 6, &["1", "2", "5", "10"]),      // nothing positive
            (&[1.0], 2, &["1", "10"]),
            (&[6.7e-310], 2, &["1", "10"]), // subnormal: its decade would have no tick
            (
                &[1e-200, 1e200],
                4,
                &["1e-200", "1e-100", "1", "1e100", "1e200"],
            ), // thinned
        ];
        for (values, most, want) in table {
            let scale = Scale::log(values.iter().copied(), most);
            assert_eq!(labels(&scale), want, "{values:?}");
        }
    }

    #[test]
    fn fractions() {
        let linear = Scale::linear([10.0], 5);
        assert_eq!(linear.at(5.0), Some(0.5));
        assert_eq!(linear.at(-5.0), Some(0.0), "held at the end");
        assert_eq!(linear.at(f64::NAN), None);
        let log = Scale::log([1.0, 100.0], 5);
        assert_eq!(log.at(10.0), Some(0.5));
        assert_eq!(log.at(0.0), Some(0.0));
        assert!(log.is_below(0.0) && !linear.is_below(0.0));
        let time = Scale::exact(0.0, 130.0, 8);
        assert_eq!(time.at(130.0), Some(1.0));
        assert_eq!(labels(&time), ["0", "20", "40", "60", "80", "100", "120"]);
    }

    proptest::proptest! {
        #[test]
        fn any_values_give_an_axis_that_holds_them(values in proptest::collection::vec(proptest::num::f64::ANY, 0..6), most in 0usize..9) {
            for scale in [Scale::linear(values.iter().copied(), most), Scale::log(values.iter().copied(), most)] {
                assert!(scale.hi > scale.lo, "{scale:?}");
                assert!(!scale.ticks.is_empty() && scale.ticks.len() <= 21, "{scale:?}");
                for v in values.iter().filter(|v| v.is_finite()) {
                    let f = scale.at(*v).unwrap();
                    assert!((0.0..=1.0).contains(&f), "{v} at {f} of {scale:?}");
                }
            }
        }
    }
}

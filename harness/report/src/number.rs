//! Numbers as axes write them.

/// Labels of the ticks of one linear axis: one unit and one number of decimals for all of them.
pub(crate) fn linear(ticks: &[f64]) -> Vec<String> {
    let largest = ticks.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
    let step = ticks
        .windows(2)
        .map(|w| (w[1] - w[0]).abs())
        .fold(f64::INFINITY, f64::min);
    let step = if step.is_finite() { step } else { largest };
    ticks.iter().map(|t| label(*t, largest, step)).collect()
}

/// The label of one tick of a log axis, where every decade has its own unit.
pub(crate) fn decade(tick: f64) -> String {
    label(tick, tick.abs(), tick.abs())
}

fn label(value: f64, largest: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() || largest >= 1e15 || step < 1e-6 {
        // A power of ten cannot be told from a measured digit if more than two are shown.
        let text = format!("{value:.1e}");
        return text.replace(".0e", "e");
    }
    let (unit, suffix) = match largest {
        l if l >= 1e12 => (1e12, "T"),
        l if l >= 1e9 => (1e9, "G"),
        l if l >= 1e6 => (1e6, "M"),
        _ => (1.0, ""),
    };
    // The step has one significant digit; 1e-9 swallows the error of its logarithm.
    let decimals = (-(step / unit).log10() - 1e-9).ceil().clamp(0.0, 6.0);
    // Between 0 and 6, so nothing is lost.
    let text = format!("{:.*}", decimals as usize, (value / unit).abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 {
        out.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out + suffix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_for_all_ticks() {
        let table: [(&[f64], &[&str]); 8] = [
            (&[0.0, 5_000.0, 10_000.0], &["0", "5,000", "10,000"]), // no "5,000" beside "10k"
            (&[0.0, 5e5, 1e6, 1.5e6], &["0", "0.5M", "1.0M", "1.5M"]), // a common unit and decimals
            (&[0.0, 0.2, 0.4], &["0", "0.2", "0.4"]),
            (&[-1.0, 0.0, 1.0], &["−1", "0", "1"]), // a real minus sign
            (&[0.0, 2e-8, 4e-8], &["0", "2e-8", "4e-8"]), // decimals would be longer than the axis
            (&[0.0, 1e300], &["0", "1e300"]),
            (&[7.0], &["7"]), // a single tick is its own step
            (&[], &[]),
        ];
        for (ticks, want) in table {
            assert_eq!(linear(ticks), want, "{ticks:?}");
        }
    }

    #[test]
    fn a_decade_has_its_own_unit() {
        let table = [
            (0.001, "0.001"),
            (1.0, "1"),
            (2_000.0, "2,000"),
            (1e5, "100,000"),
            (1e7, "10M"),
            (1e-9, "1e-9"),
        ];
        for (tick, want) in table {
            assert_eq!(decade(tick), want);
        }
    }
}

//! Numbers as people read them: thousands separated, three significant digits, the unit always there.

use yieldpoint_terms::{Kind, Knob, Nanos, Value};

/// A whole number with separated thousands: "28,232".
pub(crate) fn whole(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if n < 0 { format!("-{out}") } else { out }
}

/// A count with separated thousands.
pub(crate) fn count(n: u64) -> String {
    // Beyond 2^63 nothing is counted here; saturating keeps the text true to "very many".
    whole(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Three significant digits, no exponent, thousands separated: "0.0123", "4.56", "12,346" (whole above 100).
pub(crate) fn significant(x: f64) -> String {
    if !x.is_finite() {
        return String::new();
    }
    if x.abs() >= 99.95 {
        // A float-to-int cast saturates, and no quantity here comes near 2^63.
        return whole(x.round() as i64);
    }
    let decimals = match x.abs() {
        a if a >= 9.995 => 1,
        a if a >= 0.9995 => 2,
        a if a >= 0.09995 => 3,
        0.0 => 0,
        _ => 4,
    };
    format!("{x:.decimals$}")
}

/// The middle of some counts: whole where it is, which all but medians of an even number of rounds are.
pub(crate) fn counted(x: f64) -> String {
    if x.fract() == 0.0 {
        // A float-to-int cast saturates, and nothing is counted up to 2^63 here.
        return whole(x as i64);
    }
    significant(x)
}

/// A time in ns with the unit that leaves one to three digits before the point: "4.56 ms".
pub(crate) fn time(ns: f64) -> String {
    for (unit, scale) in [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)] {
        // 999.5 of a unit would be rounded to 1,000 of it.
        if ns.abs() < 999.5 * scale {
            return format!("{} {unit}", significant(ns / scale));
        }
    }
    format!("{} s", significant(ns / 1e9))
}

/// A share in per cent: "0 %", "0.012 %", "48.3 %", "100 %".
pub(crate) fn percent(part: f64, whole: f64) -> Option<String> {
    (whole > 0.0).then(|| {
        let p = 100.0 * part / whole;
        // The ends are said only where they are exact: one error in a million is not 0 %.
        match p {
            0.0 => "0 %".to_owned(),
            p if p < 0.001 => "< 0.001 %".to_owned(),
            p if (99.95..100.0).contains(&p) => "> 99.9 %".to_owned(),
            p => format!("{} %", significant(p)),
        }
    })
}

/// "3.12×"
pub(crate) fn times(ratio: f64) -> String {
    format!("{}×", significant(ratio))
}

/// Both ends of a range, once if they read the same: "2,000", "1,990–2,000".
pub(crate) fn range(low: f64, high: f64, show: impl Fn(f64) -> String) -> String {
    let (a, b) = (show(low), show(high));
    if a == b { a } else { format!("{a}–{b}") }
}

/// "a", "a and b", "a, b and c"
pub(crate) fn list<S: AsRef<str>>(words: &[S]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [head @ .., last] => {
            let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", head.join(", "), last.as_ref())
        }
    }
}

/// "1 trial", "3 trials"
pub(crate) fn plural(n: usize, word: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {word}{s}", count(n as u64))
}

/// The value of a knob as it is written in a matrix: on disk a duration is an integer of ns.
pub(crate) fn knob(knobs: &[Knob], name: &str, value: &Value) -> String {
    let duration = || {
        let declared = knobs.iter().find(|k| k.answers_to(name))?;
        matches!(declared.kind, Kind::Duration { .. }).then_some(())
    };
    match value {
        Value::Int(ns) if duration().is_some() => {
            u64::try_from(*ns).map_or_else(|_| value.to_string(), |ns| Nanos(ns).to_string())
        }
        other => other.to_string(),
    }
}

/// A command line that a shell reads back as the same words.
pub(crate) fn shell(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_true() {
        let table = [
            (significant(0.0), "0"),
            (significant(0.012_34), "0.0123"),
            (significant(0.5), "0.500"),
            (significant(0.999_9), "1.00"), // rounding up changes the number of decimals
            (significant(4.556), "4.56"),
            (significant(9.999), "10.0"),
            (significant(99.96), "100"),
            (significant(12_345.6), "12,346"),
            (significant(-1_234_567.0), "-1,234,567"),
            (significant(f64::NAN), ""),
            (counted(20.0), "20"),
            (counted(20.5), "20.5"),
            (whole(0), "0"),
            (whole(999), "999"),
            (whole(1_000), "1,000"),
            (whole(i64::MIN), "-9,223,372,036,854,775,808"), // has no positive twin
            (time(999.0), "999 ns"),
            (time(999.6), "1.00 µs"), // not "1,000 ns"
            (time(22_345.0), "22.3 µs"),
            (time(4_560_000.0), "4.56 ms"),
            (time(60e9), "60.0 s"),
            (percent(0.0, 10.0).unwrap(), "0 %"),
            (percent(1.0, 1e6).unwrap(), "< 0.001 %"), // some errors are never none
            (percent(999_999.0, 1e6).unwrap(), "> 99.9 %"), // and some good ones never none
            (percent(1.0, 1.0).unwrap(), "100 %"),
            (times(3.124), "3.12×"),
            (range(2000.0, 2000.0, significant), "2,000"),
            (range(1990.0, 2000.0, significant), "1,990–2,000"),
            (list(&["a"]), "a"),
            (list(&["a", "b", "c"]), "a, b and c"),
            (plural(1, "trial"), "1 trial"),
            (plural(2_000, "trial"), "2,000 trials"),
        ];
        for (got, want) in table {
            assert_eq!(got, want);
        }
        assert_eq!(percent(1.0, 0.0), None, "of nothing there is no share");
    }

    #[test]
    fn durations_are_shown_as_they_are_written() {
        let knobs = [Knob::duration("duration", Nanos(1), Nanos(1), Nanos(1), "")];
        assert_eq!(knob(&knobs, "duration", &Value::Int(2_000_000_000)), "2s");
        assert_eq!(
            knob(&knobs, "threads", &Value::Int(2_000_000_000)),
            "2000000000"
        );
        assert_eq!(knob(&[], "x", &Value::Text("a b".into())), "a b");
    }

    #[test]
    fn a_command_reads_back_in_a_shell() {
        let words = [
            "yieldpoint",
            "run",
            "a b.toml",
            "it's",
            "",
            "--set",
            "x=1",
            "$HOME",
        ];
        let line = shell(&words.map(str::to_owned));
        assert_eq!(
            line,
            r"yieldpoint run 'a b.toml' 'it'\''s' '' --set x=1 '$HOME'"
        );
    }
}

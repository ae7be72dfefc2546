//! Remarks on a trial that leave it ok.

use yieldpoint_protocol::{ErrorKind, Outcome};
use yieldpoint_terms::SampleSeries;

mod noise;
mod starved;

pub use noise::of_samples;
pub use starved::{AskedLoad, starved};

/// A TIME_WAIT entry lives 60 s plus timer granularity; a cycle and its restart need this long.
pub const WHOLE_CYCLE_NS: u64 = 125_000_000_000;

/// What decides whether a trial saw the port burst only.
#[derive(Clone, Copy, Debug)]
pub struct PortUse {
    /// length of the window
    pub window_ns: u64,
    /// ports of the range
    pub ports: u64,
    /// connections asked for that found no port
    pub refused: u64,
    /// TIME_WAIT entries left at the client's end
    pub time_wait_client: u64,
    /// whether a port is free again after about 1 s (`tcp_tw_reuse`)
    pub reuse: bool,
}

/// Whether the trial saw the port burst only: too short for a cycle of TIME_WAIT, while the ports ran
/// out or would have at this rate. A port in TIME_WAIT is back after 60 s, so the ports suffice
/// for ever only if 60 s of closes stay below the range.
#[must_use]
pub fn burst_only(p: PortUse) -> bool {
    if p.window_ns >= WHOLE_CYCLE_NS || p.reuse || p.ports == 0 {
        return false;
    }
    let seconds = p.window_ns as f64 / 1e9;
    let closes_a_cycle = p.time_wait_client as f64 / seconds * 60.0;
    p.refused > 0 || closes_a_cycle > p.ports as f64
}

/// Whether a port in TIME_WAIT is free again after about 1 s, by the values of `tcp_tw_reuse` (1:
/// everywhere, 2: on loopback) and `tcp_timestamps`, without which the kernel reuses none.
#[must_use]
pub fn reuse(tw_reuse: Option<&str>, timestamps: Option<&str>, loopback: bool) -> bool {
    let asked = match tw_reuse {
        None | Some("0") => false,
        Some("2") => loopback,
        Some(_) => true,
    };
    asked && timestamps != Some("0")
}

/// "32768 60999" → 28,232 ports.
#[must_use]
pub fn ports_of(range: &str) -> Option<u64> {
    let mut ends = range.split_whitespace().map(str::parse::<u64>);
    match (ends.next()?.ok()?, ends.next()?.ok()?) {
        (low, high) if low <= high => Some(high - low + 1),
        _ => None,
    }
}

/// Requests that found no port.
#[must_use]
pub fn refused(o: &Outcome) -> u64 {
    let no_port = |k| matches!(k, ErrorKind::AddressNotAvailable | ErrorKind::AddressInUse);
    o.errors
        .iter()
        .filter(|e| no_port(e.kind))
        .map(|e| e.count)
        .sum()
}

/// A running total at the last sample. In a fresh namespace it began at 0, so it also has what happened before a
/// first sample that came late, which [`rise`] has not.
#[must_use]
pub fn total(s: &SampleSeries, metric: &str) -> Option<u64> {
    let last = s.columns.get(metric)?.iter().flatten().last()?;
    u64::try_from(*last).ok()
}

/// How far a running total rose over the samples.
#[must_use]
pub fn rise(s: &SampleSeries, metric: &str) -> Option<i64> {
    let column = s.columns.get(metric)?;
    let mut read = column.iter().flatten();
    let first = *read.next()?;
    Some(read.last().copied().unwrap_or(first) - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_trial_that_runs_out_of_ports_is_a_burst() {
        let s = 1_000_000_000;
        let base = PortUse {
            window_ns: 2 * s,
            ports: 2_000,
            refused: 0,
            time_wait_client: 0,
            reuse: false,
        };
        // change, burst?
        let table = [
            (base, false), // no port was used up
            (
                PortUse {
                    refused: 9,
                    time_wait_client: 2_000,
                    ..base
                },
                true,
            ), // ran out
            (
                PortUse {
                    time_wait_client: 67,
                    ..base
                },
                true,
            ), // 33.5/s × 60 s = 2,010 > 2,000: it would have
            (
                PortUse {
                    time_wait_client: 66,
                    ..base
                },
                false,
            ), // 1,980: it never would
            (
                PortUse {
                    refused: 9,
                    window_ns: 130 * s,
                    ..base
                },
                false,
            ), // long enough to see the cycle
            (
                PortUse {
                    time_wait_client: 2_000,
                    reuse: true,
                    ..base
                },
                false,
            ), // free again after 1 s
        ];
        for (i, (p, want)) in table.into_iter().enumerate() {
            assert_eq!(burst_only(p), want, "row {i}");
        }
    }

    #[test]
    fn reuse_depends_on_the_network_and_on_timestamps() {
        // tcp_tw_reuse, tcp_timestamps, loopback, reuse?
        let table = [
            (Some("1"), Some("1"), true, true),
            (Some("1"), Some("1"), false, true),
            (Some("2"), Some("1"), true, true), // the kernel's default
            (Some("2"), Some("1"), false, false), // a veth pair is not loopback
            (Some("0"), Some("1"), true, false),
            (Some("1"), Some("0"), true, false), // the timestamp tells old packets from new
            (Some("1"), None, true, true), // a kernel that hides the value has the default, on
            (None, Some("1"), true, false), // unknown: nothing is claimed
        ];
        for (tw_reuse, timestamps, loopback, want) in table {
            assert_eq!(
                reuse(tw_reuse, timestamps, loopback),
                want,
                "{tw_reuse:?} {timestamps:?} {loopback}"
            );
        }
    }

    #[test]
    fn a_range_is_counted_with_both_ends() {
        assert_eq!(ports_of("32768 60999"), Some(28_232));
        assert_eq!(ports_of("32768\t34767"), Some(2_000));
        assert_eq!(ports_of("9 1"), None);
        assert_eq!(ports_of("many"), None);
    }

    #[test]
    fn a_total_has_what_a_late_first_sample_missed() {
        let series = |values: &[Option<i64>]| SampleSeries {
            t_ns: vec![0; values.len()],
            columns: [("drops".to_owned(), values.to_vec())].into(),
        };
        // samples, total at the end, rise
        type Row<'a> = (&'a [Option<i64>], Option<u64>, Option<i64>);
        let table: [Row; 4] = [
            (&[Some(0), Some(9)], Some(9), Some(9)),
            (&[Some(4), Some(9)], Some(9), Some(5)), // 4 came before the first sample
            (&[Some(4), None], Some(4), Some(0)),    // the last that was read
            (&[None], None, None),                   // missing is not 0
        ];
        for (values, want, rose) in table {
            let s = series(values);
            assert_eq!(
                (total(&s, "drops"), rise(&s, "drops")),
                (want, rose),
                "{values:?}"
            );
        }
        assert_eq!(total(&series(&[]), "other"), None);
    }
}

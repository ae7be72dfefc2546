//! The table `timeline`: the course of every trial, as each end saw it.

use polars::prelude::{Column, DataFrame};
use yieldpoint_protocol::{Outcome, TargetSeries};
use yieldpoint_record::Trial;

use crate::keys::Keys;
use crate::values::int;

/// Rows as the target saw them, 100 ms each.
pub(crate) const TARGET: &str = "target";
/// Rows as the client saw them, 1 s each.
pub(crate) const CLIENT: &str = "client";

/// Zero of a trial's time axes, CLOCK_MONOTONIC ns: `go`, or the window where no `go` is recorded.
pub(crate) fn zero(trial: &Trial) -> Option<u64> {
    trial
        .start_at_ns
        .or_else(|| Some(trial.outcome.as_ref()?.window_start_ns))
}

/// From `zero` to `t` in whole ms, rounded down; negative before it.
pub(crate) fn since_ms(zero: u64, t: u64) -> i64 {
    let ns = i128::from(t) - i128::from(zero);
    // Two u64 of ns are at most 2^64 ns apart, which is 2^45 ms.
    ns.div_euclid(1_000_000) as i64
}

/// One slot; counts belong to the slot, they are not rates.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    /// its start, CLOCK_MONOTONIC ns
    pub start_ns: u64,
    /// its length, ns
    pub length_ns: u64,
    pub source: &'static str,
    pub responses: Option<u64>,
    pub connections: Option<u64>,
    pub active: Option<u64>,
    pub listen_queue: Option<u64>,
    pub bytes_out: Option<u64>,
    pub attempts: Option<u64>,
    pub good: Option<u64>,
    pub errors: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

/// Slots of the target. Its columns may differ in length where it was cut short: what is missing is null.
pub(crate) fn target(series: &TargetSeries) -> impl Iterator<Item = Slot> + '_ {
    let columns = [
        &series.responses,
        &series.connections,
        &series.active,
        &series.listen_queue,
        &series.bytes_out,
    ];
    let slots = columns.iter().map(|c| c.len()).max().unwrap_or(0);
    (0..slots).map(move |i| {
        let [responses, connections, active, listen_queue, bytes_out] =
            columns.map(|c| c.get(i).copied());
        Slot {
            start_ns: series
                .start_ns
                .saturating_add(series.slot_ns.saturating_mul(i as u64)),
            length_ns: series.slot_ns,
            source: TARGET,
            responses,
            connections,
            active,
            listen_queue,
            bytes_out,
            ..Slot::default()
        }
    })
}

/// Seconds of the client's window; the last is as long as the window leaves it.
pub(crate) fn client(outcome: &Outcome) -> impl Iterator<Item = Slot> + '_ {
    const SECOND: u64 = 1_000_000_000;
    (0..).zip(&outcome.series).map(|(i, second)| {
        let start_ns = outcome
            .window_start_ns
            .saturating_add(SECOND.saturating_mul(i));
        let left = outcome.window_end_ns.saturating_sub(start_ns);
        Slot {
            start_ns,
            // A series that runs past its window has no shorter last second to speak of.
            length_ns: if left == 0 { SECOND } else { left.min(SECOND) },
            source: CLIENT,
            connections: Some(second.connections),
            attempts: Some(second.attempts),
            good: Some(second.good),
            errors: Some(second.errors),
            p50_ns: second.p50_ns,
            p90_ns: second.p90_ns,
            p99_ns: second.p99_ns,
            max_ns: second.max_ns,
            ..Slot::default()
        }
    })
}

/// One row a slot: of each trial first the target's, then the client's.
pub(crate) fn table(trials: &[Trial]) -> anyhow::Result<DataFrame> {
    let mut keys = Keys::new(trials)?;
    let mut slots: Vec<(Slot, i64)> = Vec::new();
    for (index, trial) in trials.iter().enumerate() {
        let before = slots.len();
        let seen = trial.testimony.iter().flat_map(|t| target(&t.series));
        let done = trial.outcome.iter().flat_map(client);
        // A target can testify without a client's outcome; its own start is then the best zero there is.
        let zero = zero(trial).or_else(|| Some(trial.testimony.as_ref()?.series.start_ns));
        slots.extend(seen.chain(done).map(|slot| {
            let at = since_ms(zero.unwrap_or(slot.start_ns), slot.start_ns);
            (slot, at)
        }));
        keys.push(index, slots.len() - before)?;
    }
    let ints = |name: &str, of: fn(&Slot) -> Option<u64>| {
        let cells: Vec<_> = slots.iter().map(|(s, _)| of(s).and_then(int)).collect();
        Column::new(name.into(), cells)
    };
    let starts: Vec<i64> = slots.iter().map(|(_, at)| *at).collect();
    let sources: Vec<&str> = slots.iter().map(|(s, _)| s.source).collect();
    Ok(keys.table(&[
        Column::new("t_ms".into(), starts),
        ints("dur_ms", |s| Some(s.length_ns / 1_000_000)),
        Column::new("series_source".into(), sources),
        ints("responses", |s| s.responses),
        ints("connections", |s| s.connections),
        ints("active", |s| s.active),
        ints("listen_queue", |s| s.listen_queue),
        ints("bytes_out", |s| s.bytes_out),
        ints("attempts", |s| s.attempts),
        ints("good", |s| s.good),
        ints("errors", |s| s.errors),
        ints("p50_ns", |s| s.p50_ns),
        ints("p90_ns", |s| s.p90_ns),
        ints("p99_ns", |s| s.p99_ns),
        ints("max_ns", |s| s.max_ns),
    ])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use yieldpoint_protocol::Second;

    #[test]
    fn times_before_go_are_negative() {
        // (zero, t, ms)
        for (zero, t, want) in [
            (5_000_000, 7_999_999, 2),  // rounded down
            (5_000_000, 4_999_999, -1), // also below zero: −0.000001 ms lies in the millisecond before
            (0, u64::MAX, 18_446_744_073_709),
            (u64::MAX, 0, -18_446_744_073_710),
        ] {
            assert_eq!(since_ms(zero, t), want);
        }
    }

    #[test]
    fn the_last_second_is_as_long_as_the_window_leaves_it() {
        let mut outcome = synthetic::outcome();
        outcome.window_start_ns = 10;
        outcome.window_end_ns = 10 + 2_500_000_000;
        outcome.series = vec![Second::default(); 3];
        let lengths: Vec<_> = client(&outcome).map(|s| s.length_ns).collect();
        assert_eq!(lengths, [1_000_000_000, 1_000_000_000, 500_000_000]);
    }

    #[test]
    fn both_ends_stand_in_one_table() {
        let mut trial = synthetic::trial("ureq", 1);
        trial.start_at_ns = Some(1_000_000_000);
        let outcome = trial.outcome.as_mut().unwrap();
        // 300 ms of warm-up: the client's seconds begin with the window.
        outcome.window_start_ns = 1_300_000_000;
        outcome.window_end_ns = 2_300_000_000;
        outcome.series = vec![Second {
            good: 7,
            ..Second::default()
        }];
        trial.testimony.as_mut().unwrap().series = TargetSeries {
            start_ns: 1_000_000_000,
            slot_ns: 100_000_000,
            responses: vec![3, 4],
            active: vec![1], // cut short
            ..TargetSeries::default()
        };
        let table = table(&[trial]).unwrap();
        let ints = |name: &str| table.column(name).unwrap().i64().unwrap().to_vec();
        assert_eq!(ints("t_ms"), [Some(0), Some(100), Some(300)]);
        assert_eq!(ints("dur_ms"), [Some(100), Some(100), Some(1000)]);
        assert_eq!(ints("responses"), [Some(3), Some(4), None]);
        assert_eq!(ints("active"), [Some(1), None, None]);
        assert_eq!(ints("good"), [None, None, Some(7)]);
        let sources = table
            .column("series_source")
            .unwrap()
            .str()
            .unwrap()
            .clone();
        assert_eq!(
            sources.iter().flatten().collect::<Vec<_>>(),
            ["target", "target", "client"]
        );
    }
}

//! The table `histograms`, and percentiles.

use hdrhistogram::Histogram as Hdr;
use polars::prelude::{Column, DataFrame, IdxCa, IdxSize, NamedFrom as _};
use yieldpoint_protocol::{Histogram, Outcome};
use yieldpoint_record::Trial;

use crate::keys::Keys;
use crate::values::int;

/// The histograms of an outcome, in the order of the table.
const NAMES: [&str; 3] = ["latency", "connect", "iteration"];

fn of(outcome: &Outcome) -> [&Histogram; 3] {
    [&outcome.latency, &outcome.connect, &outcome.iteration]
}

/// One row a trial, histogram and occupied slot; `value_ns` is the greatest time that falls into the slot.
pub(crate) fn table(trials: &[Trial]) -> anyhow::Result<DataFrame> {
    let mut keys = Keys::new(trials)?;
    let (mut which, mut values, mut counts) = (Vec::<IdxSize>::new(), Vec::new(), Vec::new());
    for (t, trial) in trials.iter().enumerate() {
        let Some(outcome) = &trial.outcome else {
            continue;
        };
        for (h, encoded) in (0..).zip(of(outcome)) {
            let Some(histogram) = decode(encoded) else {
                continue;
            };
            let before = values.len();
            for slot in histogram.iter_recorded() {
                values.push(int(slot.value_iterated_to()));
                counts.push(int(slot.count_at_value()));
            }
            let rows = values.len() - before;
            which.resize(values.len(), h);
            keys.push(t, rows)?;
        }
    }
    let names = Column::new("histogram".into(), &NAMES[..]);
    Ok(keys.table(&[
        names.take(&IdxCa::new("which".into(), which))?,
        Column::new("value_ns".into(), values),
        Column::new("count".into(), counts),
    ])?)
}

/// `None`: a client sent something else; [`broken`] says so in the report's warnings.
pub(crate) fn decode(histogram: &Histogram) -> Option<Hdr<u64>> {
    histogram.decode().ok()
}

/// The name of the first histogram of an outcome that cannot be read.
pub(crate) fn broken(outcome: &Outcome) -> Option<(&'static str, String)> {
    let mut all = NAMES.into_iter().zip(of(outcome));
    all.find_map(|(name, h)| h.decode().err().map(|e| (name, e.to_string())))
}

/// The time that a share `quantile` (0–1) of the recorded ones does not exceed, ns; `None` of nothing.
pub(crate) fn percentile(histogram: &Hdr<u64>, quantile: f64) -> Option<u64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(quantile))
}

/// All recorded times in one histogram. Percentiles of rounds are never averaged: that has no meaning.
pub(crate) fn merged<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Hdr<u64> {
    let mut all = Histogram::recorder();
    // A client of another make may record beyond our range.
    all.auto(true);
    for one in histograms.into_iter().filter_map(decode) {
        // Adding fails only where the range cannot grow, and this one grows.
        let _ = all.add(one);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    /// Times from 1 µs to 3 s without a pattern: a linear congruential generator.
    fn times(n: usize, mut seed: u64) -> Vec<u64> {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 33
        };
        (0..n)
            .map(|_| 1_000 + (next() % 3_000_000) * (next() % 1_000))
            .collect()
    }

    #[test]
    fn percentiles_of_merged_histograms_are_those_of_all_times() {
        let rounds = [times(1_000, 1), times(37, 2), times(5_000, 3)];
        let encoded: Vec<_> = rounds.iter().map(|r| synthetic::histogram(r)).collect();
        let all = merged(&encoded);
        let mut sorted = rounds.concat();
        sorted.sort_unstable();
        for q in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
            // Brute force: the time at rank ⌈q·n⌉.
            let rank = ((q * sorted.len() as f64).ceil() as usize).max(1);
            let want = sorted[rank - 1];
            let got = percentile(&all, q).unwrap();
            assert!(all.equivalent(got, want), "{q}: {got}, by hand {want}");
        }
        assert_eq!(all.len(), sorted.len() as u64);
    }

    #[test]
    fn a_histogram_beyond_our_range_is_merged_too() {
        let mut wide = Hdr::<u64>::new_with_bounds(1, 3_600_000_000_000, 2).unwrap();
        wide.record(3_000_000_000_000).unwrap();
        let all = merged([&Histogram::encode(&wide), &synthetic::histogram(&[1_000])]);
        assert_eq!(all.len(), 2);
        // Two digits: the slot of 50 minutes is up to 1 % wide.
        let longest = percentile(&all, 1.0).unwrap();
        assert!(
            (2_970_000_000_000..3_030_000_000_000).contains(&longest),
            "{longest}"
        );
    }

    #[test]
    fn of_nothing_there_is_no_percentile() {
        assert_eq!(percentile(&merged([]), 0.5), None);
        assert_eq!(percentile(&merged([&Histogram("no".into())]), 0.5), None);
    }

    #[test]
    fn the_slots_of_the_table_hold_every_time() {
        let mut trial = synthetic::trial("ureq", 1);
        let recorded = times(500, 4);
        let outcome = trial.outcome.as_mut().unwrap();
        outcome.latency = synthetic::histogram(&recorded);
        outcome.connect = synthetic::histogram(&[5_000]);
        outcome.iteration = Histogram("no".into());
        let table = table(&[trial]).unwrap();
        let names = table.column("histogram").unwrap().str().unwrap().clone();
        let value = table.column("value_ns").unwrap().i64().unwrap().clone();
        let count = table.column("count").unwrap().i64().unwrap().clone();
        let mut latency = 0;
        for i in 0..table.height() {
            match names.get(i).unwrap() {
                "latency" => latency += count.get(i).unwrap(),
                // Slots are 64 ns wide down here: 4,992–5,055 ns.
                "connect" => assert_eq!((value.get(i), count.get(i)), (Some(5_055), Some(1))),
                other => panic!("rows of \"{other}\", which cannot be read"),
            }
        }
        assert_eq!(latency, 500);
    }
}

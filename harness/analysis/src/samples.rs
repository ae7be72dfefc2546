//! The table `samples`: what was sampled, one column a metric of the manifest.

use polars::prelude::{Column, DataFrame};
use yieldpoint_record::{Manifest, Trial};
use yieldpoint_terms::SampleSeries;

use crate::keys::Keys;
use crate::timeline::{since_ms, zero};
use crate::values::int;

/// Metrics that figures and the columns of `trials` ask for by name.
pub(crate) mod metric {
    /// CPU time of the client's processes, ns, a running total
    pub const CLIENT_CPU: &str = "client_cpu_ns";
    /// peak resident memory of the client, KiB
    pub const CLIENT_RSS_PEAK: &str = "client_rss_peak_kib";
    /// TIME_WAIT entries of the lab, both ends
    pub const TIME_WAIT: &str = "sockets_time_wait";
}

/// How much a running total grew from the first row that has it to the last.
pub(crate) fn growth(samples: &SampleSeries, metric: &str) -> Option<u64> {
    let mut known = samples.columns.get(metric)?.iter().flatten();
    let first = known.next()?;
    let last = known.next_back()?;
    u64::try_from(last.checked_sub(*first)?).ok()
}

/// One row a sample. A metric that a trial did not read is null in its rows.
pub(crate) fn table(manifest: &Manifest, trials: &[Trial]) -> anyhow::Result<DataFrame> {
    let mut keys = Keys::new(trials)?;
    let mut times: Vec<Option<i64>> = Vec::new();
    for (index, trial) in trials.iter().enumerate() {
        let Some(samples) = &trial.samples else {
            continue;
        };
        let zero = zero(trial);
        // Without a start there is no time axis; the rows are kept, their time is unknown.
        let at = |t: &u64| zero.map(|zero| since_ms(zero, *t));
        times.extend(samples.t_ns.iter().map(at));
        keys.push(index, samples.t_ns.len())?;
    }
    let rows = times.len();
    let mut columns = vec![Column::new("t_ms".into(), times)];
    for metric in &manifest.metrics {
        let mut cells = Vec::with_capacity(rows);
        for samples in trials.iter().filter_map(|t| t.samples.as_ref()) {
            let read = samples.columns.get(&metric.name);
            cells.extend((0..samples.t_ns.len()).map(|i| *read?.get(i)?));
        }
        columns.push(Column::new(metric.name.as_str().into(), cells));
    }
    Ok(keys.table(&columns)?)
}

/// TIME_WAIT over the trial: (CLOCK_MONOTONIC ns, entries).
pub(crate) fn time_wait(samples: &SampleSeries) -> impl Iterator<Item = (u64, Option<i64>)> + '_ {
    let read = samples.columns.get(metric::TIME_WAIT);
    let value = move |i: usize| *read?.get(i)?;
    samples
        .t_ns
        .iter()
        .enumerate()
        .map(move |(i, t)| (*t, value(i)))
}

/// CPU time per thing in µs; `None` of no things.
pub(crate) fn cpu_us_per(cpu_ns: u64, things: u64) -> Option<f64> {
    int(things)
        .filter(|n| *n > 0)
        .map(|n| cpu_ns as f64 / 1e3 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn series(metric: &str, values: &[Option<i64>]) -> SampleSeries {
        SampleSeries {
            t_ns: (0..values.len() as u64).collect(),
            columns: [(metric.to_owned(), values.to_vec())].into(),
        }
    }

    #[test]
    fn growth_runs_from_the_first_known_value_to_the_last() {
        let table: [(&[Option<i64>], _); 6] = [
            (&[Some(5), Some(9)], Some(4)),
            (&[None, Some(5), None, Some(9), None], Some(4)), // gaps at the ends
            (&[Some(5)], None),                               // one reading is no growth
            (&[None, None], None),
            (&[Some(9), Some(5)], None), // a total that falls is not one
            (&[], None),
        ];
        for (values, want) in table {
            assert_eq!(growth(&series("m", values), "m"), want, "{values:?}");
        }
        assert_eq!(growth(&series("m", &[Some(1), Some(2)]), "other"), None);
    }

    #[test]
    fn every_metric_of_the_manifest_is_a_column() {
        let manifest = synthetic::manifest(&[]);
        let mut trial = synthetic::trial("ureq", 1);
        trial.start_at_ns = Some(0);
        trial.samples = Some(series(metric::TIME_WAIT, &[Some(0), None, Some(7)]));
        let mut bare = synthetic::trial("ureq", 2);
        bare.samples = None;
        let table = table(&manifest, &[bare, trial]).unwrap();
        let names = synthetic::names(&table);
        let metrics: Vec<_> = manifest.metrics.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names[..4], ["cell", "round", "role", "t_ms"]);
        assert_eq!(names[4..], metrics);
        let read = table
            .column(metric::TIME_WAIT)
            .unwrap()
            .i64()
            .unwrap()
            .to_vec();
        assert_eq!(read, [Some(0), None, Some(7)]);
        assert_eq!(
            table.column(metric::CLIENT_CPU).unwrap().null_count(),
            3,
            "never read"
        );
    }
}

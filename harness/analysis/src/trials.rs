//! The table `trials`: one row a trial. Its columns are the contract of every run.

use polars::prelude::{Column, DataFrame};
use yieldpoint_protocol::{Outcome, Testimony};
use yieldpoint_record::{Manifest, TimeWait, Trial};
use yieldpoint_terms::{SampleSeries, Value};

use crate::samples::{cpu_us_per, growth, metric};
use crate::values::{self, int};
use crate::why::{Times, Why};
use crate::{histograms, keys, timeline};

/// Knobs that have a column whether they vary or not.
pub(crate) const ALWAYS: [&str; 6] = [
    "client",
    "keep_alive",
    "same_user",
    "threads",
    "users_per_thread",
    "requests_per_iteration",
];

/// The value of a knob or axis in a trial: a bundle axis is a coordinate only, a fixed knob is no coordinate.
pub(crate) fn value<'a>(trial: &'a Trial, name: &str) -> Option<&'a Value> {
    let on_axis = trial.coordinates.iter().find(|(axis, _)| axis == name);
    on_axis.map(|(_, v)| v).or_else(|| trial.knobs.get(name))
}

/// Makes the table, in the order of the journal; `read` and `whys` are those of the same trials.
pub(crate) fn table(
    manifest: &Manifest,
    trials: &[Trial],
    read: &[Read],
    whys: &[Why],
) -> anyhow::Result<DataFrame> {
    let before = keys(trials);
    let mut after = measured(trials, read);
    after.extend(explained(whys));
    let names = setting_names(manifest);
    let mut settings = Vec::with_capacity(names.len());
    for name in &names {
        let cells: Vec<_> = trials.iter().map(|t| value(t, name)).collect();
        let axis = manifest.axes.iter().find(|a| a.name == **name);
        let declared = manifest.knobs.iter().find(|k| k.answers_to(name));
        let taken = before.iter().chain(&after).any(|c| c.name() == name);
        // A bundle axis may carry the name of a column ("errors"); the column of the contract keeps it.
        let shown = if taken {
            format!("axis.{name}")
        } else {
            (*name).to_owned()
        };
        let more = axis.map_or(&[][..], |a| &a.values);
        settings.push(values::column(&shown, &cells, more, declared));
    }
    let columns = [before, settings, after].concat();
    Ok(DataFrame::new(trials.len(), columns)?)
}

/// The knobs that have a column, each once: those of always, every axis, every `--set`.
fn setting_names(manifest: &Manifest) -> Vec<&str> {
    let mut names: Vec<&str> = ALWAYS.to_vec();
    let axes = manifest.axes.iter().map(|a| a.name.as_str());
    for name in axes.chain(manifest.set.iter().map(String::as_str)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn keys(trials: &[Trial]) -> Vec<Column> {
    let texts = |name: &str, of: fn(&Trial) -> Option<String>| {
        Column::new(name.into(), trials.iter().map(of).collect::<Vec<_>>())
    };
    let mut columns = keys::columns(trials);
    columns.push(texts("status", |t| Some(t.status.name().to_owned())));
    columns.push(texts("error", |t| t.error.clone()));
    columns.push(texts("flags", |t| {
        (!t.flags.is_empty()).then(|| t.flags.join(","))
    }));
    columns
}

/// Percentiles of one trial: what is worth decoding its histograms for, and no more, so that memory does not
/// grow by a histogram a trial.
#[derive(Default)]
pub(crate) struct Read {
    latency: [Option<u64>; 4],
    max: Option<u64>,
    connect: [Option<u64>; 2],
    latency_mean: Option<f64>,
    connect_mean: Option<f64>,
}

impl Read {
    pub fn all(trials: &[Trial]) -> Vec<Self> {
        let one = |t: &Trial| t.outcome.as_ref().map_or_else(Self::default, Self::new);
        trials.iter().map(one).collect()
    }

    fn new(outcome: &Outcome) -> Self {
        let mut read = Self::default();
        if let Some(latency) = histograms::decode(&outcome.latency) {
            read.latency = [0.5, 0.9, 0.99, 0.999].map(|q| histograms::percentile(&latency, q));
            read.max = histograms::percentile(&latency, 1.0);
            read.latency_mean = (!latency.is_empty()).then(|| latency.mean());
        }
        if let Some(connect) = histograms::decode(&outcome.connect) {
            read.connect = [0.5, 0.99].map(|q| histograms::percentile(&connect, q));
            read.connect_mean = (!connect.is_empty()).then(|| connect.mean());
        }
        read
    }

    /// What a verdict asks of the histograms.
    pub fn times(&self) -> Times {
        Times {
            latency_mean_ns: self.latency_mean,
            connect_mean_ns: self.connect_mean,
            connect_p99_ns: self.connect[1],
        }
    }
}

/// What was measured, in the order of the contract; columns beyond it stand last.
fn measured(trials: &[Trial], read: &[Read]) -> Vec<Column> {
    let ints = |name: &str, of: &dyn Fn(&Trial) -> Option<u64>| {
        let cells: Vec<_> = trials.iter().map(|t| of(t).and_then(int)).collect();
        Column::new(name.into(), cells)
    };
    let floats = |name: &str, of: &dyn Fn(&Trial) -> Option<f64>| {
        Column::new(name.into(), trials.iter().map(of).collect::<Vec<_>>())
    };
    let texts = |name: &str, of: &dyn Fn(&Trial) -> Option<String>| {
        Column::new(name.into(), trials.iter().map(of).collect::<Vec<_>>())
    };
    let times = |name: &str, of: &dyn Fn(&Read) -> Option<u64>| {
        let cells: Vec<_> = read.iter().map(|r| of(r).and_then(int)).collect();
        Column::new(name.into(), cells)
    };
    let peaks = |name: &str, metric: &str| {
        let peak = |t: &Trial| t.samples.as_ref()?.peak(metric);
        Column::new(name.into(), trials.iter().map(peak).collect::<Vec<_>>())
    };
    vec![
        floats("good_per_s", &outcome(good_per_s)),
        ints("attempts", &outcome(|o| Some(o.window.attempts))),
        ints("good", &outcome(|o| Some(o.window.good))),
        ints("errors", &outcome(|o| Some(o.window.errors))),
        ints("connections", &outcome(|o| Some(o.window.connections))),
        ints("requests_total", &outcome(|o| Some(o.total.attempts))),
        ints("connections_total", &outcome(|o| Some(o.total.connections))),
        ints("target_requests", &testimony(|t| Some(t.requests))),
        ints("target_connections", &testimony(|t| Some(t.connections))),
        times("p50_ns", &|r| r.latency[0]),
        times("p90_ns", &|r| r.latency[1]),
        times("p99_ns", &|r| r.latency[2]),
        times("p999_ns", &|r| r.latency[3]),
        times("max_ns", &|r| r.max),
        floats("client_cpu_us_per_good", &client_cpu_us_per_good),
        floats(
            "target_cpu_us_per_request",
            &testimony(|t| cpu_us_per(t.cpu_ns, t.requests)),
        ),
        peaks("client_rss_peak_kib", metric::CLIENT_RSS_PEAK),
        ints("time_wait_start", &time_wait(|w| Some(w.start))),
        peaks("time_wait_peak", metric::TIME_WAIT),
        ints("time_wait_client", &time_wait(|w| w.client)),
        ints("time_wait_target", &time_wait(|w| w.target)),
        texts("lab_mode", &|t| t.lab_mode.clone()),
        ints("order", &|t| Some(u64::from(t.order))),
        texts("series_source", &|t| series_source(t).map(str::to_owned)),
        times("connect_p50_ns", &|r| r.connect[0]),
        times("connect_p99_ns", &|r| r.connect[1]),
        texts("started", &|t| Some(t.started.clone())),
    ]
}

/// Why each trial is as it is.
fn explained(whys: &[Why]) -> Vec<Column> {
    let texts = |name: &str, of: &dyn Fn(&Why) -> Option<String>| {
        Column::new(name.into(), whys.iter().map(of).collect::<Vec<_>>())
    };
    let floats = |name: &str, of: &dyn Fn(&Why) -> Option<f64>| {
        Column::new(name.into(), whys.iter().map(of).collect::<Vec<_>>())
    };
    vec![
        texts("verdict", &|w| Some(w.verdict.as_ref()?.name())),
        texts("evidence", &|w| Some(w.verdict.as_ref()?.evidence())),
        texts("remedy", &|w| Some(w.verdict.as_ref()?.remedy())),
        floats("ceiling_per_s", &|w| Some(w.ceiling.as_ref()?.per_s)),
        texts("ceiling_kind", &|w| {
            Some(w.ceiling.as_ref()?.kind.to_owned())
        }),
        floats("early_per_s", &|w| w.early_per_s),
        floats("sustained_per_s", &|w| w.sustained_per_s),
        floats("unexplained_time", &|w| w.unexplained_time),
        texts("ceiling_from", &|w| Some(w.ceiling.as_ref()?.from.clone())),
    ]
}

fn outcome<T>(of: fn(&Outcome) -> Option<T>) -> impl Fn(&Trial) -> Option<T> {
    move |t| of(t.outcome.as_ref()?)
}

fn testimony<T>(of: fn(&Testimony) -> Option<T>) -> impl Fn(&Trial) -> Option<T> {
    move |t| of(t.testimony.as_ref()?)
}

fn time_wait(of: fn(&TimeWait) -> Option<u64>) -> impl Fn(&Trial) -> Option<u64> {
    move |t| of(t.time_wait.as_ref()?)
}

fn good_per_s(o: &Outcome) -> Option<f64> {
    let window = o.window_end_ns.saturating_sub(o.window_start_ns);
    (window > 0).then(|| o.window.good as f64 / (window as f64 / 1e9))
}

/// CPU from the first sample to the last, over the good requests from `go` to exit: both span the warm-up
/// and the requests in flight at the end.
fn client_cpu_us_per_good(trial: &Trial) -> Option<f64> {
    let samples: &SampleSeries = trial.samples.as_ref()?;
    let good = trial.outcome.as_ref()?.total.good;
    cpu_us_per(growth(samples, metric::CLIENT_CPU)?, good)
}

/// Where the course of a trial comes from.
fn series_source(trial: &Trial) -> Option<&'static str> {
    let target = trial.testimony.as_ref();
    if target.is_some_and(|t| !t.series.responses.is_empty()) {
        return Some(timeline::TARGET);
    }
    let client = trial.outcome.as_ref()?;
    (!client.series.is_empty()).then_some(timeline::CLIENT)
}

//! The course of a trial, and what was sampled of it, within its window.

use yieldpoint_record::Trial;
use yieldpoint_terms::SampleSeries;

use super::phases::Slots;

/// The course of the window: the target's slots, or the client's seconds where only it testifies.
pub(super) fn slots(trial: &Trial) -> Slots {
    of_series(trial, |t| &t.series.responses)
}

/// Connections instead of responses, in the same slots.
pub(super) fn connections(trial: &Trial) -> Slots {
    of_series(trial, |t| &t.series.connections)
}

fn of_series(trial: &Trial, of: fn(&yieldpoint_protocol::Testimony) -> &Vec<u64>) -> Slots {
    const SECOND: u64 = 1_000_000_000;
    let Some(outcome) = &trial.outcome else {
        return Slots::default();
    };
    let go = trial.start_at_ns.unwrap_or(outcome.window_start_ns);
    let ms = |ns: u64| ns.saturating_sub(go) / 1_000_000;
    let window = outcome
        .window_end_ns
        .saturating_sub(outcome.window_start_ns);
    let series = trial
        .testimony
        .as_ref()
        .filter(|t| t.series.slot_ns > 0 && !of(t).is_empty());
    let Some(t) = series else {
        // The last second may be cut short, which would look like a fall.
        let whole = usize::try_from(window / SECOND).unwrap_or(usize::MAX);
        let seconds = &outcome.series[..outcome.series.len().min(whole)];
        return Slots {
            start_ms: ms(outcome.window_start_ns),
            slot_ms: 1_000,
            good: seconds.iter().map(|s| s.good).collect(),
            errors: seconds.iter().map(|s| s.errors as f64).collect(),
        };
    };
    let slot = t.series.slot_ns;
    // Whole slots of the window: the part of one at its ends would look like a fall.
    let first = outcome
        .window_start_ns
        .saturating_sub(t.series.start_ns)
        .div_ceil(slot);
    let last = outcome.window_end_ns.saturating_sub(t.series.start_ns) / slot;
    let at = |i: u64| usize::try_from(i).unwrap_or(usize::MAX).min(of(t).len());
    let (first, last) = (at(first), at(last.max(first)));
    let start = t.series.start_ns.saturating_add(slot * first as u64);
    let per_second = slot as f64 / SECOND as f64;
    let errors = (first..last).map(|i| {
        let middle = t.series.start_ns + slot * i as u64 + slot / 2;
        let second = middle.saturating_sub(outcome.window_start_ns) / SECOND;
        let second = usize::try_from(second)
            .ok()
            .and_then(|s| outcome.series.get(s));
        second.map_or(0.0, |s| s.errors as f64 * per_second)
    });
    Slots {
        start_ms: ms(start),
        slot_ms: slot / 1_000_000,
        errors: errors.collect(),
        good: of(t)[first..last].to_vec(),
    }
}

/// The samples of a window.
pub(super) struct Sampled<'a> {
    pub samples: Option<&'a SampleSeries>,
    pub from: u64,
    pub to: u64,
}

impl Sampled<'_> {
    fn rows(&self, metric: &str) -> impl Iterator<Item = (u64, i64)> {
        let column = self
            .samples
            .and_then(|s| s.columns.get(metric))
            .map_or(&[][..], |c| c);
        let times = self.samples.map_or(&[][..], |s| &s.t_ns);
        times
            .iter()
            .zip(column)
            .filter_map(|(t, v)| Some((*t, (*v)?)))
    }

    pub fn peak(&self, metric: &str) -> Option<f64> {
        self.rows(metric)
            .map(|(_, v)| v as f64)
            .max_by(f64::total_cmp)
    }

    /// When a metric first is as asked, ns.
    pub fn first(&self, metric: &str, is: impl Fn(i64) -> bool) -> Option<u64> {
        self.rows(metric).find(|(_, v)| is(*v)).map(|(t, _)| t)
    }

    /// A running total at a moment, between two samples in proportion.
    pub fn at(&self, metric: &str, ns: u64) -> Option<f64> {
        let mut before: Option<(u64, i64)> = None;
        for (t, v) in self.rows(metric) {
            if t >= ns {
                let Some((t0, v0)) = before else {
                    return Some(v as f64);
                };
                let share = (ns - t0) as f64 / (t - t0).max(1) as f64;
                return Some(v0 as f64 + share * (v - v0) as f64);
            }
            before = Some((t, v));
        }
        before.map(|(_, v)| v as f64)
    }

    /// How much a running total grew within the window.
    pub fn growth(&self, metric: &str) -> Option<f64> {
        self.rows(metric).nth(1)?;
        Some(self.at(metric, self.to)? - self.at(metric, self.from)?).filter(|g| *g >= 0.0)
    }

    /// How much it grew over all samples: what happened at the edges of the window counts too.
    pub fn whole_growth(&self, metric: &str) -> Option<f64> {
        let mut rows = self.rows(metric);
        let (_, first) = rows.next()?;
        let (_, last) = rows.last()?;
        Some((last - first) as f64).filter(|g| *g >= 0.0)
    }
}

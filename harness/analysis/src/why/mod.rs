//! Why throughput is what it is: evidence → phases, ceilings → verdict.
//!
//! Pure functions on plain structs, without Polars: only `evidence.rs`, with `asked.rs` and `series.rs`, reads a trial.
//! A bound never comes from the trial it judges, and a verdict never says more than its evidence.

mod asked;
mod ceilings;
mod evidence;
mod failures;
mod loads;
mod memory;
mod phases;
mod ports;
mod reference;
mod search;
mod series;
mod verdict;

use yieldpoint_record::{Manifest, Trial};

pub(crate) use ceilings::{Ceiling, Known};
pub(crate) use evidence::{Evidence, Times};
pub(crate) use phases::Phase;
pub(crate) use reference::Reference;
pub(crate) use verdict::Verdict;

/// What is said of one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Why {
    /// what bound it; `None` where it was not measured
    pub verdict: Option<Verdict>,
    /// the least bound
    pub ceiling: Option<Ceiling>,
    /// its course
    pub phases: Vec<Phase>,
    /// good requests per second at first
    pub early_per_s: Option<f64>,
    /// good requests per second that last
    pub sustained_per_s: Option<f64>,
    /// share of the users' time that is not response time
    pub unexplained_time: Option<f64>,
}

/// Says of every trial why it is as it is, and what the reference client reached; `times` are those of the
/// trials' histograms.
pub(crate) fn explain(
    manifest: &Manifest,
    trials: &[Trial],
    times: &[Times],
) -> (Vec<Why>, Vec<Reference>) {
    let evidence: Vec<Option<Evidence>> = trials
        .iter()
        .zip(times)
        .map(|(trial, times)| Evidence::of(manifest, trial, times))
        .collect();
    let known = Known::of(evidence.iter().flatten());
    let one = |(trial, e): (&Trial, Option<Evidence>)| {
        let Some(e) = e else {
            // A trial that was not measured has no evidence, but its error may name the cause itself.
            return Why {
                verdict: memory::client_memory(trial).map(Verdict::of),
                ..Why::default()
            };
        };
        let ceilings = ceilings::ceilings(&e, &known);
        let verdict = verdict::verdict(&e, &ceilings);
        Why {
            ceiling: ceilings.into_iter().next(),
            verdict: Some(verdict),
            unexplained_time: e.unexplained_time(),
            early_per_s: e.course.early_per_s,
            sustained_per_s: e.course.sustained_per_s,
            phases: e.course.phases,
        }
    };
    let whys = trials.iter().zip(evidence).map(one).collect();
    (whys, known.references())
}

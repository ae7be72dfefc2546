//! Verdicts against injected causes, and the table `confusion`.
//!
//! A matrix with a bundle axis `injected` breaks things on purpose. Its labels say what was injected and
//! which draw of parameters it is: `client_cpu-1`, `client_cpu+target_latency-3`.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::{Column, DataFrame};
use yieldpoint_record::{Manifest, Role, Trial};
use yieldpoint_terms::Value;

use crate::trials::value;
use crate::values::int;
use crate::why::Why;

/// The axis whose labels are causes.
pub(crate) const AXIS: &str = "injected";
/// The verdict that decides nothing.
pub(crate) const UNEXPLAINED: &str = "unexplained";

/// Trials of one injection and one verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// causes in alphabetical order, joined by a plus sign
    pub injected: String,
    /// causes in alphabetical order, joined by a comma; `None`: the trial was not measured
    pub verdict: Option<String>,
    pub trials: u64,
}

/// What a verdict is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Worth {
    /// exactly the injected causes
    Right,
    /// some of the injected causes and no other
    Incomplete,
    /// nothing is decided
    Unexplained,
    /// a cause that was not injected
    Wrong,
}

impl Count {
    /// `None` where the trial was not measured.
    pub fn worth(&self) -> Option<Worth> {
        let injected: BTreeSet<&str> = self.injected.split('+').collect();
        let said: BTreeSet<&str> = self.verdict.as_deref()?.split(',').collect();
        Some(if said == injected {
            Worth::Right
        } else if said.contains(UNEXPLAINED) {
            Worth::Unexplained
        } else if said.is_subset(&injected) {
            Worth::Incomplete
        } else {
            Worth::Wrong
        })
    }
}

/// Counts the cells of a run by what was injected and what was said, in alphabetical order; nothing of a run
/// that injects nothing. `whys` are those of the same trials.
pub(crate) fn count(manifest: &Manifest, trials: &[Trial], whys: &[Why]) -> Vec<Count> {
    if !manifest.axes.iter().any(|axis| axis.name == AXIS) {
        return Vec::new();
    }
    let mut counts: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for (trial, why) in trials.iter().zip(whys) {
        let Some(Value::Text(label)) = value(trial, AXIS).filter(|_| trial.role == Role::Cell)
        else {
            continue;
        };
        let verdict = why.verdict.as_ref().map(|v| sorted(&v.name(), ','));
        *counts.entry((causes(label), verdict)).or_default() += 1;
    }
    let count = |((injected, verdict), trials)| Count {
        injected,
        verdict,
        trials,
    };
    counts.into_iter().map(count).collect()
}

/// "target_cpu+client_cpu-3" → "client_cpu+target_cpu"
fn causes(label: &str) -> String {
    let numbered = label.rsplit_once('-');
    let drawn = numbered.filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    sorted(drawn.map_or(label, |(causes, _)| causes), '+')
}

fn sorted(joined: &str, by: char) -> String {
    let mut parts: Vec<&str> = joined.split(by).map(str::trim).collect();
    parts.sort_unstable();
    parts.join(&by.to_string())
}

/// Makes the table.
pub(crate) fn table(counts: &[Count]) -> anyhow::Result<DataFrame> {
    let injected: Vec<&str> = counts.iter().map(|c| c.injected.as_str()).collect();
    let verdicts: Vec<Option<&str>> = counts.iter().map(|c| c.verdict.as_deref()).collect();
    let trials: Vec<Option<i64>> = counts.iter().map(|c| int(c.trials)).collect();
    let columns = vec![
        Column::new(AXIS.into(), injected),
        Column::new("verdict".into(), verdicts),
        Column::new("trials".into(), trials),
    ];
    Ok(DataFrame::new(counts.len(), columns)?)
}

/// The counts of a table, as [`table`] made it.
pub(crate) fn counts(table: &DataFrame) -> anyhow::Result<Vec<Count>> {
    let injected = table.column(AXIS)?.str()?.clone();
    let verdicts = table.column("verdict")?.str()?.clone();
    let trials = table.column("trials")?.i64()?.clone();
    let count = |i: usize| Count {
        injected: injected.get(i).unwrap_or_default().to_owned(),
        verdict: verdicts.get(i).map(str::to_owned),
        trials: trials
            .get(i)
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(0),
    };
    Ok((0..table.height()).map(count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_its_causes_and_its_draw() {
        for (label, want) in [
            ("client_cpu-1", "client_cpu"),
            ("target_cpu+client_cpu-12", "client_cpu+target_cpu"), // alphabetical, whatever was written
            ("client_cpu", "client_cpu"),                          // no draw
            ("a-b", "a-b"), // no number: it belongs to the name
            ("a-", "a-"),
        ] {
            assert_eq!(causes(label), want, "{label}");
        }
    }

    #[test]
    fn a_verdict_is_right_incomplete_unexplained_or_wrong() {
        for (injected, verdict, want) in [
            ("a", Some("a"), Some(Worth::Right)),
            ("a+b", Some("a,b"), Some(Worth::Right)),
            ("a+b", Some("b"), Some(Worth::Incomplete)),
            ("a", Some("unexplained"), Some(Worth::Unexplained)),
            ("a", Some("b"), Some(Worth::Wrong)),
            // A cause too many is wrong, although the injected one is named.
            ("a", Some("a,b"), Some(Worth::Wrong)),
            ("a+b", Some("a,c"), Some(Worth::Wrong)),
            // Nothing was injected, and nothing is said: that is right.
            ("unexplained", Some("unexplained"), Some(Worth::Right)),
            ("a", None, None),
        ] {
            let count = Count {
                injected: injected.into(),
                verdict: verdict.map(str::to_owned),
                trials: 1,
            };
            assert_eq!(count.worth(), want, "{injected} {verdict:?}");
        }
    }
}

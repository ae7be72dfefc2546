//! What this machine and this user allow: descriptors, labs, CPUs.

use std::collections::{BTreeMap, BTreeSet};

use yieldpoint_lab::{CpuSet, Network, default_split, try_up};

use super::PlannedCell;
use crate::Programs;

/// Descriptors a program needs beside its connections.
pub(super) const SPARE_DESCRIPTORS: u64 = 64;

/// Fewer descriptors than a cell needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Few {
    /// `lab.nofile` asks for it: whoever sets it wants to see what happens
    Asked,
    /// nobody asked for it, or it cannot be had
    Refused(String),
}

pub(super) fn too_few_descriptors(users: u64, asked: Option<u64>, hard: u64) -> Option<Few> {
    if let Some(asked) = asked.filter(|a| *a > hard) {
        return Some(Few::Refused(format!(
            "lab.nofile = {asked} is above this user's hard limit of {hard}; lower it, or raise the limit (`ulimit -Hn`)"
        )));
    }
    let limit = asked.unwrap_or(hard);
    let needed = users + SPARE_DESCRIPTORS;
    if needed <= limit {
        return None;
    }
    Some(match asked {
        Some(_) => Few::Asked,
        None => Few::Refused(format!(
            "{users} virtual users need {needed} descriptors, a process may open {limit}; use fewer threads × users_per_thread, or raise the hard limit (`ulimit -Hn`)"
        )),
    })
}

/// Tries every distinct lab once, but for those in which nothing is set.
pub(super) fn refused_labs(cells: &[PlannedCell], programs: &Programs) -> BTreeSet<String> {
    let labs: BTreeMap<_, &PlannedCell> = cells
        .iter()
        .filter(|c| !c.sysctls.is_empty() || c.network != Network::Loopback)
        .map(|c| ((c.mode.as_str(), c.network, &c.sysctls), c))
        .collect();
    let refused = labs.values().map(|c| match try_up(&c.lab(&programs.lab)) {
        Ok(errors) => errors.iter().map(ToString::to_string).collect(),
        Err(e) => vec![format!("lab: {e}")],
    });
    refused.flatten().collect()
}

/// CPUs this process may use.
#[must_use]
pub fn online_cpus() -> CpuSet {
    // The call fails only for a process that does not exist; then the first CPU does.
    CpuSet::of_this_process().unwrap_or_else(|_| default_split(&[]).2)
}

pub(super) fn hard_limit() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_before_the_run() {
        // each row: users of a process, lab.nofile, hard limit, refused, part of the text
        let table = [
            (100, None, 1_024, None),
            (1_000, None, 1_024, Some((true, "1064"))), // nobody asked for so few
            (10, Some(2_000), 1_024, Some((true, "hard limit of 1024"))), // cannot be had
            (10, Some(512), 1_024, None),
            (10, Some(32), 1_024, Some((false, ""))), // asked for: an experiment
        ];
        for (users, asked, hard, want) in table {
            let got = too_few_descriptors(users, asked, hard);
            let got = got.map(|few| match few {
                Few::Refused(why) => (true, why),
                Few::Asked => (false, String::new()),
            });
            assert_eq!(got.is_some(), want.is_some(), "{users} {asked:?}: {got:?}");
            let Some(((refused, why), (want, part))) = got.zip(want) else {
                continue;
            };
            assert_eq!(refused, want, "{why}");
            assert!(why.contains(part), "{why}");
        }
    }
}

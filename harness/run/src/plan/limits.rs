//! What this machine and this user allow: descriptors, labs, CPUs.

use std::collections::{BTreeMap, BTreeSet};

use yieldpoint_lab::{CpuSet, Network, default_split, try_up};

use super::PlannedCell;
use crate::Programs;

/// Descriptors a program needs beside its connections.
pub(super) const SPARE_DESCRIPTORS: u64 = 64;

pub(super) fn too_few_descriptors(users: u64, asked: Option<u64>, hard: u64) -> Option<String> {
    if let Some(asked) = asked.filter(|a| *a > hard) {
        return Some(format!(
            "lab.nofile = {asked} is above this user's hard limit of {hard}; lower it, or raise the limit (`ulimit -Hn`)"
        ));
    }
    let limit = asked.unwrap_or(hard);
    (users + SPARE_DESCRIPTORS > limit).then(|| {
        format!(
            "{users} virtual users need {} descriptors, a process may open {limit}; use fewer threads × users_per_thread, or raise lab.nofile (hard limit {hard})",
            users + SPARE_DESCRIPTORS
        )
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
        assert_eq!(too_few_descriptors(100, None, 1024), None);
        assert!(too_few_descriptors(1_000, None, 1024).is_some_and(|e| e.contains("1064")));
        assert!(
            too_few_descriptors(10, Some(2_000), 1024).is_some_and(|e| e.contains("hard limit"))
        );
        assert_eq!(too_few_descriptors(10, Some(512), 1024), None);
    }
}

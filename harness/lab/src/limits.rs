//! Limits of descriptors, for the plan.

use rustix::process::{Resource, getrlimit};

/// The hard limit of open descriptors: the most that `lab.nofile` can be, and its default.
/// `None`: unlimited.
#[must_use]
pub fn hard_nofile() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

//! Readers of /proc and netlink, and the thread that takes a row of samples every period.
//!
//! Parsers are pure functions of bytes; readers hold their files open and allocate nothing per row.

mod cgroup;
mod diag;
mod diag_wire;
#[doc(hidden)]
pub mod fuzz;
mod machine;
mod metrics;
mod net;
mod pace;
mod proc_file;
mod process;
mod readers;
mod sampler;
mod stack_path;
mod task_dir;
mod text;
mod threads;
mod tree;

#[cfg(test)]
mod allocations;

pub use diag::{TimeWaitSplit, open_sock_diag, time_wait_split};
pub use metrics::METRICS;
pub use net::time_wait_count;
pub use readers::{Subject, TargetNet};
pub use sampler::{Sampler, SamplerGone};

//! Drives trials and checks them: lab up, target up, client up, go, samples, outcome, checks, one journal line.
//!
//! Histograms stay opaque here; what happens is told to an [`Observer`], what is measured to the journal.

mod catalog;
mod checks;
mod compare;
mod describe;
mod disturb;
mod flags;
mod logs;
mod machine;
mod peer;
mod plan;
mod programs;
mod resume;
mod runner;
mod schedule;
mod searches;
mod steps;
mod trial;

pub use catalog::catalog;
pub use checks::{check_ends, check_outcome};
pub use compare::{ALPHA, Compared, Comparison, LOOKS};
pub use describe::describe;
pub use machine::machine;
pub use plan::{Auto, LabChoice, Plan, PlanError, PlannedCell, Refusals, online_cpus, plan};
pub use programs::{Program, ProgramError, Programs};
pub use runner::{Event, Live, Observer, Run, RunError, Summary, resume, run};
pub use schedule::{Extent, Schedule, Slot, good_per_s};

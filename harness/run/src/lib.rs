//! Drives trials and checks them: lab up, target up, client up, go, samples, outcome, checks, one journal line.
//!
//! Histograms stay opaque here; what happens is told to an [`Observer`], what is measured to the journal.

mod catalog;
mod checks;
mod describe;
mod flags;
mod logs;
mod machine;
mod peer;
mod plan;
mod programs;
mod resume;
mod runner;
mod steps;
mod trial;

pub use catalog::catalog;
pub use checks::{check_ends, check_outcome};
pub use describe::describe;
pub use machine::machine;
pub use plan::{LabChoice, Plan, PlanError, PlannedCell, Refusals, online_cpus, plan};
pub use programs::{Program, ProgramError, Programs};
pub use runner::{Event, Live, Observer, Run, RunError, Slot, Summary, order, resume, run};

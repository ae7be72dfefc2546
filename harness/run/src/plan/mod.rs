//! From a matrix to trials that can be run: everything that can be known before the first one is.

mod cell;
mod jobs;
mod limits;
mod remarks;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use yieldpoint_lab::{CpuSet, LabSpec, Mode, Network};
use yieldpoint_matrix::{Cell, Matrix};
use yieldpoint_protocol::Job;
use yieldpoint_terms::{Knob, Knobs, Nanos};

use crate::{Program, Programs};
use cell::Planner;
pub use limits::online_cpus;

/// What a trial costs beside its window, for the estimate of the plan.
const OVERHEAD_NS: u64 = 250_000_000;

/// What `lab.mode = "auto"` means here.
#[derive(Clone, Debug)]
pub struct LabChoice {
    /// the mode
    pub mode: Mode,
    /// why not private, if it is not; with the way to allow it
    pub why: Option<String>,
}

/// Addresses beyond loopback that the user allows explicitly.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// allowed addresses
    pub allow: Vec<IpAddr>,
}

/// A cell with everything a trial needs.
#[derive(Clone, Debug)]
pub struct PlannedCell {
    /// the cell
    pub cell: Cell,
    /// why the client cannot do it, if it cannot
    pub unsupported: Option<String>,
    /// the client
    pub client: Program,
    /// its knobs; the URL is added when the target listens
    pub client_knobs: Knobs,
    /// the target and its job; `None`: a server of the user's under `url`
    pub target: Option<(Program, Job)>,
    /// private or host
    pub mode: Mode,
    /// what lies between client and target
    pub network: Network,
    /// sysctls without their prefix
    pub sysctls: Vec<(String, String)>,
    /// client processes, each with the whole job; 1 or more
    pub processes: u64,
    /// limit of descriptors of client and target
    pub nofile: Option<u64>,
    /// CPUs of the client
    pub client_cpus: CpuSet,
    /// CPUs of the target
    pub target_cpus: CpuSet,
    /// warm-up + window
    pub load: Nanos,
    /// the window alone
    pub window: Nanos,
    /// how long requests in flight may take after it
    pub grace: Nanos,
}

impl PlannedCell {
    /// The lab of its trials; `program`: the lab program.
    #[must_use]
    pub fn lab(&self, program: &Path) -> LabSpec {
        LabSpec {
            sysctls: self.sysctls.clone(),
            network: self.network,
            ..LabSpec::new(self.mode, program)
        }
    }
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// the matrix
    pub matrix: Matrix,
    /// its cells
    pub cells: Vec<PlannedCell>,
    /// indices of cells, one list a round, in the order of trials; unsupported cells are in none
    pub rounds: Vec<Vec<usize>>,
    /// remarks that stay true of the results
    pub notes: Vec<String>,
    /// remarks for whoever plans; the results say it themselves
    pub advice: Vec<String>,
    /// time of all windows and what stands between them, estimated
    pub expected: Nanos,
    /// the lab
    pub lab: LabChoice,
}

impl Plan {
    /// Trials that will be run.
    #[must_use]
    pub fn trials(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }
}

/// Everything that keeps a plan from being run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct PlanError(pub Vec<String>);

/// Plans. `common` are the knobs of every client.
pub fn plan(
    matrix: Matrix,
    common: &[Knob],
    programs: &Programs,
    lab: LabChoice,
    refusals: &Refusals,
) -> Result<Plan, PlanError> {
    let mut errors = BTreeSet::new();
    let mut cells = Vec::new();
    let planner = Planner {
        common,
        programs,
        lab: &lab,
        refusals,
        cpus: online_cpus(),
    };
    for cell in &matrix.cells {
        match planner.cell(cell) {
            Ok(planned) => cells.push(planned),
            Err(why) => errors.extend(why),
        }
    }
    errors.extend(limits::refused_labs(&cells, programs));
    if errors.is_empty() && cells.iter().all(|c| c.unsupported.is_some()) {
        let why: BTreeSet<_> = cells.iter().filter_map(|c| c.unsupported.clone()).collect();
        errors.insert(format!(
            "no cell is left that its client can do: {}",
            Vec::from_iter(why).join("; ")
        ));
    }
    if !errors.is_empty() {
        return Err(PlanError(errors.into_iter().collect()));
    }
    let can = |i: &usize| cells[*i].unsupported.is_none();
    let rounds: Vec<Vec<usize>> = matrix
        .rounds()
        .into_iter()
        .map(|r| r.into_iter().filter(can).collect())
        .collect();
    let cost = |i: &usize| cells[*i].load.0 + OVERHEAD_NS;
    let expected = Nanos(rounds.iter().flatten().map(cost).sum());
    let mut notes = matrix.notes.clone();
    notes.extend(remarks::remarks(&cells, &lab));
    Ok(Plan {
        advice: remarks::advice(&cells),
        matrix,
        cells,
        rounds,
        notes,
        expected,
        lab,
    })
}

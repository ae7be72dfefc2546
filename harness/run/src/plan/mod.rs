//! From a matrix to trials that can be run: everything that can be known before the first one is.

mod ceilings;
mod cell;
mod controls;
#[cfg(test)]
pub(crate) mod fake;
mod jobs;
mod limits;
mod remarks;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use yieldpoint_lab::{CpuSet, LabSpec, Mode, Network};
use yieldpoint_matrix::{Cell, Matrix};
use yieldpoint_protocol::Job;
use yieldpoint_record::Role;
use yieldpoint_statistics::Sequential;
use yieldpoint_terms::{Knob, Knobs, Nanos, Rounds, Value};

use crate::compare::{ALPHA, Comparison, LOOKS, comparisons};
use crate::schedule::{Extent, Schedule, Slot};
use crate::searches::Searches;
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
    /// limit of memory of each client process, MiB
    pub memory_mib: Option<u64>,
    /// busy processes on each CPU of client and target
    pub disturb: u64,
    /// whether `lab.nofile` leaves a process fewer descriptors than its users need
    pub few_descriptors: bool,
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

/// What ends a run of `rounds = "auto"`.
#[derive(Clone, Debug)]
pub struct Auto {
    /// the axis that is compared
    pub axis: String,
    /// its first value, with which the others are compared
    pub base: Value,
    /// when a comparison is decided
    pub rule: Sequential,
    /// what is compared; not empty
    pub comparisons: Vec<Comparison>,
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// the matrix
    pub matrix: Matrix,
    /// its cells
    pub cells: Vec<PlannedCell>,
    /// indices of the cells that have an A/A twin
    pub controls: Vec<usize>,
    /// cells of the reference client that tell what the targets can do
    pub ceilings: Vec<PlannedCell>,
    /// what ends the run, if not a number of rounds
    pub auto: Option<Auto>,
    /// remarks that stay true of the results
    pub notes: Vec<String>,
    /// remarks for whoever plans; the results say it themselves
    pub advice: Vec<String>,
    /// the lab
    pub lab: LabChoice,
}

impl Plan {
    /// Indices of the cells that their clients can do.
    #[must_use]
    pub fn runnable(&self) -> Vec<usize> {
        runnable(&self.cells)
    }

    /// The cell of a place in the order.
    #[must_use]
    pub fn cell(&self, slot: Slot) -> &PlannedCell {
        self.of(slot.role, slot.cell)
    }

    fn of(&self, role: Role, cell: usize) -> &PlannedCell {
        match role {
            Role::Cell | Role::Control => &self.cells[cell],
            Role::Ceiling => &self.ceilings[cell],
        }
    }

    /// Estimated time of a trial, ns.
    pub(crate) fn cost(&self, role: Role, cell: usize) -> u64 {
        self.of(role, cell).load.0 + OVERHEAD_NS
    }

    /// Of a run with `find = "breakpoint"`: trials of cells at most, and those of the whole grid.
    #[must_use]
    pub fn searched(&self) -> Option<(usize, usize)> {
        let (most, _) = Searches::new(self)?.most(self);
        match self.matrix.run.rounds {
            Rounds::Fixed(rounds) => Some((most, self.runnable().len() * rounds as usize)),
            Rounds::Auto => None,
        }
    }

    /// How much there is to run.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Schedule::new(self).extent()
    }
}

fn runnable(cells: &[PlannedCell]) -> Vec<usize> {
    let can = cells.iter().enumerate();
    let can = can.filter(|(_, c)| c.unsupported.is_none());
    can.map(|(i, _)| i).collect()
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
    let can_run = runnable(&cells);
    let auto = auto(&matrix, &can_run).map_err(|e| PlanError(vec![e]))?;
    let (ceilings, of_ceilings) = ceilings::ceilings(&matrix, &cells, &planner);
    let mut notes = matrix.notes.clone();
    notes.extend(remarks::remarks(&cells, &lab));
    notes.extend(of_ceilings);
    let controls = match matrix.run.controls {
        true => controls::controls(&can_run),
        false => {
            notes.push("no controls: no noise floor will be known".to_owned());
            vec![]
        }
    };
    let plan = Plan {
        advice: remarks::advice(&cells),
        matrix,
        cells,
        controls,
        ceilings,
        auto,
        notes,
        lab,
    };
    match Searches::refusal(&plan) {
        Some(why) => Err(PlanError(vec![why])),
        None => Ok(plan),
    }
}

/// What ends the run, where it is not a number of rounds.
fn auto(matrix: &Matrix, can_run: &[usize]) -> Result<Option<Auto>, String> {
    let compare = matrix.run.compare.as_ref();
    let compare = compare.filter(|_| matrix.run.rounds == Rounds::Auto);
    let axis = compare.and_then(|name| matrix.axes.iter().find(|a| a.name == *name));
    let Some((axis, base)) = axis.and_then(|a| Some((a, a.values.first()?.clone()))) else {
        return Ok(None);
    };
    let comparisons = comparisons(axis, &matrix.cells, can_run);
    if comparisons.is_empty() {
        return Err(format!(
            "rounds = \"auto\": expected two cells that differ in \"{}\" alone, one of them with {base}, got none that can be run; compare another axis (--compare), or give a number of rounds",
            axis.name
        ));
    }
    let looks = LOOKS.map(|l| l as usize);
    Ok(Some(Auto {
        axis: axis.name.clone(),
        base,
        rule: Sequential::new(&looks, ALPHA).map_err(|e| e.to_string())?,
        comparisons,
    }))
}

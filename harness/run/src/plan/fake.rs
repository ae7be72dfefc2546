//! Plans without programs, for tests of what is pure.

use yieldpoint_lab::{CpuSet, Mode, Network};
use yieldpoint_matrix::{Cell, Matrix, RunSettings};
use yieldpoint_protocol::{Hello, Job, Role, VERSION};
use yieldpoint_terms::{Knobs, Nanos, Value};

use super::{LabChoice, Plan, PlannedCell};
use crate::Program;

/// A matrix "m" of an axis `a` with the values 0, 1, … of as many cells.
pub fn matrix(cells: usize, run: RunSettings) -> Matrix {
    let values: Vec<Value> = (0..cells)
        .map(|i| Value::Int(i64::try_from(i).unwrap()))
        .collect();
    let cells = values.iter().map(|value| Cell {
        id: format!("m/a={value}"),
        coordinates: vec![("a".into(), value.clone())],
        knobs: Knobs::default(),
    });
    Matrix {
        name: "m".into(),
        question: String::new(),
        source: None,
        analysis: None,
        run,
        cells: cells.collect(),
        axes: vec![yieldpoint_matrix::Axis {
            name: "a".into(),
            values,
            bundle: false,
            knobs: vec!["a".into()],
        }],
        claims: vec![],
        clients: [].into(),
        set_names: vec![],
        text: String::new(),
        notes: vec![],
    }
}

/// A planned cell; `can`: its client can do it.
pub fn planned(cell: &Cell, can: bool) -> PlannedCell {
    let program = |role| Program {
        name: "x".into(),
        command: vec![],
        hello: Hello {
            protocol: VERSION,
            role,
            name: "x".into(),
            version: String::new(),
            library: String::new(),
            about: String::new(),
            honours: vec![],
            limits: [].into(),
            knobs: vec![],
        },
    };
    let job = Job {
        protocol: VERSION,
        knobs: Knobs::default(),
    };
    PlannedCell {
        cell: cell.clone(),
        unsupported: (!can).then(|| "it cannot".into()),
        client: program(Role::Client),
        client_knobs: Knobs::default(),
        target: Some((program(Role::Target), job)),
        mode: Mode::Private,
        network: Network::Loopback,
        sysctls: vec![],
        processes: 1,
        nofile: None,
        memory_mib: None,
        disturb: 0,
        few_descriptors: false,
        client_cpus: CpuSet::new([0]).unwrap(),
        target_cpus: CpuSet::new([0]).unwrap(),
        load: Nanos::from_secs(1),
        window: Nanos::from_secs(1),
        grace: Nanos(0),
    }
}

/// A plan of it; `cannot`: cells that their client cannot do. One control and one ceiling where they are wanted.
pub fn plan(matrix: Matrix, cannot: &[usize]) -> Plan {
    let cells = matrix.cells.iter().enumerate();
    let cells: Vec<_> = cells
        .map(|(i, c)| planned(c, !cannot.contains(&i)))
        .collect();
    let can_run = super::runnable(&cells);
    let ceiling = Cell {
        id: "m/ceiling=reference".into(),
        coordinates: vec![],
        knobs: Knobs::default(),
    };
    Plan {
        auto: super::auto(&matrix, &can_run).unwrap(),
        controls: if matrix.run.controls {
            super::controls::controls(&can_run)
        } else {
            vec![]
        },
        ceilings: if matrix.run.ceilings {
            vec![planned(&ceiling, true)]
        } else {
            vec![]
        },
        matrix,
        cells,
        notes: vec![],
        advice: vec![],
        lab: LabChoice {
            mode: Mode::Private,
            why: None,
        },
    }
}

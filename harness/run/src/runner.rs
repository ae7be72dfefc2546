//! All trials of a plan, round by round, each into the journal before the next begins.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::SystemTime;

use yieldpoint_lab::Mode;
use yieldpoint_record::{
    AxisFact, FORMAT, Journal, LabFact, Manifest, MetricFact, ProgramFact, RecordError, Role,
    RunFolder, Status, Trial,
};
use yieldpoint_sample::METRICS;
use yieldpoint_terms::{Behaviour, Catalog, Nanos};

use crate::plan::Plan;
use crate::trial::{Place, Surroundings, trial};
use crate::{Programs, machine};

/// Why a run could not go on. A failed trial is a row and no reason.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// results could not be written
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// The last second of a trial, as the target tells it.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// requests served in the last second
    pub requests_per_s: u64,
    /// connections accepted since `go`
    pub connections: u64,
}

/// What happens, for whoever watches.
#[derive(Debug)]
pub enum Event<'a> {
    /// a trial begins
    Began {
        /// its cell
        cell: &'a str,
        /// from 1
        round: u32,
        /// length of warm-up and window
        load: Nanos,
    },
    /// a second of it went by
    Second(Live),
    /// it ended and is in the journal
    Ended(&'a Trial),
}

/// Whoever watches a run.
pub trait Observer {
    /// Called from the runner's thread, between and (once a second) during trials: must not block.
    fn event(&mut self, event: Event);
}

/// Everything of one run.
pub struct Run<'a> {
    /// what is run
    pub plan: &'a Plan,
    /// the programs
    pub programs: &'a Programs,
    /// the catalog, kept in the manifest
    pub catalog: &'a Catalog,
    /// the command line, kept in the manifest
    pub command: Vec<String>,
    /// the folder in which the run's own folder is made
    pub results: &'a Path,
    /// readable once the user wants to stop
    pub cancel: Option<BorrowedFd<'a>>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Summary {
    /// the run's folder
    pub folder: RunFolder,
    /// rows by status: ok, error, unsupported
    pub rows: [usize; 3],
    /// the user stopped it
    pub interrupted: bool,
}

/// Runs a plan.
pub fn run(run: &Run, observer: &mut dyn Observer) -> Result<Summary, RunError> {
    let started = now();
    let date = started.get(..10).unwrap_or("undated");
    let folder = RunFolder::create(run.results, date, &run.plan.matrix.name)?;
    folder.begin(&manifest(run, &folder, started), &run.plan.matrix.text)?;
    let mut journal = Journal::open(&folder.journal())?;
    let mut summary = Summary {
        folder,
        rows: [0; 3],
        interrupted: false,
    };
    let mut order = 0;

    let mut keep = |row: &Trial, summary: &mut Summary, observer: &mut dyn Observer| {
        journal.append(row)?;
        summary.rows[match row.status {
            Status::Ok => 0,
            Status::Error => 1,
            Status::Unsupported => 2,
        }] += 1;
        observer.event(Event::Ended(row));
        Ok::<(), RecordError>(())
    };
    'run: for (round, cells) in (1..).zip(&run.plan.rounds) {
        // What a client cannot do is a row of every round, too, and costs no time.
        for cell in run.plan.cells.iter().filter(|c| c.unsupported.is_some()) {
            let row = unsupported_row(cell, round, order);
            order += 1;
            keep(&row, &mut summary, observer)?;
        }
        for &i in cells {
            let cell = &run.plan.cells[i];
            observer.event(Event::Began {
                cell: &cell.cell.id,
                round,
                load: cell.load,
            });
            let around = Surroundings {
                lab: &run.programs.lab,
                logs: summary.folder.logs(),
                cancel: run.cancel,
                live: &mut |live| observer.event(Event::Second(live)),
            };
            let place = Place {
                round,
                order,
                role: Role::Cell,
            };
            let Some(row) = trial(cell, place, around, now()) else {
                summary.interrupted = true;
                break 'run;
            };
            order += 1;
            keep(&row, &mut summary, observer)?;
        }
    }
    Ok(summary)
}

fn unsupported_row(cell: &crate::PlannedCell, round: u32, order: u32) -> Trial {
    Trial {
        format: FORMAT,
        cell: cell.cell.id.clone(),
        round,
        role: Role::Cell,
        order,
        coordinates: cell.cell.coordinates.clone(),
        knobs: cell.cell.knobs.clone(),
        status: Status::Unsupported,
        error: cell.unsupported.clone(),
        flags: vec![],
        started: now(),
        start_at_ns: None,
        elapsed_ns: 0,
        lab_mode: None,
        sysctls: [].into(),
        outcome: None,
        testimony: None,
        samples: None,
        time_wait: None,
        checks: vec![],
    }
}

/// UTC, RFC 3339, whole seconds.
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

fn manifest(run: &Run, folder: &RunFolder, started: String) -> Manifest {
    let m = &run.plan.matrix;
    let first = run.plan.cells.iter().find(|c| c.unsupported.is_none());
    Manifest {
        format: FORMAT,
        yieldpoint: env!("CARGO_PKG_VERSION").to_owned(),
        run: folder.name(),
        matrix: m.name.clone(),
        question: m.question.clone(),
        source: m.source.clone(),
        analysis: m.analysis.clone(),
        started,
        command: run.command.clone(),
        seed: m.run.seed,
        rounds: m.run.rounds,
        trials: u32::try_from(run.plan.trials()).unwrap_or(u32::MAX),
        axes: m
            .axes
            .iter()
            .map(|a| AxisFact {
                name: a.name.clone(),
                values: a.values.clone(),
            })
            .collect(),
        set: m.set_names.clone(),
        knobs: run.catalog.iter().cloned().collect(),
        metrics: METRICS
            .iter()
            .map(|metric| MetricFact {
                name: metric.name.to_owned(),
                unit: metric.unit.label().to_owned(),
                counter: metric.behaviour == Behaviour::Counter,
                source: metric.source.to_owned(),
                doc: metric.doc.to_owned(),
            })
            .collect(),
        machine: machine(),
        programs: program_facts(run),
        lab: LabFact {
            mode: first.map_or(Mode::Host, |c| c.mode).to_string(),
            why: run.plan.lab.why.clone(),
            client_cpus: first.map(|c| c.client_cpus.to_string()).unwrap_or_default(),
            target_cpus: first.map(|c| c.target_cpus.to_string()).unwrap_or_default(),
        },
        notes: run.plan.notes.clone(),
    }
}

/// The programs that the plan's cells use, each once, with the hash of what will run.
fn program_facts(run: &Run) -> Vec<ProgramFact> {
    let mut facts: Vec<ProgramFact> = Vec::new();
    let mut add = |role: &str, p: &crate::Program| {
        if facts.iter().any(|f| f.role == role && f.name == p.name) {
            return;
        }
        facts.push(ProgramFact {
            role: role.to_owned(),
            name: p.name.clone(),
            version: p.hello.version.clone(),
            library: p.hello.library.clone(),
            command: p.command.clone(),
            sha256: p.command.first().and_then(|c| sha256(Path::new(c))),
        });
    };
    for cell in &run.plan.cells {
        add("client", &cell.client);
        if let Some((target, _)) = &cell.target {
            add("target", target);
        }
    }
    let lab = &run.programs.lab;
    facts.push(ProgramFact {
        role: "lab".into(),
        name: "lab".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        library: String::new(),
        command: vec![lab.to_string_lossy().into_owned()],
        sha256: sha256(lab),
    });
    facts
}

fn sha256(path: &Path) -> Option<String> {
    use sha2::{Digest, Sha256};
    let bytes = std::fs::read(path).ok()?;
    Some(
        Sha256::digest(bytes)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect(),
    )
}

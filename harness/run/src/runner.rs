//! All trials of a plan, round by round, each into the journal before the next begins.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::SystemTime;

use yieldpoint_lab::Mode;
use yieldpoint_record::{
    Asked, AxisFact, FORMAT, Journal, LabFact, Manifest, MetricFact, ProgramFact, RecordError,
    Resume, Role, RunFolder, SequentialFact, Status, Trial, read_journal,
};
use yieldpoint_sample::METRICS;
use yieldpoint_terms::{Behaviour, Catalog};

use crate::compare::{ALPHA, Compared, LOOKS};
use crate::plan::Plan;
use crate::resume::{differences, replay};
use crate::schedule::{Extent, Schedule, good_per_s};
use crate::trial::{Place, Surroundings, trial};
use crate::{Programs, machine};

/// Why a run could not go on. A failed trial is a row and no reason.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// results could not be written
    #[error(transparent)]
    Record(#[from] RecordError),
    /// what would go on is not what was begun
    #[error(
        "\"{run}\" cannot be resumed, since later trials would not be comparable with earlier ones:\n  {differences}\nput back what has changed, or begin a new run"
    )]
    Changed {
        /// its folder
        run: String,
        /// one a line
        differences: String,
    },
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
        /// why it runs
        role: Role,
        /// from 1
        round: u32,
        /// how much there is in all, as far as that is known by now
        extent: &'a Extent,
    },
    /// a run goes on, first of all
    Resumed {
        /// trials that are in the journal, without those that no client can do
        finished: usize,
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
    /// what was typed, kept in the manifest to plan the same again
    pub asked: Asked,
    /// readable once the user wants to stop
    pub cancel: Option<BorrowedFd<'a>>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Summary {
    /// the run's folder
    pub folder: RunFolder,
    /// rows by status: ok, error, unsupported; those of before a resume included
    pub rows: [usize; 3],
    /// rows that were there before a resume
    pub resumed_at: usize,
    /// the user stopped it
    pub interrupted: bool,
    /// with `rounds = "auto"`, what became of each comparison
    pub compared: Vec<Compared>,
}

impl Summary {
    fn count(&mut self, row: &Trial) {
        self.rows[match row.status {
            Status::Ok => 0,
            Status::Error => 1,
            Status::Unsupported => 2,
        }] += 1;
    }
}

/// Runs a plan in a folder of its own below `results`.
pub fn run(run: &Run, results: &Path, observer: &mut dyn Observer) -> Result<Summary, RunError> {
    let started = now();
    let date = started.get(..10).unwrap_or("undated");
    let folder = RunFolder::create(results, date, &run.plan.matrix.name)?;
    folder.begin(
        &manifest(run, folder.name(), started),
        &run.plan.matrix.text,
    )?;
    let journal = Journal::open(&folder.journal())?;
    go_on(run, folder, journal, Schedule::new(run.plan), &[], observer)
}

/// Goes on with a run that was interrupted: finished trials stay as they are, the others follow in
/// the order in which they would have run. `run` is planned from what the manifest keeps.
pub fn resume(
    run: &Run,
    folder: RunFolder,
    observer: &mut dyn Observer,
) -> Result<Summary, RunError> {
    let started = now();
    // The lock first: what is read from here on does not change under our feet.
    let mut journal = Journal::open(&folder.journal())?;
    let then = folder.manifest()?;
    let now = manifest(run, folder.name(), started.clone());
    let copy = folder.matrix_text()?;
    let mut differences = differences(&then, &now, &copy);
    let (finished, _) = read_journal(&folder.journal())?;
    let mut schedule = Schedule::new(run.plan);
    differences.extend(replay(&mut schedule, run.plan, &finished).err());
    if !differences.is_empty() {
        return Err(RunError::Changed {
            run: folder.path().display().to_string(),
            differences: differences.join("\n  "),
        });
    }
    if schedule.next().is_some() {
        let cut = journal.mend()?;
        folder.note_resume(&Resume {
            format: FORMAT,
            started,
            command: run.command.clone(),
            finished: u32::try_from(finished.len()).unwrap_or(u32::MAX),
            cut,
        })?;
    }
    go_on(run, folder, journal, schedule, &finished, observer)
}

/// Runs what is not finished.
fn go_on(
    run: &Run,
    folder: RunFolder,
    mut journal: Journal,
    mut schedule: Schedule,
    finished: &[Trial],
    observer: &mut dyn Observer,
) -> Result<Summary, RunError> {
    let mut summary = Summary {
        folder,
        rows: [0; 3],
        resumed_at: finished.len(),
        interrupted: false,
        compared: vec![],
    };
    finished.iter().for_each(|row| summary.count(row));
    if !finished.is_empty() {
        let tried = finished.iter().filter(|r| r.status != Status::Unsupported);
        observer.event(Event::Resumed {
            finished: tried.count(),
        });
    }
    // A journal of more rows than 32 bits can count does not fit on a disk.
    let mut order = u32::try_from(finished.len()).unwrap_or(u32::MAX);
    while let Some(slot) = schedule.next() {
        let cell = run.plan.cell(slot);
        let place = Place {
            round: slot.round,
            order,
            role: slot.role,
        };
        let row = if cell.unsupported.is_some() {
            unsupported_row(cell, place)
        } else {
            observer.event(Event::Began {
                cell: &cell.cell.id,
                role: slot.role,
                round: slot.round,
                extent: &schedule.extent(),
            });
            let around = Surroundings {
                lab: &run.programs.lab,
                logs: summary.folder.logs(),
                cancel: run.cancel,
                live: &mut |live| observer.event(Event::Second(live)),
            };
            let Some(row) = trial(cell, place, around, now()) else {
                summary.interrupted = true;
                break;
            };
            row
        };
        journal.append(&row)?;
        summary.count(&row);
        observer.event(Event::Ended(&row));
        schedule.done(good_per_s(&row));
        order += 1;
    }
    summary.compared = schedule.compared();
    Ok(summary)
}

fn unsupported_row(cell: &crate::PlannedCell, place: Place) -> Trial {
    Trial {
        format: FORMAT,
        cell: cell.cell.id.clone(),
        round: place.round,
        role: place.role,
        order: place.order,
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

fn manifest(run: &Run, name: String, started: String) -> Manifest {
    let m = &run.plan.matrix;
    let first = run.plan.cells.iter().find(|c| c.unsupported.is_none());
    let extent = run.plan.extent();
    Manifest {
        format: FORMAT,
        yieldpoint: env!("CARGO_PKG_VERSION").to_owned(),
        run: name,
        matrix: m.name.clone(),
        question: m.question.clone(),
        source: m.source.clone(),
        analysis: m.analysis.clone(),
        started,
        command: run.command.clone(),
        asked: Asked {
            matrix_text: m.text.clone(),
            ..run.asked.clone()
        },
        seed: m.run.seed,
        rounds: *extent.rounds.end(),
        trials: u32::try_from(*extent.trials.end()).unwrap_or(u32::MAX),
        sequential: run.plan.auto.as_ref().map(|auto| SequentialFact {
            axis: auto.axis.clone(),
            base: auto.base.clone(),
            looks: LOOKS.to_vec(),
            alpha: ALPHA,
        }),
        along: m.run.along.clone(),
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
    for cell in run.plan.cells.iter().chain(&run.plan.ceilings) {
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

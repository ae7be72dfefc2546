//! `yieldpoint run MATRIX`

use std::process::ExitCode;

use yieldpoint_run::{Run, run as run_all};

use crate::args::RunArgs;
use crate::installation::prepare;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::verbs::{plan, report};

/// A row was not ok, and --strict was given.
const NOT_OK: u8 = 3;
/// As a shell says of Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs a matrix. The last line of stdout is the run's folder.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let prepared = prepare(&args.matrix)?;
    eprintln!("{}", plan::overview(&prepared.plan));
    let stop = Stop::install()?;
    let mut progress = Progress::new(&prepared.plan);
    let summary = run_all(
        &Run {
            plan: &prepared.plan,
            programs: &prepared.programs,
            catalog: &prepared.catalog,
            command: std::env::args().collect(),
            results: &args.out,
            cancel: Some(stop.fd()),
        },
        &mut progress,
    )?;
    progress.finish();

    let [ok, error, unsupported] = summary.rows;
    if ok + error + unsupported > 0 {
        let done = report::derive(&summary.folder, args.report.as_deref())?;
        report::print(&done);
        println!("\nreport: {}", done.page.display());
    }
    if summary.interrupted {
        eprintln!(
            "interrupted: {} finished trials are kept",
            ok + error + unsupported
        );
    } else if error + unsupported > 0 {
        eprintln!("{ok} rows ok, {error} error, {unsupported} unsupported");
    }
    println!("{}", summary.folder.path().display());
    Ok(
        match (summary.interrupted, args.strict && error + unsupported > 0) {
            (true, _) => INTERRUPTED.into(),
            (false, true) => NOT_OK.into(),
            (false, false) => ExitCode::SUCCESS,
        },
    )
}

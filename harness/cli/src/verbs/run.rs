//! `yieldpoint run MATRIX`, `yieldpoint run --resume RUN`

use std::process::ExitCode;

use anyhow::bail;
use yieldpoint_record::RunFolder;
use yieldpoint_run::{Run, resume, run as run_all};

use crate::args::RunArgs;
use crate::installation::{Wanted, prepare};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::verbs::{plan, report};

/// A row was not ok, and --strict was given.
const NOT_OK: u8 = 3;
/// As a shell says of Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs a matrix, or goes on with a run. The last line of stdout is the run's folder.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let begun = args.resume.as_deref().map(RunFolder::open).transpose()?;
    let wanted = match (&begun, &args.matrix) {
        (Some(folder), _) => Wanted::recorded(folder.manifest()?, folder),
        (None, Some(matrix)) => Wanted::typed(matrix, &args.selection)?,
        (None, None) => bail!("expected a matrix, or --resume with the folder of a run"),
    };
    let prepared = prepare(&wanted)?;
    eprintln!("{}", plan::overview(&prepared.plan));
    let stop = Stop::install()?;
    let mut progress = Progress::new(&prepared.plan);
    let what = Run {
        plan: &prepared.plan,
        programs: &prepared.programs,
        catalog: &prepared.catalog,
        command: std::env::args().collect(),
        asked: wanted.asked,
        cancel: Some(stop.fd()),
    };
    let summary = match begun {
        Some(folder) => {
            report::sweep(&folder, args.report.as_deref());
            resume(&what, folder, &mut progress)
        }
        None => run_all(&what, &args.out, &mut progress),
    };
    progress.finish();
    let summary = summary?;

    let [ok, error, unsupported] = summary.rows;
    if ok + error + unsupported > 0 {
        let done = report::derive(&summary.folder, args.report.as_deref())?;
        report::print(&done);
        println!("\nreport: {}", done.page.display());
    }
    for comparison in &summary.compared {
        eprintln!("{comparison}");
    }
    if summary.interrupted {
        eprintln!(
            "interrupted: {} finished trials are kept; go on with: yieldpoint run --resume {}",
            ok + error + unsupported,
            summary.folder.path().display()
        );
    } else if summary.resumed_at > 0 && summary.resumed_at == ok + error + unsupported {
        eprintln!(
            "nothing to resume: all {} trials had finished",
            summary.resumed_at
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

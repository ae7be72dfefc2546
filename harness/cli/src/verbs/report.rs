//! `yieldpoint report RUN`: journal → tables → charts and page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use yieldpoint_figures::Report;
use yieldpoint_record::{RunFolder, read_journal};

use crate::args::ReportArgs;

/// Writes everything that derives from a run.
pub fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let folder = RunFolder::open(&args.run)?;
    let done = derive(&folder, args.out.as_deref())?;
    print(&done);
    println!("{}", done.page.display());
    Ok(ExitCode::SUCCESS)
}

/// What a run's journal was turned into.
pub struct Derived {
    pub report: Report,
    pub page: PathBuf,
}

/// Tables into the run's folder, charts and page into `out` or `reports/<run>`.
pub fn derive(folder: &RunFolder, out: Option<&Path>) -> anyhow::Result<Derived> {
    let manifest = folder.manifest()?;
    let (trials, cut) = read_journal(&folder.journal())?;
    if cut {
        eprintln!(
            "note: the journal ends in the middle of a line (a crash); that trial is left out"
        );
    }
    let tables = yieldpoint_analysis::tables(&manifest, &trials)?;
    tables.write(&manifest, &trials, &folder.tables())?;
    let report = yieldpoint_analysis::report(&manifest, &trials, &tables)?;
    let out = page_folder(folder, out);
    let written = yieldpoint_report::write(&report, &out)?;
    Ok(Derived {
        report,
        page: written.html,
    })
}

fn page_folder(folder: &RunFolder, out: Option<&Path>) -> PathBuf {
    out.map_or_else(|| Path::new("reports").join(folder.name()), Path::to_owned)
}

/// Removes what a killed process left half written beside tables and report. Their names begin
/// with a dot; what cannot be removed is left.
pub fn sweep(folder: &RunFolder, out: Option<&Path>) {
    let half = |dir: PathBuf, prefix: &str| {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                let path = entry.path();
                let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
            }
        }
    };
    half(folder.tables(), ".");
    half(page_folder(folder, out), ".partial-");
}

/// The table of cells and the findings, as wide as the terminal.
pub fn print(done: &Derived) {
    let (_, width) = console::Term::stdout().size_checked().unwrap_or((0, 120));
    let color = console::colors_enabled();
    print!(
        "{}",
        yieldpoint_analysis::summary(&done.report, width.into(), color)
    );
}

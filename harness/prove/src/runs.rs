//! Starts `yieldpoint` and reads what it leaves.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use yieldpoint_record::{RunFolder, Trial, read_journal};

/// A finished run.
pub struct Finished {
    /// its folder
    pub folder: PathBuf,
    /// its rows, in their order
    pub trials: Vec<Trial>,
}

/// Where the run of a proof's matrix comes from.
#[derive(clap::Args, Debug)]
pub struct Source {
    /// Folder of a run of the proof's matrix; without one, it is run
    #[arg(long, value_name = "RUN")]
    of: Option<PathBuf>,
    /// Folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

impl Source {
    /// Reads the run that was named, or runs the matrix.
    pub fn get(&self, matrix: &str) -> anyhow::Result<Finished> {
        match &self.of {
            Some(folder) => read(folder),
            None => run(matrix.as_ref(), &self.out, &[]),
        }
    }
}

/// Where the programs are: beside this one, or where `YIELDPOINT_PROGRAMS` says.
pub fn program() -> anyhow::Result<PathBuf> {
    let folder = match std::env::var_os("YIELDPOINT_PROGRAMS") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let own = std::env::current_exe()?;
            own.parent()
                .context("the program has no folder")?
                .to_owned()
        }
    };
    let program = folder.join("yieldpoint");
    ensure!(
        program.is_file(),
        "\"{}\": expected the program, got nothing; build with scripts/build",
        program.display()
    );
    Ok(program)
}

/// Runs a matrix below `out` and reads the rows; progress goes where ours goes.
pub fn run(matrix: &Path, out: &Path, arguments: &[&str]) -> anyhow::Result<Finished> {
    let done = Command::new(program()?)
        .arg("run")
        .arg(matrix)
        .arg("--out")
        .arg(out)
        .arg("--report")
        .arg(out.join("report"))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("yieldpoint cannot be started")?;
    let said = String::from_utf8_lossy(&done.stdout);
    ensure!(
        done.status.success(),
        "yieldpoint run {}: {}",
        matrix.display(),
        done.status
    );
    // The last line is the run's folder.
    let folder = said.lines().last().context("yieldpoint said nothing")?;
    read(Path::new(folder))
}

/// Reads a run that is there.
pub fn read(folder: &Path) -> anyhow::Result<Finished> {
    let run = RunFolder::open(folder)?;
    let (trials, _) = read_journal(&run.journal())?;
    Ok(Finished {
        folder: folder.to_owned(),
        trials,
    })
}

/// One row of a table: column → text.
pub type Row = HashMap<String, String>;

/// The rows of one of its tables ("trials", "phases" …).
pub fn table(folder: &Path, name: &str) -> anyhow::Result<Vec<Row>> {
    let path = folder.join("tables").join(format!("{name}.csv"));
    let mut reader = csv::Reader::from_path(&path).with_context(|| path.display().to_string())?;
    let rows: Result<Vec<Row>, _> = reader.deserialize().collect();
    rows.with_context(|| path.display().to_string())
}

/// A number of a row; `None` where the cell is empty.
pub fn number(row: &Row, column: &str) -> Option<f64> {
    row.get(column)?.parse().ok()
}

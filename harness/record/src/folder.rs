//! A run's folder and the names of its files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{FORMAT, Manifest, Resume};

/// Names inside a run's folder: a contract with every reader.
pub mod file {
    /// facts of the run
    pub const MANIFEST: &str = "manifest.json";
    /// the matrix that ran
    pub const MATRIX: &str = "matrix.toml";
    /// the manifest before it is whole; a folder with this one alone is not a run
    pub const MANIFEST_PART: &str = "manifest.json.part";
    /// one line a trial
    pub const JOURNAL: &str = "journal.jsonl";
    /// begin of the names that keep cut last lines of the journal: "journal.cut-1", …
    pub const CUT: &str = "journal.cut-";
    /// one line each time the run was resumed
    pub const RESUMES: &str = "resumes.jsonl";
    /// Parquet and CSV tables, derived from the journal
    pub const TABLES: &str = "tables";
    /// output of every process, capped
    pub const LOGS: &str = "logs";
}

/// What can go wrong with results.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// the disk said no
    #[error("\"{path}\": {why}")]
    Io {
        /// file or folder
        path: PathBuf,
        /// the kernel's reason
        why: io::Error,
    },
    /// there is something else in the file
    #[error("\"{path}\"{}: {why}; expected a file written by yieldpoint, format {FORMAT}", at(.line))]
    Content {
        /// file
        path: PathBuf,
        /// line from 1, if it has lines
        line: Option<usize>,
        /// the parser's reason
        why: String,
    },
    /// another runner writes it
    #[error("\"{path}\" is being written by another runner{}: wait until it has ended, or stop it with Ctrl-C", by(.pid))]
    InUse {
        /// the journal
        path: PathBuf,
        /// the other runner, where the kernel tells
        pid: Option<u32>,
    },
    /// not a run
    #[error("\"{0}\" is not a run: it has no {MANIFEST}; a run is a folder such as results/2026-12-01.1-quickstart", MANIFEST = file::MANIFEST)]
    NotARun(PathBuf),
}

fn at(line: &Option<usize>) -> String {
    line.map_or_else(String::new, |l| format!(" line {l}"))
}

fn by(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

pub(crate) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> RecordError + '_ {
    move |why| RecordError::Io {
        path: path.to_owned(),
        why,
    }
}

/// The folder of one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes `<results>/<date>.<n>-<matrix>/` with the first n that is free; the creation of the
    /// folder decides, so two runners never share one.
    pub fn create(results: &Path, date: &str, matrix: &str) -> Result<Self, RecordError> {
        fs::create_dir_all(results).map_err(io_at(results))?;
        for n in 1.. {
            let path = results.join(format!("{date}.{n}-{matrix}"));
            match fs::create_dir(&path) {
                Ok(()) => return Self { path }.with_folders(),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io_at(&path)(e)),
            }
        }
        unreachable!("the loop over all numbers ends by returning")
    }

    fn with_folders(self) -> Result<Self, RecordError> {
        let logs = self.logs();
        fs::create_dir(&logs).map_err(io_at(&logs))?;
        Ok(self)
    }

    /// Opens a run that exists.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        if path.join(file::MANIFEST).is_file() {
            Ok(Self {
                path: path.to_owned(),
            })
        } else {
            Err(RecordError::NotARun(path.to_owned()))
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        let absolute = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        absolute
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    }
    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join(file::JOURNAL)
    }
    /// The folder of tables.
    #[must_use]
    pub fn tables(&self) -> PathBuf {
        self.path.join(file::TABLES)
    }
    /// The folder of logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.path.join(file::LOGS)
    }

    /// Where resumes are noted.
    #[must_use]
    pub fn resumes(&self) -> PathBuf {
        self.path.join(file::RESUMES)
    }
    /// The matrix that ran.
    #[must_use]
    pub fn matrix(&self) -> PathBuf {
        self.path.join(file::MATRIX)
    }
    /// Its text.
    pub fn matrix_text(&self) -> Result<String, RecordError> {
        let path = self.matrix();
        fs::read_to_string(&path).map_err(io_at(&path))
    }

    /// Writes matrix and manifest, once. The manifest comes last and is renamed into place whole:
    /// a folder is a run from that moment on, and never half of one.
    pub fn begin(&self, manifest: &Manifest, matrix: &str) -> Result<(), RecordError> {
        let json = serde_json::to_vec_pretty(manifest).map_err(|e| RecordError::Io {
            path: self.path.join(file::MANIFEST),
            why: e.into(),
        })?;
        self.write_new(file::MATRIX, matrix.as_bytes())?;
        self.write_new(file::MANIFEST_PART, &json)?;
        let whole = self.path.join(file::MANIFEST);
        fs::rename(self.path.join(file::MANIFEST_PART), &whole).map_err(io_at(&whole))?;
        sync_folder(&self.path)
    }

    /// Appends one line to the record of resumes.
    pub fn note_resume(&self, resume: &Resume) -> Result<(), RecordError> {
        let path = self.resumes();
        let at = io_at(&path);
        let line = serde_json::to_vec(resume).map_err(io::Error::from);
        line.and_then(|mut line| {
            line.push(b'\n');
            let mut f = fs::File::options().append(true).create(true).open(&path)?;
            f.write_all(&line)?;
            f.sync_all()
        })
        .map_err(at)
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        write_new(&self.path.join(name), bytes)
    }

    /// Reads the manifest.
    pub fn manifest(&self) -> Result<Manifest, RecordError> {
        let path = self.path.join(file::MANIFEST);
        let bytes = fs::read(&path).map_err(io_at(&path))?;
        let content = |why: String| RecordError::Content {
            path: path.clone(),
            line: None,
            why,
        };
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|e| content(e.to_string()))?;
        if manifest.format != FORMAT {
            return Err(content(format!("format {}", manifest.format)));
        }
        Ok(manifest)
    }
}

/// Writes a file that must not be there yet, through to the disk.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let mut f = fs::File::create_new(path).map_err(io_at(path))?;
    f.write_all(bytes)
        .and_then(|()| f.sync_all())
        .map_err(io_at(path))
}

/// After this a name in the folder survives a loss of power, too.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), RecordError> {
    fs::File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(io_at(folder))
}

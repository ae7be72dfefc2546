//! The journal: append-only, one line a trial.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::folder::io_at;
use crate::{FORMAT, RecordError, Trial};

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal for appending; makes it if it is not there.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(io_at(path))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Appends one trial: one write, then to the disk, so that a crash cuts at most the line being written.
    pub fn append(&mut self, trial: &Trial) -> Result<(), RecordError> {
        let encode = |e: serde_json::Error| RecordError::Io {
            path: self.path.clone(),
            why: e.into(),
        };
        let mut line = serde_json::to_vec(trial).map_err(encode)?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(io_at(&self.path))
    }
}

/// Reads a journal. A last line without an end was cut by a crash and is left out
/// (`true` beside the trials says so); any other line that does not parse is an error.
pub fn read_journal(path: &Path) -> Result<(Vec<Trial>, bool), RecordError> {
    let mut lines = BufReader::new(File::open(path).map_err(io_at(path))?);
    let mut trials = Vec::new();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if lines.read_until(b'\n', &mut bytes).map_err(io_at(path))? == 0 {
            break;
        }
        if bytes.last() != Some(&b'\n') {
            return Ok((trials, true));
        }
        let wrong = |why| RecordError::Content {
            path: path.to_owned(),
            line: Some(number),
            why,
        };
        let trial: Trial = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if trial.format != FORMAT {
            return Err(wrong(format!("format {}", trial.format)));
        }
        trials.push(trial);
    }
    Ok((trials, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, RunFolder, Status};
    use yieldpoint_terms::{Knobs, Value};

    fn trial(order: u32) -> Trial {
        Trial {
            format: FORMAT,
            cell: "m/threads=1".into(),
            round: 1,
            role: Role::Cell,
            order,
            coordinates: vec![("threads".into(), Value::Int(1))],
            knobs: Knobs::default(),
            status: Status::Error,
            error: Some("no".into()),
            flags: vec![],
            started: "2026-12-01T00:00:00Z".into(),
            start_at_ns: None,
            elapsed_ns: 1,
            lab_mode: None,
            sysctls: [].into(),
            outcome: None,
            testimony: None,
            samples: None,
            time_wait: None,
            checks: vec![],
        }
    }

    #[test]
    fn a_journal_cut_at_any_byte_keeps_every_finished_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.append(&trial(0)).unwrap();
        let first = std::fs::metadata(&path).unwrap().len() as usize;
        journal.append(&trial(1)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (trials, was_cut) = read_journal(&path).unwrap();
            let finished = usize::from(cut >= first) + usize::from(cut == whole.len());
            assert_eq!(trials.len(), finished, "cut at {cut}");
            assert_eq!(
                was_cut,
                ![0, first, whole.len()].contains(&cut),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_broken_line_in_the_middle_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let e = read_journal(&path).unwrap_err().to_string();
        assert!(e.contains("line 1") && e.contains("missing field"), "{e}");
    }

    #[test]
    fn runs_of_a_day_are_numbered_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let a = RunFolder::create(dir.path(), "2026-12-01", "m").unwrap();
        let b = RunFolder::create(dir.path(), "2026-12-01", "m").unwrap();
        assert_eq!(
            (a.name().as_str(), b.name().as_str()),
            ("2026-12-01.1-m", "2026-12-01.2-m")
        );
        assert!(matches!(
            RunFolder::open(dir.path()),
            Err(RecordError::NotARun(_))
        ));
    }
}

//! The journal: append-only, one line a trial.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::folder::{file, io_at, sync_folder, write_new};
use crate::{FORMAT, RecordError, Trial};

/// An open journal. Its lock keeps every other runner out until it is closed, or its process is gone.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal for appending; makes it if it is not there. [`RecordError::InUse`] where
    /// another runner holds it.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(io_at(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
                let inode = file.metadata().map_err(io_at(path))?.ino();
                return Err(RecordError::InUse {
                    path: path.to_owned(),
                    pid: holder(&locks, inode),
                });
            }
            Err(TryLockError::Error(e)) => return Err(io_at(path)(e)),
        }
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            sync_folder(folder)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Moves a last line that a crash cut into a file of its own ("journal.cut-1") and shortens the
    /// journal to its last whole line. The name of that file, or `None` where nothing was cut.
    ///
    /// The copy is on the disk before the journal is shortened, so that a crash in between loses nothing.
    pub fn mend(&mut self) -> Result<Option<String>, RecordError> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(io_at(&self.path))?;
        let whole = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        if whole == bytes.len() {
            return Ok(None);
        }
        let name = self.keep_cut(&bytes[whole..])?;
        // A usize of a length always fits.
        self.shorten(whole as u64)?;
        Ok(Some(name))
    }

    fn keep_cut(&self, tail: &[u8]) -> Result<String, RecordError> {
        for n in 1.. {
            let name = format!("{}{n}", file::CUT);
            let path = self.path.with_file_name(&name);
            match write_new(&path, tail) {
                Err(RecordError::Io { why, .. }) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Ok(()) => return Ok(name),
                Err(e) => return Err(e),
            }
        }
        unreachable!("the loop over all numbers ends by returning")
    }

    fn shorten(&self, length: u64) -> Result<(), RecordError> {
        self.file
            .set_len(length)
            .and_then(|()| self.file.sync_all())
            .map_err(io_at(&self.path))
    }

    /// Appends one trial: one write, then to the disk, so that a crash cuts at most the line being
    /// written. Where the disk takes only a part of it (it is full), that part is taken back: the
    /// journal ends in a whole line.
    pub fn append(&mut self, trial: &Trial) -> Result<(), RecordError> {
        let encode = |e: serde_json::Error| RecordError::Io {
            path: self.path.clone(),
            why: e.into(),
        };
        let mut line = serde_json::to_vec(trial).map_err(encode)?;
        line.push(b'\n');
        let before = self.file.metadata().map_err(io_at(&self.path))?.len();
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data());
        if written.is_err() {
            // The reason of the failure is worth more than one of taking back; `mend` does it later.
            let _ = self.shorten(before);
        }
        written.map_err(io_at(&self.path))
    }
}

/// The process that holds a lock on this inode, from the text of `/proc/locks` (proc_locks(5)).
fn holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // "1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF"; a waiter has "->" after its number.
        match fields.as_slice() {
            [_, "FLOCK", _, _, pid, file, ..] => {
                let same = file.rsplit(':').next()?.parse() == Ok(inode);
                same.then(|| pid.parse().ok()).flatten()
            }
            _ => None,
        }
    })
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
        let mut trial: Trial = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        // Lists that are read grow by doubling, so that up to half of them holds nothing: 15 % of the memory of
        // a run of 10,000 trials. A copy has no more than it needs, and what it replaces holds the next list;
        // to shrink it in place would leave scraps that hold none.
        for list in trial
            .samples
            .iter_mut()
            .flat_map(|s| s.columns.values_mut())
        {
            *list = list.as_slice().to_vec();
        }
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
    fn a_cut_tail_is_moved_aside_and_finished_lines_stay_byte_for_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.append(&trial(0)).unwrap();
        let first = std::fs::metadata(&path).unwrap().len() as usize;
        journal.append(&trial(1)).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let mut cuts = 0;
        // Every byte near an end of a line, and some between: each costs several syncs.
        let ends = |cut: &usize| [0, first, whole.len()].iter().any(|e| e.abs_diff(*cut) < 3);
        for cut in (0..=whole.len()).filter(|cut| ends(cut) || cut % 64 == 0) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            let aside = journal.mend().unwrap();
            let kept = match cut {
                _ if cut == whole.len() => cut,
                _ if cut >= first => first,
                _ => 0,
            };
            assert_eq!(
                std::fs::read(&path).unwrap(),
                &whole[..kept],
                "cut at {cut}"
            );
            assert_eq!(aside.is_some(), kept != cut, "cut at {cut}");
            if let Some(name) = aside {
                cuts += 1;
                assert_eq!(name, format!("journal.cut-{cuts}"), "none is overwritten");
                let tail = std::fs::read(dir.path().join(name)).unwrap();
                assert_eq!(tail, &whole[kept..cut], "cut at {cut}: nothing is lost");
            }
            // What is appended then is a line of its own.
            journal.append(&trial(7)).unwrap();
            let (trials, was_cut) = read_journal(&path).unwrap();
            assert_eq!((trials.last().map(|t| t.order), was_cut), (Some(7), false));
        }
    }

    #[test]
    fn a_second_runner_is_kept_out_and_told_by_whom() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let first = Journal::open(&path).unwrap();
        let refused = Journal::open(&path).unwrap_err().to_string();
        assert!(refused.contains("another runner"), "{refused}");
        drop(first);
        assert!(
            Journal::open(&path).is_ok(),
            "the lock ends with its holder"
        );
    }

    #[test]
    fn the_holder_of_a_lock_is_read_from_the_kernel_s_table() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 08:01:99 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 1234 00:2a:99 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 5 00:2a:98 0 EOF\n";
        assert_eq!(holder(locks, 99), Some(1234), "not the POSIX lock");
        assert_eq!(holder(locks, 98), None, "a waiter holds nothing");
        assert_eq!(holder("", 99), None);
    }

    #[test]
    fn a_folder_is_a_run_only_with_its_whole_manifest() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunFolder::create(dir.path(), "2026-12-01", "m").unwrap();
        std::fs::write(run.path().join(file::MANIFEST_PART), "{").unwrap();
        assert!(matches!(
            RunFolder::open(run.path()),
            Err(RecordError::NotARun(_))
        ));
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

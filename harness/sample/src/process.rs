//! One process: CPU time, memory, threads, descriptors.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use nix::time::ClockId;
use nix::unistd::Pid;
use rustix::fs::{OFlags, RawDir, SeekFrom};

use crate::proc_file::{ProcFile, open};
use crate::text::{lines, number, words};

/// What is read of a process at one moment. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessSample {
    /// user and system time of all its threads, ns
    pub cpu_ns: Option<i64>,
    pub status: Status,
    /// open descriptors
    pub fds: Option<i64>,
}

impl ProcessSample {
    /// Both together; what is missing of one is missing of the sum.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let add = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        let (a, b) = (&self.status, &other.status);
        Self {
            cpu_ns: add(self.cpu_ns, other.cpu_ns),
            status: Status {
                gone: a.gone && b.gone,
                rss_kib: add(a.rss_kib, b.rss_kib),
                rss_anon_kib: add(a.rss_anon_kib, b.rss_anon_kib),
                rss_peak_kib: add(a.rss_peak_kib, b.rss_peak_kib),
                threads: add(a.threads, b.threads),
            },
            fds: add(self.fds, other.fds),
        }
    }
}

/// What is taken from /proc/<pid>/status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// a zombie, or dead: it no longer has memory or descriptors
    pub gone: bool,
    pub rss_kib: Option<i64>,
    pub rss_anon_kib: Option<i64>,
    pub rss_peak_kib: Option<i64>,
    pub threads: Option<i64>,
}

/// Reads the text of /proc/<pid>/status.
///
/// Its context switches are those of the first thread only, hence not taken.
pub(crate) fn parse_status(text: &[u8]) -> Status {
    let mut status = Status::default();
    for line in lines(text) {
        let mut words = words(line);
        let (Some(key), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        match key {
            b"State:" => status.gone = matches!(value, b"Z" | b"X"),
            b"VmRSS:" => status.rss_kib = number(value),
            b"RssAnon:" => status.rss_anon_kib = number(value),
            b"VmHWM:" => status.rss_peak_kib = number(value),
            b"Threads:" => status.threads = number(value),
            _ => {}
        }
    }
    status
}

/// The open files of one process.
#[derive(Debug)]
pub(crate) struct ProcessReader {
    clock: ClockId,
    status: ProcFile,
    /// `None` where the process does not let us look at its descriptors
    fd_dir: Option<OwnedFd>,
}

impl ProcessReader {
    /// Opens the files of a living process.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let status = ProcFile::open(&format!("/proc/{pid}/status"))?;
        // Linux keeps pids below 2^22; a number beyond i32 has failed in open() above.
        let raw = i32::try_from(pid).map_err(io::Error::other)?;
        Ok(Self {
            // clock_getcpuclockid(3): the clock (!pid << 3) | 2, nanoseconds instead of /proc's ticks.
            clock: ClockId::pid_cpu_clock_id(Pid::from_raw(raw))?,
            status,
            fd_dir: open(
                &format!("/proc/{pid}/fd"),
                OFlags::RDONLY | OFlags::DIRECTORY,
            )
            .ok(),
        })
    }

    /// What the process is doing now; `None` once it is dead.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> Option<ProcessSample> {
        // The clock goes by the number of the process, the open file by the process itself. Read in
        // this order, a status that still comes proves that the number had no new owner.
        let cpu_ns = self.clock.now().ok().and_then(|t| {
            t.tv_sec()
                .checked_mul(1_000_000_000)?
                .checked_add(t.tv_nsec())
        });
        let status = self.status.read(buffer).map(parse_status);
        match status {
            Ok(status) if !status.gone => Some(ProcessSample {
                cpu_ns,
                status,
                fds: self
                    .fd_dir
                    .as_ref()
                    .and_then(|dir| count_fds(dir).ok().flatten()),
            }),
            _ => None,
        }
    }
}

/// How many descriptors a process has open, from its open directory /proc/<pid>/fd.
///
/// Since Linux 6.2 the size of that directory is the count, taken from a bitmap: 20 µs for 20,000.
/// Older kernels say 0 there and the entries have to be listed, which costs 4 µs or more each (80 ms
/// for 20,000): it would disturb what is measured, so that beyond [`MOST_LISTED`] the count is missing.
fn count_fds(dir: &OwnedFd) -> io::Result<Option<i64>> {
    let size = rustix::fs::fstat(dir)?.st_size;
    if size > 0 {
        Ok(Some(size))
    } else {
        list_fds(dir, MOST_LISTED)
    }
}

/// Descriptors that are listed one by one at most; about 4 ms a row.
const MOST_LISTED: i64 = 1024;

/// Counts the entries one by one; `None` if they are more than `most`.
fn list_fds(dir: &OwnedFd, most: i64) -> io::Result<Option<i64>> {
    rustix::fs::seek(dir, SeekFrom::Start(0))?;
    let mut space = [MaybeUninit::<u8>::uninit(); 8192];
    let mut entries = RawDir::new(dir, &mut space);
    let mut count = 0;
    while let Some(entry) = entries.next() {
        // "." and ".." are the only names that are not numbers.
        count += i64::from(
            entry?
                .file_name()
                .to_bytes()
                .first()
                .is_some_and(u8::is_ascii_digit),
        );
        if count > most {
            return Ok(None);
        }
    }
    Ok(Some(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATUS: &[u8] = include_bytes!("../tests/data/status");
    const ZOMBIE: &[u8] = include_bytes!("../tests/data/status-zombie");

    #[test]
    fn reads_a_status() {
        let living = Status {
            gone: false,
            rss_kib: Some(13_688),
            rss_anon_kib: Some(6_932),
            rss_peak_kib: Some(44_180),
            threads: Some(3),
        };
        // A zombie has no memory any more: missing, not 0.
        let zombie = Status {
            gone: true,
            threads: Some(1),
            ..Status::default()
        };
        let table: [(&[u8], Status); 5] = [
            (STATUS, living),
            (ZOMBIE, zombie),
            (b"", Status::default()),
            // a number cut short is missing
            (b"VmRSS:\t    76", Status::default()),
            // a key that only begins like a wanted one
            (b"VmRSSx:\t 5 kB\nRssFile:\t 9 kB\n", Status::default()),
        ];
        for (text, want) in table {
            assert_eq!(
                parse_status(text),
                want,
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }

    #[test]
    fn both_ways_of_counting_descriptors_agree() {
        // Other tests open files meanwhile, so the process that is looked at is another one: it sleeps.
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let dir = open(
            &format!("/proc/{}/fd", child.id()),
            OFlags::RDONLY | OFlags::DIRECTORY,
        )
        .unwrap();
        // The child may still be loading; then the counts are of different moments. Try again.
        let agree = (0..100).any(|_| {
            let size = count_fds(&dir).unwrap().unwrap();
            let exactly = list_fds(&dir, size).unwrap();
            let too_many = list_fds(&dir, size - 1).unwrap();
            size > 0 && exactly == Some(size) && too_many.is_none()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(agree);
    }

    proptest! {
        #[test]
        fn a_cut_text_gives_the_same_numbers_or_none(cut in 0..=STATUS.len()) {
            let (part, whole) = (parse_status(&STATUS[..cut]), parse_status(STATUS));
            for (p, w) in [
                (part.rss_kib, whole.rss_kib),
                (part.rss_anon_kib, whole.rss_anon_kib),
                (part.rss_peak_kib, whole.rss_peak_kib),
                (part.threads, whole.threads),
            ] {
                prop_assert!(p.is_none() || p == w);
            }
        }

        #[test]
        fn a_damaged_text_does_no_harm(at in 0..STATUS.len(), with: Vec<u8>) {
            let mut text = STATUS.to_vec();
            text.splice(at..(at + with.len()).min(STATUS.len()), with);
            let s = parse_status(&text);
            prop_assert!([s.rss_kib, s.rss_anon_kib, s.rss_peak_kib, s.threads].into_iter().flatten().all(|n| n >= 0));
        }
    }
}

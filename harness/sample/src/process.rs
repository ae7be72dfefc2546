//! One process: CPU time, memory, threads, descriptors.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use nix::time::ClockId;
use nix::unistd::Pid;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir};

use crate::proc_file::{ProcFile, open};
use crate::stack_path::StackPath;
use crate::text::{lines, number, words};

/// CPU time of a process, all its threads together. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpu {
    /// user and system time, ns
    pub total_ns: Option<i64>,
    /// of it in user code; in steps of a tick, as ns
    pub user_ns: Option<i64>,
    /// of it in the kernel; in steps of a tick, as ns
    pub system_ns: Option<i64>,
}

/// What is read of a process, or of several, at one moment. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessSample {
    pub cpu: Cpu,
    pub status: Status,
    /// open descriptors
    pub fds: Option<i64>,
}

fn add(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a?.checked_add(b?)
}

impl Cpu {
    /// No time at all.
    pub(crate) const ZERO: Self = Self {
        total_ns: Some(0),
        user_ns: Some(0),
        system_ns: Some(0),
    };

    /// Both together; what is missing of one is missing of the sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            total_ns: add(self.total_ns, other.total_ns),
            user_ns: add(self.user_ns, other.user_ns),
            system_ns: add(self.system_ns, other.system_ns),
        }
    }
}

impl ProcessSample {
    /// Of no process.
    pub(crate) const ZERO: Self = Self {
        cpu: Cpu::ZERO,
        status: Status {
            gone: false,
            rss_kib: Some(0),
            rss_anon_kib: Some(0),
            rss_peak_kib: Some(0),
            threads: Some(0),
        },
        fds: Some(0),
    };

    /// Both together; what is missing of one is missing of the sum.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (a, b) = (&self.status, &other.status);
        Self {
            cpu: self.cpu.plus(other.cpu),
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

/// What is taken from /proc/<pid>/stat; times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub parent: Option<i64>,
    pub user: Option<i64>,
    pub system: Option<i64>,
}

/// Reads the text of /proc/<pid>/stat; see proc_pid_stat(5).
pub(crate) fn parse_stat(text: &[u8]) -> Stat {
    // The program's name is in brackets and may hold anything, brackets and line ends included.
    let Some(after) = text.iter().rposition(|b| *b == b')') else {
        return Stat::default();
    };
    let Some(line) = lines(&text[after + 1..]).next() else {
        return Stat::default();
    };
    let mut words = words(line);
    // The state is field 3, the parent 4, times 14 and 15.
    Stat {
        parent: words.nth(1).and_then(number),
        user: words.nth(9).and_then(number),
        system: words.next().and_then(number),
    }
}

/// Reads the text of /proc/<pid>/task/<tid>/children: pids.
pub(crate) fn parse_children(text: &[u8]) -> impl Iterator<Item = u32> {
    // No line end comes here; every number is followed by a blank, so one without it was cut.
    let end = text.iter().rposition(|b| *b == b' ').map_or(0, |at| at + 1);
    words(&text[..end]).filter_map(|word| u32::try_from(number(word)?).ok())
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

/// The open files of one process. They go on meaning it after its number was given to another.
#[derive(Debug)]
pub(crate) struct ProcessReader {
    pid: u32,
    clock: ClockId,
    directory: OwnedFd,
    status: ProcFile,
    stat: ProcFile,
    ns_per_tick: i64,
}

const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();

/// What became of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Life {
    Living(ProcessSample),
    /// It has ended and its parent has not yet heard of it; the CPU time is its last.
    Zombie(Cpu),
    Gone,
}

impl ProcessReader {
    /// Opens the files of a process; the error names what cannot be opened.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let status = ProcFile::open(&format!("/proc/{pid}/status"))?;
        let directory = open(&format!("/proc/{pid}"), OFlags::RDONLY | OFlags::DIRECTORY)?;
        Self::with(pid, directory, status)
    }

    /// Opens a child that was found below a process, without a need for memory. `None` if it is
    /// gone, or if its number belongs to a stranger meanwhile.
    pub(crate) fn open_child(
        pid: u32,
        parent: u32,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Option<Self>> {
        let path = StackPath::new().text("/proc/").number(pid);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path.bytes(), flags, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|directory| {
                let status = ProcFile::open_at(&directory, b"status")?;
                Self::with(pid, directory, status)
            });
        let reader = match opened {
            Ok(reader) => reader,
            // ESRCH is the answer of a file whose process has just ended.
            Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(ESRCH) => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let is_child = reader
            .stat
            .read(buffer)
            .is_ok_and(|text| parse_stat(text).parent == Some(i64::from(parent)));
        Ok(is_child.then_some(reader))
    }

    fn with(pid: u32, directory: OwnedFd, status: ProcFile) -> io::Result<Self> {
        // Linux keeps pids below 2^22; a number beyond i32 has failed in open() before.
        let raw = i32::try_from(pid).map_err(io::Error::other)?;
        Ok(Self {
            pid,
            // clock_getcpuclockid(3): the clock (!pid << 3) | 2, nanoseconds instead of /proc's ticks.
            clock: ClockId::pid_cpu_clock_id(Pid::from_raw(raw))?,
            stat: ProcFile::open_at(&directory, b"stat")?,
            directory,
            status,
            ns_per_tick: ns_per_tick(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }
    /// Its open directory /proc/<pid>.
    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// What the process is doing now.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> Life {
        // The clock goes by the number of the process, an open file by the process itself. Read in
        // this order, a status that still comes proves that the number had no new owner.
        let total_ns = self.clock.now().ok().and_then(|t| {
            t.tv_sec()
                .checked_mul(1_000_000_000)?
                .checked_add(t.tv_nsec())
        });
        let stat = self.stat.read(buffer).map(parse_stat).unwrap_or_default();
        let ns = |ticks: Option<i64>| ticks?.checked_mul(self.ns_per_tick);
        let cpu = Cpu {
            total_ns,
            user_ns: ns(stat.user),
            system_ns: ns(stat.system),
        };
        match self.status.read(buffer).map(parse_status) {
            Ok(status) if status.gone => Life::Zombie(cpu),
            Ok(status) => Life::Living(ProcessSample {
                cpu,
                status,
                fds: count_fds(&self.directory).ok().flatten(),
            }),
            Err(_) => Life::Gone,
        }
    }
}

/// Length of a tick of /proc, ns.
pub(crate) fn ns_per_tick() -> i64 {
    let per_second = rustix::param::clock_ticks_per_second().clamp(1, 1_000_000_000);
    // Between 1 and 10^9 after the clamp.
    (1_000_000_000 / per_second) as i64
}

/// How many descriptors a process has open, from its open directory /proc/<pid>.
///
/// Since Linux 6.2 the size of its directory "fd" is the count, taken from a bitmap: 20 µs for 20,000.
/// Older kernels say 0 there and the entries have to be listed, which costs 4 µs or more each (80 ms
/// for 20,000): it would disturb what is measured, so that beyond [`MOST_LISTED`] the count is missing.
fn count_fds(process: &OwnedFd) -> io::Result<Option<i64>> {
    let size = rustix::fs::statat(process, c"fd", AtFlags::empty())?.st_size;
    if size > 0 {
        Ok(Some(size))
    } else {
        list_fds(process, MOST_LISTED)
    }
}

/// Descriptors that are listed one by one at most; about 4 ms a row.
const MOST_LISTED: i64 = 1024;

/// Counts the entries one by one; `None` if they are more than `most`.
fn list_fds(process: &OwnedFd, most: i64) -> io::Result<Option<i64>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(process, c"fd", flags, Mode::empty())?;
    let mut space = [MaybeUninit::<u8>::uninit(); 8192];
    let mut entries = RawDir::new(&directory, &mut space);
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

    const STAT: &[u8] = include_bytes!("../tests/data/pid-stat");
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
            &format!("/proc/{}", child.id()),
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

    #[test]
    fn reads_a_stat() {
        let some = |parent, user, system| Stat {
            parent: Some(parent),
            user: Some(user),
            system: Some(system),
        };
        let table: [(&[u8], Stat); 5] = [
            // its name is "a) R 1 (b", as a hostile program may call itself
            (STAT, some(14_137, 31, 12)),
            // a line end in the name
            (b"7 (a\nb) S 1 0 0 0 0 0 0 0 0 0 5 6 0\n", some(1, 5, 6)),
            (b"7 (a) S 1 0 0 0 0 0 0 0 0 0 5 6", Stat::default()), // cut
            (
                b"7 (a) S 1 0\n", // too few fields
                Stat {
                    parent: Some(1),
                    ..Stat::default()
                },
            ),
            (b"", Stat::default()),
        ];
        for (text, want) in table {
            assert_eq!(parse_stat(text), want, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn reads_children() {
        let table: [(&[u8], &[u32]); 4] = [
            (b"12 345 ", &[12, 345]),
            (b"12 34", &[12]), // cut
            (b"", &[]),
            (b"12 -3 99999999999 7 ", &[12, 7]), // what is no pid
        ];
        for (text, want) in table {
            assert_eq!(parse_children(text).collect::<Vec<_>>(), want);
        }
    }

    proptest! {
        #[test]
        fn a_cut_stat_gives_the_same_numbers_or_none(cut in 0..=STAT.len()) {
            let (part, whole) = (parse_stat(&STAT[..cut]), parse_stat(STAT));
            prop_assert!(part == Stat::default() || part == whole);
        }

        #[test]
        fn a_damaged_stat_does_no_harm(at in 0..STAT.len(), with: Vec<u8>) {
            let mut text = STAT.to_vec();
            text.splice(at..(at + with.len()).min(STAT.len()), with);
            let s = parse_stat(&text);
            prop_assert!([s.parent, s.user, s.system].into_iter().flatten().all(|n| n >= 0));
            prop_assert!(parse_children(&text).count() <= text.len());
        }
    }
}

//! What is known of threads only, one by one: waiting for a CPU, context switches.

use std::os::fd::OwnedFd;

use crate::proc_file::ProcFile;
use crate::task_dir::TaskDir;
use crate::text::{lines, number, words};

/// Running totals of threads. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// time in which they could run and had no CPU, ns
    pub run_wait_ns: Option<i64>,
    /// times they gave the CPU away, to wait for something
    pub voluntary: Option<i64>,
    /// times it was taken from them
    pub involuntary: Option<i64>,
}

impl Switches {
    fn each(self, other: Self, with: impl Fn(i64, i64) -> Option<i64>) -> Self {
        let both = |a: Option<i64>, b: Option<i64>| with(a?, b?);
        Self {
            run_wait_ns: both(self.run_wait_ns, other.run_wait_ns),
            voluntary: both(self.voluntary, other.voluntary),
            involuntary: both(self.involuntary, other.involuntary),
        }
    }
    fn zero() -> Self {
        Self {
            run_wait_ns: Some(0),
            voluntary: Some(0),
            involuntary: Some(0),
        }
    }
}

/// Reads the text of /proc/<pid>/task/<tid>/schedstat ("time on a CPU, time in a run queue, slices"):
/// the second number, ns.
pub(crate) fn parse_schedstat(text: &[u8]) -> Option<i64> {
    words(lines(text).next()?).nth(1).and_then(number)
}

/// Reads context switches, voluntary and not, out of /proc/<pid>/task/<tid>/status.
pub(crate) fn parse_switches(text: &[u8]) -> (Option<i64>, Option<i64>) {
    let mut switches = (None, None);
    for line in lines(text) {
        let mut words = words(line);
        match (words.next(), words.next()) {
            (Some(b"voluntary_ctxt_switches:"), Some(value)) => switches.0 = number(value),
            (Some(b"nonvoluntary_ctxt_switches:"), Some(value)) => switches.1 = number(value),
            _ => {}
        }
    }
    switches
}

/// Threads of one client or target that can be followed. More of them have no totals: a sum over
/// some would be wrong.
const MOST: usize = 4096;

/// The threads of several processes, followed from one reading to the next.
#[derive(Debug)]
pub(crate) struct Threads {
    /// sorted by thread
    before: Vec<(u32, Switches)>,
    now: Vec<(u32, Switches)>,
    total: Switches,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self {
            before: Vec::with_capacity(MOST),
            now: Vec::with_capacity(MOST),
            total: Switches::zero(),
        }
    }

    /// Reads every thread of some processes (their directories /proc/<pid>). A thread that has ended
    /// stays in the totals with what was last seen of it, so that they never fall.
    pub(crate) fn read<'p>(
        &mut self,
        processes: impl Iterator<Item = &'p OwnedFd>,
        buffer: &mut Vec<u8>,
    ) -> Option<Switches> {
        self.now.clear();
        let mut all = true;
        for process in processes {
            // A process that ends meanwhile is without threads.
            let Ok(tasks) = TaskDir::open(process) else {
                continue;
            };
            let now = &mut self.now;
            let _ = tasks.for_each(|tid| {
                if now.len() == MOST {
                    all = false;
                } else if let Some(switches) = read_thread(&tasks, tid, buffer) {
                    now.push((tid, switches));
                }
            });
        }
        self.now.sort_unstable_by_key(|(tid, _)| *tid);
        self.total = grown(self.total, &self.before, &self.now);
        std::mem::swap(&mut self.before, &mut self.now);
        all.then_some(self.total)
    }
}

/// The totals after another reading. Both lists are sorted by thread.
fn grown(total: Switches, before: &[(u32, Switches)], now: &[(u32, Switches)]) -> Switches {
    now.iter().fold(total, |total, (tid, seen)| {
        let old = before
            .binary_search_by_key(tid, |(tid, _)| *tid)
            .map_or_else(|_| Switches::zero(), |at| before[at].1);
        // What fell belongs to a new thread with an old number.
        let growth = seen.each(old, |seen, old| {
            Some(if seen < old { seen } else { seen - old })
        });
        total.each(growth, i64::checked_add)
    })
}

/// `None` if the thread has ended.
fn read_thread(tasks: &TaskDir, tid: u32, buffer: &mut Vec<u8>) -> Option<Switches> {
    let (voluntary, involuntary) =
        parse_switches(tasks.file(tid, "status").ok()?.read(buffer).ok()?);
    // Not in every kernel.
    let wait = |file: ProcFile| parse_schedstat(file.read(buffer).ok()?);
    Some(Switches {
        run_wait_ns: tasks.file(tid, "schedstat").ok().and_then(wait),
        voluntary,
        involuntary,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATUS: &[u8] = include_bytes!("../tests/data/status");
    const SCHEDSTAT: &[u8] = include_bytes!("../tests/data/schedstat");

    #[test]
    fn reads_the_files_of_a_thread() {
        assert_eq!(parse_schedstat(SCHEDSTAT), Some(471_079));
        assert_eq!(parse_schedstat(b"1 2"), None); // cut
        assert_eq!(parse_schedstat(b"1\n"), None); // a number short
        assert_eq!(parse_switches(STATUS), (Some(17), Some(8)));
        assert_eq!(
            parse_switches(b"voluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t5"),
            (Some(4), None), // the last line was cut
        );
    }

    #[test]
    fn totals_hold_what_has_ended() {
        let seen = |n| Switches {
            run_wait_ns: Some(n),
            voluntary: Some(10 * n),
            involuntary: None,
        };
        // threads before, threads now, growth of the wait
        type Row<'a> = (&'a [(u32, i64)], &'a [(u32, i64)], i64);
        let table: [Row; 6] = [
            (&[], &[], 0),
            (&[], &[(1, 5), (2, 7)], 12), // the first reading
            (&[(1, 5), (2, 7)], &[(1, 6), (2, 7)], 1),
            (&[(1, 5), (2, 7)], &[(2, 9)], 2), // 1 has ended: nothing is taken away
            (&[(1, 5)], &[(1, 6), (3, 4)], 5), // 3 is new
            (&[(1, 5)], &[(1, 3)], 3),         // a new thread with the number of an old one
        ];
        for (i, (before, now, want)) in table.into_iter().enumerate() {
            let list = |l: &[(u32, i64)]| l.iter().map(|(t, n)| (*t, seen(*n))).collect::<Vec<_>>();
            let got = grown(Switches::zero(), &list(before), &list(now));
            assert_eq!(got.run_wait_ns, Some(want), "row {i}");
            assert_eq!(got.voluntary, Some(10 * want), "row {i}");
            // What a kernel does not say stays unknown.
            assert_eq!(got.involuntary.is_none(), !now.is_empty(), "row {i}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_gives_the_same_numbers_or_none(cut in 0..=STATUS.len()) {
            let (part, whole) = (parse_switches(&STATUS[..cut]), parse_switches(STATUS));
            prop_assert!(part.0.is_none() || part.0 == whole.0);
            prop_assert!(part.1.is_none() || part.1 == whole.1);
            let cut = cut.min(SCHEDSTAT.len());
            let part = parse_schedstat(&SCHEDSTAT[..cut]);
            prop_assert!(part.is_none() || part == parse_schedstat(SCHEDSTAT));
        }

        #[test]
        fn a_damaged_text_does_no_harm(at in 0..STATUS.len(), with: Vec<u8>) {
            let mut text = STATUS.to_vec();
            text.splice(at..(at + with.len()).min(STATUS.len()), with);
            let (a, b) = parse_switches(&text);
            prop_assert!([a, b, parse_schedstat(&text)].into_iter().flatten().all(|n| n >= 0));
        }
    }
}

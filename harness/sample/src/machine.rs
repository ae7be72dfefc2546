//! The whole machine: busy CPUs, steal, runnable tasks, pressure.

use std::io;

use crate::proc_file::ProcFile;
use crate::text::{lines, number, words};

/// What is read of the machine at one moment. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachineSample {
    /// time that the hypervisor gave to others, all CPUs, ns
    pub steal_ns: Option<i64>,
    /// busy time of the CPUs of the client, ns
    pub client_set_busy_ns: Option<i64>,
    /// busy time of the CPUs of the target, ns
    pub target_set_busy_ns: Option<i64>,
    /// runnable tasks
    pub run_queue: Option<i64>,
    /// time in which some task waited for a CPU, µs
    pub pressure_us: Option<i64>,
}

/// What is taken from /proc/stat; times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub steal: Option<i64>,
    pub running: Option<i64>,
    pub client_busy: Option<i64>,
    pub target_busy: Option<i64>,
}

/// Reads the text of /proc/stat. The sets are sorted and hold no CPU twice.
///
/// A set that is empty, or of which a CPU is missing (offline), has no busy time.
pub(crate) fn parse_stat(text: &[u8], client: &[usize], target: &[usize]) -> Stat {
    let mut stat = Stat::default();
    let (mut client_sum, mut target_sum) = (Sum::default(), Sum::default());
    for line in lines(text) {
        let mut words = words(line);
        match words.next() {
            Some(b"cpu") => stat.steal = words.nth(STEAL).and_then(number),
            Some(b"procs_running") => stat.running = words.next().and_then(number),
            Some(key) => {
                let Some(cpu) = key.strip_prefix(b"cpu").and_then(number) else {
                    continue;
                };
                // A number of a CPU that does not fit usize is in no set.
                let Ok(cpu) = usize::try_from(cpu) else {
                    continue;
                };
                let busy = busy(words);
                for (set, sum) in [(client, &mut client_sum), (target, &mut target_sum)] {
                    if set.binary_search(&cpu).is_ok() {
                        sum.add(busy);
                    }
                }
            }
            None => {}
        }
    }
    stat.client_busy = client_sum.of_all(client.len());
    stat.target_busy = target_sum.of_all(target.len());
    stat
}

/// Columns of a "cpu" line: user nice system idle iowait irq softirq steal guest guest_nice.
const STEAL: usize = 7;

/// User, nice, system, irq and softirq. Guests are within user; stolen time was not ours to use.
fn busy<'t>(words: impl Iterator<Item = &'t [u8]>) -> Option<i64> {
    const BUSY: [bool; STEAL] = [true, true, true, false, false, true, true];
    let mut sum = 0i64;
    let mut columns = 0;
    for (word, is_busy) in words.zip(BUSY) {
        columns += 1;
        if is_busy {
            sum = sum.checked_add(number(word)?)?;
        }
    }
    (columns == BUSY.len()).then_some(sum)
}

/// A sum that knows how many terms it has.
#[derive(Default)]
struct Sum {
    total: i64,
    terms: usize,
}

impl Sum {
    fn add(&mut self, term: Option<i64>) {
        if let Some(total) = term.and_then(|t| self.total.checked_add(t)) {
            self.total = total;
            self.terms += 1;
        }
    }
    fn of_all(self, expected: usize) -> Option<i64> {
        (expected > 0 && self.terms == expected).then_some(self.total)
    }
}

/// Reads the text of /proc/pressure/cpu: total of the "some" line, µs.
pub(crate) fn parse_pressure(text: &[u8]) -> Option<i64> {
    lines(text)
        .find_map(|line| line.strip_prefix(b"some "))
        .and_then(|rest| words(rest).find_map(|word| word.strip_prefix(b"total=")))
        .and_then(number)
}

/// The open files of the machine.
#[derive(Debug)]
pub(crate) struct MachineReader {
    stat: ProcFile,
    /// `None` where the kernel has no pressure accounting
    pressure: Option<ProcFile>,
    client: Vec<usize>,
    target: Vec<usize>,
    ns_per_tick: i64,
}

impl MachineReader {
    /// Opens the files; the sets may come in any order.
    pub(crate) fn open(mut client: Vec<usize>, mut target: Vec<usize>) -> io::Result<Self> {
        for set in [&mut client, &mut target] {
            set.sort_unstable();
            set.dedup();
        }
        let per_second = rustix::param::clock_ticks_per_second().clamp(1, 1_000_000_000);
        Ok(Self {
            stat: ProcFile::open("/proc/stat")?,
            pressure: ProcFile::open("/proc/pressure/cpu").ok(),
            client,
            target,
            // Between 1 and 10^9 after the clamp.
            ns_per_tick: (1_000_000_000 / per_second) as i64,
        })
    }

    /// What the machine is doing now.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> MachineSample {
        let stat = self.stat.read(buffer).map_or_else(
            |_| Stat::default(),
            |text| parse_stat(text, &self.client, &self.target),
        );
        let ns = |ticks: Option<i64>| ticks?.checked_mul(self.ns_per_tick);
        MachineSample {
            steal_ns: ns(stat.steal),
            client_set_busy_ns: ns(stat.client_busy),
            target_set_busy_ns: ns(stat.target_busy),
            run_queue: stat.running,
            pressure_us: self
                .pressure
                .as_ref()
                .and_then(|file| parse_pressure(file.read(buffer).ok()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &[u8] = include_bytes!("../tests/data/stat");
    const PRESSURE: &[u8] = include_bytes!("../tests/data/pressure-cpu");

    #[test]
    fn reads_busy_time_of_a_set() {
        // captured: cpu0 22211 945 4635 97647 130 0 11 24 0 0
        // and       cpu1 21929 1695 5512 95829 578 0 78 29 0 0
        let (cpu0, cpu1) = (22_211 + 945 + 4_635 + 11, 21_929 + 1_695 + 5_512 + 78);
        type Row<'a> = (&'a [usize], &'a [usize], Option<i64>, Option<i64>);
        let table: [Row; 5] = [
            (&[0], &[1], Some(cpu0), Some(cpu1)),
            (&[0, 1], &[0, 1], Some(cpu0 + cpu1), Some(cpu0 + cpu1)), // both on every CPU
            (&[], &[1], None, Some(cpu1)),                            // no set: missing, not 0
            (&[0, 7], &[1], None, Some(cpu1)), // a CPU that is not there: the sum is unknown
            (&[7], &[usize::MAX], None, None),
        ];
        for (client, target, client_busy, target_busy) in table {
            let stat = parse_stat(STAT, client, target);
            let want = Stat {
                steal: Some(53),
                running: Some(1),
                client_busy,
                target_busy,
            };
            assert_eq!(stat, want, "{client:?} {target:?}");
        }
    }

    #[test]
    fn a_short_line_of_an_old_kernel_has_no_busy_time() {
        // user nice system idle only
        let stat = parse_stat(b"cpu 5 0 1 9\ncpu0 5 0 1 9\n", &[0], &[]);
        assert_eq!(stat, Stat::default());
    }

    #[test]
    fn reads_pressure() {
        let table: [(&[u8], Option<i64>); 4] = [
            (PRESSURE, Some(13_439_274)),
            (b"full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", None), // the other line
            (b"some avg10=0.00 total=7", None),                          // cut
            (b"", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_pressure(text), want);
        }
    }

    #[test]
    fn a_busy_cpu_is_seen_as_busy() {
        // Law: what a thread burns, some CPU was busy with, or the hypervisor took it meanwhile. Ticks are
        // sampled, a tick is booked to whom it meets, so the bound is a half and not all of it.
        let cpus: Vec<usize> = parse_cpus();
        let reader = MachineReader::open(cpus.clone(), vec![]).unwrap();
        let mut buffer = Vec::new();
        let before = reader.read(&mut buffer);
        let burnt = burn_ns(200_000_000);
        let after = reader.read(&mut buffer);
        let busy = after.client_set_busy_ns.unwrap() - before.client_set_busy_ns.unwrap();
        let stolen = after.steal_ns.unwrap() - before.steal_ns.unwrap();
        assert!(
            busy + stolen >= burnt / 2,
            "busy {busy} ns, stolen {stolen} ns, burnt {burnt} ns"
        );
        assert!(after.run_queue.unwrap() >= 1, "at least this thread runs");
        assert_eq!(after.target_set_busy_ns, None);
    }

    /// Every CPU that /proc/stat names.
    fn parse_cpus() -> Vec<usize> {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        text.lines()
            .filter_map(|l| l.split(' ').next()?.strip_prefix("cpu")?.parse().ok())
            .collect()
    }

    /// Spins until this thread has used that much CPU time; returns what it used.
    fn burn_ns(ns: i64) -> i64 {
        let clock = || {
            let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            t.tv_sec * 1_000_000_000 + t.tv_nsec
        };
        let start = clock();
        while clock() - start < ns {}
        clock() - start
    }

    proptest! {
        #[test]
        fn a_cut_text_gives_the_same_numbers_or_none(cut in 0..=STAT.len()) {
            let (part, whole) = (parse_stat(&STAT[..cut], &[0], &[0, 1]), parse_stat(STAT, &[0], &[0, 1]));
            for (p, w) in [
                (part.steal, whole.steal),
                (part.running, whole.running),
                (part.client_busy, whole.client_busy),
                (part.target_busy, whole.target_busy),
            ] {
                prop_assert!(p.is_none() || p == w);
            }
        }

        #[test]
        fn a_damaged_text_does_no_harm(at in 0..STAT.len(), with: Vec<u8>) {
            let mut text = STAT.to_vec();
            text.splice(at..(at + with.len()).min(STAT.len()), with);
            let s = parse_stat(&text, &[0], &[0, 1]);
            prop_assert!([s.steal, s.running, s.client_busy, s.target_busy].into_iter().flatten().all(|n| n >= 0));
            parse_pressure(&text);
        }
    }
}

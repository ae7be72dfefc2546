//! The whole machine: busy CPUs, steal, runnable tasks, pressure.

use std::io;

use crate::proc_file::ProcFile;
use crate::process::ns_per_tick;
use crate::text::{hexadecimal, lines, number, words};

/// What is read of the machine at one moment. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachineSample {
    /// time that the hypervisor gave to others, all CPUs, ns
    pub steal_ns: Option<i64>,
    /// time of the CPUs of the client
    pub client_set: SetTime,
    /// time of the CPUs of the target
    pub target_set: SetTime,
    /// runnable tasks
    pub run_queue: Option<i64>,
    /// time in which some task waited for a CPU, µs
    pub pressure_us: Option<i64>,
    /// processes and threads started since boot
    pub forks: Option<i64>,
    /// memory that programs could still have, KiB
    pub available_kib: Option<i64>,
    pub softnet: Softnet,
}

/// What a set of CPUs did. The unit is that of its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetTime {
    pub busy: Option<i64>,
    /// of it, serving the network and other soft interrupts
    pub softirq: Option<i64>,
}

/// What is taken from /proc/stat; times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub steal: Option<i64>,
    pub running: Option<i64>,
    pub forks: Option<i64>,
    pub client: SetTime,
    pub target: SetTime,
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
            Some(b"processes") => stat.forks = words.next().and_then(number),
            Some(b"procs_running") => stat.running = words.next().and_then(number),
            Some(key) => {
                let Some(cpu) = key.strip_prefix(b"cpu").and_then(number) else {
                    continue;
                };
                // A number of a CPU that does not fit usize is in no set.
                let Ok(cpu) = usize::try_from(cpu) else {
                    continue;
                };
                let time = set_time(words);
                for (set, sum) in [(client, &mut client_sum), (target, &mut target_sum)] {
                    if set.binary_search(&cpu).is_ok() {
                        sum.add(time);
                    }
                }
            }
            None => {}
        }
    }
    stat.client = client_sum.of_all(client.len());
    stat.target = target_sum.of_all(target.len());
    stat
}

/// Columns of a "cpu" line: user nice system idle iowait irq softirq steal guest guest_nice.
const STEAL: usize = 7;

/// User, nice, system, irq and softirq, and the last alone. Guests are within user; stolen time was not ours to use.
fn set_time<'t>(words: impl Iterator<Item = &'t [u8]>) -> Option<(i64, i64)> {
    const BUSY: [bool; STEAL] = [true, true, true, false, false, true, true];
    let mut busy = 0i64;
    let mut last = None;
    let mut columns = 0;
    for (word, is_busy) in words.zip(BUSY) {
        columns += 1;
        if is_busy {
            let time = number(word)?;
            busy = busy.checked_add(time)?;
            last = Some(time);
        }
    }
    (columns == BUSY.len()).then_some((busy, last?))
}

/// Sums that know how many terms they have.
#[derive(Default)]
struct Sum {
    busy: i64,
    softirq: i64,
    terms: usize,
}

impl Sum {
    fn add(&mut self, term: Option<(i64, i64)>) {
        let sums = term.and_then(|(busy, softirq)| {
            Some((
                self.busy.checked_add(busy)?,
                self.softirq.checked_add(softirq)?,
            ))
        });
        if let Some((busy, softirq)) = sums {
            (self.busy, self.softirq) = (busy, softirq);
            self.terms += 1;
        }
    }
    fn of_all(self, expected: usize) -> SetTime {
        let all = expected > 0 && self.terms == expected;
        SetTime {
            busy: all.then_some(self.busy),
            softirq: all.then_some(self.softirq),
        }
    }
}

/// Reads the text of /proc/pressure/cpu: total of the "some" line, µs.
pub(crate) fn parse_pressure(text: &[u8]) -> Option<i64> {
    lines(text)
        .find_map(|line| line.strip_prefix(b"some "))
        .and_then(|rest| words(rest).find_map(|word| word.strip_prefix(b"total=")))
        .and_then(number)
}

/// Reads the text of /proc/meminfo: MemAvailable, KiB.
pub(crate) fn parse_meminfo(text: &[u8]) -> Option<i64> {
    lines(text)
        .find_map(|line| line.strip_prefix(b"MemAvailable:"))
        .and_then(|rest| words(rest).next())
        .and_then(number)
}

/// Received packets, all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Softnet {
    /// dropped for a full backlog
    pub dropped: Option<i64>,
    /// times that a CPU had to leave packets for later
    pub squeezed: Option<i64>,
}

/// Reads the text of /proc/net/softnet_stat: one line a CPU, hexadecimal; columns 2 and 3.
pub(crate) fn parse_softnet(text: &[u8]) -> Softnet {
    // A line that was cut would be a CPU less, and a sum that is too small.
    if text.last() != Some(&b'\n') {
        return Softnet::default();
    }
    let column = |at: usize| {
        lines(text).try_fold(0i64, |sum, line| {
            sum.checked_add(hexadecimal(words(line).nth(at)?)?)
        })
    };
    Softnet {
        dropped: column(1),
        squeezed: column(2),
    }
}

/// The open files of the machine.
#[derive(Debug)]
pub(crate) struct MachineReader {
    stat: ProcFile,
    /// `None` where the kernel has no pressure accounting
    pressure: Option<ProcFile>,
    meminfo: ProcFile,
    /// `None` where there is no network
    softnet: Option<ProcFile>,
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
        Ok(Self {
            stat: ProcFile::open("/proc/stat")?,
            pressure: ProcFile::open("/proc/pressure/cpu").ok(),
            meminfo: ProcFile::open("/proc/meminfo")?,
            softnet: ProcFile::open("/proc/net/softnet_stat").ok(),
            client,
            target,
            ns_per_tick: ns_per_tick(),
        })
    }

    /// What the machine is doing now.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> MachineSample {
        let stat = self.stat.read(buffer).map_or_else(
            |_| Stat::default(),
            |text| parse_stat(text, &self.client, &self.target),
        );
        let ns = |ticks: Option<i64>| ticks?.checked_mul(self.ns_per_tick);
        let set = |time: SetTime| SetTime {
            busy: ns(time.busy),
            softirq: ns(time.softirq),
        };
        MachineSample {
            steal_ns: ns(stat.steal),
            client_set: set(stat.client),
            target_set: set(stat.target),
            forks: stat.forks,
            run_queue: stat.running,
            pressure_us: self
                .pressure
                .as_ref()
                .and_then(|file| parse_pressure(file.read(buffer).ok()?)),
            available_kib: self.meminfo.read(buffer).ok().and_then(parse_meminfo),
            softnet: self
                .softnet
                .as_ref()
                .and_then(|file| file.read(buffer).ok())
                .map_or_else(Softnet::default, parse_softnet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &[u8] = include_bytes!("../tests/data/stat");
    const PRESSURE: &[u8] = include_bytes!("../tests/data/pressure-cpu");
    const MEMINFO: &[u8] = include_bytes!("../tests/data/meminfo");
    const SOFTNET: &[u8] = include_bytes!("../tests/data/softnet_stat");

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
            let softirq = |set: &[usize], busy: Option<i64>| {
                let of = |cpu: &usize| [11, 78][*cpu];
                busy.map(|_| set.iter().map(of).sum())
            };
            let want = Stat {
                steal: Some(53),
                running: Some(1),
                forks: Some(18_638),
                client: SetTime {
                    busy: client_busy,
                    softirq: softirq(client, client_busy),
                },
                target: SetTime {
                    busy: target_busy,
                    softirq: softirq(target, target_busy),
                },
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
    fn reads_available_memory() {
        assert_eq!(parse_meminfo(MEMINFO), Some(23_633_320));
        assert_eq!(parse_meminfo(b"MemFree: 5 kB\n"), None); // before Linux 3.14
        assert_eq!(parse_meminfo(b"MemAvailable: 5"), None); // cut
    }

    #[test]
    fn adds_up_the_cpus_of_softnet() {
        let some = |dropped, squeezed| Softnet {
            dropped: Some(dropped),
            squeezed: Some(squeezed),
        };
        let table: [(&[u8], Softnet); 5] = [
            (SOFTNET, some(0, 8)),
            (b"05 0a 01 00\n05 ffffffff 0F 00\n", some(0x1_0000_0009, 16)), // beyond 32 bits together
            (b"05 0a 01\n05 0a", Softnet::default()),                       // a CPU short
            (
                b"05 0a\n", // a column short
                Softnet {
                    dropped: Some(10),
                    squeezed: None,
                },
            ),
            (b"", Softnet::default()),
        ];
        for (text, want) in table {
            assert_eq!(parse_softnet(text), want);
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
        let busy = after.client_set.busy.unwrap() - before.client_set.busy.unwrap();
        let stolen = after.steal_ns.unwrap() - before.steal_ns.unwrap();
        assert!(
            busy + stolen >= burnt / 2,
            "busy {busy} ns, stolen {stolen} ns, burnt {burnt} ns"
        );
        assert!(after.run_queue.unwrap() >= 1, "at least this thread runs");
        assert_eq!(after.target_set.busy, None);
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
        fn a_cut_softnet_or_meminfo_gives_the_same_numbers_or_none(cut: prop::sample::Index) {
            let part = parse_softnet(&SOFTNET[..cut.index(SOFTNET.len())]);
            // A whole line is a machine with one CPU.
            prop_assert!(part.dropped.is_none() || part.dropped <= parse_softnet(SOFTNET).dropped);
            prop_assert!(part.squeezed.is_none() || part.squeezed <= parse_softnet(SOFTNET).squeezed);
            let part = parse_meminfo(&MEMINFO[..cut.index(MEMINFO.len())]);
            prop_assert!(part.is_none() || part == parse_meminfo(MEMINFO));
        }

        #[test]
        fn a_cut_text_gives_the_same_numbers_or_none(cut in 0..=STAT.len()) {
            let (part, whole) = (parse_stat(&STAT[..cut], &[0], &[0, 1]), parse_stat(STAT, &[0], &[0, 1]));
            for (p, w) in [
                (part.steal, whole.steal),
                (part.running, whole.running),
                (part.forks, whole.forks),
                (part.client.busy, whole.client.busy),
                (part.target.softirq, whole.target.softirq),
            ] {
                prop_assert!(p.is_none() || p == w);
            }
        }

        #[test]
        fn a_damaged_text_does_no_harm(at in 0..STAT.len(), with: Vec<u8>) {
            let mut text = STAT.to_vec();
            text.splice(at..(at + with.len()).min(STAT.len()), with);
            let s = parse_stat(&text, &[0], &[0, 1]);
            let n = parse_softnet(&text);
            let numbers = [s.steal, s.running, s.forks, s.client.busy, s.target.softirq, n.dropped, n.squeezed];
            prop_assert!(numbers.into_iter().flatten().all(|n| n >= 0));
            parse_pressure(&text);
            parse_meminfo(&text);
        }
    }
}

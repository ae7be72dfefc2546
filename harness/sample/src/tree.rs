//! Several processes and their descendants as one: what the client (or the target) uses, whatever it
//! is made of. A tool may be a script that starts the real program, a server a master with workers.

use std::io;

use crate::pace::{Moment, Pace};
use crate::process::{Cpu, Life, ProcessReader, ProcessSample, parse_children};
use crate::task_dir::TaskDir;
use crate::threads::{Switches, Threads};

/// What is read of a tree at one moment. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeSample {
    /// living processes
    pub processes: Option<i64>,
    /// the sum over the living; CPU time also holds that of the ended
    pub sum: ProcessSample,
    pub switches: Switches,
}

/// The processes of a client or a target.
///
/// Shared pages are counted once a process, as the kernel counts them. A child that starts and
/// ends between two looks is never seen.
#[derive(Debug)]
pub(crate) struct Tree {
    members: Vec<Member>,
    /// CPU time of the members that are gone
    ended: Cpu,
    /// the greatest sum of peaks so far, KiB
    peak_kib: Option<i64>,
    /// there are processes that cannot be followed: a sum over the others would be too small
    beyond: bool,
    threads: Threads,
    threads_pace: Pace,
    /// children that were found, before they are opened
    found: Vec<u32>,
    growth_pace: Pace,
    /// forks of the machine before the last look for children
    forks: Option<i64>,
}

/// One process, and what was last seen of it.
#[derive(Debug)]
struct Member {
    reader: ProcessReader,
    cpu: Cpu,
    living: bool,
}

/// Descendants that are followed; each holds three descriptors open.
const MOST_DESCENDANTS: usize = 128;

impl Tree {
    /// Opens living processes; without any, every value is missing.
    pub(crate) fn open(pids: &[u32]) -> io::Result<Self> {
        let mut members = Vec::with_capacity(pids.len() + MOST_DESCENDANTS);
        for pid in pids {
            members.push(Member::new(ProcessReader::open(*pid)?));
        }
        Ok(Self {
            found: Vec::with_capacity(members.capacity()),
            members,
            ended: Cpu::ZERO,
            peak_kib: None,
            beyond: false,
            threads: Threads::new(),
            threads_pace: Pace::default(),
            growth_pace: Pace::default(),
            forks: None,
        })
    }

    /// What its processes use; nothing but `None` once none is left. `forks`: how many
    /// processes and threads the machine has started so far.
    pub(crate) fn read(
        &mut self,
        moment: Moment,
        forks: Option<i64>,
        buffer: &mut Vec<u8>,
    ) -> TreeSample {
        // No fork anywhere, no new child here: mostly it is as cheap as that.
        if forks.is_none() || forks != self.forks {
            let mut pace = self.growth_pace;
            let looked = pace.read(moment, || {
                self.grow(buffer);
                Some(())
            });
            self.growth_pace = pace;
            // It was read before the look, so that a fork meanwhile makes another look.
            self.forks = looked.map_or(self.forks, |()| forks);
        }
        let (processes, sum) = self.sum(buffer);
        if self.beyond || processes == 0 {
            return TreeSample::default();
        }
        let directories = self.members.iter().filter(|m| m.living);
        let directories = directories.map(|m| m.reader.directory());
        let threads = &mut self.threads;
        TreeSample {
            processes: Some(processes),
            sum,
            switches: self
                .threads_pace
                .read(moment, || threads.read(directories, buffer))
                .unwrap_or_default(),
        }
    }

    /// Number and sum of the living.
    fn sum(&mut self, buffer: &mut Vec<u8>) -> (i64, ProcessSample) {
        let (mut processes, mut sum) = (0, ProcessSample::ZERO);
        let mut cpu = Cpu::ZERO;
        let ended = &mut self.ended;
        self.members.retain_mut(|member| {
            match member.reader.read(buffer) {
                Life::Living(sample) => {
                    member.cpu = sample.cpu;
                    processes += 1;
                    sum = sum.plus(&sample);
                }
                // Kept until its parent has heard of it: it would be found again.
                Life::Zombie(last) => {
                    member.cpu = last;
                    member.living = false;
                }
                Life::Gone => {
                    *ended = ended.plus(member.cpu);
                    return false;
                }
            }
            cpu = cpu.plus(member.cpu);
            true
        });
        sum.cpu = cpu.plus(*ended);
        // A process that ends takes its peak with it; the peak of the whole is what was reached.
        self.peak_kib = self.peak_kib.max(sum.status.rss_peak_kib);
        sum.status.rss_peak_kib = self.peak_kib;
        (processes, sum)
    }

    /// Looks for children of members, and for theirs.
    fn grow(&mut self, buffer: &mut Vec<u8>) {
        let mut at = 0;
        // Every new member comes to the end, and is visited in turn; their number is bounded.
        while let Some(member) = self.members.get(at) {
            let parent = member.reader.pid();
            self.found.clear();
            let (found, beyond) = (&mut self.found, &mut self.beyond);
            // A process that has just ended has no children.
            if let Ok(tasks) = TaskDir::open(member.reader.directory()) {
                let _ = tasks.for_each(|tid| {
                    let Ok(file) = tasks.file(tid, "children") else {
                        return;
                    };
                    for pid in file.read(buffer).map(parse_children).into_iter().flatten() {
                        if found.len() == found.capacity() {
                            *beyond = true;
                        } else {
                            found.push(pid);
                        }
                    }
                });
            }
            for i in 0..self.found.len() {
                self.adopt(self.found[i], parent, buffer);
            }
            at += 1;
        }
    }

    fn adopt(&mut self, pid: u32, parent: u32, buffer: &mut Vec<u8>) {
        if self.members.iter().any(|m| m.reader.pid() == pid) {
            return;
        }
        match ProcessReader::open_child(pid, parent, buffer) {
            Ok(Some(reader)) if self.members.len() < self.members.capacity() => {
                self.members.push(Member::new(reader));
            }
            Ok(None) => {}
            // No room, or no descriptor left.
            Ok(Some(_)) | Err(_) => self.beyond = true,
        }
    }
}

impl Member {
    fn new(reader: ProcessReader) -> Self {
        Self {
            reader,
            cpu: Cpu::ZERO,
            living: true,
        }
    }
}

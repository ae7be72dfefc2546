//! CPU quotas: how often and how long the client's control groups (version 2) were held back.

use std::path::{Path, PathBuf};

use crate::proc_file::ProcFile;
use crate::text::{lines, number, words};

/// Running totals of a control group and of those above it, added up: a quota of any holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttling {
    /// periods in which the quota ran out
    pub periods: Option<i64>,
    /// time for which its tasks were held back, µs
    pub time_us: Option<i64>,
}

/// Reads the text of a cpu.stat. A group without a quota controller has no such numbers.
pub(crate) fn parse_cpu_stat(text: &[u8]) -> Throttling {
    let mut throttling = Throttling::default();
    for line in lines(text) {
        let mut words = words(line);
        match (words.next(), words.next()) {
            (Some(b"nr_throttled"), Some(value)) => throttling.periods = number(value),
            (Some(b"throttled_usec"), Some(value)) => throttling.time_us = number(value),
            _ => {}
        }
    }
    throttling
}

/// The group of a process below the root of the hierarchy, from the text of /proc/<pid>/cgroup: the
/// line "0::/path". One outside of our view ("/../x") has none.
pub(crate) fn parse_group(text: &[u8]) -> Option<&[u8]> {
    let path = lines(text).find_map(|line| line.strip_prefix(b"0::/"))?;
    path.split(|b| *b == b'/')
        .all(|part| part != b"..")
        .then_some(path)
}

/// Where the version 2 hierarchy is mounted, from the text of /proc/self/mountinfo; see proc_pid_mountinfo(5).
/// A mount of a part of it is of no use, as groups are named from its root.
pub(crate) fn parse_mount(text: &[u8]) -> Option<&[u8]> {
    lines(text).find_map(|line| {
        let mut words = words(line);
        let root = words.nth(3)?;
        let point = words.next()?;
        words.find(|word| *word == b"-")?;
        (words.next()? == b"cgroup2" && root == b"/").then_some(point)
    })
}

/// The open files of the groups that have a quota controller.
#[derive(Debug, Default)]
pub(crate) struct CgroupReader(Vec<ProcFile>);

impl CgroupReader {
    /// Opens those of a process. What cannot be read is missing.
    pub(crate) fn open(pid: u32) -> Self {
        Self(groups(pid).map_or_else(Vec::new, |(root, group)| {
            let mut buffer = Vec::new();
            group
                .ancestors()
                .filter_map(|path| {
                    let file = root.join(path).join("cpu.stat");
                    let file = ProcFile::open(file.to_str()?).ok()?;
                    let known = parse_cpu_stat(file.read(&mut buffer).ok()?);
                    known.periods.is_some().then_some(file)
                })
                .collect()
        }))
    }

    /// `None` where no group has a quota controller.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> Option<Throttling> {
        if self.0.is_empty() {
            return None;
        }
        let mut sum = Throttling {
            periods: Some(0),
            time_us: Some(0),
        };
        for file in &self.0 {
            let one = file.read(buffer).map(parse_cpu_stat).unwrap_or_default();
            let add = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
            sum = Throttling {
                periods: add(sum.periods, one.periods),
                time_us: add(sum.time_us, one.time_us),
            };
        }
        Some(sum)
    }
}

/// Mount point of the hierarchy, and the group of a process below it.
fn groups(pid: u32) -> Option<(PathBuf, PathBuf)> {
    let read = |path: &str| std::fs::read(path).ok();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let mounts = read("/proc/self/mountinfo")?;
    let group = read(&format!("/proc/{pid}/cgroup"))?;
    let (root, group) = (text(parse_mount(&mounts)?)?, text(parse_group(&group)?)?);
    Some((PathBuf::from(root), Path::new(&group).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CPU_STAT: &[u8] = include_bytes!("../tests/data/cpu.stat");
    const CGROUP: &[u8] = include_bytes!("../tests/data/cgroup");
    const MOUNTINFO: &[u8] = include_bytes!("../tests/data/mountinfo");

    #[test]
    fn reads_a_quota() {
        let some = |periods, time_us| Throttling {
            periods: Some(periods),
            time_us: Some(time_us),
        };
        let table: [(&[u8], Throttling); 4] = [
            (CPU_STAT, some(37, 1_804_211)),
            (b"usage_usec 5\nuser_usec 4\n", Throttling::default()), // the root has no quota
            (
                b"nr_throttled 1\nthrottled_usec 2", // cut
                Throttling {
                    periods: Some(1),
                    time_us: None,
                },
            ),
            (b"", Throttling::default()),
        ];
        for (text, want) in table {
            assert_eq!(parse_cpu_stat(text), want);
        }
    }

    #[test]
    fn finds_the_group_and_its_mount() {
        let table: [(&[u8], Option<&[u8]>); 5] = [
            (CGROUP, Some(b"")), // captured: version 1 beside a version 2 without groups
            (b"0::/user.slice/a b\n", Some(b"user.slice/a b")),
            (b"0::/../other\n", None), // outside of our namespace
            (b"4:memory:/x\n", None),  // version 1 only
            (b"0::/user", None),       // cut
        ];
        for (text, want) in table {
            assert_eq!(parse_group(text), want);
        }
        let table: [(&[u8], Option<&[u8]>); 4] = [
            (MOUNTINFO, Some(b"/sys/fs/cgroup/unified")),
            (
                b"1 2 0:3 / /sys/fs/cgroup rw shared:4 master:1 - cgroup2 cgroup2 rw\n", // optional fields
                Some(b"/sys/fs/cgroup"),
            ),
            (b"1 2 0:3 /part /mnt rw - cgroup2 cgroup2 rw\n", None), // a part of it
            (b"1 2 0:3 / /mnt rw - cgroup\n", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_mount(text), want);
        }
    }

    #[test]
    fn a_process_of_this_system_gives_both_numbers_or_none() {
        let reader = CgroupReader::open(std::process::id());
        if let Some(seen) = reader.read(&mut Vec::new()) {
            assert!(seen.periods.is_some() && seen.time_us.is_some());
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_gives_the_same_numbers_or_none(cut in 0..=CPU_STAT.len()) {
            let (part, whole) = (parse_cpu_stat(&CPU_STAT[..cut]), parse_cpu_stat(CPU_STAT));
            prop_assert!(part.periods.is_none() || part.periods == whole.periods);
            prop_assert!(part.time_us.is_none() || part.time_us == whole.time_us);
        }

        #[test]
        fn a_damaged_text_does_no_harm(which in 0..3usize, at: prop::sample::Index, with: Vec<u8>) {
            let mut text = [CPU_STAT, CGROUP, MOUNTINFO][which].to_vec();
            let at = at.index(text.len());
            text.splice(at..(at + with.len()).min(text.len()), with);
            let s = parse_cpu_stat(&text);
            prop_assert!([s.periods, s.time_us].into_iter().flatten().all(|n| n >= 0));
            if let Some(group) = parse_group(&text) {
                prop_assert!(!group.starts_with(b".."));
            }
            parse_mount(&text);
        }
    }
}

//! Sets of CPUs as people write them ("0", "1-3", "0,2"), and who gets which.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// CPUs by number, sorted, each once, at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<usize>")]
pub struct CpuSet(Vec<usize>);

/// Why a text or a list is not a set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a set of CPUs: expected numbers and ranges from 0 to {max}, such as \"0\", \"1-3\" or \"0,2\"",
    max = CpuSet::MAX
)]
pub struct CpuSetError(pub String);

impl CpuSet {
    /// Greatest number of a CPU: what a `cpu_set_t` of the C library holds.
    pub const MAX: usize = rustix::thread::CpuSet::MAX_CPU - 1;

    /// A set of these numbers, in any order.
    pub fn new(cpus: impl IntoIterator<Item = usize>) -> Result<Self, CpuSetError> {
        let mut cpus: Vec<usize> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        match cpus.last() {
            Some(last) if *last <= Self::MAX => Ok(Self(cpus)),
            Some(last) => Err(CpuSetError(last.to_string())),
            None => Err(CpuSetError(String::new())),
        }
    }

    /// The CPUs this process may run on now (a `taskset` around it counts).
    pub fn of_this_process() -> std::io::Result<Self> {
        let set = rustix::thread::sched_getaffinity(None)?;
        let cpus = (0..=Self::MAX).filter(|n| set.is_set(*n)).collect();
        // The kernel keeps no thread on an empty set, so at least one is there.
        Ok(Self(cpus))
    }

    /// The numbers, ascending.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.0
    }
    /// How many, at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // It is never empty.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Those of this set that are not in `other`.
    #[must_use]
    pub fn missing_from(&self, other: &Self) -> Vec<usize> {
        let absent = |n: &usize| !other.0.contains(n);
        self.0.iter().copied().filter(absent).collect()
    }
    /// As the kernel takes it.
    #[must_use]
    pub fn as_mask(&self) -> rustix::thread::CpuSet {
        let mut mask = rustix::thread::CpuSet::new();
        self.0.iter().for_each(|n| mask.set(*n));
        mask
    }
}

impl TryFrom<Vec<usize>> for CpuSet {
    type Error = CpuSetError;
    fn try_from(cpus: Vec<usize>) -> Result<Self, CpuSetError> {
        Self::new(cpus)
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let err = || CpuSetError(text.to_owned());
        let number = |t: &str| {
            let n: usize = t.trim().parse().map_err(|_| err())?;
            // Checked here, so that "0-4000000000" builds no list first.
            if n <= Self::MAX { Ok(n) } else { Err(err()) }
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => cpus.push(number(part)?),
                Some((from, to)) => {
                    let (from, to) = (number(from)?, number(to)?);
                    if from > to {
                        return Err(err());
                    }
                    cpus.extend(from..=to);
                }
            }
        }
        Self::new(cpus).map_err(|_| err())
    }
}

impl fmt::Display for CpuSet {
    /// The shortest form: runs as ranges ("0-2,5").
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.0.chunk_by(|a, b| a + 1 == *b).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [from, .., to] => write!(f, "{comma}{from}-{to}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

/// Who gets which of the online CPUs where the matrix does not say: `(client, target, runner)`.
///
/// - 1 CPU: all three share it.
/// - 2 CPUs: the client on the first, the target on the second, the runner on both.
/// - more: the runner has the first (interrupts land there too), client and target disjoint halves
///   of the rest; an odd one goes to the target, since it is the client that is to break.
///
/// Numbers only: it does not look which CPUs are two threads of one core. On such a machine set
/// `lab.cpus.client` and `lab.cpus.target`. No CPU at all (which cannot be) counts as CPU 0.
#[must_use]
pub fn default_split(online: &[usize]) -> (CpuSet, CpuSet, CpuSet) {
    let all = CpuSet::new(online.iter().copied()).unwrap_or(CpuSet(vec![0]));
    match all.0.as_slice() {
        [] | [_] => (all.clone(), all.clone(), all),
        [first, second] => (CpuSet(vec![*first]), CpuSet(vec![*second]), all),
        [first, rest @ ..] => {
            let (client, target) = rest.split_at(rest.len() / 2);
            (
                CpuSet(client.to_vec()),
                CpuSet(target.to_vec()),
                CpuSet(vec![*first]),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write_and_shows_the_shortest_form() {
        let table = [
            ("0", Some("0")),
            ("1-3", Some("1-3")),
            ("0,2", Some("0,2")),
            ("5,0-2", Some("0-2,5")),       // sorted
            ("1,1,0-1", Some("0-1")),       // each once
            (" 0 , 2 - 3 ", Some("0,2-3")), // blanks around
            ("1023", Some("1023")),         // the last the kernel's mask holds
            ("1024", None),
            ("0-4000000000", None), // must not build the list to find out
            ("3-1", None),          // backwards
            ("", None),
            ("0,", None),
            ("-1", None),
            ("all", None),
        ];
        for (text, want) in table {
            let got = text.parse::<CpuSet>().ok().map(|s| s.to_string());
            assert_eq!(got.as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn splits_the_cpus() {
        // each row: online → client, target, runner
        let table: [(&[usize], [&str; 3]); 8] = [
            (&[0], ["0", "0", "0"]),
            (&[0, 1], ["0", "1", "0-1"]),
            (&[2, 6], ["2", "6", "2,6"]), // the numbers need not start at 0
            (&[0, 1, 2], ["1", "2", "0"]),
            (&[0, 1, 2, 3], ["1", "2-3", "0"]), // the odd one goes to the target
            (&[0, 1, 2, 3, 4], ["1-2", "3-4", "0"]),
            (&[0, 1, 2, 3, 4, 5, 6, 7], ["1-3", "4-7", "0"]),
            (&[], ["0", "0", "0"]), // cannot be, and must not panic
        ];
        for (online, want) in table {
            let (client, target, runner) = default_split(online);
            let got = [client, target, runner].map(|s| s.to_string());
            assert_eq!(got, want, "{online:?}");
        }
    }
}

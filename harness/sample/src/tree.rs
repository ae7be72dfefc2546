//! Several processes as one: what the client (or the target) uses, whatever it is made of.

use std::io;

use crate::process::{ProcessReader, ProcessSample};

/// The processes of a client or a target.
#[derive(Debug)]
pub(crate) struct Tree {
    members: Vec<Member>,
    /// CPU time of the members that have ended, ns
    ended_cpu_ns: i64,
    /// the greatest sum of peaks so far, KiB
    peak_kib: Option<i64>,
}

/// One process, and what was last seen of it.
#[derive(Debug)]
struct Member {
    reader: ProcessReader,
    cpu_ns: i64,
}

impl Tree {
    /// Opens living processes; without any, every value is missing.
    pub(crate) fn open(pids: &[u32]) -> io::Result<Self> {
        let member = |pid: &u32| {
            Ok(Member {
                reader: ProcessReader::open(*pid)?,
                cpu_ns: 0,
            })
        };
        Ok(Self {
            members: pids.iter().map(member).collect::<io::Result<_>>()?,
            ended_cpu_ns: 0,
            peak_kib: None,
        })
    }

    /// The sum over all living processes; CPU time also holds that of the ended. Nothing but
    /// `None` once no process is left.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> ProcessSample {
        let mut sum: Option<ProcessSample> = None;
        let ended = &mut self.ended_cpu_ns;
        self.members.retain_mut(|member| {
            let Some(sample) = member.reader.read(buffer) else {
                *ended = ended.saturating_add(member.cpu_ns);
                return false;
            };
            member.cpu_ns = sample.cpu_ns.unwrap_or(member.cpu_ns);
            sum = Some(sum.map_or(sample, |sum| sum.plus(&sample)));
            true
        });
        let Some(mut sum) = sum else {
            return ProcessSample::default();
        };
        sum.cpu_ns = sum.cpu_ns.and_then(|ns| ns.checked_add(*ended));
        // A process that ends takes its peak with it; the peak of the whole is what was reached.
        self.peak_kib = self.peak_kib.max(sum.status.rss_peak_kib);
        sum.status.rss_peak_kib = self.peak_kib;
        sum
    }
}

//! Every parser of this crate under one signature, for programs that feed it damaged input.

use crate::cgroup::{parse_cpu_stat, parse_group, parse_mount};
use crate::diag_wire::read_datagram;
use crate::machine::{parse_meminfo, parse_pressure, parse_softnet, parse_stat};
use crate::net::{parse_netstat, parse_snmp, parse_sockstat};
use crate::process;
use crate::threads::{parse_schedstat, parse_switches};

/// Parses a text; how many values it found.
///
/// # Panics
/// A parser found a negative number, which none of its sources can hold: a bug.
pub type Parser = fn(&[u8]) -> usize;

/// The parsers, each with the name of a captured input (a file of `tests/data`).
pub const PARSERS: &[(&str, Parser)] = &[
    ("status", status),
    ("status-zombie", status),
    ("pid-stat", |text| {
        let s = process::parse_stat(text);
        count([s.parent, s.user, s.system])
    }),
    ("children", |text| process::parse_children(text).count()),
    ("schedstat", |text| count([parse_schedstat(text)])),
    ("sockstat", |text| {
        let s = parse_sockstat(text);
        count([s.inuse, s.time_wait, s.orphan, s.mem_pages])
    }),
    ("snmp", |text| {
        let s = parse_snmp(text);
        count([
            s.active_opens,
            s.passive_opens,
            s.attempt_fails,
            s.estab_resets,
            s.retrans_segs,
            s.out_rsts,
        ])
    }),
    ("netstat", |text| {
        let s = parse_netstat(text);
        count([
            s.listen_overflows,
            s.listen_drops,
            s.time_wait_overflow,
            s.time_waited,
            s.time_wait_recycled,
        ])
    }),
    ("stat", |text| {
        let s = parse_stat(text, &[0], &[0, 1]);
        let (a, b) = (s.client, s.target);
        count([
            s.steal, s.running, s.forks, a.busy, a.softirq, b.busy, b.softirq,
        ])
    }),
    ("pressure-cpu", |text| count([parse_pressure(text)])),
    ("meminfo", |text| count([parse_meminfo(text)])),
    ("softnet_stat", |text| {
        let s = parse_softnet(text);
        count([s.dropped, s.squeezed])
    }),
    ("cpu.stat", |text| {
        let s = parse_cpu_stat(text);
        count([s.periods, s.time_us])
    }),
    ("cgroup", |text| usize::from(parse_group(text).is_some())),
    ("mountinfo", |text| usize::from(parse_mount(text).is_some())),
    ("sock-diag", |datagram| {
        // Whatever number the first message has is the one that is waited for.
        let seq = datagram
            .get(8..)
            .and_then(|rest| rest.first_chunk().copied());
        let mut entries = 0;
        let _ = read_datagram(datagram, seq.map_or(0, u32::from_ne_bytes), |_| {
            entries += 1
        });
        entries
    }),
];

fn status(text: &[u8]) -> usize {
    let s = process::parse_status(text);
    let (voluntary, involuntary) = parse_switches(text);
    count([
        s.rss_kib,
        s.rss_anon_kib,
        s.rss_peak_kib,
        s.threads,
        voluntary,
        involuntary,
    ])
}

fn count<const N: usize>(values: [Option<i64>; N]) -> usize {
    let found = values.into_iter().flatten();
    found
        .inspect(|n| assert!(*n >= 0, "a negative number: {n}"))
        .count()
}

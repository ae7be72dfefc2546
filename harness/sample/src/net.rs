//! The network namespace: sockets in use, TIME_WAIT, TCP counters.

use std::io;

use crate::proc_file::ProcFile;
use crate::text::{after, lines, number, words};

/// What is read of a network namespace at one moment. Missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetSample {
    pub sockstat: Sockstat,
    pub tcp: Snmp,
    pub tcp_ext: Netstat,
}

impl NetSample {
    /// What is read of the client's namespace, together with that of the target's own.
    ///
    /// What happens to connections is added up, so that it is of both ends as on loopback; the target alone listens
    /// and drops. TIME_WAIT and sockets in use stay the client's, since its ports are what runs out.
    pub(crate) fn with_target(&self, there: &Self) -> Self {
        let add = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        let (tcp, ext) = (&self.tcp, &self.tcp_ext);
        Self {
            sockstat: self.sockstat,
            tcp: Snmp {
                active_opens: add(tcp.active_opens, there.tcp.active_opens),
                passive_opens: add(tcp.passive_opens, there.tcp.passive_opens),
                attempt_fails: add(tcp.attempt_fails, there.tcp.attempt_fails),
                estab_resets: add(tcp.estab_resets, there.tcp.estab_resets),
                retrans_segs: add(tcp.retrans_segs, there.tcp.retrans_segs),
                out_rsts: add(tcp.out_rsts, there.tcp.out_rsts),
            },
            tcp_ext: Netstat {
                listen_overflows: add(ext.listen_overflows, there.tcp_ext.listen_overflows),
                listen_drops: add(ext.listen_drops, there.tcp_ext.listen_drops),
                ..*ext
            },
        }
    }
}

/// The "TCP:" line of /proc/<pid>/net/sockstat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sockstat {
    /// of the namespace
    pub inuse: Option<i64>,
    /// of the namespace, both ends together
    pub time_wait: Option<i64>,
    /// of the whole machine
    pub orphan: Option<i64>,
    /// of the whole machine, in pages
    pub mem_pages: Option<i64>,
}

/// Reads the text of sockstat.
pub(crate) fn parse_sockstat(text: &[u8]) -> Sockstat {
    let Some(line) = lines(text).find(|line| line.starts_with(b"TCP:")) else {
        return Sockstat::default();
    };
    Sockstat {
        inuse: after(line, b"inuse"),
        time_wait: after(line, b"tw"),
        orphan: after(line, b"orphan"),
        mem_pages: after(line, b"mem"),
    }
}

/// Counters of /proc/<pid>/net/snmp; all of the namespace since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snmp {
    pub active_opens: Option<i64>,
    pub passive_opens: Option<i64>,
    pub attempt_fails: Option<i64>,
    pub estab_resets: Option<i64>,
    pub retrans_segs: Option<i64>,
    pub out_rsts: Option<i64>,
}

/// Reads the text of snmp.
pub(crate) fn parse_snmp(text: &[u8]) -> Snmp {
    let mut snmp = Snmp::default();
    for_each_counter(text, b"Tcp:", |name, value| match name {
        b"ActiveOpens" => snmp.active_opens = value,
        b"PassiveOpens" => snmp.passive_opens = value,
        b"AttemptFails" => snmp.attempt_fails = value,
        b"EstabResets" => snmp.estab_resets = value,
        b"RetransSegs" => snmp.retrans_segs = value,
        b"OutRsts" => snmp.out_rsts = value,
        _ => {}
    });
    snmp
}

/// Counters of /proc/<pid>/net/netstat; all of the namespace since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Netstat {
    pub listen_overflows: Option<i64>,
    pub listen_drops: Option<i64>,
    pub time_wait_overflow: Option<i64>,
    pub time_waited: Option<i64>,
    pub time_wait_recycled: Option<i64>,
}

/// Reads the text of netstat.
pub(crate) fn parse_netstat(text: &[u8]) -> Netstat {
    let mut netstat = Netstat::default();
    for_each_counter(text, b"TcpExt:", |name, value| match name {
        b"ListenOverflows" => netstat.listen_overflows = value,
        b"ListenDrops" => netstat.listen_drops = value,
        b"TCPTimeWaitOverflow" => netstat.time_wait_overflow = value,
        b"TW" => netstat.time_waited = value,
        b"TWRecycled" => netstat.time_wait_recycled = value,
        _ => {}
    });
    netstat
}

/// Walks a pair of lines: both begin with `group`, the first has the names, the second the values.
///
/// The order of the names differs between kernels, so each value is taken by its name.
fn for_each_counter(text: &[u8], group: &[u8], mut take: impl FnMut(&[u8], Option<i64>)) {
    let mut of_group = lines(text)
        .map(words)
        .filter_map(|mut line| (line.next() == Some(group)).then_some(line));
    if let (Some(names), Some(values)) = (of_group.next(), of_group.next()) {
        for (name, value) in names.zip(values) {
            take(name, number(value));
        }
    }
}

/// The open files of a network namespace. While one lives, the namespace lives.
#[derive(Debug)]
pub(crate) struct NetReader {
    sockstat: ProcFile,
    snmp: ProcFile,
    netstat: ProcFile,
}

impl NetReader {
    /// Opens the files of the namespace in which a process is.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let open = |name| ProcFile::open(&format!("/proc/{pid}/net/{name}"));
        Ok(Self {
            sockstat: open("sockstat")?,
            snmp: open("snmp")?,
            netstat: open("netstat")?,
        })
    }

    /// What is in the namespace now.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> NetSample {
        NetSample {
            sockstat: self
                .sockstat
                .read(buffer)
                .map_or_else(|_| Sockstat::default(), parse_sockstat),
            tcp: self
                .snmp
                .read(buffer)
                .map_or_else(|_| Snmp::default(), parse_snmp),
            tcp_ext: self
                .netstat
                .read(buffer)
                .map_or_else(|_| Netstat::default(), parse_netstat),
        }
    }
}

/// How many TIME_WAIT entries the network namespace of process `net_pid` has, both ends together.
///
/// The kernel counts here also connections that wait for the peer's FIN without a socket
/// (FIN_WAIT_2); [`crate::time_wait_split`] does not.
///
/// # Errors
/// The process is gone, or its file has no such number.
pub fn time_wait_count(net_pid: u32) -> io::Result<u64> {
    let path = format!("/proc/{net_pid}/net/sockstat");
    let mut buffer = Vec::new();
    let text = ProcFile::open(&path)?.read(&mut buffer)?;
    parse_sockstat(text)
        .time_wait
        .and_then(|n| u64::try_from(n).ok())
        .ok_or_else(|| {
            let what =
                format!("\"{path}\": expected \"tw\" and a number in the line \"TCP:\", got none");
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Captured in one namespace after refused, reset, overflowing and 27 orderly connections
    // with room for 20 TIME_WAIT entries.
    const SOCKSTAT: &[u8] = include_bytes!("../tests/data/sockstat");
    const SNMP: &[u8] = include_bytes!("../tests/data/snmp");
    const NETSTAT: &[u8] = include_bytes!("../tests/data/netstat");

    #[test]
    fn reads_sockstat() {
        let some = |inuse, orphan, time_wait, mem_pages| Sockstat {
            inuse: Some(inuse),
            orphan: Some(orphan),
            time_wait: Some(time_wait),
            mem_pages: Some(mem_pages),
        };
        let table: [(&[u8], Sockstat); 5] = [
            (SOCKSTAT, some(15, 0, 20, 233)),
            (
                b"TCP: inuse 1 orphan 2 tw 3 alloc 4 mem 5\n",
                some(1, 2, 3, 5),
            ),
            // inside a container some fields may be absent
            (
                b"TCP: inuse 1 tw 3\n",
                Sockstat {
                    inuse: Some(1),
                    time_wait: Some(3),
                    ..Sockstat::default()
                },
            ),
            (b"TCP6: inuse 9\nUDP: inuse 3 mem 2\n", Sockstat::default()),
            (b"TCP: inuse 15 orphan 0 tw 2", Sockstat::default()), // cut within a number
        ];
        for (text, want) in table {
            assert_eq!(
                parse_sockstat(text),
                want,
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }

    #[test]
    fn two_namespaces_count_together_and_the_clients_entries_alone() {
        let sample = |time_wait, drops| NetSample {
            sockstat: Sockstat {
                time_wait: Some(time_wait),
                ..Sockstat::default()
            },
            tcp: Snmp {
                passive_opens: drops,
                ..Snmp::default()
            },
            tcp_ext: Netstat {
                listen_drops: drops,
                time_wait_recycled: drops,
                ..Netstat::default()
            },
        };
        // listen drops of the client's and of the target's namespace, sum: what is not known is not 0
        let table = [
            (Some(0), Some(7), Some(7)),
            (None, Some(7), None),
            (Some(0), None, None),
        ];
        for (here, there, want) in table {
            let both = sample(3, here).with_target(&sample(40, there));
            assert_eq!(
                (both.tcp_ext.listen_drops, both.tcp.passive_opens),
                (want, want)
            );
            assert_eq!(both.tcp_ext.time_wait_recycled, here, "the client's ports");
            assert_eq!(both.sockstat.time_wait, Some(3));
        }
    }

    #[test]
    fn reads_counters_by_name() {
        let snmp = Snmp {
            active_opens: Some(41),
            passive_opens: Some(34),
            attempt_fails: Some(3),
            estab_resets: Some(4),
            retrans_segs: Some(4),
            out_rsts: Some(5),
        };
        assert_eq!(parse_snmp(SNMP), snmp);
        let netstat = Netstat {
            listen_overflows: Some(8),
            listen_drops: Some(8),
            time_wait_overflow: Some(7),
            time_waited: Some(20),
            time_wait_recycled: Some(0),
        };
        assert_eq!(parse_netstat(NETSTAT), netstat);

        let reordered = b"TcpExt: TWRecycled New TW\nTcpExt: 1 2 3\n";
        let table: [(&[u8], Option<i64>, Option<i64>); 5] = [
            (reordered, Some(1), Some(3)),
            (b"TcpExt: TWRecycled TW\nTcpExt: 1\n", Some(1), None), // a value short
            (b"TcpExt: TWRecycled TW\nTcpExt: 1 -3\n", Some(1), None), // nothing here is negative
            (b"TcpExt: TWRecycled TW\n", None, None),               // no values
            (b"IpExt: TW\nIpExt: 3\n", None, None),                 // another group
        ];
        for (text, recycled, waited) in table {
            let got = parse_netstat(text);
            assert_eq!(
                (got.time_wait_recycled, got.time_waited),
                (recycled, waited),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }

    fn numbers(text: &[u8]) -> Vec<Option<i64>> {
        let (a, b, c) = (parse_sockstat(text), parse_snmp(text), parse_netstat(text));
        vec![
            a.inuse,
            a.time_wait,
            a.orphan,
            a.mem_pages,
            b.active_opens,
            b.passive_opens,
            b.attempt_fails,
            b.estab_resets,
            b.retrans_segs,
            b.out_rsts,
            c.listen_overflows,
            c.listen_drops,
            c.time_wait_overflow,
            c.time_waited,
            c.time_wait_recycled,
        ]
    }

    proptest! {
        #[test]
        fn a_cut_text_gives_the_same_numbers_or_none(which in 0..3usize, cut: prop::sample::Index) {
            let whole = [SOCKSTAT, SNMP, NETSTAT][which];
            let part = &whole[..cut.index(whole.len())];
            for (p, w) in numbers(part).into_iter().zip(numbers(whole)) {
                prop_assert!(p.is_none() || p == w);
            }
        }

        #[test]
        fn a_damaged_text_does_no_harm(which in 0..3usize, at: prop::sample::Index, with: Vec<u8>) {
            let mut text = [SOCKSTAT, SNMP, NETSTAT][which].to_vec();
            let at = at.index(text.len());
            text.splice(at..(at + with.len()).min(text.len()), with);
            prop_assert!(numbers(&text).into_iter().flatten().all(|n| n >= 0));
        }
    }
}

//! Every metric, declared once: its column, unit, source and meaning, and where its value is in a row.

use yieldpoint_terms::{Behaviour, Metric, Unit};

use crate::readers::Seen;

/// Every metric that is sampled, in the order of its declaration. A column of
/// [`yieldpoint_terms::SampleSeries`] exists for each, in every trial.
pub const METRICS: &[Metric] = &METRIC_ARRAY;

/// Number of metrics.
pub(crate) const COUNT: usize = TABLE.len();

const METRIC_ARRAY: [Metric; COUNT] = {
    let mut metrics = [TABLE[0].0; COUNT];
    let mut i = 1;
    while i < COUNT {
        metrics[i] = TABLE[i].0;
        i += 1;
    }
    metrics
};

/// Takes the value of a metric out of what was read.
pub(crate) type Take = fn(&Seen) -> Option<i64>;

const fn gauge(name: &'static str, unit: Unit, source: &'static str, doc: &'static str) -> Metric {
    Metric {
        name,
        unit,
        behaviour: Behaviour::Gauge,
        source,
        doc,
    }
}
const fn counter(
    name: &'static str,
    unit: Unit,
    source: &'static str,
    doc: &'static str,
) -> Metric {
    Metric {
        name,
        unit,
        behaviour: Behaviour::Counter,
        source,
        doc,
    }
}

use Unit::{Count, Kib, Micros, Nanos};

const STATUS: &str = "/proc/<pid>/status";
const CPU_CLOCK: &str = "CPU clock of the process";
const PID_STAT: &str = "/proc/<pid>/stat";
const CHILDREN: &str = "/proc/<pid>/task/<tid>/children";
const SCHEDSTAT: &str = "/proc/<pid>/task/<tid>/schedstat";
const TASK_STATUS: &str = "/proc/<pid>/task/<tid>/status";
const FDS: &str = "/proc/<pid>/fd";
const DIAG: &str = "sock_diag";
const CPU_STAT: &str = "cpu.stat of cgroup v2";
const SOFTNET: &str = "/proc/net/softnet_stat";
const SOCKSTAT: &str = "/proc/<pid>/net/sockstat";
const SNMP: &str = "/proc/<pid>/net/snmp";
const NETSTAT: &str = "/proc/<pid>/net/netstat";
const STAT: &str = "/proc/stat";

/// One line a metric.
#[rustfmt::skip]
pub(crate) const TABLE: &[(Metric, Take)] = &[
    (counter("client_cpu_ns", Nanos, CPU_CLOCK, "user and system time of all threads of the client"), |s| s.client.sum.cpu.total_ns),
    (counter("client_cpu_user_ns", Nanos, PID_STAT, "time of the client in user code, in steps of 10 ms"), |s| s.client.sum.cpu.user_ns),
    (counter("client_cpu_system_ns", Nanos, PID_STAT, "time of the client in the kernel, in steps of 10 ms"), |s| s.client.sum.cpu.system_ns),
    (gauge("client_rss_kib", Kib, STATUS, "resident memory of the client (VmRSS)"), |s| s.client.sum.status.rss_kib),
    (gauge("client_rss_anon_kib", Kib, STATUS, "resident memory of the client without files (RssAnon)"), |s| s.client.sum.status.rss_anon_kib),
    (gauge("client_rss_peak_kib", Kib, STATUS, "greatest resident memory of the client so far (VmHWM, added up over its processes)"), |s| s.client.sum.status.rss_peak_kib),
    (gauge("client_processes", Count, CHILDREN, "living processes of the client, descendants included"), |s| s.client.processes),
    (gauge("client_os_threads", Count, STATUS, "threads of the client"), |s| s.client.sum.status.threads),
    (gauge("client_fds", Count, FDS, "open descriptors of the client; missing above 1,024 before Linux 6.2"), |s| s.client.sum.fds),
    (counter("client_run_wait_ns", Nanos, SCHEDSTAT, "time in which threads of the client could run and had no CPU; once a second"), |s| s.client.switches.run_wait_ns),
    (counter("client_switches_voluntary", Count, TASK_STATUS, "times that threads of the client gave the CPU away; once a second"), |s| s.client.switches.voluntary),
    (counter("client_switches_involuntary", Count, TASK_STATUS, "times that the CPU was taken from threads of the client; once a second"), |s| s.client.switches.involuntary),
    (counter("target_cpu_ns", Nanos, CPU_CLOCK, "user and system time of all threads of the target"), |s| s.target.sum.cpu.total_ns),
    (counter("target_cpu_user_ns", Nanos, PID_STAT, "time of the target in user code, in steps of 10 ms"), |s| s.target.sum.cpu.user_ns),
    (counter("target_cpu_system_ns", Nanos, PID_STAT, "time of the target in the kernel, in steps of 10 ms"), |s| s.target.sum.cpu.system_ns),
    (gauge("target_rss_kib", Kib, STATUS, "resident memory of the target (VmRSS)"), |s| s.target.sum.status.rss_kib),
    (gauge("target_rss_anon_kib", Kib, STATUS, "resident memory of the target without files (RssAnon)"), |s| s.target.sum.status.rss_anon_kib),
    (gauge("target_rss_peak_kib", Kib, STATUS, "greatest resident memory of the target so far (VmHWM, added up over its processes)"), |s| s.target.sum.status.rss_peak_kib),
    (gauge("target_processes", Count, CHILDREN, "living processes of the target, descendants included"), |s| s.target.processes),
    (gauge("target_os_threads", Count, STATUS, "threads of the target"), |s| s.target.sum.status.threads),
    (gauge("target_fds", Count, FDS, "open descriptors of the target; missing above 1,024 before Linux 6.2"), |s| s.target.sum.fds),
    (counter("target_run_wait_ns", Nanos, SCHEDSTAT, "time in which threads of the target could run and had no CPU; once a second"), |s| s.target.switches.run_wait_ns),
    (counter("target_switches_voluntary", Count, TASK_STATUS, "times that threads of the target gave the CPU away; once a second"), |s| s.target.switches.voluntary),
    (counter("target_switches_involuntary", Count, TASK_STATUS, "times that the CPU was taken from threads of the target; once a second"), |s| s.target.switches.involuntary),
    (gauge("sockets_inuse", Count, SOCKSTAT, "TCP sockets of the namespace (over a veth pair, the client's), without TIME_WAIT"), |s| s.net.sockstat.inuse),
    (gauge("sockets_time_wait", Count, SOCKSTAT, "TIME_WAIT entries of the namespace, both ends together; over a veth pair those of the client's end"), |s| s.net.sockstat.time_wait),
    (gauge("sockets_time_wait_target", Count, SOCKSTAT, "TIME_WAIT entries of the target's end, over a veth pair; missing on loopback, where one namespace has both"), |s| s.target_time_wait),
    (gauge("sockets_orphan", Count, SOCKSTAT, "TCP sockets without a process, of the whole machine"), |s| s.net.sockstat.orphan),
    (gauge("tcp_mem_pages", Count, SOCKSTAT, "pages of memory that TCP uses, of the whole machine"), |s| s.net.sockstat.mem_pages),
    (gauge("sockets_established", Count, DIAG, "ends of standing connections (ESTABLISHED); once a second"), |s| Some(s.states?.established)),
    (gauge("sockets_syn_sent", Count, DIAG, "connects without an answer yet (SYN_SENT); once a second"), |s| Some(s.states?.syn_sent)),
    (gauge("sockets_syn_recv", Count, DIAG, "connects that came in and do not stand yet (SYN_RECV); once a second"), |s| Some(s.states?.syn_recv)),
    (gauge("sockets_fin_wait", Count, DIAG, "ends that closed first and wait for the other (FIN_WAIT_1, FIN_WAIT_2); once a second"), |s| Some(s.states?.fin_wait)),
    (gauge("sockets_close_wait", Count, DIAG, "ends that have not closed while the other has (CLOSE_WAIT); once a second"), |s| Some(s.states?.close_wait)),
    (gauge("listen_queue", Count, DIAG, "connections that wait for accept() on the target's port"), |s| s.listen.waiting),
    (gauge("listen_queue_limit", Count, DIAG, "how many may wait there"), |s| s.listen.limit),
    (counter("tcp_active_opens", Count, SNMP, "connects begun in the lab (ActiveOpens)"), |s| s.net.tcp.active_opens),
    (counter("tcp_passive_opens", Count, SNMP, "connects that came in (PassiveOpens)"), |s| s.net.tcp.passive_opens),
    (counter("tcp_attempt_fails", Count, SNMP, "connects that failed before they stood (AttemptFails)"), |s| s.net.tcp.attempt_fails),
    (counter("tcp_estab_resets", Count, SNMP, "standing connections that were reset (EstabResets)"), |s| s.net.tcp.estab_resets),
    (counter("tcp_retrans_segs", Count, SNMP, "segments sent again (RetransSegs)"), |s| s.net.tcp.retrans_segs),
    (counter("tcp_out_rsts", Count, SNMP, "resets sent by either end (OutRsts)"), |s| s.net.tcp.out_rsts),
    (counter("tcp_listen_overflows", Count, NETSTAT, "times an accept queue was full (ListenOverflows)"), |s| s.net.tcp_ext.listen_overflows),
    (counter("tcp_listen_drops", Count, NETSTAT, "connects dropped at a listening socket (ListenDrops)"), |s| s.net.tcp_ext.listen_drops),
    (counter("tcp_time_wait_overflow", Count, NETSTAT, "TIME_WAIT entries dropped at once, above tcp_max_tw_buckets (TCPTimeWaitOverflow); over a veth pair, this and the next two are of the client's end"), |s| s.net.tcp_ext.time_wait_overflow),
    (counter("tcp_time_waited", Count, NETSTAT, "TIME_WAIT entries that lived to their end (TW)"), |s| s.net.tcp_ext.time_waited),
    (counter("tcp_time_wait_recycled", Count, NETSTAT, "TIME_WAIT entries whose port was taken again before their end (TWRecycled)"), |s| s.net.tcp_ext.time_wait_recycled),
    (counter("cpu_steal_ns", Nanos, STAT, "time that the hypervisor gave to others, all CPUs together"), |s| s.machine.steal_ns),
    (counter("client_set_busy_ns", Nanos, STAT, "busy time of the client's CPUs, interrupts included"), |s| s.machine.client_set.busy),
    (counter("target_set_busy_ns", Nanos, STAT, "busy time of the target's CPUs, interrupts included"), |s| s.machine.target_set.busy),
    (counter("client_set_softirq_ns", Nanos, STAT, "busy time of the client's CPUs in soft interrupts, where the network is served"), |s| s.machine.client_set.softirq),
    (counter("target_set_softirq_ns", Nanos, STAT, "the same of the target's CPUs"), |s| s.machine.target_set.softirq),
    (gauge("run_queue", Count, STAT, "runnable tasks of the whole machine, the sampler included (procs_running)"), |s| s.machine.run_queue),
    (counter("cpu_pressure_us", Micros, "/proc/pressure/cpu", "time in which some task of the machine waited for a CPU"), |s| s.machine.pressure_us),
    (gauge("mem_available_kib", Kib, "/proc/meminfo", "memory of the machine that programs could still have (MemAvailable)"), |s| s.machine.available_kib),
    (counter("softnet_dropped", Count, SOFTNET, "packets dropped for a full backlog, of the whole machine"), |s| s.machine.softnet.dropped),
    (counter("softnet_squeezed", Count, SOFTNET, "times that packets had to be left for later, of the whole machine (time_squeeze)"), |s| s.machine.softnet.squeezed),
    (counter("cgroup_throttled", Count, CPU_STAT, "periods in which a CPU quota of the client ran out (nr_throttled), its group and those above; once a second, missing without a quota controller"), |s| s.throttling.periods),
    (counter("cgroup_throttled_us", Micros, CPU_STAT, "time for which that held tasks back (throttled_usec)"), |s| s.throttling.time_us),
    (counter("sampler_cpu_ns", Nanos, "CPU clock of the thread", "user and system time of the sampler itself"), |s| s.sampler_cpu_ns),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_columns_and_say_their_unit() {
        let names: BTreeSet<_> = METRICS.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), METRICS.len(), "each name once");
        for m in METRICS {
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            assert!(m.name.bytes().all(plain), "{}", m.name);
            for (unit, suffix) in [(Nanos, "_ns"), (Kib, "_kib"), (Micros, "_us")] {
                assert_eq!(m.unit == unit, m.name.ends_with(suffix), "{}", m.name);
            }
            assert!(!m.doc.is_empty() && !m.source.is_empty(), "{}", m.name);
        }
    }
}

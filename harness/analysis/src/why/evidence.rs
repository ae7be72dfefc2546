//! What is known of one trial, as plain numbers. With `asked.rs` and `series.rs` this is all that reads a trial.

use std::collections::BTreeMap;

use yieldpoint_protocol::ErrorKind;
use yieldpoint_record::{Manifest, Role, Status, Trial, flag};

use super::asked::{Asked, bit_per_s, cores};
use super::phases::{Course, Ports, Slots, course};
use super::series::{Sampled, connections, slots};

/// Times that come from the histograms of a trial, which are decoded elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    /// mean latency of the good requests of the window, a connect included, ns
    pub latency_mean_ns: Option<f64>,
    /// mean time of connect(), ns
    pub connect_mean_ns: Option<f64>,
    /// 99 of 100 connects took no longer, ns
    pub connect_p99_ns: Option<u64>,
}

/// What is known of one trial that was measured. `None`: not measured, or not asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    pub cell: String,
    pub round: u32,
    pub client: String,
    /// run for a ceiling: the reference client
    pub reference: bool,
    /// the A/A twin of a cell
    pub control: bool,
    /// what must be equal for two rates of the target to be comparable
    pub target_key: String,
    /// what must be equal for two loads of one client to be comparable
    pub client_key: String,

    // Asked for.
    pub window_s: f64,
    pub users: Option<f64>,
    /// loop threads of all processes
    pub threads: Option<f64>,
    /// requests on one connection before the client or the target closes it
    pub requests_per_connection: Option<f64>,
    /// responses on a connection after which the target closes it, where the client would go on
    pub keepalive_limit: Option<f64>,
    /// requests per second, of an open loop
    pub rate: Option<f64>,
    /// whether its starts are random, so that their number is, too
    pub poisson: bool,
    /// what the link carries, bits per second and direction
    pub link_bit_per_s: Option<f64>,
    /// descriptors a process may have
    pub fd_limit: Option<f64>,
    /// length of the accept queue
    pub backlog: Option<f64>,

    // Ports.
    /// local ports × source addresses
    pub ports: Option<f64>,
    /// a port in TIME_WAIT may be taken again after so long, s; `None`: not before its end
    pub reuse_after_s: Option<f64>,
    /// share of the connections that leave TIME_WAIT at the client, 0–1
    pub client_closes: Option<f64>,
    pub time_wait_peak: Option<f64>,
    /// when TIME_WAIT first passed half of the ports, s from `go`
    pub half_used_s: Option<f64>,
    /// when the first request found no port, s from `go`
    pub no_port_s: Option<f64>,
    /// whether entries were dropped at their limit, which frees ports
    pub time_wait_overflow: bool,

    // Outcome.
    pub good_per_s: Option<f64>,
    pub attempts: f64,
    pub connections: f64,
    pub errors: BTreeMap<ErrorKind, f64>,
    /// text of the first error of kind "other"
    pub other_example: Option<String>,
    pub latency_mean_s: Option<f64>,
    pub connect_mean_s: Option<f64>,
    pub connect_p99_s: Option<f64>,
    pub course: Course,

    // Machine.
    /// CPU time of the client ÷ what its threads could have had, 0–1
    pub client_cpu: Option<f64>,
    /// CPUs the client can use: of its set, and no more than it has threads
    pub client_cores: Option<f64>,
    /// busy time of the client's set ÷ its CPUs, where it has threads for all of them, 0–1
    pub client_set_busy: Option<f64>,
    /// the same of the target
    pub target_cpu: Option<f64>,
    pub target_cores: Option<f64>,
    /// the same of the target
    pub target_set_busy: Option<f64>,
    /// CPU time of the client per good request, s
    pub client_cpu_s_per_good: Option<f64>,
    /// CPU time of the client per connection during the first phase, s
    pub burst_cpu_s: Option<f64>,
    /// CPU time of the client per connection while it searched for ports, s
    pub search_cpu_s: Option<f64>,
    pub client_memory_share: Option<f64>,
    pub client_fds_peak: Option<f64>,
    pub target_fds_peak: Option<f64>,
    pub listen_queue_peak: Option<f64>,
    pub listen_drops: Option<f64>,
    pub closed_by_target: Option<f64>,
    /// bytes of the busier direction on the link per second, headers included as far as they can be counted
    pub link_used_bit_per_s: Option<f64>,
    /// time stolen by the hypervisor, share of one CPU
    pub steal: Option<f64>,
    /// what neither client nor target nor the network used of the CPUs of one of them, the worse of both, 0–1
    pub others: Option<f64>,
    /// share of their time in which the threads of that end could run and had no CPU: without it they would do
    /// 1 ÷ (1 − share) times as much at most
    pub waited: Option<f64>,
    pub noisy: bool,
    /// a CPU quota held the client back
    pub throttled: bool,
    pub shared_cpus: bool,
}

/// On a quiet machine others use less than this share of a program's CPUs, and it waits for them for less of the
/// time.
const OTHERS: f64 = 0.15;
const WAITED: f64 = 0.10;
/// Most that a segment of an MTU of 1,500 carries, and its headers of Ethernet, IP and TCP with timestamps.
const SEGMENT: f64 = 1_448.0;
const SEGMENT_OVERHEAD: f64 = 66.0;
/// What a connection costs beside its data: the target's SYN-ACK and its last ACK or FIN.
const CONNECTION_OVERHEAD: f64 = 74.0 + SEGMENT_OVERHEAD;

impl Evidence {
    /// Reads a trial; `None` if it was not measured.
    pub fn of(manifest: &Manifest, trial: &Trial, times: &Times) -> Option<Self> {
        let outcome = trial
            .outcome
            .as_ref()
            .filter(|_| trial.status == Status::Ok)?;
        let window_ns = outcome.window_end_ns.checked_sub(outcome.window_start_ns)?;
        if window_ns == 0 {
            return None;
        }
        let window_s = window_ns as f64 / 1e9;
        let asked = Asked(trial);
        let go = trial.start_at_ns.unwrap_or(outcome.window_start_ns);
        let since_go = |ns: u64| ns.saturating_sub(go) as f64 / 1e9;
        let samples = Sampled {
            samples: trial.samples.as_ref(),
            from: outcome.window_start_ns,
            to: outcome.window_end_ns,
        };
        let testimony = trial.testimony.as_ref();
        let has = |f: &str| trial.flags.iter().any(|x| x == f);

        let mut errors = BTreeMap::new();
        for e in &outcome.errors {
            *errors.entry(e.kind).or_insert(0.0) += e.count as f64;
        }
        let no_port =
            |k: ErrorKind| matches!(k, ErrorKind::AddressNotAvailable | ErrorKind::AddressInUse);
        let first_refused = outcome
            .errors
            .iter()
            .filter(|e| no_port(e.kind) && e.count > 0);
        let no_port_s = first_refused
            .map(|e| since_go(e.first_ns))
            .min_by(f64::total_cmp);

        let threads = asked
            .number("threads")
            .map(|t| t * asked.number("processes").unwrap_or(1.0));
        let users = threads
            .zip(asked.number("users_per_thread"))
            .map(|(t, u)| t * u);
        let client_set = cores(
            asked
                .text("lab.cpus.client")
                .unwrap_or(&manifest.lab.client_cpus),
        );
        let target_set = cores(
            asked
                .text("lab.cpus.target")
                .unwrap_or(&manifest.lab.target_cpus),
        );
        let client_cores = client_set.map(|c| threads.map_or(c, |t| c.min(t)));
        let workers = asked.number("target.workers");
        let target_cores = target_set.map(|c| workers.map_or(c, |w| c.min(w)));

        let ports = asked.ports();
        // Entries of the target's end stand in the same count, and take no port of the client.
        let client_part = client_part(trial);
        let time_wait_peak = samples
            .peak("sockets_time_wait")
            .map(|held| held * client_part);
        let client_closes = client_closes(trial, window_s);
        let reuse_after_s = asked.reuse_after_s();
        let half_used_s = ports.and_then(|ports| {
            let half = |n: i64| n as f64 * client_part > ports / 2.0;
            samples.first("sockets_time_wait", half).map(since_go)
        });
        let burned = reuse_after_s.is_none() && (no_port_s.is_some() || half_used_s.is_some());
        let ports_seen = match (burned, has(flag::BURST_ONLY)) {
            (true, _) => Ports::Burned,
            (false, true) => Ports::WouldRunOut,
            (false, false) => Ports::Free,
        };
        let course = course(&slots(trial), ports_seen);

        let cpu_per = |name: &str, slots: &Slots| -> Option<f64> {
            let phase = course.phases.iter().find(|p| p.name == name)?;
            let at = |ms: u64| samples.at("client_cpu_ns", go + ms * 1_000_000);
            let cpu = at(phase.end_ms)? - at(phase.start_ms)?;
            let from =
                (phase.start_ms.saturating_sub(slots.start_ms) / slots.slot_ms.max(1)) as usize;
            let to = (phase.end_ms.saturating_sub(slots.start_ms) / slots.slot_ms.max(1)) as usize;
            let n: u64 = slots.good.get(from..to)?.iter().sum();
            (n > 0).then(|| cpu / 1e9 / n as f64)
        };
        let connected = connections(trial);
        let share = |cpu: Option<f64>, cores: Option<f64>| {
            cpu.zip(cores)
                .map(|(cpu, cores)| cpu / 1e9 / window_s / cores)
        };
        // Soft interrupts serve the network, which is the load itself, and some kernels book them apart; what
        // others do on the same CPUs is no sign that the program lacks them. It says something where every CPU
        // of the set is in use.
        let busy = |end: &str, set: Option<f64>, used: Option<f64>| {
            let own = samples.growth(&format!("{end}_cpu_ns"))?;
            let network = samples.growth(&format!("{end}_set_softirq_ns"))?;
            // Where they are not booked apart they would count twice; the set was not busy for longer than it was.
            let most = samples.growth(&format!("{end}_set_busy_ns"))?;
            share(Some((own + network).min(most)), set.filter(|_| set == used))
        };
        let shared = has(flag::SHARED_CPUS);
        let crowd = [
            ("client", "target", client_set, threads),
            ("target", "client", target_set, workers),
        ]
        .into_iter()
        .filter_map(|(end, other, set, threads)| {
            let other = shared.then_some(other);
            crowd(&samples, window_s, end, other, set?, threads.unwrap_or(1.0))
        })
        .max_by(|a, b| a.weight().total_cmp(&b.weight()));
        let client_cpu_ns = samples.growth("client_cpu_ns");
        let good = outcome.window.good as f64;
        let keepalive_limit = asked.keepalive_limit();
        Some(Self {
            cell: trial.cell.clone(),
            round: trial.round,
            client: asked.text("client").unwrap_or_default().to_owned(),
            reference: trial.role == Role::Ceiling,
            control: trial.role == Role::Control,
            target_key: asked.target_key(),
            client_key: asked.key(&["client"]),
            window_s,
            users,
            threads,
            requests_per_connection: asked.requests_per_connection(),
            keepalive_limit,
            rate: asked
                .number("rate")
                .map(|r| r * asked.number("processes").unwrap_or(1.0)),
            poisson: asked.text("arrival") == Some("poisson"),
            link_bit_per_s: asked.text("lab.rate").and_then(bit_per_s),
            fd_limit: asked.number("lab.nofile"),
            backlog: asked.backlog(),
            ports,
            reuse_after_s,
            client_closes,
            time_wait_peak,
            half_used_s,
            no_port_s,
            time_wait_overflow: has(flag::TIME_WAIT_OVERFLOW),
            good_per_s: Some(good / window_s),
            attempts: outcome.total.attempts as f64,
            connections: outcome.total.connections as f64,
            errors,
            other_example: outcome
                .errors
                .iter()
                .find(|e| e.kind == ErrorKind::Other)
                .map(|e| e.example.clone()),
            latency_mean_s: times.latency_mean_ns.map(|ns| ns / 1e9),
            connect_mean_s: times.connect_mean_ns.map(|ns| ns / 1e9),
            connect_p99_s: times.connect_p99_ns.map(|ns| ns as f64 / 1e9),
            client_cpu: share(client_cpu_ns, client_cores),
            client_cores,
            client_set_busy: busy("client", client_set, client_cores),
            target_set_busy: busy("target", target_set, target_cores),
            target_cpu: share(samples.growth("target_cpu_ns"), target_cores),
            target_cores,
            client_cpu_s_per_good: client_cpu_ns
                .filter(|_| good > 0.0)
                .map(|ns| ns / 1e9 / good),
            burst_cpu_s: cpu_per(super::phases::BURST, &connected),
            search_cpu_s: cpu_per(super::phases::SEARCH, &connected),
            client_memory_share: samples
                .peak("client_rss_peak_kib")
                .filter(|_| manifest.machine.memory_kib > 0)
                .map(|kib| kib / manifest.machine.memory_kib as f64),
            client_fds_peak: samples.peak("client_fds"),
            target_fds_peak: samples.peak("target_fds"),
            listen_queue_peak: testimony.map(|t| t.listen_queue_peak as f64),
            listen_drops: samples.whole_growth("tcp_listen_drops"),
            closed_by_target: testimony.map(|t| t.closed_by_target as f64),
            link_used_bit_per_s: testimony.and_then(|t| {
                let served = t.responses.values().sum::<u64>() as f64;
                let size = t.bytes_out as f64 / served.max(1.0);
                let segments = (size / SEGMENT).ceil().max(1.0);
                let requests = served * (size + segments * SEGMENT_OVERHEAD);
                let bytes = requests + t.connections as f64 * CONNECTION_OVERHEAD;
                trial_s(trial)
                    .filter(|_| served > 0.0)
                    .map(|s| bytes * 8.0 / s)
            }),
            steal: samples.growth("cpu_steal_ns").map(|ns| ns / 1e9 / window_s),
            others: crowd.map(|c| c.others),
            waited: crowd.and_then(|c| c.waited),
            noisy: has(flag::NOISY),
            throttled: has(flag::THROTTLED),
            shared_cpus: shared,
            course,
        })
    }

    /// Failed requests of these kinds.
    pub fn failed(&self, kinds: &[ErrorKind]) -> f64 {
        kinds.iter().filter_map(|k| self.errors.get(k)).sum()
    }

    /// Requests that reached the target. One that found no port or no descriptor never did, and is tried again
    /// at once: beside them any failure at the target would look rare.
    pub fn reached(&self) -> f64 {
        let before = self.errors.iter().filter(|(k, _)| k.before_sending());
        self.attempts - before.map(|(_, n)| n).sum::<f64>()
    }

    /// Share of the users' time that is response time, by Little's law; `None` where requests failed: their
    /// time is not recorded.
    pub fn waiting(&self) -> Option<f64> {
        let failed: f64 = self.errors.values().sum();
        if failed > 0.01 * self.attempts {
            return None;
        }
        let (x, r) = (self.good_per_s?, self.latency_mean_s?);
        self.users.filter(|u| *u > 0.0).map(|u| x * r / u)
    }

    /// Little's law: 1 − X·R ÷ users, the share of the users' time that is not response time (work of the
    /// client, ramp-up, ended threads). `None` in an open loop, and where [`Self::waiting`] is unknown.
    pub fn unexplained_time(&self) -> Option<f64> {
        self.waiting()
            .filter(|_| self.rate.is_none())
            .map(|w| 1.0 - w)
    }

    /// Whether others used the CPUs of client or target, so that one of them had to wait.
    pub fn crowded(&self) -> bool {
        match (self.others, self.waited) {
            (Some(others), Some(waited)) => others >= OTHERS && waited >= WAITED,
            // Without the kernel's account of waiting, interrupts could be what the set was busy with.
            (Some(others), None) => others >= 2.0 * OTHERS,
            _ => false,
        }
    }

    /// The rate that a bound is held against: what lasts, where that is known.
    pub fn lasting_per_s(&self) -> Option<f64> {
        self.course.sustained_per_s.or(self.good_per_s)
    }
}

/// What others took of the CPUs of one end.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    others: f64,
    waited: Option<f64>,
}

impl Crowd {
    /// Orders the two ends: both are needed, CPU that others used and threads that waited for it.
    fn weight(&self) -> f64 {
        let waited = self.waited.map_or(f64::INFINITY, |w| w / WAITED);
        (self.others / OTHERS).min(waited)
    }
}

/// `other`: the program that runs on the same CPUs, if it does. Soft interrupts serve the network, which is the
/// load itself. Where the scheduler keeps no account of a program's waits, that of the machine stands in.
fn crowd(
    samples: &Sampled,
    window_s: f64,
    end: &str,
    other: Option<&str>,
    cores: f64,
    threads: f64,
) -> Option<Crowd> {
    let of = |end: &str, metric: &str| samples.growth(&format!("{end}_{metric}"));
    let mut rest = of(end, "set_busy_ns")? - of(end, "cpu_ns")?;
    rest -= of(end, "set_softirq_ns").unwrap_or(0.0);
    if let Some(other) = other {
        rest -= of(other, "cpu_ns")?;
    }
    let own = of(end, "run_wait_ns").map(|ns| ns / 1e9 / window_s / threads);
    let machine = || Some(samples.growth("cpu_pressure_us")? / 1e6 / window_s);
    Some(Crowd {
        others: (rest / 1e9 / window_s / cores).max(0.0),
        waited: own.or_else(machine),
    })
}

/// Seconds from `go` to the end of the target's course.
fn trial_s(trial: &Trial) -> Option<f64> {
    let series = &trial.testimony.as_ref()?.series;
    let s = series.slot_ns as f64 * series.responses.len() as f64 / 1e9;
    (s > 0.0).then_some(s)
}

/// Share of the TIME_WAIT entries that are the client's, as counted by end after the window; all of them
/// where that is unknown.
fn client_part(trial: &Trial) -> f64 {
    let ends = trial.time_wait.and_then(|t| t.client.zip(t.target));
    match ends {
        Some((client, target)) if client + target > 0 => client as f64 / (client + target) as f64,
        _ => 1.0,
    }
}

/// Share of the connections that left TIME_WAIT at the client's end.
///
/// Entries are counted once after the window, so they are those of its last 60 s. With reuse an entry ends
/// when its port is taken again; then what the target saw first says who closed.
fn client_closes(trial: &Trial, window_s: f64) -> Option<f64> {
    let reuse = Asked(trial).reuse_after_s().is_some();
    let seen = trial.testimony.as_ref();
    if reuse {
        let t = seen?;
        let closed = t.closed_by_client + t.closed_by_target;
        return (closed > 0).then(|| t.closed_by_client as f64 / closed as f64);
    }
    let left = trial.time_wait?.client? as f64;
    let opened = match seen.filter(|t| !t.series.connections.is_empty() && t.series.slot_ns > 0) {
        Some(t) => {
            let slots = usize::try_from(60_000_000_000 / t.series.slot_ns).unwrap_or(usize::MAX);
            let from = t.series.connections.len().saturating_sub(slots);
            t.series.connections[from..].iter().sum::<u64>() as f64
        }
        None if window_s <= 60.0 => trial.outcome.as_ref()?.total.connections as f64,
        None => return None,
    };
    (opened > 0.0).then(|| (left / opened).min(1.0))
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;

//! From a matrix to trials that can be run: everything that can be known before the first one is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use yieldpoint_lab::{CpuSet, LabSpec, Mode, Network, default_split, try_up};
use yieldpoint_matrix::{Cell, Matrix};
use yieldpoint_protocol::{Hello, Job, VERSION};
use yieldpoint_terms::{Knob, Knobs, Nanos, Value};

use crate::flags::{WHOLE_CYCLE_NS, ports_of};
use crate::{Program, Programs};

/// What a trial costs beside its window, for the estimate of the plan.
const OVERHEAD_NS: u64 = 250_000_000;
/// Descriptors a program needs beside its connections.
const SPARE_DESCRIPTORS: u64 = 64;
const SYSCTL: &str = "lab.sysctl.";
const PORT_RANGE: &str = "net.ipv4.ip_local_port_range";
const REUSE: &str = "net.ipv4.tcp_tw_reuse";

/// What `lab.mode = "auto"` means here.
#[derive(Clone, Debug)]
pub struct LabChoice {
    /// the mode
    pub mode: Mode,
    /// why not private, if it is not; with the way to allow it
    pub why: Option<String>,
}

/// Addresses beyond loopback that the user allows explicitly.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// allowed addresses
    pub allow: Vec<IpAddr>,
}

/// A cell with everything a trial needs.
#[derive(Clone, Debug)]
pub struct PlannedCell {
    /// the cell
    pub cell: Cell,
    /// why the client cannot do it, if it cannot
    pub unsupported: Option<String>,
    /// the client
    pub client: Program,
    /// its knobs; the URL is added when the target listens
    pub client_knobs: Knobs,
    /// the target and its job; `None`: a server of the user's under `url`
    pub target: Option<(Program, Job)>,
    /// private or host
    pub mode: Mode,
    /// what lies between client and target
    pub network: Network,
    /// sysctls without their prefix
    pub sysctls: Vec<(String, String)>,
    /// client processes, each with the whole job; 1 or more
    pub processes: u64,
    /// limit of descriptors of client and target
    pub nofile: Option<u64>,
    /// CPUs of the client
    pub client_cpus: CpuSet,
    /// CPUs of the target
    pub target_cpus: CpuSet,
    /// warm-up + window
    pub load: Nanos,
    /// the window alone
    pub window: Nanos,
    /// how long requests in flight may take after it
    pub grace: Nanos,
}

impl PlannedCell {
    /// The lab of its trials; `program`: the lab program.
    #[must_use]
    pub fn lab(&self, program: &Path) -> LabSpec {
        LabSpec {
            sysctls: self.sysctls.clone(),
            network: self.network,
            ..LabSpec::new(self.mode, program)
        }
    }
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// the matrix
    pub matrix: Matrix,
    /// its cells
    pub cells: Vec<PlannedCell>,
    /// indices of cells, one list a round, in the order of trials; unsupported cells are in none
    pub rounds: Vec<Vec<usize>>,
    /// remarks that stay true of the results
    pub notes: Vec<String>,
    /// remarks for whoever plans; the results say it themselves
    pub advice: Vec<String>,
    /// time of all windows and what stands between them, estimated
    pub expected: Nanos,
    /// the lab
    pub lab: LabChoice,
}

impl Plan {
    /// Trials that will be run.
    #[must_use]
    pub fn trials(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }
}

/// Everything that keeps a plan from being run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct PlanError(pub Vec<String>);

/// Plans. `common` are the knobs of every client.
pub fn plan(
    matrix: Matrix,
    common: &[Knob],
    programs: &Programs,
    lab: LabChoice,
    refusals: &Refusals,
) -> Result<Plan, PlanError> {
    let mut errors = BTreeSet::new();
    let mut cells = Vec::new();
    let planner = Planner {
        common,
        programs,
        lab: &lab,
        refusals,
        cpus: online_cpus(),
    };
    for cell in &matrix.cells {
        match planner.cell(cell) {
            Ok(planned) => cells.push(planned),
            Err(why) => errors.extend(why),
        }
    }
    errors.extend(refused_labs(&cells, programs));
    if errors.is_empty() && cells.iter().all(|c| c.unsupported.is_some()) {
        let why: BTreeSet<_> = cells.iter().filter_map(|c| c.unsupported.clone()).collect();
        errors.insert(format!(
            "no cell is left that its client can do: {}",
            Vec::from_iter(why).join("; ")
        ));
    }
    if !errors.is_empty() {
        return Err(PlanError(errors.into_iter().collect()));
    }
    let can = |i: &usize| cells[*i].unsupported.is_none();
    let rounds: Vec<Vec<usize>> = matrix
        .rounds()
        .into_iter()
        .map(|r| r.into_iter().filter(can).collect())
        .collect();
    let cost = |i: &usize| cells[*i].load.0 + OVERHEAD_NS;
    let expected = Nanos(rounds.iter().flatten().map(cost).sum());
    let mut notes = matrix.notes.clone();
    notes.extend(remarks(&cells, &lab));
    Ok(Plan {
        advice: advice(&cells),
        matrix,
        cells,
        rounds,
        notes,
        expected,
        lab,
    })
}

struct Planner<'a> {
    common: &'a [Knob],
    programs: &'a Programs,
    lab: &'a LabChoice,
    refusals: &'a Refusals,
    cpus: CpuSet,
}

impl Planner<'_> {
    fn cell(&self, cell: &Cell) -> Result<PlannedCell, Vec<String>> {
        let k = &cell.knobs;
        let mut errors = Vec::new();
        let mut keep = |r: Result<(), String>| errors.extend(r.err());
        // The catalog has checked types and filled in defaults; what is missing here is a slip of ours.
        let text = |name: &str| {
            k.text(name)
                .map(str::to_owned)
                .map_err(|e| vec![e.to_string()])
        };
        let duration = |name: &str| k.duration(name).map_err(|e| vec![e.to_string()]);
        let client = self.client(&text("client")?).map_err(|e| vec![e])?;
        let target = self.target(&text("target.kind")?).map_err(|e| vec![e])?;

        let mode = match text("lab.mode")?.as_str() {
            "host" => Mode::Host,
            "private" if target.is_none() => {
                keep(Err(
                    "lab.mode = \"private\" with target.kind = \"url\": a private lab has a loopback of its own, where your server is not; set lab.mode = \"host\"".into(),
                ));
                Mode::Private
            }
            "private" => {
                if let Some(why) = &self.lab.why {
                    keep(Err(format!(
                        "lab.mode = \"private\" is refused here: {why}"
                    )));
                }
                Mode::Private
            }
            _ if target.is_none() => Mode::Host,
            _ => self.lab.mode,
        };
        if target.is_none() {
            keep(self.allowed(k));
        }
        let network = network(k, mode).unwrap_or_else(|e| {
            keep(Err(e));
            Network::Loopback
        });

        let (client_default, target_default, _) = default_split(self.cpus.cpus());
        let mut cpus = |name: &str, default: CpuSet| match k.get(name) {
            None => default,
            Some(v) => v.to_string().parse::<CpuSet>().unwrap_or_else(|e| {
                errors.push(format!("{name}: {e}"));
                default
            }),
        };
        let client_cpus = cpus("lab.cpus.client", client_default);
        let target_cpus = cpus("lab.cpus.target", target_default);
        for (name, set) in [
            ("lab.cpus.client", &client_cpus),
            ("lab.cpus.target", &target_cpus),
        ] {
            if let Some(cpu) = set.missing_from(&self.cpus).first() {
                errors.push(format!(
                    "{name} = \"{set}\": there is no CPU {cpu}; online are {}",
                    self.cpus
                ));
            }
        }

        let nofile = k
            .get("lab.nofile")
            .map(|_| k.uint("lab.nofile"))
            .transpose();
        let nofile = nofile.map_err(|e| vec![e.to_string()])?;
        let users = k.uint("threads").unwrap_or(1) * k.uint("users_per_thread").unwrap_or(1);
        errors.extend(too_few_descriptors(users, nofile, hard_limit()));
        if !errors.is_empty() {
            return Err(errors);
        }

        let window = duration("duration")?;
        Ok(PlannedCell {
            processes: k.uint("processes").unwrap_or(1).max(1),
            unsupported: unsupported(&client.hello, self.common, k),
            client_knobs: client_knobs(&client.name, self.common, k),
            target: target.map(|t| {
                let mut job = target_job(&t.hello, &k.below("target."));
                if let Network::Veth(_) = network {
                    let address = network.target_address().to_string();
                    job.knobs.set("address", Value::Text(address));
                }
                (t, job)
            }),
            client,
            mode,
            network,
            sysctls: k
                .below(SYSCTL)
                .0
                .into_iter()
                .map(|(n, v)| (n, v.to_string()))
                .collect(),
            nofile,
            client_cpus,
            target_cpus,
            load: Nanos(window.0 + duration("warmup")?.0),
            window,
            grace: Nanos(duration("request_timeout")?.0 + duration("connect_timeout")?.0),
            cell: cell.clone(),
        })
    }

    fn client(&self, name: &str) -> Result<Program, String> {
        let broken = || {
            self.programs
                .broken
                .iter()
                .find(|b| b.role == "client" && b.name == name)
        };
        self.programs.client(name).cloned().ok_or_else(|| {
            broken().map_or_else(
                || format!("client \"{name}\" is not built"),
                ToString::to_string,
            )
        })
    }

    /// `None`: the user's own server.
    fn target(&self, kind: &str) -> Result<Option<Program>, String> {
        if kind == "url" {
            return Ok(None);
        }
        let broken = || {
            self.programs
                .broken
                .iter()
                .find(|b| b.role == "target" && b.name == kind)
        };
        self.programs
            .target(kind)
            .cloned()
            .map(Some)
            .ok_or_else(|| {
                broken().map_or_else(
                    || format!("target \"{kind}\" is not built"),
                    ToString::to_string,
                )
            })
    }

    /// Load goes to loopback, unless the user allows an address by name.
    fn allowed(&self, k: &Knobs) -> Result<(), String> {
        let url = k.text("url").map_err(|_| {
            "target.kind = \"url\" needs `url`, such as url = \"http://127.0.0.1:8080/\"".to_owned()
        })?;
        let host = url
            .strip_prefix("http://")
            .map(|r| r.split(['/', ':']).next().unwrap_or(r));
        let address: IpAddr = host.and_then(|h| h.parse().ok()).ok_or_else(|| {
            format!("url \"{url}\": expected http://ADDRESS:PORT/PATH with a numeric IPv4 address")
        })?;
        if address.is_loopback() || self.refusals.allow.contains(&address) {
            return Ok(());
        }
        Err(format!(
            "url \"{url}\": load goes to loopback only; if {address} is a machine of yours that may be loaded, add --allow-address {address}"
        ))
    }
}

/// The network of a cell.
fn network(k: &Knobs, mode: Mode) -> Result<Network, String> {
    let text = |name: &str| k.get(name).map(ToString::to_string);
    let name = text("lab.network").unwrap_or_else(|| "loopback".to_owned());
    let delay = k.get("lab.delay").map(|_| k.duration("lab.delay"));
    let delay = delay.transpose().map_err(|e| e.to_string())?;
    let network = Network::from_knobs(&name, text("lab.rate").as_deref(), delay)
        .map_err(|e| e.to_string())?;
    if network == Network::Loopback {
        return Ok(network);
    }
    if mode == Mode::Host {
        return Err("lab.network = \"veth\" needs a private lab, and this cell runs on the host: leave lab.mode at \"auto\" or \"private\", with a target of ours; `yieldpoint doctor` says whether private labs work here".to_owned());
    }
    match text("target.address") {
        Some(own) if own != network.target_address().to_string() => Err(format!(
            "target.address = \"{own}\" with lab.network = \"veth\": the target's end of the link is {}; leave target.address out",
            network.target_address()
        )),
        _ => Ok(network),
    }
}

/// The first reason why a client cannot do a cell.
fn unsupported(hello: &Hello, common: &[Knob], k: &Knobs) -> Option<String> {
    // The URL comes from the target, and the processes are the runner's to start.
    let others = ["url", "processes"];
    for knob in common.iter().filter(|k| !others.contains(&&*k.name)) {
        let set = k.get(&knob.name);
        let is_default = set.is_none() || set == knob.default_value().as_ref();
        if !is_default && !hello.honours.iter().any(|h| *h == knob.name) {
            let value = set.map(ToString::to_string).unwrap_or_default();
            return Some(format!(
                "client \"{}\" does not know {} = {value}",
                hello.name, knob.name
            ));
        }
    }
    hello
        .limits
        .iter()
        .find_map(|(knob, most)| match k.get(knob) {
            Some(Value::Int(i)) if i > most => Some(format!(
                "client \"{}\" can do {knob} up to {most}, the cell asks for {i}",
                hello.name
            )),
            _ => None,
        })
}

/// Common knobs by name, the client's own as "options.<name>"; the expected length follows the target's.
fn client_knobs(client: &str, common: &[Knob], k: &Knobs) -> Knobs {
    let is_common = |name: &str| common.iter().any(|knob| knob.answers_to(name));
    let mut job = Knobs(
        k.0.iter()
            .filter(|(name, _)| is_common(name))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect(),
    );
    for (name, value) in k.below(&format!("options.{client}.")).0 {
        job.set(format!("options.{name}"), value);
    }
    if job.get("expect.body_bytes").is_none()
        && k.get("target.kind") != Some(&Value::Text("url".into()))
        && let Some(length) = k.get("target.body_bytes")
    {
        job.set("expect.body_bytes", length.clone());
    }
    job
}

/// The knobs that this target knows, by their short names.
fn target_job(hello: &Hello, knobs: &Knobs) -> Job {
    let knows = |name: &str| hello.knobs.iter().any(|k| k.answers_to(name));
    let own = knobs
        .0
        .iter()
        .filter(|(name, _)| knows(name))
        .map(|(n, v)| (n.clone(), v.clone()));
    Job {
        protocol: VERSION,
        knobs: Knobs(own.collect()),
    }
}

fn too_few_descriptors(users: u64, asked: Option<u64>, hard: u64) -> Option<String> {
    if let Some(asked) = asked.filter(|a| *a > hard) {
        return Some(format!(
            "lab.nofile = {asked} is above this user's hard limit of {hard}; lower it, or raise the limit (`ulimit -Hn`)"
        ));
    }
    let limit = asked.unwrap_or(hard);
    (users + SPARE_DESCRIPTORS > limit).then(|| {
        format!(
            "{users} virtual users need {} descriptors, a process may open {limit}; use fewer threads × users_per_thread, or raise lab.nofile (hard limit {hard})",
            users + SPARE_DESCRIPTORS
        )
    })
}

/// Tries every distinct lab once, but for those in which nothing is set.
fn refused_labs(cells: &[PlannedCell], programs: &Programs) -> BTreeSet<String> {
    let labs: BTreeMap<_, &PlannedCell> = cells
        .iter()
        .filter(|c| !c.sysctls.is_empty() || c.network != Network::Loopback)
        .map(|c| ((c.mode.as_str(), c.network, &c.sysctls), c))
        .collect();
    let refused = labs.values().map(|c| match try_up(&c.lab(&programs.lab)) {
        Ok(errors) => errors.iter().map(ToString::to_string).collect(),
        Err(e) => vec![format!("lab: {e}")],
    });
    refused.flatten().collect()
}

/// What a reader of the plan should know before waiting for it.
fn remarks(cells: &[PlannedCell], lab: &LabChoice) -> Vec<String> {
    let mut notes = Vec::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for why in cells.iter().filter_map(|c| c.unsupported.as_deref()) {
        *reasons.entry(why).or_default() += 1;
    }
    notes.extend(
        reasons
            .iter()
            .map(|(why, n)| format!("{n} cells are unsupported: {why}")),
    );
    if let Some(why) = &lab.why
        && cells.iter().any(|c| matches!(c.mode, Mode::Host))
    {
        notes.push(format!(
            "trials run on the host itself, not in a private lab: {why}"
        ));
    }
    notes
}

/// How to plan better.
fn advice(cells: &[PlannedCell]) -> Vec<String> {
    let short = cells.iter().filter(|c| may_be_burst(c)).count();
    if short == 0 {
        return vec![];
    }
    vec![format!(
        "{short} cells may see the port burst only: a port is back after 60 s of TIME_WAIT, so sustained throughput needs duration ≥ {} s (or read them as what they are: the burst)",
        WHOLE_CYCLE_NS / 1_000_000_000
    )]
}

/// Whether a cell opens connections without end, in less time than its ports need to come back.
fn may_be_burst(c: &PlannedCell) -> bool {
    let set = |name: &str| {
        c.sysctls
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    };
    let knob = |name: &str| c.cell.knobs.bool(name).unwrap_or(true);
    let drops = !knob("keep_alive") || !knob("same_user");
    let no_reuse = match set(REUSE) {
        Some("0") => true,
        // 2 is the kernel's default, and covers loopback only.
        Some("2") | None => c.network != Network::Loopback,
        Some(_) => false,
    };
    let few = set(PORT_RANGE).and_then(ports_of).is_some();
    c.unsupported.is_none() && drops && no_reuse && few && c.window.0 < WHOLE_CYCLE_NS
}

/// CPUs this process may use.
#[must_use]
pub fn online_cpus() -> CpuSet {
    // The call fails only for a process that does not exist; then the first CPU does.
    CpuSet::of_this_process().unwrap_or_else(|_| default_split(&[]).2)
}

fn hard_limit() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(honours: &[&str], limits: &[(&str, i64)]) -> Hello {
        Hello {
            protocol: VERSION,
            role: yieldpoint_protocol::Role::Client,
            name: "mine".into(),
            version: "1".into(),
            library: String::new(),
            about: String::new(),
            honours: honours.iter().map(ToString::to_string).collect(),
            limits: limits.iter().map(|(n, v)| (n.to_string(), *v)).collect(),
            knobs: vec![],
        }
    }

    #[test]
    fn a_cell_is_unsupported_only_where_it_asks_for_more_than_the_client_has() {
        let common = [
            Knob::int("threads", 1, 1, 9, ""),
            Knob::int("users_per_thread", 1, 1, 9, ""),
        ];
        let cell = |threads, users| {
            let mut k = Knobs::default();
            k.set("threads", Value::Int(threads));
            k.set("users_per_thread", Value::Int(users));
            k
        };
        let all = ["threads", "users_per_thread"];
        // honours, limits, threads, users, supported
        let table = [
            (&all[..], &[][..], 4, 4, true),
            (&all[..], &[("users_per_thread", 1)][..], 4, 1, true),
            (&all[..], &[("users_per_thread", 1)][..], 4, 2, false), // beyond its limit
            (&all[..1], &[][..], 4, 1, true), // does not know the knob, which is at its default
            (&all[..1], &[][..], 4, 2, false), // does not know the knob, and it matters
        ];
        for (i, (honours, limits, threads, users, want)) in table.into_iter().enumerate() {
            let why = unsupported(&hello(honours, limits), &common, &cell(threads, users));
            assert_eq!(why.is_none(), want, "row {i}: {why:?}");
        }
    }

    #[test]
    fn a_link_needs_a_private_lab_and_has_its_address() {
        // lab.network, lab.rate, target.address, mode, what the error says or the target's address
        type Row = (
            &'static str,
            Option<&'static str>,
            Option<&'static str>,
            Mode,
            Result<&'static str, &'static str>,
        );
        let table: [Row; 7] = [
            ("loopback", None, None, Mode::Host, Ok("127.0.0.1")),
            (
                "loopback",
                None,
                Some("127.0.0.9"),
                Mode::Private,
                Ok("127.0.0.1"),
            ), // the cell's own affair
            ("veth", Some("1gbit"), None, Mode::Private, Ok("10.77.0.2")),
            (
                "veth",
                None,
                Some("10.77.0.2"),
                Mode::Private,
                Ok("10.77.0.2"),
            ), // said, and right
            (
                "veth",
                None,
                Some("127.0.0.9"),
                Mode::Private,
                Err("leave target.address out"),
            ),
            ("veth", None, None, Mode::Host, Err("needs a private lab")),
            (
                "loopback",
                Some("1gbit"),
                None,
                Mode::Private,
                Err("lab.network = \"veth\""),
            ),
        ];
        for (network_name, rate, address, mode, want) in table {
            let mut k = Knobs::default();
            k.set("lab.network", Value::Text(network_name.into()));
            let optional = [("lab.rate", rate), ("target.address", address)];
            for (name, value) in optional.into_iter().filter_map(|(n, v)| Some((n, v?))) {
                k.set(name, Value::Text(value.into()));
            }
            match (network(&k, mode), want) {
                (Ok(n), Ok(want)) => assert_eq!(n.target_address().to_string(), want),
                (Err(e), Err(part)) => assert!(e.contains(part), "{e}"),
                (got, want) => panic!("expected {want:?}, got {got:?}"),
            }
        }
    }

    #[test]
    fn descriptors_are_counted_before_the_run() {
        assert_eq!(too_few_descriptors(100, None, 1024), None);
        assert!(too_few_descriptors(1_000, None, 1024).is_some_and(|e| e.contains("1064")));
        assert!(
            too_few_descriptors(10, Some(2_000), 1024).is_some_and(|e| e.contains("hard limit"))
        );
        assert_eq!(too_few_descriptors(10, Some(512), 1024), None);
    }

    #[test]
    fn a_client_gets_its_own_options_and_nobody_else_s() {
        let mut k = Knobs::default();
        k.set("threads", Value::Int(1));
        k.set("options.mine.nodelay", Value::Bool(true));
        k.set("options.other.nodelay", Value::Bool(true));
        k.set("target.kind", Value::Text("static".into()));
        k.set("target.body_bytes", Value::Int(612));
        let job = client_knobs("mine", &[Knob::int("threads", 1, 1, 9, "")], &k);
        let names: Vec<_> = job.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["expect.body_bytes", "options.nodelay", "threads"]);
    }
}

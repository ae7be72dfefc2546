//! One cell with everything a trial needs: programs, lab, CPUs, times.

use std::net::IpAddr;

use yieldpoint_lab::{CpuSet, Mode, Network, default_split};
use yieldpoint_matrix::Cell;
use yieldpoint_terms::{Knob, Knobs, Nanos, Value};

use super::jobs::{client_knobs, target_job, unsupported};
use super::limits::{Few, hard_limit, too_few_descriptors};
use super::{LabChoice, PlannedCell, Refusals};
use crate::{Program, Programs};

const SYSCTL: &str = "lab.sysctl.";

/// What all cells are planned with.
pub(super) struct Planner<'a> {
    pub(super) common: &'a [Knob],
    pub(super) programs: &'a Programs,
    pub(super) lab: &'a LabChoice,
    pub(super) refusals: &'a Refusals,
    pub(super) cpus: CpuSet,
}

impl Planner<'_> {
    pub(super) fn cell(&self, cell: &Cell) -> Result<PlannedCell, Vec<String>> {
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
        let mut few_descriptors = false;
        match too_few_descriptors(users, nofile, hard_limit()) {
            Some(Few::Asked) => few_descriptors = true,
            Some(Few::Refused(why)) => errors.push(why),
            None => {}
        }
        let memory_mib = k.get("lab.memory").map(|_| k.uint("lab.memory"));
        let memory_mib = memory_mib.transpose().map_err(|e| vec![e.to_string()])?;
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
            memory_mib,
            disturb: k.uint("lab.disturb").unwrap_or(0),
            few_descriptors,
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

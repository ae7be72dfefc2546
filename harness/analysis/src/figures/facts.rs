//! Facts that make two runs comparable, or not.

use std::collections::{BTreeMap, BTreeSet};

use yieldpoint_figures::Fact;
use yieldpoint_record::{Manifest, Role, Trial};
use yieldpoint_terms::Value;

use crate::text;

/// Facts of the run, the machine, the lab and the programs.
pub(super) fn facts(manifest: &Manifest, trials: &[Trial]) -> Vec<Fact> {
    let mut facts = Facts::default();
    facts.add("run", &manifest.run);
    facts.add("started", &manifest.started);
    facts.add("yieldpoint", &manifest.yieldpoint);
    facts.add("seed", manifest.seed);
    match (&manifest.sequential, &manifest.along) {
        (None, Some(along)) => {
            let ran = trials.iter().map(|t| t.round).max().unwrap_or(0);
            facts.add(
                "rounds",
                format!("{ran} passes of a search along \"{along}\""),
            );
            let most = format!("{} of at most {}", trials.len(), manifest.trials);
            facts.add("trials", most);
        }
        (None, None) => {
            facts.add("rounds", manifest.rounds);
            let planned = format!("{} of {} planned", trials.len(), manifest.trials);
            facts.add("trials", planned);
        }
        (Some(auto), _) => {
            let ran = trials.iter().map(|t| t.round).max().unwrap_or(0);
            let most = manifest.rounds;
            let rounds = format!(
                "{ran} of at most {most}, until \"{}\" was decided",
                auto.axis
            );
            facts.add("rounds", rounds);
            let most = format!("{} of at most {}", trials.len(), manifest.trials);
            facts.add("trials", most);
        }
    }
    facts.some("author's analysis", manifest.analysis.as_ref());

    let machine = &manifest.machine;
    facts.add(
        "CPU",
        format!(
            "{} × {} ({})",
            machine.cpus, machine.cpu, machine.architecture
        ),
    );
    facts.add(
        "memory",
        format!("{} MiB", text::count(machine.memory_kib / 1024)),
    );
    facts.add("kernel", &machine.kernel);
    facts.add("system", &machine.os);
    facts.some("CPU governor", machine.governor.as_ref());
    facts.some("virtualization", machine.virtualization.as_ref());
    facts.some("clock source", machine.clock_source.as_ref());

    let lab = &manifest.lab;
    let why = lab
        .why
        .as_ref()
        .map_or_else(String::new, |why| format!(" ({why})"));
    facts.add("lab mode", format!("{}{why}", lab.mode));
    facts.add("client's CPUs", &lab.client_cpus);
    facts.add("target's CPUs", &lab.target_cpus);
    for (name, values) in sysctls(trials) {
        facts.add(name, values);
    }
    for program in &manifest.programs {
        let mut parts = vec![program.version.clone()];
        if !program.library.is_empty() {
            parts.push(program.library.clone());
        }
        // Twelve digits tell two builds apart; the manifest has them all.
        parts.extend(
            program
                .sha256
                .as_ref()
                .map(|h| format!("sha256 {}", h.get(..12).unwrap_or(h))),
        );
        facts.add(
            &format!("{} {}", program.role, program.name),
            parts.join(", "),
        );
    }
    for (name, value) in fixed(manifest, trials) {
        facts.add(&name, value);
    }
    facts.0
}

/// Effective sysctls: every value that some trial read back, in the order of the journal.
fn sysctls(trials: &[Trial]) -> BTreeMap<&str, String> {
    let mut seen: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in trials.iter().flat_map(|t| &t.sysctls) {
        // The kernel separates the numbers of one sysctl by tabs.
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let values = seen.entry(name).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let joined = |(name, values): (_, Vec<String>)| (name, values.join(" | "));
    seen.into_iter().map(joined).collect()
}

#[derive(Default)]
struct Facts(Vec<Fact>);

impl Facts {
    /// What is not known is left out rather than shown empty.
    fn add(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string();
        if !value.is_empty() {
            self.0.push(Fact {
                name: name.to_owned(),
                value,
            });
        }
    }
    fn some(&mut self, name: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }
}

/// Knobs that were the same in every cell and were not left at their defaults, and the duration.
fn fixed(manifest: &Manifest, trials: &[Trial]) -> Vec<(String, String)> {
    let cells = || trials.iter().filter(|t| t.role == Role::Cell);
    let Some(first) = cells().next() else {
        return Vec::new();
    };
    let mut same: BTreeSet<&str> = first.knobs.0.keys().map(String::as_str).collect();
    for trial in cells() {
        same.retain(|name| trial.knobs.get(name) == first.knobs.get(name));
    }
    let worth_saying = |name: &str, value: &Value| {
        let declared = manifest.knobs.iter().find(|k| k.answers_to(name));
        let default = declared.and_then(yieldpoint_terms::Knob::default_value);
        let shown = |v: &Value| text::knob(&manifest.knobs, name, v);
        name == "duration" || default.as_ref().map(shown) != Some(shown(value))
    };
    let knobs = same.into_iter().filter_map(|name| {
        let value = first.knobs.get(name)?;
        worth_saying(name, value).then(|| {
            (
                format!("knob {name}"),
                text::knob(&manifest.knobs, name, value),
            )
        })
    });
    knobs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn facts_of_programs_lab_and_fixed_knobs() {
        let manifest = synthetic::manifest(&[]);
        let mut hyper = synthetic::at(
            synthetic::trial("hyper", 1),
            "keep_alive",
            Value::Bool(false),
        );
        hyper
            .sysctls
            .insert("net.ipv4.ip_local_port_range".into(), "1025\t60999".into());
        let facts = facts(&manifest, &[synthetic::trial("ureq", 1), hyper]);
        let fact = |name: &str| {
            facts
                .iter()
                .find(|f| f.name == name)
                .map(|f| f.value.as_str())
        };
        assert_eq!(
            fact("client ureq"),
            Some("0.1.0, ureq 3.5.2, sha256 0123456789ab")
        );
        assert_eq!(
            fact("net.ipv4.ip_local_port_range"),
            Some("32768 34767 | 1025 60999")
        );
        assert_eq!(fact("memory"), Some("4,096 MiB"));
        assert_eq!(fact("knob duration"), Some("2s"));
        assert_eq!(
            fact("knob requests_per_iteration"),
            Some("100"),
            "not its default of 1"
        );
        assert_eq!(fact("knob threads"), None, "left at its default");
        assert_eq!(fact("knob keep_alive"), None, "not the same in all cells");
        assert_eq!(fact("CPU governor"), None, "not known");
    }
}

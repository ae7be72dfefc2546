//! What is true of a whole run.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use yieldpoint_terms::{Knob, Rounds, Value};

/// `manifest.json`: written once, before the first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`crate::FORMAT`]
    pub format: u32,
    /// version of yieldpoint
    pub yieldpoint: String,
    /// name of the run's folder ("2026-12-01.1-keepalive")
    pub run: String,
    /// name of the matrix
    pub matrix: String,
    /// the question the matrix asks
    pub question: String,
    /// where it comes from
    pub source: Option<String>,
    /// what to think of it, by its author
    pub analysis: Option<String>,
    /// UTC, RFC 3339
    pub started: String,
    /// the exact command line
    pub command: Vec<String>,
    /// what was asked for, to plan the same again
    #[serde(default)]
    pub asked: Asked,
    /// seed of the order of trials
    pub seed: u64,
    /// rounds planned; the most, where [`Self::sequential`] may end the run earlier
    pub rounds: u32,
    /// trials planned, controls and ceilings among them; the most, as `rounds`
    pub trials: u32,
    /// how `rounds = "auto"` decides when to end
    #[serde(default)]
    pub sequential: Option<SequentialFact>,
    /// with `find = "breakpoint"`, the axis along which it was searched: not every cell was measured
    #[serde(default)]
    pub along: Option<String>,
    /// every axis of the file, in its order, even if narrowed to one value
    pub axes: Vec<AxisFact>,
    /// knobs set on the command line; a column each
    pub set: Vec<String>,
    /// every knob of the run with unit, default and meaning
    pub knobs: Vec<Knob>,
    /// every sampled metric
    pub metrics: Vec<MetricFact>,
    /// the machine
    pub machine: Machine,
    /// clients and targets
    pub programs: Vec<ProgramFact>,
    /// the lab
    pub lab: LabFact,
    /// remarks of the plan ("4 cells excluded")
    pub notes: Vec<String>,
}

/// What was typed: with the matrix it gives the same plan again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// text of the matrix; `matrix.toml` is compared with it before a run is resumed
    pub matrix_text: String,
    /// every `--set`
    pub set: Vec<String>,
    /// every `--only`
    pub only: Vec<String>,
    /// `--rounds`
    pub rounds: Option<Rounds>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--compare`
    #[serde(default)]
    pub compare: Option<String>,
    /// `--find`
    #[serde(default)]
    pub find: Option<String>,
    /// `--along`
    #[serde(default)]
    pub along: Option<String>,
    /// `--no-controls`
    #[serde(default)]
    pub no_controls: bool,
    /// `--no-ceilings`
    #[serde(default)]
    pub no_ceilings: bool,
    /// every `--allow-address`
    pub allow_address: Vec<IpAddr>,
}

/// What `rounds = "auto"` compared, and by which rule: enough to decide the same again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequentialFact {
    /// the axis
    pub axis: String,
    /// the value of it that all others are compared with
    pub base: Value,
    /// after how many rounds each comparison was looked at, rising
    pub looks: Vec<u32>,
    /// false alarms of one comparison over all looks together, a share
    pub alpha: f64,
}

/// One line of `resumes.jsonl`: a manifest is written once, so what came later stands beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// [`crate::FORMAT`]
    pub format: u32,
    /// UTC, RFC 3339
    pub started: String,
    /// the exact command line
    pub command: Vec<String>,
    /// trials that were in the journal
    pub finished: u32,
    /// name of the file that keeps a cut last line of the journal, where there was one
    pub cut: Option<String>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisFact {
    /// name of the knob or bundle
    pub name: String,
    /// its values, in the order of the file
    pub values: Vec<Value>,
}

/// One metric as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricFact {
    /// column name
    pub name: String,
    /// unit label
    pub unit: String,
    /// true: a running total
    pub counter: bool,
    /// where it was read
    pub source: String,
    /// meaning
    pub doc: String,
}

/// Facts that make two machines comparable, or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// kernel release
    pub kernel: String,
    /// distribution
    pub os: String,
    /// "x86_64"
    pub architecture: String,
    /// model name
    pub cpu: String,
    /// CPUs online
    pub cpus: u32,
    /// KiB
    pub memory_kib: u64,
    /// frequency governor, where there is one
    pub governor: Option<String>,
    /// hypervisor or container, where it shows
    pub virtualization: Option<String>,
    /// clock source of the kernel
    pub clock_source: Option<String>,
}

/// One program that takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramFact {
    /// "client", "target", "lab"
    pub role: String,
    /// name as in the matrix
    pub name: String,
    /// its version
    pub version: String,
    /// the HTTP library underneath
    pub library: String,
    /// how it is started
    pub command: Vec<String>,
    /// SHA-256 of the program file
    pub sha256: Option<String>,
}

/// The surroundings of the trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabFact {
    /// "private" or "host" (of cells that ask for "auto")
    pub mode: String,
    /// why not private, if it is not
    pub why: Option<String>,
    /// CPU list of the client
    pub client_cpus: String,
    /// CPU list of the target
    pub target_cpus: String,
}

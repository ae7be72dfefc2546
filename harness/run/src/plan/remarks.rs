//! What a reader of the plan should know before waiting for it.

use std::collections::BTreeMap;

use yieldpoint_lab::{Mode, Network};

use super::{LabChoice, PlannedCell};
use crate::flags::{WHOLE_CYCLE_NS, ports_of};

const PORT_RANGE: &str = "net.ipv4.ip_local_port_range";
const REUSE: &str = "net.ipv4.tcp_tw_reuse";

/// What a reader of the plan should know before waiting for it.
pub(super) fn remarks(cells: &[PlannedCell], lab: &LabChoice) -> Vec<String> {
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
pub(super) fn advice(cells: &[PlannedCell]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let short = cells.iter().filter(|c| may_be_burst(c)).count();
    if short > 0 {
        all.push(format!(
            "{short} cells may see the port burst only: a port is back after 60 s of TIME_WAIT, so sustained throughput needs duration ≥ {} s (or read them as what they are: the burst)",
            WHOLE_CYCLE_NS / 1_000_000_000
        ));
    }
    let few = cells.iter().filter(|c| c.few_descriptors).count();
    if few > 0 {
        all.push(format!(
            "{few} cells have users for whom lab.nofile leaves no descriptor: their requests may fail as fd_limit, which is what they ask for"
        ));
    }
    all
}

/// Whether a cell opens connections without end, in less time than its ports need to come back.
pub(super) fn may_be_burst(c: &PlannedCell) -> bool {
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

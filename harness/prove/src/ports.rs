//! The law of local ports. A port in TIME_WAIT is free again after 60 s and up to a step of the kernel's timers
//! more, so a client that closes first opens as many connections a cycle as it has ports, no fewer (it asks all
//! the time) and no more (none is free).

use std::ops::Range;

use yieldpoint_protocol::Testimony;
use yieldpoint_record::Trial;
use yieldpoint_terms::Value;

use crate::runs::{self, Finished, Row, Source, number};
use crate::statement::Statement;

/// Where the ports run out, one connection in so many may be missing or too many: 1 %.
const ONE_IN: u64 = 100;
/// The sustained rate and its ceiling may differ by this share.
const SUSTAINED: f64 = 0.03;
/// TIME_WAIT lasts at least this long, s, and at most so much at 250 timer ticks a second and more.
const CYCLE_S: Range<f64> = 59.9..64.1;
/// A stretch without a connection that is at least this long is the end of a cycle, s.
const EXHAUSTED_S: f64 = 3.0;

/// Runs the matrix, or reads a run of it, and compares.
pub fn prove(source: &Source) -> anyhow::Result<Vec<Statement>> {
    let run = source.get("matrices/ports-law.toml")?;
    statements(&run)
}

fn statements(run: &Finished) -> anyhow::Result<Vec<Statement>> {
    let rows = runs::table(&run.folder, "trials")?;
    let phases = runs::table(&run.folder, "phases")?;
    let mut all = Vec::new();
    for (trial, row) in run.trials.iter().zip(&rows) {
        let Some((testimony, ports)) = trial.testimony.as_ref().zip(ports(trial)) else {
            all.push(Statement::new(
                &trial.cell,
                "a trial that was measured".into(),
                trial.error.clone().unwrap_or_default(),
                false,
            ));
            continue;
        };
        let cycles = cycles(testimony);
        let phases: Vec<&Row> = phases
            .iter()
            .filter(|p| p.get("cell") == Some(&trial.cell))
            .collect();
        match cycles.is_empty() {
            true => all.push(searched(&trial.cell, row)),
            false => {
                all.extend(cycles.iter().map(|c| cycle(&trial.cell, ports, c)));
                all.push(sustained(&trial.cell, row));
                all.push(starts(&trial.cell, &cycles, &phases));
            }
        }
    }
    Ok(all)
}

/// Ports of the range that was asked for.
fn ports(trial: &Trial) -> Option<u64> {
    let Some(Value::Text(range)) = trial.knobs.get("lab.sysctl.net.ipv4.ip_local_port_range")
    else {
        return None;
    };
    let (low, high) = range.split_once(' ')?;
    let (low, high): (u64, u64) = (low.parse().ok()?, high.parse().ok()?);
    Some(high - low + 1)
}

/// A whole cycle, as the target saw it.
#[derive(Clone, Debug, PartialEq)]
struct Cycle {
    start_s: f64,
    end_s: f64,
    connections: u64,
}

/// From the first connection of a burst to the first of the next; both ends must be seen.
fn cycles(t: &Testimony) -> Vec<Cycle> {
    let slot_s = t.series.slot_ns as f64 / 1e9;
    let connections = &t.series.connections;
    let mut starts = Vec::new();
    let mut nothing_since: Option<usize> = None;
    for (slot, n) in connections.iter().enumerate() {
        if *n == 0 {
            nothing_since.get_or_insert(slot);
            continue;
        }
        let waited = nothing_since.map_or(0.0, |since| (slot - since) as f64 * slot_s);
        if starts.is_empty() || waited >= EXHAUSTED_S {
            starts.push(slot);
        }
        nothing_since = None;
    }
    let whole = starts.windows(2).map(|w| Cycle {
        start_s: w[0] as f64 * slot_s,
        end_s: w[1] as f64 * slot_s,
        connections: connections[w[0]..w[1]].iter().sum(),
    });
    whole.collect()
}

fn cycle(about: &str, ports: u64, c: &Cycle) -> Statement {
    let length = c.end_s - c.start_s;
    let off = c.connections as f64 / ports as f64 - 1.0;
    Statement::new(
        about,
        format!("{ports} connections in a cycle of 60 to 64 s"),
        format!("{} in {length:.1} s ({:+.2} %)", c.connections, off * 100.0),
        c.connections.abs_diff(ports) <= ports / ONE_IN && CYCLE_S.contains(&length),
    )
}

fn sustained(about: &str, row: &Row) -> Statement {
    let both = number(row, "sustained_per_s").zip(number(row, "ceiling_per_s"));
    let kind = row.get("ceiling_kind").map_or("", String::as_str);
    let expected = format!(
        "sustained within {:.0} % of the ports' ceiling",
        SUSTAINED * 100.0
    );
    let Some((sustained, ceiling)) = both else {
        return Statement::new(about, expected, "no sustained rate".into(), false);
    };
    let off = sustained / ceiling - 1.0;
    Statement::new(
        about,
        expected,
        format!(
            "{sustained:.1}/s, {kind} {ceiling:.1}/s ({:+.2} %)",
            off * 100.0
        ),
        kind == "ports" && off.abs() <= SUSTAINED,
    )
}

/// The table `phases` has a burst or recovery where the target saw a cycle begin, and the verdict is right.
fn starts(about: &str, cycles: &[Cycle], phases: &[&Row]) -> Statement {
    let begins = |p: &&&Row| {
        let name = p.get("phase").map(String::as_str);
        matches!(name, Some("burst" | "recovery"))
    };
    let told: Vec<f64> = phases
        .iter()
        .filter(begins)
        .filter_map(|p| Some(number(p, "start_ms")? / 1e3))
        .collect();
    let mut seen: Vec<f64> = cycles.iter().map(|c| c.start_s).collect();
    seen.extend(cycles.last().map(|c| c.end_s));
    let list = |of: &[f64]| {
        let each: Vec<String> = of.iter().map(|s| format!("{s:.1}")).collect();
        each.join(", ")
    };
    // Slots of the target are 100 ms; a phase may begin with the slot before or after.
    let found = |s: &f64| told.iter().any(|t| (t - s).abs() <= 0.5);
    Statement::new(
        about,
        format!("cycles begin at {} s", list(&seen)),
        format!("burst or recovery at {} s", list(&told)),
        seen.len() == told.len() && seen.iter().all(found),
    )
}

fn searched(about: &str, row: &Row) -> Statement {
    let verdict = row.get("verdict").cloned().unwrap_or_default();
    let holds = verdict == "port_search";
    Statement::new(about, "never exhausted: port_search".into(), verdict, holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(connections: Vec<u64>) -> Vec<Cycle> {
        let mut t = Testimony::default();
        t.series.slot_ns = 1_000_000_000;
        t.series.connections = connections;
        cycles(&t)
    }

    #[test]
    fn a_cycle_is_whole_when_the_next_one_begins() {
        let cycle = |start_s, end_s, connections| Cycle {
            start_s,
            end_s,
            connections,
        };
        // Begun, and never again: nothing is known of its end.
        assert_eq!(seen(vec![5, 5, 0, 0, 0, 0]), []);
        // Two bursts: one whole cycle. A pause of 1 s belongs to it.
        assert_eq!(seen(vec![0, 5, 0, 5, 0, 0, 0, 7]), [cycle(1.0, 7.0, 10)]);
        // Never without a connection: no cycle, the search binds.
        assert_eq!(seen(vec![9, 1, 1, 1, 1, 1, 1]), []);
    }

    #[test]
    fn a_cycle_that_breaks_the_law_is_told() {
        let of = |connections, end_s| {
            let c = Cycle {
                start_s: 0.0,
                end_s,
                connections,
            };
            cycle("c", 2_000, &c).holds
        };
        assert!(of(2_000, 61.0) && of(2_020, 60.1) && of(1_980, 64.0));
        assert!(!of(2_021, 61.0), "a port was used twice");
        assert!(!of(1_979, 61.0), "a port was left");
        assert!(!of(2_000, 59.0), "TIME_WAIT is never shorter");
    }
}

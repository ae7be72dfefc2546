//! The table of ceilings: what the reference client reached, beside what the cells did.

use polars::prelude::DataFrame;
use yieldpoint_figures::{Column, Row, Table};

use crate::text;

/// (name, unit, is a number, meaning)
const COLUMNS: [(&str, &str, bool, &str); 6] = [
    (
        "of",
        "",
        false,
        "The axes that the reference client keeps: of target, lab and use of connections.",
    ),
    (
        "reached",
        "good requests/s",
        true,
        "Geometric mean over rounds; with its 95 % interval from eight rounds on, below that the least and the greatest.",
    ),
    (
        "rounds",
        "that count",
        true,
        "Disturbed rounds are left out.",
    ),
    (
        "target's CPU",
        "of its set",
        true,
        "Share that the target used.",
    ),
    (
        "client's CPU",
        "of its set",
        true,
        "Share that the reference client used.",
    ),
    ("bounds", "", false, "What the rate says of the target."),
];

/// Makes the table from that of the same name.
pub(super) fn table(ceilings: &DataFrame) -> anyhow::Result<Table> {
    let number = |name: &str| -> anyhow::Result<_> { Ok(ceilings.column(name)?.f64()?.clone()) };
    let cells = ceilings.column("cell")?.str()?.clone();
    let rounds = ceilings.column("rounds")?.i64()?.clone();
    let saturated = ceilings.column("saturated")?.str()?.clone();
    let early = ceilings.column("early")?.bool()?.clone();
    let rate = number("reached_per_s")?;
    let (low, high) = (number("reached_low")?, number("reached_high")?);
    let (target, client) = (number("target_cpu")?, number("client_cpu")?);
    let percent = |share: Option<f64>| {
        share
            .and_then(|s| text::percent(s, 1.0))
            .unwrap_or_default()
    };
    let row = |i: usize| {
        let range = low.get(i).zip(high.get(i)).filter(|(l, h)| l < h);
        let range = range.map_or_else(String::new, |(l, h)| {
            format!(" ({})", text::range(l, h, text::significant))
        });
        let reached = rate.get(i).map(text::significant).unwrap_or_default();
        let bounds = match saturated.get(i) {
            _ if rate.get(i).is_none() => "nothing: every round was disturbed or failed",
            Some("target") => "the target: its CPU was at its limit",
            Some(_) => "the reference client's own CPU was at its limit; the target may do more",
            None => "nothing: no CPU was at its limit, so this is the rate of so many users",
        };
        let before = if early.get(i) == Some(true) {
            "; the rate is that before its ports ran out"
        } else {
            ""
        };
        Row {
            cells: vec![
                of(cells.get(i).unwrap_or_default()),
                format!("{reached}{range}"),
                rounds.get(i).map(text::whole).unwrap_or_default(),
                percent(target.get(i)),
                percent(client.get(i)),
                format!("{bounds}{before}"),
            ],
            keys: vec![
                None,
                rate.get(i),
                rounds.get(i).map(|n| n as f64),
                target.get(i),
                client.get(i),
                None,
            ],
            mark: None,
        }
    };
    let column = |(name, unit, number, doc): &(&str, &str, bool, &str)| Column {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        number: *number,
        doc: (*doc).to_owned(),
    };
    Ok(Table {
        caption: "What the reference client reached with many users, on the same target, lab and use of connections \
                  as the cells. It bounds a cell only where a CPU was at its limit, and a cell that did better \
                  refutes it; the cells that it bounds name it as their ceiling."
            .to_owned(),
        columns: COLUMNS.iter().map(column).collect(),
        rows: (0..ceilings.height()).map(row).collect(),
        sorted_by: None,
    })
}

/// "m/ceiling=reference,keep_alive=true" → "keep_alive = true"; the only one of a run is that of every cell.
fn of(cell: &str) -> String {
    let axes = cell.split_once(',').map_or("", |(_, axes)| axes);
    if axes.is_empty() {
        "every cell".to_owned()
    } else {
        axes.replace(',', ", ").replace('=', " = ")
    }
}

#[cfg(test)]
mod tests {
    use crate::{report, synthetic, tables};
    use yieldpoint_record::{Role, Trial};
    use yieldpoint_terms::Value;

    /// The reference client keeps the knobs of target, lab and connections alone.
    fn ceiling(round: u32, good: u64, target_cpu_ns: i64) -> Trial {
        let mut trial = synthetic::good(synthetic::trial("reference", round), good);
        trial.role = Role::Ceiling;
        trial.cell = "m/ceiling=reference,keep_alive=true".into();
        trial.coordinates = vec![("keep_alive".into(), Value::Bool(true))];
        trial.knobs.set("users_per_thread", Value::Int(64));
        for responses in &mut trial.testimony.as_mut().unwrap().series.responses {
            *responses = good / 20;
        }
        let samples = trial.samples.as_mut().unwrap();
        let cpu = vec![Some(0), Some(target_cpu_ns)];
        samples.columns.insert("target_cpu_ns".into(), cpu);
        trial
    }

    fn kinds(made: &crate::Tables) -> Vec<String> {
        let kinds = made.trials.column("ceiling_kind").unwrap().str().unwrap();
        let kinds = kinds.iter().map(|k| k.unwrap_or_default().to_owned());
        kinds.collect()
    }

    #[test]
    fn a_ceiling_is_no_cell_and_bounds_what_is_on_the_same_target() {
        let clients = ["a", "b"].map(|c| Value::Text(c.into()));
        let mut manifest = synthetic::manifest(&[("client", &clients)]);
        manifest.lab.client_cpus = "0".into();
        manifest.lab.target_cpus = "1".into();
        // 1.9 s of CPU in a window of 2 s: the target was at its limit.
        let trials = [
            synthetic::trial("a", 1),
            synthetic::trial("b", 1),
            ceiling(1, 10_000, 1_900_000_000),
        ];
        let made = tables(&manifest, &trials).unwrap();
        assert_eq!(kinds(&made), ["target", "target", "ports"]);
        let bound = made.trials.column("ceiling_per_s").unwrap().f64().unwrap();
        assert_eq!(bound.get(0).map(f64::round), Some(5_000.0));
        let shown = report(&manifest, &trials, &made).unwrap();
        assert_eq!(shown.cells.rows.len(), 2, "the ceiling is no cell");
        let rows: Vec<_> = shown
            .ceilings
            .rows
            .iter()
            .map(|r| r.cells.join("|"))
            .collect();
        assert_eq!(
            rows,
            ["keep_alive = true|5,000|1|95.0 %|2.00 %|the target: its CPU was at its limit"]
        );
        // Half of its CPU was left: the rate is that of so many users, and bounds nothing.
        let idle = [synthetic::trial("a", 1), ceiling(1, 10_000, 1_000_000_000)];
        let made = tables(&manifest, &idle).unwrap();
        assert_eq!(kinds(&made), ["ports", "ports"]);
        assert_eq!(made.ceilings.column("saturated").unwrap().null_count(), 1);
    }
}

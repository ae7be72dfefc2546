//! CPU and memory by client, and failed requests by kind.

use yieldpoint_figures::{Bar, BarChart, BarGroup};
use yieldpoint_protocol::ErrorKind;

use super::rounds_text;
use crate::grid::{Grid, Numbers, Place};

/// More groups than this cannot be read in one picture; they are spread over several.
const GROUPS: usize = 48;

/// A quantity of a cell as bars.
struct Quantity {
    id: &'static str,
    title: &'static str,
    y_label: &'static str,
    about: &'static str,
    of: fn(&Numbers) -> Option<f64>,
}

const GOOD: Quantity = Quantity {
    id: "throughput",
    title: "Throughput",
    y_label: "good requests/s",
    about: "",
    of: |n| n.good_per_s,
};

const QUANTITIES: [Quantity; 2] = [
    Quantity {
        id: "client-cpu",
        title: "Client CPU per good request",
        y_label: "µs of CPU per good request",
        about: " Failed requests cost CPU too, so a cell with many errors stands high.",
        of: |n| n.cpu_us_per_good,
    },
    Quantity {
        id: "client-memory",
        title: "Peak memory of the client",
        y_label: "MiB resident, peak",
        about: "",
        of: |n| n.rss_peak_kib.map(|kib| kib / 1024.0),
    },
];

/// All bar charts that have something to show. Throughput only where no axis chart shows it.
pub(super) fn charts(grid: &Grid) -> Vec<BarChart> {
    let good = grid.axes.is_empty().then_some(&GOOD);
    let quantities = good.into_iter().chain(&QUANTITIES);
    quantities
        .flat_map(|q| of_quantity(grid, q))
        .chain(by_kind(grid))
        .collect()
}

/// The charts of one quantity; none if nothing of it was measured.
fn of_quantity(grid: &Grid, quantity: &Quantity) -> Vec<BarChart> {
    let places = grid.by_place(None);
    let mut caption = format!("{}{}", rounds_text(grid), quantity.about);
    if !grid.axes.is_empty() {
        let names: Vec<_> = grid.axes.iter().map(|a| a.name.as_str()).collect();
        caption.push_str(&format!(" Below each group: {}.", names.join(" / ")));
    }
    let groups: Vec<BarGroup> = places
        .into_iter()
        .map(|(place, cells)| BarGroup {
            label: label(grid, &place),
            bars: (grid.clients.iter().enumerate())
                .map(|(client, name)| {
                    let cell = cells.iter().find(|c| c.client == client);
                    let spread = cell.and_then(|c| c.spread(quantity.of));
                    Bar {
                        name: name.clone(),
                        colour: client,
                        mid: spread.map(|s| s.mid),
                        low: spread.map(|s| s.low),
                        high: spread.map(|s| s.high),
                    }
                })
                .collect(),
        })
        .collect();
    if groups.iter().flat_map(|g| &g.bars).all(|b| b.mid.is_none()) {
        return Vec::new();
    }
    let count = groups.len().div_ceil(GROUPS);
    let part = |(i, groups): (usize, &[BarGroup])| {
        let (id, title) = match i {
            0 => (quantity.id.to_owned(), quantity.title.to_owned()),
            i => (
                format!("{}-{}", quantity.id, i + 1),
                format!("{} ({} of {count})", quantity.title, i + 1),
            ),
        };
        BarChart {
            id,
            title,
            caption: caption.clone(),
            y_label: quantity.y_label.to_owned(),
            groups: groups.to_vec(),
        }
    };
    groups.chunks(GROUPS).enumerate().map(part).collect()
}

/// The values alone; the caption names their axes.
fn label(grid: &Grid, place: &Place) -> String {
    let value =
        |(i, v): (usize, &Option<usize>)| v.map_or("–", |v| grid.axes[i].labels[v].as_str());
    place
        .iter()
        .enumerate()
        .map(value)
        .collect::<Vec<_>>()
        .join(" / ")
}

/// Failed requests of all cells and rounds, a group a kind.
fn by_kind(grid: &Grid) -> Option<BarChart> {
    let mut counts = vec![vec![0u64; grid.clients.len()]; ErrorKind::ALL.len()];
    for cell in &grid.cells {
        let outcomes = cell.ok().filter_map(|r| r.trial.outcome.as_ref());
        for error in outcomes.flat_map(|o| &o.errors) {
            if let Some(kind) = ErrorKind::ALL.iter().position(|k| *k == error.kind) {
                counts[kind][cell.client] += error.count;
            }
        }
    }
    let group = |(kind, by_client): (&ErrorKind, &Vec<u64>)| BarGroup {
        label: kind.name().to_owned(),
        bars: (grid.clients.iter().zip(by_client).enumerate())
            .map(|(colour, (name, n))| Bar {
                name: name.clone(),
                colour,
                mid: Some(*n as f64),
                low: None,
                high: None,
            })
            .collect(),
    };
    let some = |(_, by_client): &(&ErrorKind, &Vec<u64>)| by_client.iter().any(|n| *n > 0);
    let groups: Vec<_> = ErrorKind::ALL
        .iter()
        .zip(&counts)
        .filter(some)
        .map(group)
        .collect();
    (!groups.is_empty()).then(|| BarChart {
        id: "errors-by-kind".to_owned(),
        title: "Failed requests by kind".to_owned(),
        caption: "All cells and rounds together. How many there are depends on how fast a client tries again: compare kinds and first times rather than counts.".to_owned(),
        y_label: "failed requests".to_owned(),
        groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_terms::Value;

    fn charts_of(trials: &[yieldpoint_record::Trial], threads: &[Value]) -> Vec<BarChart> {
        let manifest = synthetic::manifest(&[("threads", threads)]);
        let made = tables(&manifest, trials).unwrap();
        charts(&Grid::new(&manifest, trials, &made).unwrap())
    }

    #[test]
    fn groups_are_combinations_and_bars_are_clients() {
        let threads = [Value::Int(1), Value::Int(2)];
        let at = |c, t: &Value| synthetic::at(synthetic::trial(c, 1), "threads", t.clone());
        let trials = [
            at("a", &threads[0]),
            at("b", &threads[0]),
            synthetic::ran_out(at("a", &threads[1]), 1_000),
        ];
        let charts = charts_of(&trials, &threads);
        let ids: Vec<_> = charts.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["client-cpu", "client-memory", "errors-by-kind"]);
        let cpu = &charts[0];
        let bars = |g: usize| cpu.groups[g].bars.iter().map(|b| b.mid).collect::<Vec<_>>();
        // 40 ms of CPU over 2,000 and over 1,000 good requests; b has no cell with two threads.
        assert_eq!(
            (bars(0), bars(1)),
            (vec![Some(20.0); 2], vec![Some(40.0), None])
        );
        assert_eq!(cpu.groups[1].label, "2");
        assert_eq!(charts[1].groups[0].bars[0].mid, Some(6.0), "6,144 KiB");
        assert_eq!(charts[2].groups.len(), 1);
        assert_eq!(charts[2].groups[0].label, "address_not_available");
        assert_eq!(charts[2].groups[0].bars[0].mid, Some(500.0));
    }

    #[test]
    fn with_clients_alone_throughput_is_shown_as_bars() {
        let trials = [synthetic::trial("a", 1), synthetic::trial("b", 1)];
        let charts = charts_of(&trials, &[]);
        assert_eq!(charts[0].id, "throughput");
        assert_eq!(charts[0].groups.len(), 1);
        assert_eq!(charts[0].groups[0].bars.len(), 2);
        assert_eq!(charts_of(&[], &[]), []);
    }
}

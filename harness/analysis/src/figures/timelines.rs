//! The course of chosen trials: requests, new connections, TIME_WAIT and errors over one time axis.

use yieldpoint_figures::{Panel, Series, TimeChart};
use yieldpoint_record::Trial;

use crate::grid::{Cell, Grid, ports};
use crate::text;
use crate::timeline::{self, Slot};
use crate::{samples, timeline::zero};

/// More than this is not read.
const CHARTS: usize = 6;

/// Palette of the two ends and of what belongs to both.
const CLIENT: usize = 0;
const TARGET: usize = 1;
const LAB: usize = 2;
const ERRORS: usize = 3;

/// Charts of the most telling trials, in the order of the cells.
pub(super) fn charts(grid: &Grid) -> Vec<TimeChart> {
    let mut chosen = choose(grid);
    chosen.sort_unstable();
    chosen
        .into_iter()
        .filter_map(|cell| chart(grid, cell))
        .collect()
}

/// Cells by index: for each client in turn the first that ran out of ports and the fastest that did not, then the
/// others that ran out, until there are enough.
fn choose(grid: &Grid) -> Vec<usize> {
    let mut wanted: Vec<Vec<usize>> = Vec::new();
    for client in 0..grid.clients.len() {
        let (mut broke, mut held) = (Vec::new(), Vec::new());
        for (i, cell) in grid.cells.iter().enumerate() {
            if cell.client == client && first(cell).is_some() {
                if cell.ran_out() {
                    broke.push(i)
                } else {
                    held.push(i)
                }
            }
        }
        let speed = |i: &usize| {
            grid.cells[*i]
                .spread(|n| n.good_per_s)
                .map_or(0.0, |s| s.mid)
        };
        let fastest = held
            .into_iter()
            .filter(|i| !grid.cells[*i].starved())
            .max_by(|a, b| speed(a).total_cmp(&speed(b)));
        let at = broke.len().min(1);
        let mut all = broke;
        if let Some(fastest) = fastest {
            all.insert(at, fastest);
        }
        wanted.push(all);
    }
    let deepest = wanted.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..deepest).flat_map(|depth| wanted.iter().filter_map(move |w| w.get(depth)));
    in_turn.copied().take(CHARTS).collect()
}

/// The first round of a cell that counts and has a course.
fn first<'a>(cell: &Cell<'a>) -> Option<&'a Trial> {
    let has_course = |t: &&Trial| t.outcome.as_ref().is_some_and(|o| !o.series.is_empty());
    cell.ok().map(|r| r.trial).find(has_course)
}

fn chart(grid: &Grid, index: usize) -> Option<TimeChart> {
    let cell = &grid.cells[index];
    let trial = first(cell)?;
    let outcome = trial.outcome.as_ref()?;
    let zero = zero(trial)?;
    let client: Vec<Slot> = timeline::client(outcome).collect();
    let target: Vec<Slot> = trial
        .testimony
        .iter()
        .flat_map(|t| timeline::target(&t.series))
        .collect();
    let rate = |slots: &[Slot], of: fn(&Slot) -> Option<u64>| rates(zero, slots, of);
    let series = |name: &str, colour, points| Series {
        name: name.to_owned(),
        colour,
        points,
    };
    let by_client = |what: &str, of| {
        series(
            &format!("{what} (client, each 1 s)"),
            CLIENT,
            rate(&client, of),
        )
    };
    let by_target = |what: &str, of| {
        (!target.is_empty()).then(|| {
            series(
                &format!("{what} (target, each 100 ms)"),
                TARGET,
                rate(&target, of),
            )
        })
    };

    let mut panels = vec![
        Panel {
            y_label: "requests/s".to_owned(),
            limit: None,
            series: by_target("responses", |s| s.responses)
                .into_iter()
                .chain([by_client("good requests", |s| s.good)])
                .collect(),
        },
        Panel {
            y_label: "new connections/s".to_owned(),
            limit: None,
            series: by_target("accepted", |s| s.connections)
                .into_iter()
                .chain([by_client("opened", |s| s.connections)])
                .collect(),
        },
    ];
    let time_wait: Vec<(f64, Option<f64>)> = (trial.samples.iter())
        .flat_map(samples::time_wait)
        .map(|(t, n)| (seconds(zero, t), n.map(|n| n as f64)))
        .collect();
    if time_wait.iter().any(|(_, n)| n.is_some()) {
        panels.push(Panel {
            y_label: "TIME_WAIT entries".to_owned(),
            limit: ports(trial).map(|n| (n as f64, format!("{} ports", text::count(n)))),
            series: vec![series("TIME_WAIT, both ends", LAB, time_wait)],
        });
    }
    panels.push(Panel {
        y_label: "errors/s".to_owned(),
        limit: None,
        series: vec![series(
            "failed requests (client, each 1 s)",
            ERRORS,
            rate(&client, |s| s.errors),
        )],
    });

    Some(TimeChart {
        // The place in the table of cells keeps the name stable and short.
        id: format!("timeline-{:02}-{}", index + 1, grid.clients[cell.client]),
        title: format!("{} (round {})", grid.cell_text(cell), trial.round),
        caption: caption(cell, trial, zero),
        seconds: seconds(zero, outcome.window_end_ns).max(0.0),
        panels,
    })
}

fn caption(cell: &Cell, trial: &Trial, zero: u64) -> String {
    let mut caption = match crate::grid::no_port_free(trial) {
        Some(first) => format!(
            "From {} on requests met address_not_available: no local port was free.",
            text::time(seconds(zero, first) * 1e9)
        ),
        None => "No request met address_not_available.".to_owned(),
    };
    if cell.burst_only() {
        caption.push_str(
            " The trial is shorter than a TIME_WAIT cycle: it shows the burst of the ports only.",
        );
    }
    if trial.testimony.is_none() {
        caption.push_str(" Only the client testifies.");
    }
    caption
}

/// Events per second, at the start of each slot: the value holds until the next point.
fn rates(zero: u64, slots: &[Slot], of: fn(&Slot) -> Option<u64>) -> Vec<(f64, Option<f64>)> {
    let point = |slot: &Slot| {
        let length = slot.length_ns as f64 / 1e9;
        let rate = of(slot).filter(|_| length > 0.0).map(|n| n as f64 / length);
        (seconds(zero, slot.start_ns), rate)
    };
    slots.iter().map(point).collect()
}

fn seconds(zero: u64, t: u64) -> f64 {
    (i128::from(t) - i128::from(zero)) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_terms::Value;

    #[test]
    fn each_client_shows_where_it_broke_and_where_it_held() {
        let clients = ["a", "b", "c", "d"].map(|c| Value::Text(c.into()));
        let threads: Vec<_> = (1..=4).map(Value::Int).collect();
        let manifest = synthetic::manifest(&[("client", &clients), ("threads", &threads)]);
        let mut trials = Vec::new();
        for client in ["a", "b", "c"] {
            for (i, t) in threads.iter().enumerate() {
                let trial = synthetic::at(synthetic::trial(client, 1), "threads", t.clone());
                trials.push(match i {
                    0 | 1 => synthetic::ran_out(trial, 2_000),
                    _ => synthetic::good(trial, 2_000 + i as u64),
                });
            }
        }
        let made = tables(&manifest, &trials).unwrap();
        let charts = charts(&Grid::new(&manifest, &trials, &made).unwrap());
        let titles: Vec<_> = charts.iter().map(|c| c.title.as_str()).collect();
        let want = [
            "a, threads = 1 (round 1)",
            "b, threads = 1 (round 1)",
            "c, threads = 1 (round 1)",
            "a, threads = 4 (round 1)",
            "b, threads = 4 (round 1)",
            "c, threads = 4 (round 1)",
        ];
        assert_eq!(titles, want);
        let broke = &charts[0];
        assert_eq!(broke.seconds, 2.0);
        let labels: Vec<_> = broke.panels.iter().map(|p| p.y_label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "requests/s",
                "new connections/s",
                "TIME_WAIT entries",
                "errors/s"
            ]
        );
        assert_eq!(
            broke.panels[2].limit,
            Some((2_000.0, "2,000 ports".to_owned()))
        );
        assert!(
            broke.caption.contains("From 300 ms on"),
            "{}",
            broke.caption
        );
        // 100 responses in 100 ms are 1,000 a second.
        let responses = &broke.panels[0].series[0];
        assert_eq!(responses.points[1], (0.1, Some(1_000.0)));
        assert_eq!(
            broke.panels[0].series[1].points,
            [(0.0, Some(1_000.0)), (1.0, Some(1_000.0))]
        );
    }

    #[test]
    fn without_target_and_samples_the_client_still_has_a_course() {
        let mut trial = synthetic::trial("a", 1);
        trial.testimony = None;
        trial.samples = None;
        let manifest = synthetic::manifest(&[]);
        let trials = [trial];
        let made = tables(&manifest, &trials).unwrap();
        let charts = charts(&Grid::new(&manifest, &trials, &made).unwrap());
        assert_eq!(charts.len(), 1);
        assert_eq!(charts[0].panels.len(), 3, "no TIME_WAIT panel");
        assert_eq!(charts[0].panels[0].series.len(), 1, "the client's alone");
    }
}

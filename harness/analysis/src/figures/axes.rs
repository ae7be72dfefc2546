//! Throughput along every axis.

use std::collections::BTreeMap;

use yieldpoint_figures::{AxisChart, Facet, Line, Point};

use super::rounds_text;
use crate::grid::{Cell, Grid};

/// More small multiples than this cannot be read on a page.
const FACETS: usize = 12;
/// Beyond this ratio of the greatest to the least, the small values of a linear scale lie on its floor.
const LOG_FROM: f64 = 30.0;

/// One chart an axis; axes of numbers first, because only along those there is a shape to see.
pub(super) fn charts(grid: &Grid) -> Vec<AxisChart> {
    let mut order: Vec<usize> = (0..grid.axes.len()).collect();
    order.sort_by_key(|i| !grid.axes[*i].numeric);
    order.into_iter().filter_map(|i| chart(grid, i)).collect()
}

fn chart(grid: &Grid, along: usize) -> Option<AxisChart> {
    let axis = &grid.axes[along];
    let mut facets = Vec::new();
    for (place, cells) in grid.by_place(Some(along)) {
        let lines = lines(grid, along, &cells);
        if !lines.is_empty() {
            facets.push(Facet {
                title: grid.place_text(&place, Some(along)),
                lines,
            });
        }
    }
    let all = facets.len();
    facets.truncate(FACETS);
    let mut caption = rounds_text(grid);
    let mut marks: Vec<&str> = points(&facets).filter_map(|p| p.mark.as_deref()).collect();
    marks.sort_unstable();
    marks.dedup();
    if !marks.is_empty() {
        caption.push_str(&format!(
            " Hollow points ({}) are not sustained.",
            marks.join("; ")
        ));
    }
    if all > FACETS {
        // Joining combinations into one would hide what differs between them.
        caption.push_str(&format!(
            " Shown are the first {FACETS} of {all} combinations of the other axes; narrow them with --only, or see the table of cells."
        ));
    }
    let log_y = spans_decades(&facets);
    if log_y {
        caption.push_str(" Logarithmic scale.");
    }
    (all > 0).then(|| AxisChart {
        id: format!("throughput-by-{}", file_name(&axis.name)),
        title: format!("Throughput by {}", axis.name),
        caption,
        x_label: axis.name.clone(),
        x_values: axis.labels.clone(),
        y_label: "good requests/s".to_owned(),
        log_y,
        facets,
    })
}

/// One line a client, its points in the order of the axis. A cell without a measured round is no point.
fn lines(grid: &Grid, along: usize, cells: &[&Cell]) -> Vec<Line> {
    let mut by_client: BTreeMap<usize, Vec<Point>> = BTreeMap::new();
    for cell in cells {
        let (Some(x), Some(good)) = (cell.place[along], cell.spread(|n| n.good_per_s)) else {
            continue;
        };
        by_client.entry(cell.client).or_default().push(Point {
            x,
            mid: good.mid,
            low: good.low,
            high: good.high,
            mark: cell.mark(),
        });
    }
    let line = |(client, mut points): (usize, Vec<Point>)| {
        points.sort_by_key(|p| p.x);
        Line {
            name: grid.clients[client].clone(),
            colour: client,
            points,
        }
    };
    by_client.into_iter().map(line).collect()
}

fn points(facets: &[Facet]) -> impl Iterator<Item = &Point> {
    facets.iter().flat_map(|f| &f.lines).flat_map(|l| &l.points)
}

fn spans_decades(facets: &[Facet]) -> bool {
    let least = points(facets).map(|p| p.low).fold(f64::INFINITY, f64::min);
    let greatest = points(facets).map(|p| p.high).fold(0.0, f64::max);
    // 0 has no place on a logarithmic scale.
    least > 0.0 && greatest / least > LOG_FROM
}

/// A name that every file system takes.
fn file_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_record::{Manifest, Status, Trial};
    use yieldpoint_terms::Value;

    fn charts_of(manifest: &Manifest, trials: &[Trial]) -> Vec<AxisChart> {
        let made = tables(manifest, trials).unwrap();
        charts(&Grid::new(manifest, trials, &made).unwrap())
    }

    #[test]
    fn a_line_a_client_a_facet_for_the_other_axes_and_marks_where_ports_ran_out() {
        let requests = [Value::Int(1), Value::Int(100)];
        let keep = [Value::Bool(true), Value::Bool(false)];
        let clients = ["ureq", "hyper"].map(|c| Value::Text(c.into()));
        let manifest = synthetic::manifest(&[
            ("client", &clients),
            ("keep_alive", &keep),
            ("requests_per_iteration", &requests),
        ]);
        let mut trials = Vec::new();
        for (round, factor) in [(1, 1), (2, 3)] {
            for client in ["hyper", "ureq"] {
                for k in &keep {
                    for r in &requests {
                        let t =
                            synthetic::at(synthetic::trial(client, round), "keep_alive", k.clone());
                        let t = synthetic::at(t, "requests_per_iteration", r.clone());
                        let bad = *k == keep[0] && *r == requests[0];
                        trials.push(if bad {
                            synthetic::ran_out(t, 20)
                        } else {
                            synthetic::good(t, 2_000 * factor)
                        });
                    }
                }
            }
        }
        let charts = charts_of(&manifest, &trials);
        let ids: Vec<_> = charts.iter().map(|c| c.id.as_str()).collect();
        // The axis of numbers first, although it is the last of the file.
        assert_eq!(
            ids,
            [
                "throughput-by-requests_per_iteration",
                "throughput-by-keep_alive"
            ]
        );
        let chart = &charts[0];
        assert_eq!(chart.x_values, ["1", "100"]);
        assert!(chart.log_y, "10 to 3,000 per second");
        let titles: Vec<_> = chart.facets.iter().map(|f| f.title.as_str()).collect();
        assert_eq!(titles, ["keep_alive = true", "keep_alive = false"]);
        let line = &chart.facets[0].lines[0];
        assert_eq!(
            (line.name.as_str(), line.colour),
            ("ureq", 0),
            "the order of the file"
        );
        assert_eq!(
            line.points[0].mark.as_deref(),
            Some("ran out of ports, burst only")
        );
        let last = &line.points[1];
        assert_eq!(
            (last.x, last.low, last.mid, last.high),
            (1, 1_000.0, 2_000.0, 3_000.0)
        );
        assert_eq!(last.mark, None);
    }

    #[test]
    fn too_many_combinations_are_cut_and_said_never_joined() {
        let threads: Vec<Value> = (1..=20).map(Value::Int).collect();
        let rates = [Value::Int(1), Value::Int(2)];
        let manifest = synthetic::manifest(&[("threads", &threads), ("rate", &rates)]);
        let mut trials = Vec::new();
        for t in &threads {
            for r in &rates {
                let trial = synthetic::at(synthetic::trial("ureq", 1), "threads", t.clone());
                trials.push(synthetic::at(trial, "rate", r.clone()));
            }
        }
        let charts = charts_of(&manifest, &trials);
        assert_eq!(charts[0].facets.len(), 2);
        assert!(!charts[0].caption.contains("Shown are"));
        assert_eq!(charts[1].facets.len(), FACETS);
        assert!(
            charts[1].caption.contains("first 12 of 20"),
            "{}",
            charts[1].caption
        );
        assert!(
            charts[1]
                .facets
                .iter()
                .all(|f| f.lines.iter().all(|l| l.points.len() <= 2))
        );
    }

    #[test]
    fn what_was_not_measured_is_no_point() {
        let threads = [Value::Int(1), Value::Int(2)];
        let manifest = synthetic::manifest(&[("threads", &threads)]);
        let trial = |t: &Value| synthetic::at(synthetic::trial("ureq", 1), "threads", t.clone());
        let trials = [
            trial(&threads[0]),
            synthetic::failed(trial(&threads[1]), Status::Error, "no"),
        ];
        let charts = charts_of(&manifest, &trials);
        assert_eq!(charts[0].facets[0].lines[0].points.len(), 1);
        assert_eq!(
            charts[0].x_values,
            ["1", "2"],
            "the value stays on the axis"
        );
        let none = trials.map(|t| synthetic::failed(t, Status::Error, "no"));
        assert!(charts_of(&manifest, &none).is_empty());
    }
}

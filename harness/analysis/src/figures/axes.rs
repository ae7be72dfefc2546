//! Throughput along every axis.

use std::collections::BTreeMap;

use yieldpoint_figures::{AxisChart, Facet, Line, Point};

use super::{NOT_THE_LOAD, rounds_text};
use crate::grid::{Cell, Grid, Place};

/// More small multiples than this cannot be read on a page; they are spread over several charts.
const FACETS: usize = 12;
/// Charts of one axis; what is beyond is said, and is in the table.
const CHARTS: usize = 24;
/// Beyond this ratio of the greatest to the least, the small values of a linear scale lie on its floor.
pub(super) const LOG_FROM: f64 = 30.0;

/// The charts of each axis; axes of numbers first, because only along those there is a shape to see.
pub(super) fn charts(grid: &Grid) -> Vec<AxisChart> {
    let mut order: Vec<usize> = (0..grid.axes.len()).collect();
    order.sort_by_key(|i| !grid.axes[*i].numeric);
    order.into_iter().flat_map(|i| along(grid, i)).collect()
}

/// A small multiple and where it stands on the other axes.
type Placed = (Place, Vec<Line>);

/// Small multiples of one chart, and the values of the axes that told it from the others.
#[derive(Default)]
struct Part {
    fixed: Vec<(usize, Option<usize>)>,
    facets: Vec<Placed>,
}

fn along(grid: &Grid, along: usize) -> Vec<AxisChart> {
    let placed = grid.by_place(Some(along)).into_iter();
    let facets: Vec<Placed> = placed
        .map(|(place, cells)| (place, lines(grid, along, &cells)))
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    let range = range(&facets);
    let others: Vec<usize> = (0..grid.axes.len()).filter(|i| *i != along).collect();
    let mut parts = if facets.is_empty() {
        Vec::new()
    } else {
        split(facets, &others)
    };
    let all = parts.len();
    parts.truncate(CHARTS);
    let mut charts: Vec<AxisChart> = parts
        .into_iter()
        .map(|part| chart(grid, along, &others, part, range))
        .collect();
    if let (true, Some(last)) = (all > CHARTS, charts.last_mut()) {
        last.caption.push_str(&format!(
            " {} more charts of this axis are left out; narrow the run with --only, or see the table of cells.",
            all - CHARTS
        ));
    }
    charts
}

/// Spreads small multiples over charts of at most [`FACETS`], all of one value of one axis (or of more).
fn split(facets: Vec<Placed>, others: &[usize]) -> Vec<Part> {
    if facets.len() <= FACETS || others.is_empty() {
        let fixed = Vec::new();
        return vec![Part { fixed, facets }];
    }
    let by = |axis: usize| {
        let mut groups: BTreeMap<Option<usize>, usize> = BTreeMap::new();
        for (place, _) in &facets {
            *groups.entry(place[axis]).or_default() += 1;
        }
        let largest = groups.values().copied().max().unwrap_or(0);
        // An axis that suffices alone, and of those the one with fewest charts; else the one that divides most.
        (
            largest > FACETS,
            if largest > FACETS {
                largest
            } else {
                groups.len()
            },
        )
    };
    // `others` is not empty, so there is always a first.
    let axis = others.iter().copied().min_by_key(|i| by(*i)).unwrap_or(0);
    let rest: Vec<usize> = others.iter().copied().filter(|i| *i != axis).collect();
    let mut groups: BTreeMap<Option<usize>, Vec<Placed>> = BTreeMap::new();
    for (place, lines) in facets {
        groups.entry(place[axis]).or_default().push((place, lines));
    }
    let mut out = Vec::new();
    for (value, facets) in groups {
        for mut part in split(facets, &rest) {
            part.fixed.insert(0, (axis, value));
            out.push(part);
        }
    }
    out
}

fn chart(
    grid: &Grid,
    along: usize,
    others: &[usize],
    part: Part,
    range: Option<(f64, f64)>,
) -> AxisChart {
    let axis = &grid.axes[along];
    let setting = |i: usize, at: Option<usize>| {
        let value = at.map_or("–", |v| grid.axes[i].labels[v].as_str());
        format!("{} = {value}", grid.axes[i].name)
    };
    let is_fixed = |i: &usize| part.fixed.iter().any(|(axis, _)| axis == i);
    let free: Vec<usize> = others.iter().copied().filter(|i| !is_fixed(i)).collect();
    let columns = columns(&part.facets, free.last().copied());
    let title = |place: &Place| {
        let settings = free.iter().map(|i| setting(*i, place[*i]));
        settings.collect::<Vec<_>>().join(", ")
    };
    let facets: Vec<Facet> = part
        .facets
        .into_iter()
        .map(|(place, lines)| Facet {
            title: title(&place),
            lines,
        })
        .collect();
    let mut caption = rounds_text(grid);
    let mut marks: Vec<&str> = points(&facets).filter_map(|p| p.mark.as_deref()).collect();
    marks.sort_unstable();
    marks.dedup();
    if !marks.is_empty() {
        let starved = marks.iter().any(|m| m.contains("starved"));
        let or = if starved { NOT_THE_LOAD } else { "" };
        caption.push_str(&format!(
            " Hollow points ({}) are not sustained{or}.",
            marks.join("; ")
        ));
    }
    // 0 has no place on a logarithmic scale.
    let log_y = range.is_some_and(|(least, greatest)| least > 0.0 && greatest / least > LOG_FROM);
    if log_y {
        caption.push_str(" Logarithmic scale.");
    }
    let mut id = format!("throughput-by-{}", axis.name);
    let mut heading = format!("Throughput by {}", axis.name);
    for (i, at) in &part.fixed {
        let setting = setting(*i, *at);
        id.push_str(&format!("-{}", setting.replace(" = ", "-")));
        heading.push_str(&format!(", {setting}"));
    }
    AxisChart {
        id: file_name(&id),
        title: heading,
        caption,
        x_label: axis.name.clone(),
        x_values: axis.labels.clone(),
        y_label: "good requests/s".to_owned(),
        log_y,
        facets,
        columns,
        range,
    }
}

/// Number of values of the last axis, if small multiples are a full grid of it; else 0.
fn columns(facets: &[Placed], last: Option<usize>) -> usize {
    let Some(last) = last else { return 0 };
    let values: Vec<_> = facets.iter().map(|(place, _)| place[last]).collect();
    let mut row = values.clone();
    row.sort_unstable();
    row.dedup();
    let full = !row.is_empty() && values.chunks(row.len()).all(|chunk| chunk == row);
    if full { row.len() } else { 0 }
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

/// Least and greatest value of all charts of an axis, which share a scale.
fn range(facets: &[Placed]) -> Option<(f64, f64)> {
    let points = || facets.iter().flat_map(|(_, l)| l).flat_map(|l| &l.points);
    let least = points().map(|p| p.low).fold(f64::INFINITY, f64::min);
    let greatest = points().map(|p| p.high).fold(f64::NEG_INFINITY, f64::max);
    (least <= greatest).then_some((least, greatest))
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
    fn too_many_combinations_are_spread_over_charts_never_joined_or_dropped() {
        let ints = |n: i64| (1..=n).map(Value::Int).collect::<Vec<_>>();
        let (threads, rates, sizes) = (ints(10), ints(2), ints(3));
        let axes: [(&str, &[Value]); 3] =
            [("threads", &threads), ("rate", &rates), ("size", &sizes)];
        let manifest = synthetic::manifest(&axes);
        let mut trials = Vec::new();
        for t in &threads {
            for r in &rates {
                for s in &sizes {
                    let trial = synthetic::at(synthetic::trial("ureq", 1), "threads", t.clone());
                    let trial = synthetic::at(trial, "rate", r.clone());
                    trials.push(synthetic::at(trial, "size", s.clone()));
                }
            }
        }
        let charts = charts_of(&manifest, &trials);
        let of = |axis: &str| -> Vec<&AxisChart> {
            charts.iter().filter(|c| c.x_label == axis).collect()
        };
        // Along threads 2 × 3 combinations fit one chart, a row for each rate.
        assert_eq!(of("threads").len(), 1);
        assert_eq!(
            (of("threads")[0].facets.len(), of("threads")[0].columns),
            (6, 3)
        );
        // Along rate there are 10 × 3: three charts of ten, one a size.
        let rate = of("rate");
        let titles: Vec<_> = rate.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(
            titles,
            [1, 2, 3].map(|s| format!("Throughput by rate, size = {s}"))
        );
        assert_eq!(rate[1].id, "throughput-by-rate-size-2");
        assert_eq!(rate[1].facets[0].title, "threads = 1");
        assert!(
            rate.iter()
                .all(|c| c.facets.len() == 10 && c.range == rate[0].range)
        );
        for axis in ["threads", "rate", "size"] {
            let lines = of(axis)
                .into_iter()
                .flat_map(|c| &c.facets)
                .flat_map(|f| &f.lines);
            let points: usize = lines.map(|l| l.points.len()).sum();
            assert_eq!(points, trials.len(), "{axis}");
        }
    }

    #[test]
    fn what_no_single_axis_divides_is_divided_by_more() {
        let facets = |n: usize| -> Vec<Placed> {
            let place = |i| vec![Some(i % 20), Some(i / 20), None];
            (0..n).map(|i| (place(i), Vec::new())).collect()
        };
        let parts = split(facets(400), &[0, 1]);
        assert!(
            parts
                .iter()
                .all(|p| p.facets.len() == 1 && p.fixed.len() == 2)
        );
        assert_eq!(parts.len(), 400);
        let parts = split(facets(40), &[0, 1]);
        let shape: Vec<_> = parts
            .iter()
            .map(|p| (p.fixed[0].0, p.facets.len()))
            .collect();
        assert_eq!(shape, [(0, 2); 20], "20 together would be too many");
        assert_eq!(split(facets(12), &[0, 1]).len(), 1);
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

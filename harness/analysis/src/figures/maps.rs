//! Every cell at a glance: throughput as colour and number.

use std::collections::BTreeMap;

use yieldpoint_figures::{HeatCell, HeatGroup, HeatMap, HeatRow};

use super::axes::LOG_FROM;
use super::{NOT_THE_LOAD, rounds_text};
use crate::grid::{Cell, Grid};
use crate::text;

/// Fewer cells are seen as well along their axes.
const CELLS: usize = 6;
/// More rows than this do not fit a screen; they go into further maps on the same scale.
const ROWS: usize = 40;

/// A row by the places of its cells on all axes but the one of the columns.
type Rows<'g, 'a> = BTreeMap<Vec<Option<usize>>, Vec<&'g Cell<'a>>>;

/// One map, or several where there are many rows; none where there is only one axis to look along.
pub(super) fn charts(grid: &Grid) -> Vec<HeatMap> {
    let ways = grid.axes.len() + usize::from(grid.clients.len() > 1);
    let Some(across) = columns(grid).filter(|_| ways >= 2 && grid.cells.len() >= CELLS) else {
        return Vec::new();
    };
    let axis = &grid.axes[across];
    let by_client = grid.clients.len() > 1;
    let others: Vec<usize> = (0..grid.axes.len()).filter(|i| *i != across).collect();
    // Groups are clients; a single client's are the values of its first axis.
    let (title_of, row_axes) = match others.split_first() {
        _ if by_client => (None, others.as_slice()),
        Some((first, rest)) if !rest.is_empty() => (Some(*first), rest),
        _ => (None, others.as_slice()),
    };
    let mut groups: BTreeMap<(usize, Option<usize>), Rows> = BTreeMap::new();
    for cell in &grid.cells {
        let group = (cell.client, title_of.and_then(|i| cell.place[i]));
        let row = row_axes.iter().map(|i| cell.place[*i]).collect();
        let rows = groups.entry(group).or_default();
        rows.entry(row).or_default().push(cell);
    }
    // A cell that the axis does not touch (an option of another client) has a column of its own.
    let untouched = grid.cells.iter().any(|c| c.place[across].is_none());
    let mut x_values = axis.labels.clone();
    x_values.extend(untouched.then(|| "–".to_owned()));

    let name = |i: usize| grid.axes[i].name.as_str();
    let value = |i: usize, at: Option<usize>| at.map_or("–", |v| grid.axes[i].labels[v].as_str());
    let made = groups.into_iter().map(|((client, at), rows)| HeatGroup {
        title: match title_of {
            Some(i) => format!("{} = {}", name(i), value(i, at)),
            None if by_client => grid.clients[client].clone(),
            None => String::new(),
        },
        rows: rows
            .into_iter()
            .map(|(place, cells)| HeatRow {
                label: place
                    .iter()
                    .zip(row_axes)
                    .map(|(at, i)| value(*i, *at))
                    .collect::<Vec<_>>()
                    .join(" / "),
                cells: row(&cells, across, x_values.len()),
            })
            .collect(),
    });
    let pages = pages(made.collect());
    let range = range(&pages);
    let log = range.is_some_and(|(low, high)| low > 0.0 && high / low > LOG_FROM);
    let count = pages.len();
    let map = |(page, groups): (usize, Vec<HeatGroup>)| {
        let (id, title) = match page {
            0 => ("map".to_owned(), "Throughput of every cell".to_owned()),
            n => (
                format!("map-{}", n + 1),
                format!("Throughput of every cell ({} of {count})", n + 1),
            ),
        };
        let scale = if log { " Logarithmic scale." } else { "" };
        let cells = groups.iter().flat_map(|g| &g.rows).flat_map(|r| &r.cells);
        let marks: Vec<&str> = cells.flatten().filter_map(|c| c.mark.as_deref()).collect();
        let starved = marks.iter().any(|m| m.contains("starved"));
        let or = if starved { NOT_THE_LOAD } else { "" };
        let corners = if marks.is_empty() {
            String::new()
        } else {
            format!(" Cells with a marked corner are not sustained{or}.")
        };
        HeatMap {
            id,
            title,
            caption: format!("{}{corners}{scale}", rounds_text(grid)),
            x_label: axis.name.clone(),
            x_values: x_values.clone(),
            y_label: row_axes
                .iter()
                .map(|i| name(*i))
                .collect::<Vec<_>>()
                .join(" / "),
            value_label: "good requests/s".to_owned(),
            log,
            range,
            groups,
        }
    };
    pages.into_iter().enumerate().map(map).collect()
}

/// The axis of the columns: of numbers if there is one, and the one with most values.
fn columns(grid: &Grid) -> Option<usize> {
    (0..grid.axes.len()).max_by_key(|i| {
        let axis = &grid.axes[*i];
        (axis.numeric, axis.labels.len(), usize::MAX - i)
    })
}

fn row(cells: &[&Cell], across: usize, columns: usize) -> Vec<Option<HeatCell>> {
    let mut out = vec![None; columns];
    for cell in cells {
        let at = cell.place[across].unwrap_or(columns - 1);
        let value = cell.spread(|n| n.good_per_s).map(|s| s.mid);
        out[at] = Some(HeatCell {
            value,
            text: value.map(text::significant).unwrap_or_default(),
            mark: value.and_then(|_| cell.mark()),
        });
    }
    out
}

/// Groups in the order they come, at most [`ROWS`] rows together; a longer group goes on under its name.
fn pages(groups: Vec<HeatGroup>) -> Vec<Vec<HeatGroup>> {
    let mut pages: Vec<Vec<HeatGroup>> = Vec::new();
    let mut room = 0;
    for group in groups {
        for rows in group.rows.chunks(ROWS) {
            if rows.len() > room {
                pages.push(Vec::new());
                room = ROWS;
            }
            room -= rows.len();
            // The list is not empty: without room a page was just added.
            if let Some(page) = pages.last_mut() {
                page.push(HeatGroup {
                    title: group.title.clone(),
                    rows: rows.to_vec(),
                });
            }
        }
    }
    pages
}

fn range(pages: &[Vec<HeatGroup>]) -> Option<(f64, f64)> {
    let rows = pages.iter().flatten().flat_map(|g| &g.rows);
    let values = rows
        .flat_map(|r| &r.cells)
        .flatten()
        .filter_map(|c| c.value);
    values.fold(None, |range: Option<(f64, f64)>, v| {
        let (low, high) = range.unwrap_or((v, v));
        Some((low.min(v), high.max(v)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};
    use yieldpoint_record::{Status, Trial};
    use yieldpoint_terms::Value;

    fn ints(to: i64) -> Vec<Value> {
        (1..=to).map(Value::Int).collect()
    }

    fn maps_of(axes: &[(&str, &[Value])], trials: &[Trial]) -> Vec<HeatMap> {
        let manifest = synthetic::manifest(axes);
        let made = tables(&manifest, trials).unwrap();
        charts(&Grid::new(&manifest, trials, &made).unwrap())
    }

    #[test]
    fn groups_are_clients_and_columns_the_longest_axis_of_numbers() {
        let clients = ["b", "a"].map(|c| Value::Text(c.into()));
        let keep = [true, false].map(Value::Bool);
        let (threads, requests) = (ints(2), ints(4));
        let mut trials = Vec::new();
        for client in ["a", "b"] {
            for k in &keep {
                for t in &threads {
                    for r in &requests {
                        let trial =
                            synthetic::at(synthetic::trial(client, 1), "keep_alive", k.clone());
                        let trial = synthetic::at(trial, "threads", t.clone());
                        trials.push(synthetic::at(trial, "requests", r.clone()));
                    }
                }
            }
        }
        trials[0] = synthetic::ran_out(trials[0].clone(), 20);
        trials[1] = synthetic::failed(trials[1].clone(), Status::Error, "no");
        trials.remove(2);
        let axes: [(&str, &[Value]); 4] = [
            ("client", &clients),
            ("keep_alive", &keep),
            ("threads", &threads),
            ("requests", &requests),
        ];
        let maps = maps_of(&axes, &trials);
        assert_eq!(maps.len(), 1);
        let map = &maps[0];
        assert_eq!((map.x_label.as_str(), map.x_values.len()), ("requests", 4));
        assert_eq!(map.y_label, "keep_alive / threads");
        let titles: Vec<_> = map.groups.iter().map(|g| g.title.as_str()).collect();
        assert_eq!(titles, ["b", "a"], "the order of the file");
        let labels: Vec<_> = map.groups[1]
            .rows
            .iter()
            .map(|r| r.label.as_str())
            .collect();
        assert_eq!(labels, ["true / 1", "true / 2", "false / 1", "false / 2"]);
        let first = &map.groups[1].rows[0].cells;
        let out = first[0].as_ref().unwrap();
        assert_eq!(out.text, "10.0");
        assert_eq!(out.mark.as_deref(), Some("ran out of ports, burst only"));
        assert_eq!(first[1].as_ref().unwrap().value, None, "not measured");
        assert_eq!(first[2], None, "no such cell");
        assert_eq!(map.range, Some((10.0, 1_000.0)));
        assert!(map.log, "100 times between the least and the greatest");
    }

    #[test]
    fn many_rows_go_on_in_further_maps_on_the_same_scale() {
        let (threads, requests) = (ints(3), ints(90));
        let mut trials = Vec::new();
        for t in &threads {
            for r in &requests {
                let trial = synthetic::at(synthetic::trial("a", 1), "threads", t.clone());
                trials.push(synthetic::at(trial, "shape", Value::Text(format!("{r}"))));
            }
        }
        let shapes: Vec<_> = requests
            .iter()
            .map(|r| Value::Text(r.to_string()))
            .collect();
        let maps = maps_of(&[("threads", &threads), ("shape", &shapes)], &trials);
        let rows = |m: &HeatMap| m.groups.iter().map(|g| g.rows.len()).sum::<usize>();
        assert_eq!(maps.iter().map(rows).collect::<Vec<_>>(), [40, 40, 10]);
        assert!(maps.iter().all(|m| m.range == maps[0].range));
        assert_eq!(
            (maps[1].id.as_str(), maps[1].x_label.as_str()),
            ("map-2", "threads")
        );
    }

    #[test]
    fn what_has_one_axis_alone_has_no_map() {
        let threads = ints(9);
        let trials: Vec<_> = threads
            .iter()
            .map(|t| synthetic::at(synthetic::trial("a", 1), "threads", t.clone()))
            .collect();
        assert_eq!(maps_of(&[("threads", &threads)], &trials), []);
        assert_eq!(maps_of(&[], &[synthetic::trial("a", 1)]), []);
    }
}

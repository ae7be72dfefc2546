//! The cells of a run in the order of the matrix: what every figure starts from.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use polars::prelude::{DataFrame, DataType};
use yieldpoint_protocol::ErrorKind;
use yieldpoint_record::{AxisFact, Manifest, Role, Status, Trial, flag};
use yieldpoint_terms::Value;

use crate::Tables;
use crate::controls::{self, Floor, Pair};
use crate::stats::{Spread, spread};
use crate::text;
use crate::trials::value;

/// An axis other than the client that takes at least two values in this run.
#[derive(Debug)]
pub(crate) struct Axis {
    pub name: String,
    /// its values as text; numbers ascend, the rest stands in the order of the file
    pub labels: Vec<String>,
    /// whether all its values are numbers
    pub numeric: bool,
    /// its values as numbers, where they are (durations in ns)
    pub numbers: Vec<Option<f64>>,
}

/// Place of a cell: an index into `labels` for each axis; `None` where the axis does not touch the cell
/// (an option of another client).
pub(crate) type Place = Vec<Option<usize>>;

/// What the figures take from a row of the table `trials`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub good_per_s: Option<f64>,
    pub connections_total: Option<f64>,
    pub cpu_us_per_good: Option<f64>,
    pub rss_peak_kib: Option<f64>,
    pub time_wait_client: Option<f64>,
    pub time_wait_target: Option<f64>,
}

/// One trial of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round<'a> {
    pub trial: &'a Trial,
    pub numbers: Numbers,
}

/// All trials of one cell, by round.
#[derive(Debug)]
pub(crate) struct Cell<'a> {
    /// index into [`Grid::clients`], which is also the colour of the client
    pub client: usize,
    pub place: Place,
    /// every trial, measured or not
    pub all: Vec<Round<'a>>,
    /// what most of its rounds were bound by
    pub said: Option<Said>,
}

/// The verdict of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub verdict: String,
    /// of the first round of this verdict
    pub evidence: String,
    /// of the same round
    pub remedy: String,
    /// of the same round, good requests per second
    pub sustained_per_s: Option<f64>,
    /// the least bound of the same round, 1/s, and its kind
    pub ceiling: Option<(f64, String)>,
}

/// The cells.
#[derive(Debug)]
pub(crate) struct Grid<'a> {
    pub manifest: &'a Manifest,
    pub clients: Vec<String>,
    pub axes: Vec<Axis>,
    /// by place, then by client
    pub cells: Vec<Cell<'a>>,
    /// the A/A controls, in the order of the journal
    pub controls: Vec<Pair>,
    /// how much a cell differs from itself; `None`: not measured
    pub floor: Option<Floor>,
}

impl<'a> Grid<'a> {
    pub fn new(
        manifest: &'a Manifest,
        trials: &'a [Trial],
        tables: &Tables,
    ) -> anyhow::Result<Self> {
        Self::of_rows(manifest, trials, &tables.trials)
    }

    /// As [`Self::new`], from the table `trials` alone.
    pub fn of_rows(
        manifest: &'a Manifest,
        trials: &'a [Trial],
        rows: &DataFrame,
    ) -> anyhow::Result<Self> {
        let numbers = numbers(rows)?;
        let controls = controls::pairs(trials, &numbers);
        let of_cells = || trials.iter().filter(|t| t.role == Role::Cell);
        let clients = Scale::new(manifest, "client", of_cells());
        let mut scales: Vec<(Axis, Scale)> = Vec::new();
        for axis in manifest.axes.iter().filter(|a| a.name != "client") {
            let scale = Scale::new(manifest, &axis.name, of_cells());
            // An axis narrowed to one value is a fact of the run, not something to look along.
            if scale.labels.len() >= 2 {
                let name = axis.name.clone();
                let labels = scale.labels.clone();
                scales.push((
                    Axis {
                        name,
                        labels,
                        numeric: scale.numeric,
                        numbers: scale.numbers(),
                    },
                    scale,
                ));
            }
        }
        let mut cells: Vec<Cell<'a>> = Vec::new();
        let mut by_id: HashMap<&str, usize> = HashMap::new();
        for (trial, numbers) in trials.iter().zip(numbers) {
            if trial.role != Role::Cell {
                continue;
            }
            let at = *by_id.entry(&trial.cell).or_insert_with(|| {
                cells.push(Cell {
                    // Every trial was given to the scale; one without a client stands for client 0.
                    client: clients.index(trial, "client").unwrap_or(0),
                    place: scales
                        .iter()
                        .map(|(a, s)| s.index(trial, &a.name))
                        .collect(),
                    all: Vec::new(),
                    said: None,
                });
                cells.len() - 1
            });
            cells[at].all.push(Round { trial, numbers });
        }
        say(&mut cells, &by_id, trials, rows)?;
        for cell in &mut cells {
            cell.all.sort_by_key(|r| (r.trial.round, r.trial.order));
        }
        cells.sort_by(|a, b| (&a.place, a.client).cmp(&(&b.place, b.client)));
        let mut clients = clients.labels;
        if clients.is_empty() {
            clients.push("client".to_owned());
        }
        let axes = scales.into_iter().map(|(axis, _)| axis).collect();
        Ok(Self {
            manifest,
            clients,
            axes,
            cells,
            floor: Floor::of(&controls),
            controls,
        })
    }

    /// "keep_alive = true, threads = 2", leaving out the axis at `skip`.
    pub fn place_text(&self, place: &Place, skip: Option<usize>) -> String {
        let part = |(i, axis): (usize, &Axis)| {
            let value = (*place.get(i)?).map(|v| axis.labels[v].as_str());
            (Some(i) != skip).then(|| format!("{} = {}", axis.name, value.unwrap_or("–")))
        };
        let parts: Vec<_> = self.axes.iter().enumerate().filter_map(part).collect();
        parts.join(", ")
    }

    /// "ureq, keep_alive = true, threads = 2"
    pub fn cell_text(&self, cell: &Cell) -> String {
        let place = self.place_text(&cell.place, None);
        let client = &self.clients[cell.client];
        if place.is_empty() {
            client.clone()
        } else {
            format!("{client}, {place}")
        }
    }

    /// The position of an axis.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|a| a.name == name)
    }

    /// Cells by place without the axis at `skip`, in order.
    pub fn by_place(&self, skip: Option<usize>) -> Vec<(Place, Vec<&Cell<'a>>)> {
        let mut groups: BTreeMap<Place, Vec<&Cell<'a>>> = BTreeMap::new();
        for cell in &self.cells {
            let mut place = cell.place.clone();
            if let Some(i) = skip {
                place[i] = None;
            }
            groups.entry(place).or_default().push(cell);
        }
        groups.into_iter().collect()
    }
}

impl<'a> Cell<'a> {
    /// The trials that count.
    pub fn ok(&self) -> impl Iterator<Item = &Round<'a>> {
        self.all.iter().filter(|r| r.trial.status == Status::Ok)
    }

    /// The spread of a number over the rounds that count.
    pub fn spread(&self, of: fn(&Numbers) -> Option<f64>) -> Option<Spread> {
        spread(self.ok().filter_map(|r| of(&r.numbers)))
    }

    /// Whether some request of some round found no local port free.
    pub fn ran_out(&self) -> bool {
        self.ok().any(|r| no_port_free(r.trial).is_some())
    }

    /// Whether some round saw the port burst only.
    pub fn burst_only(&self) -> bool {
        self.ok().any(|r| has_flag(r.trial, flag::BURST_ONLY))
    }

    /// Whether the asked users or rate were not reached in some round: such a cell never wins a comparison.
    pub fn starved(&self) -> bool {
        self.ok().any(|r| has_flag(r.trial, STARVED))
    }

    /// The trials that may be compared with those of other cells.
    pub fn comparable(&self) -> impl Iterator<Item = &Round<'a>> {
        self.ok().filter(|r| !has_flag(r.trial, STARVED))
    }

    /// What must be seen of this cell before its number is believed.
    pub fn mark(&self) -> Option<String> {
        let marks = [
            (self.ran_out(), RAN_OUT),
            (self.burst_only(), "burst only"),
            (self.starved(), "starved"),
        ];
        let words: Vec<_> = marks
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, word)| *word)
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Gives each cell the verdict of most of its rounds; of equally many the first.
fn say(
    cells: &mut [Cell],
    by_id: &HashMap<&str, usize>,
    trials: &[Trial],
    rows: &DataFrame,
) -> anyhow::Result<()> {
    let text = |name: &str| -> anyhow::Result<_> { Ok(rows.column(name)?.str()?.clone()) };
    let number = |name: &str| -> anyhow::Result<_> { Ok(rows.column(name)?.f64()?.clone()) };
    let (verdicts, evidence, remedies) = (text("verdict")?, text("evidence")?, text("remedy")?);
    let (kinds, ceilings) = (text("ceiling_kind")?, number("ceiling_per_s")?);
    let sustained = number("sustained_per_s")?;
    let mut votes: Vec<Vec<(&str, usize, usize)>> = vec![Vec::new(); cells.len()];
    for (row, trial) in trials.iter().enumerate() {
        let Some(verdict) = verdicts.get(row).filter(|_| trial.role == Role::Cell) else {
            continue;
        };
        let Some(at) = by_id.get(trial.cell.as_str()) else {
            continue;
        };
        match votes[*at].iter_mut().find(|v| v.0 == verdict) {
            Some(vote) => vote.1 += 1,
            None => votes[*at].push((verdict, 1, row)),
        }
    }
    for (cell, votes) in cells.iter_mut().zip(votes) {
        let most = votes.into_iter().rev().max_by_key(|v| v.1);
        cell.said = most.map(|(verdict, _, row)| Said {
            verdict: verdict.to_owned(),
            evidence: evidence.get(row).unwrap_or_default().to_owned(),
            remedy: remedies.get(row).unwrap_or_default().to_owned(),
            sustained_per_s: sustained.get(row),
            ceiling: ceilings
                .get(row)
                .zip(kinds.get(row))
                .map(|(per_s, kind)| (per_s, kind.to_owned())),
        });
    }
    Ok(())
}

/// Flag of a trial in which the asked users or rate were not reached.
pub(crate) const STARVED: &str = flag::STARVED;

/// The mark of a cell that met `address_not_available`.
pub(crate) const RAN_OUT: &str = "ran out of ports";

pub(crate) fn has_flag(trial: &Trial, flag: &str) -> bool {
    trial.flags.iter().any(|f| f == flag)
}

/// When the first request of a trial found no local port free, CLOCK_MONOTONIC ns.
pub(crate) fn no_port_free(trial: &Trial) -> Option<u64> {
    let errors = &trial.outcome.as_ref()?.errors;
    let is = |e: &&yieldpoint_protocol::ErrorCount| {
        e.kind == ErrorKind::AddressNotAvailable && e.count > 0
    };
    errors.iter().find(is).map(|e| e.first_ns)
}

/// Number of local ports of a trial, from the range that was read back inside its lab.
pub(crate) fn ports(trial: &Trial) -> Option<u64> {
    let range = trial.sysctls.get("net.ipv4.ip_local_port_range")?;
    let mut ends = range.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(low)), Some(Ok(high)), None) = (ends.next(), ends.next(), ends.next()) else {
        return None;
    };
    high.checked_sub(low)?.checked_add(1)
}

/// The values of one axis that occur, in the order in which they are shown.
struct Scale {
    labels: Vec<String>,
    numeric: bool,
    index: BTreeMap<Value, usize>,
    values: Vec<Value>,
}

impl Scale {
    fn new<'t>(manifest: &Manifest, name: &str, trials: impl Iterator<Item = &'t Trial>) -> Self {
        let occur: BTreeSet<Value> = trials.filter_map(|t| value(t, name)).map(on_disk).collect();
        let numeric = occur.iter().all(|v| v.as_f64().is_some());
        let axis: Option<&AxisFact> = manifest.axes.iter().find(|a| a.name == name);
        let mut values: Vec<Value> = Vec::new();
        if numeric {
            values.extend(occur);
            // Integers and floats of one axis are ordered by size, not by type.
            let size = |v: &Value| v.as_f64().unwrap_or(0.0);
            values.sort_by(|a, b| size(a).total_cmp(&size(b)));
        } else {
            let in_file = axis.map_or(&[][..], |a| &a.values).iter().map(on_disk);
            let mut left = occur;
            values.extend(in_file.filter(|v| left.remove(v)));
            values.extend(left);
        }
        let label = |v: &Value| text::knob(&manifest.knobs, name, v);
        Self {
            labels: values.iter().map(label).collect(),
            numeric,
            index: values.iter().cloned().zip(0..).collect(),
            values,
        }
    }

    fn numbers(&self) -> Vec<Option<f64>> {
        self.values.iter().map(Value::as_f64).collect()
    }

    fn index(&self, trial: &Trial, name: &str) -> Option<usize> {
        self.index.get(&on_disk(value(trial, name)?)).copied()
    }
}

/// A value as it is after a trip over the disk, so that trials in memory and in a journal are the same.
fn on_disk(value: &Value) -> Value {
    match value {
        Value::Duration(d) => i64::try_from(d.0).map_or_else(|_| value.clone(), Value::Int),
        other => other.clone(),
    }
}

/// The numbers of every row of `trials`.
fn numbers(rows: &DataFrame) -> anyhow::Result<Vec<Numbers>> {
    let column = |name: &str| -> anyhow::Result<Vec<Option<f64>>> {
        let floats = rows.column(name)?.cast(&DataType::Float64)?;
        Ok(floats.f64()?.iter().collect())
    };
    let good_per_s = column("good_per_s")?;
    let connections_total = column("connections_total")?;
    let cpu = column("client_cpu_us_per_good")?;
    let rss = column("client_rss_peak_kib")?;
    let time_wait_client = column("time_wait_client")?;
    let time_wait_target = column("time_wait_target")?;
    let row = |i: usize| Numbers {
        good_per_s: good_per_s[i],
        connections_total: connections_total[i],
        cpu_us_per_good: cpu[i],
        rss_peak_kib: rss[i],
        time_wait_client: time_wait_client[i],
        time_wait_target: time_wait_target[i],
    };
    Ok((0..rows.height()).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{synthetic, tables};

    fn text(t: &str) -> Value {
        Value::Text(t.into())
    }

    #[test]
    fn cells_stand_in_the_order_of_the_matrix() {
        let int = Value::Int;
        let manifest = synthetic::manifest(&[
            ("client", &[text("ureq"), text("hyper")]),
            ("requests_per_iteration", &[int(100), int(1), int(10)]),
            ("kernel", &[text("wide"), text("default")]),
            ("threads", &[int(1)]), // narrowed: not an axis to look along
        ]);
        let mut trials = Vec::new();
        for (round, client, requests, kernel) in [
            (2, "hyper", 10, "default"),
            (1, "ureq", 10, "default"),
            (1, "hyper", 100, "wide"),
            (1, "hyper", 10, "default"),
            (1, "ureq", 1, "wide"),
        ] {
            let trial = synthetic::at(
                synthetic::trial(client, round),
                "requests_per_iteration",
                int(requests),
            );
            trials.push(synthetic::at(trial, "kernel", text(kernel)));
        }
        let mut control = trials[0].clone();
        control.role = Role::Control;
        trials.push(control);
        let tables = tables(&manifest, &trials).unwrap();
        let grid = Grid::new(&manifest, &trials, &tables).unwrap();
        let cells: Vec<_> = grid
            .cells
            .iter()
            .map(|c| (grid.cell_text(c), c.all.len()))
            .collect();
        // Numbers ascend, words stand as in the file, ureq is the file's first client.
        let want = [
            ("ureq, requests_per_iteration = 1, kernel = wide", 1),
            ("ureq, requests_per_iteration = 10, kernel = default", 1),
            ("hyper, requests_per_iteration = 10, kernel = default", 2),
            ("hyper, requests_per_iteration = 100, kernel = wide", 1),
        ];
        assert_eq!(cells, want.map(|(t, n)| (t.to_owned(), n)));
        assert_eq!(grid.cells[2].all[0].trial.round, 1);
    }

    #[test]
    fn the_range_of_ports_is_counted_with_both_ends() {
        let table = [
            ("32768\t60999", Some(28_232)), // as the kernel prints it
            ("5000 5000", Some(1)),
            ("60999 32768", None),
            ("32768", None),
            ("1 2 3", None),
            ("a b", None),
        ];
        let mut trial = synthetic::trial("ureq", 1);
        for (range, want) in table {
            trial
                .sysctls
                .insert("net.ipv4.ip_local_port_range".into(), range.into());
            assert_eq!(ports(&trial), want, "{range}");
        }
        trial.sysctls.clear();
        assert_eq!(ports(&trial), None);
    }

    #[test]
    fn marks_and_spreads_come_from_trials_that_count() {
        let manifest = synthetic::manifest(&[]);
        let ran_out = synthetic::ran_out(synthetic::trial("ureq", 1), 1_000);
        let mut not_ok = synthetic::good(synthetic::trial("ureq", 2), 8_000);
        not_ok.status = Status::Error;
        let trials = [ran_out, not_ok];
        let made = tables(&manifest, &trials).unwrap();
        let grid = Grid::new(&manifest, &trials, &made).unwrap();
        let [cell] = &grid.cells[..] else {
            panic!("one cell")
        };
        assert_eq!(cell.mark().as_deref(), Some("ran out of ports, burst only"));
        let good = cell.spread(|n| n.good_per_s).unwrap();
        assert_eq!((good.low, good.mid, good.high), (500.0, 500.0, 500.0));
    }
}

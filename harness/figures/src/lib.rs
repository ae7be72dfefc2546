//! Plain structs of what a report shows: analysis fills them, report draws them.
//!
//! No statistics, no drawing, no Polars. Numbers carry their unit in the field that names it;
//! what was not measured is `None`.

use serde::{Deserialize, Serialize};

/// Everything one report shows, in the order in which it shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// name of the run
    pub title: String,
    /// the question of the matrix
    pub question: String,
    /// where the question comes from
    pub source: Option<String>,
    /// the answer: one sentence a finding, most important first
    pub findings: Vec<String>,
    /// what the answer rests on: one sentence each, after the pictures
    #[serde(default)]
    pub evidence: Vec<String>,
    /// how much the same thing differs from itself in this run, or that it was not measured
    #[serde(default)]
    pub noise: String,
    /// what a reader must know before believing a number (short trials, errors, noise, missing ends)
    pub warnings: Vec<String>,
    /// every cell at a glance
    #[serde(default)]
    pub maps: Vec<HeatMap>,
    /// throughput along an axis
    pub axes: Vec<AxisChart>,
    /// the course of chosen trials
    pub timelines: Vec<TimeChart>,
    /// memory, CPU per good request …
    pub bars: Vec<BarChart>,
    /// what each knob does to throughput, and each two together
    #[serde(default)]
    pub effects: Table,
    /// what the reference client reached: the best known rates of the target
    #[serde(default)]
    pub ceilings: Table,
    /// what was injected against what was said, of a proof by fault injection
    #[serde(default)]
    pub confusion: Option<Confusion>,
    /// every cell
    pub cells: Table,
    /// failed requests by kind
    pub errors: Table,
    /// machine, kernel, sysctls, versions
    pub facts: Vec<Fact>,
    /// the exact command
    pub command: String,
    /// what the columns and words mean: name, meaning with unit
    pub glossary: Vec<Fact>,
}

/// A name and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// name
    pub name: String,
    /// value
    pub value: String,
}

/// A quantity along one axis, one line a client, small multiples for the other axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AxisChart {
    /// short and stable, for file names ("throughput-by-requests_per_iteration")
    pub id: String,
    /// headline
    pub title: String,
    /// what to see in it
    pub caption: String,
    /// axis name with unit
    pub x_label: String,
    /// the axis' values as text, in order; points refer to them by index (values are equally spaced)
    pub x_values: Vec<String>,
    /// quantity with unit ("good requests/s")
    pub y_label: String,
    /// whether y spans decades and is drawn on a log scale
    pub log_y: bool,
    /// small multiples, row by row
    pub facets: Vec<Facet>,
    /// how many belong into one row where the width allows it (the values of one of the other axes); 0: any number
    #[serde(default)]
    pub columns: usize,
    /// least and greatest value of the scale, where several charts share one
    #[serde(default)]
    pub range: Option<(f64, f64)>,
}

/// One small multiple.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facet {
    /// the other axes' values ("keep_alive = true"); empty if there are none
    pub title: String,
    /// one a client
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// label at its end
    pub name: String,
    /// the same series has the same colour in every chart: index into the palette
    pub colour: usize,
    /// points in the order of the axis
    pub points: Vec<Point>,
}

/// One point with its spread over rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// index into `x_values`
    pub x: usize,
    /// median of the rounds
    pub mid: f64,
    /// least of the rounds
    pub low: f64,
    /// greatest of the rounds
    pub high: f64,
    /// drawn hollow and explained in the legend ("burst only", "ran out of ports")
    pub mark: Option<String>,
}

/// A quantity of every cell as colour and number: rows × columns, rows in groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// short and stable, for file names
    pub id: String,
    /// headline
    pub title: String,
    /// what to see in it
    pub caption: String,
    /// what the columns are
    pub x_label: String,
    /// headings of the columns
    pub x_values: Vec<String>,
    /// what the labels of the rows are; empty: rows have none
    pub y_label: String,
    /// quantity with unit, beside the colour bar
    pub value_label: String,
    /// whether values span decades and are coloured by their logarithm
    pub log: bool,
    /// least and greatest value of the scale, where several charts share one
    #[serde(default)]
    pub range: Option<(f64, f64)>,
    /// from top to bottom
    pub groups: Vec<HeatGroup>,
}

/// Rows of a heat map that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatGroup {
    /// above its rows; may be empty
    pub title: String,
    /// from top to bottom
    pub rows: Vec<HeatRow>,
}

/// One row of a heat map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatRow {
    /// to its left; may be empty
    pub label: String,
    /// one a column; `None`: there is no such cell
    pub cells: Vec<Option<HeatCell>>,
}

/// One cell of a heat map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatCell {
    /// median of the rounds; `None`: not measured
    pub value: Option<f64>,
    /// the value as it is written; left out where there is no room for it
    pub text: String,
    /// drawn as a marked corner and explained in the legend
    pub mark: Option<String>,
}

/// Several quantities over one time axis, stacked as panels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeChart {
    /// short and stable, for file names
    pub id: String,
    /// headline: which trial
    pub title: String,
    /// what to see in it
    pub caption: String,
    /// length of the time axis in seconds from the start of the window
    pub seconds: f64,
    /// from top to bottom
    pub panels: Vec<Panel>,
}

/// One panel of a time chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// quantity with unit
    pub y_label: String,
    /// a horizontal line with its name ("28,232 ports")
    pub limit: Option<(f64, String)>,
    /// its lines
    pub series: Vec<Series>,
}

/// One quantity over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// label
    pub name: String,
    /// index into the palette
    pub colour: usize,
    /// (seconds from the start, value); a gap where the value is missing
    pub points: Vec<(f64, Option<f64>)>,
}

/// Grouped bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BarChart {
    /// short and stable, for file names
    pub id: String,
    /// headline
    pub title: String,
    /// what to see in it
    pub caption: String,
    /// quantity with unit
    pub y_label: String,
    /// groups from left to right
    pub groups: Vec<BarGroup>,
}

/// One group of bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BarGroup {
    /// below the group; as short as it can be
    pub label: String,
    /// its bars
    pub bars: Vec<Bar>,
}

/// One bar with its spread over rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// which series (legend)
    pub name: String,
    /// index into the palette
    pub colour: usize,
    /// median of the rounds; `None`: not measured, drawn as a gap with a mark
    pub mid: Option<f64>,
    /// least of the rounds
    pub low: Option<f64>,
    /// greatest of the rounds
    pub high: Option<f64>,
}

/// How verdicts stand to what was injected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Confusion {
    /// shares of right, incomplete, unexplained and wrong verdicts, a sentence each, with what the words mean
    pub shares: Vec<String>,
    /// injected causes × verdicts as a picture; the right ones are marked
    pub map: HeatMap,
    /// the same as text
    pub table: Table,
}

/// A table as text, ready to be printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// what to see in it, and what its words mean; may be empty
    #[serde(default)]
    pub caption: String,
    /// headings
    pub columns: Vec<Column>,
    /// rows
    pub rows: Vec<Row>,
    /// the column by whose keys a report first shows the rows, greatest first; rows without a key stand last
    #[serde(default)]
    pub sorted_by: Option<usize>,
}

/// A heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// short name
    pub name: String,
    /// unit, below the name; empty if it has none
    pub unit: String,
    /// numbers are set to the right
    pub number: bool,
    /// meaning, as a tooltip
    pub doc: String,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// one text a column; empty: not measured
    pub cells: Vec<String>,
    /// the value to sort a column by where the text does not sort ("1,234")
    pub keys: Vec<Option<f64>>,
    /// why the row is drawn muted or marked ("error", "unsupported")
    pub mark: Option<String>,
}

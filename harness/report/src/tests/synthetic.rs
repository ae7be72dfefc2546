//! A made-up report: round figures that no machine has measured.

use yieldpoint_figures::{
    AxisChart, Bar, BarChart, BarGroup, Column, Confusion, Facet, Fact, HeatCell, HeatGroup,
    HeatMap, HeatRow, Line, Panel, Point, Report, Row, Series, Table, TimeChart,
};

const CLIENTS: [&str; 3] = ["alpha", "beta", "gamma"];

fn fact(name: &str, value: &str) -> Fact {
    Fact {
        name: name.into(),
        value: value.into(),
    }
}

/// `facets` small multiples of `clients` lines over `values`.
pub(super) fn axis(id: &str, facets: usize, clients: &[&str], values: &[&str]) -> AxisChart {
    let line = |facet: usize, colour: usize, name: &str| {
        let points = (0..values.len()).map(|x| {
            let mid =
                1_000.0 * (1.0 + x as f64) * (1.0 + colour as f64 / 10.0) * (1.0 + facet as f64);
            Point {
                x,
                mid,
                low: mid * 0.9,
                high: mid * 1.05,
                mark: (x == 0).then(|| ["burst only", "ran out of ports"][colour % 2].to_owned()),
            }
        });
        Line {
            name: name.into(),
            colour,
            points: points.collect(),
        }
    };
    let facet = |i: usize| Facet {
        title: if facets > 1 {
            format!("knob = {i}")
        } else {
            String::new()
        },
        lines: clients
            .iter()
            .enumerate()
            .map(|(c, n)| line(i, c, n))
            .collect(),
    };
    AxisChart {
        id: id.into(),
        title: format!("Synthetic throughput, {facets} small multiples"),
        caption: "Synthetic: it rises because the test says so.".into(),
        x_label: "requests per iteration".into(),
        x_values: values.iter().map(|v| (*v).into()).collect(),
        y_label: "good requests/s".into(),
        log_y: false,
        facets: (0..facets).map(facet).collect(),
        columns: 0,
        range: None,
    }
}

/// A burst, a gap, a recovery; and a level below a limit.
pub(super) fn time(id: &str) -> TimeChart {
    let rate = |t: usize| match t {
        0..=3 => Some(12_000.0),
        4..=33 => Some(400.0),
        34..=59 => Some(0.0),
        60..=63 => None,
        _ => Some(11_000.0),
    };
    let level = |t: usize| Some((t as f64 * 7_000.0).min(28_000.0));
    let series = |name: &str, colour, f: &dyn Fn(usize) -> Option<f64>| Series {
        name: name.into(),
        colour,
        points: (0..80).map(|t| (t as f64, f(t))).collect(),
    };
    TimeChart {
        id: id.into(),
        title: "Synthetic trial".into(),
        caption: "Synthetic: burst, search, exhaustion, recovery.".into(),
        seconds: 80.0,
        panels: vec![
            Panel {
                y_label: "good requests/s".into(),
                limit: None,
                series: vec![series("good requests/s", 0, &rate)],
            },
            Panel {
                y_label: "sockets".into(),
                limit: Some((28_232.0, "28,232 ports".into())),
                series: vec![
                    series("TIME_WAIT at the client", 1, &level),
                    series("TIME_WAIT at the target", 2, &|_| Some(40.0)),
                    series("never read", 3, &|_| None),
                ],
            },
            Panel {
                y_label: "new connections/s".into(),
                limit: Some((1e6, "a limit far away".into())),
                series: vec![series("new connections/s", 0, &rate)],
            },
        ],
    }
}

/// `groups` groups of three bars; the last group lacks its second.
pub(super) fn bars(id: &str, groups: usize, label: impl Fn(usize) -> String) -> BarChart {
    let bar = |g: usize, colour: usize, name: &str| {
        let missing = g + 1 == groups && colour == 1;
        let mid = (!missing).then_some(10.0 * (1.0 + colour as f64) + g as f64);
        Bar {
            name: name.into(),
            colour,
            mid,
            low: mid.map(|m| m - 2.0),
            high: mid.map(|m| m + 3.0),
        }
    };
    let group = |g: usize| BarGroup {
        label: label(g),
        bars: CLIENTS
            .iter()
            .enumerate()
            .map(|(c, n)| bar(g, c, n))
            .collect(),
    };
    BarChart {
        id: id.into(),
        title: "Synthetic cost".into(),
        caption: "Synthetic.".into(),
        y_label: "client CPU per good request, µs".into(),
        groups: (0..groups).map(group).collect(),
    }
}

pub(super) fn cells(rows: usize) -> Table {
    let column = |name: &str, unit: &str, number: bool, doc: &str| Column {
        name: name.into(),
        unit: unit.into(),
        number,
        doc: doc.into(),
    };
    let row = |i: usize| {
        let good = 1_000.0 * i as f64;
        let marked = i % 4 == 3;
        Row {
            cells: vec![
                format!("synthetic/client={},threads={i}", CLIENTS[i % 3]),
                if marked {
                    String::new()
                } else {
                    format!("{},000", i)
                },
                "1.25".into(),
            ],
            keys: vec![None, (!marked).then_some(good), Some(1.25)],
            mark: marked.then(|| "unsupported: the client has no threads".into()),
        }
    };
    Table {
        columns: vec![
            column("cell", "", false, "one combination of all knobs"),
            column(
                "good_per_s",
                "/s",
                true,
                "good requests per second, median of the rounds",
            ),
            column("p99", "ms", true, ""),
        ],
        rows: (1..=rows).map(row).collect(),
        sorted_by: Some(1),
        caption: String::new(),
    }
}

/// Groups of rows of `columns` cells; some are marked, one was not measured, one is not there.
pub(super) fn map(id: &str, groups: usize, rows: usize, columns: &[&str]) -> HeatMap {
    let cell = |g: usize, r: usize, c: usize| {
        let value = 100.0 * 3f64.powi(i32::try_from(g + r + c).unwrap());
        let measured = (r, c) != (1, 1);
        HeatCell {
            value: measured.then_some(value),
            text: if measured {
                format!("{value}")
            } else {
                String::new()
            },
            mark: (measured && c < 2 && r == 0)
                .then(|| ["burst only", "ran out of ports"][c].to_owned()),
        }
    };
    let row = |g: usize, r: usize| HeatRow {
        label: format!("{} / {r}", r.is_multiple_of(2)),
        cells: (0..columns.len())
            .map(|c| ((g, r, c) != (0, 0, 2)).then(|| cell(g, r, c)))
            .collect(),
    };
    let group = |g: usize| HeatGroup {
        title: CLIENTS[g % CLIENTS.len()].into(),
        rows: (0..rows).map(|r| row(g, r)).collect(),
    };
    HeatMap {
        id: id.into(),
        title: "Synthetic throughput of every cell".into(),
        caption: "Synthetic.".into(),
        x_label: "requests per iteration".into(),
        x_values: columns.iter().map(|c| (*c).into()).collect(),
        y_label: "keep_alive / threads".into(),
        value_label: "good requests/s".into(),
        log: true,
        range: None,
        groups: (0..groups).map(group).collect(),
    }
}

/// A report with something in every part.
pub(super) fn report() -> Report {
    Report {
        title: "synthetic run".into(),
        question: "Does the page show every part of a report?".into(),
        source: Some("made up for a test".into()),
        findings: vec![
            "alpha gives ten times the throughput at 100 requests an iteration (synthetic).".into(),
            "beta runs out of ports (synthetic).".into(),
        ],
        evidence: vec!["alpha used 2 of 2 cores (synthetic).".into()],
        noise: "Noise floor: made up, so there is none.".into(),
        effects: Table {
            caption: "Synthetic effects.".into(),
            ..cells(1)
        },
        ceilings: cells(2),
        confusion: Some(Confusion {
            shares: vec!["Right: 2 of 3 (synthetic).".into()],
            map: map("confusion", 2, 3, &["1", "10", "50", "100"]),
            table: cells(3),
        }),
        warnings: vec!["Every figure on this page is made up.".into()],
        maps: vec![map("map", 2, 3, &["1", "10", "50", "100"])],
        axes: vec![axis(
            "throughput-by-requests",
            2,
            &CLIENTS,
            &["1", "10", "50", "100"],
        )],
        timelines: vec![time("timeline-alpha")],
        bars: vec![bars("cpu", 4, |g| {
            format!("keep_alive = {}, threads = {g}", g % 2 == 0)
        })],
        cells: cells(6),
        errors: Table {
            columns: cells(1).columns,
            rows: cells(2).rows,
            ..Table::default()
        },
        facts: vec![fact("kernel", "Synthetic 1.0"), fact("cores", "2")],
        command: "yieldpoint run synthetic.toml --set note='<b>not bold</b>'".into(),
        glossary: vec![fact(
            "good request",
            "complete response, expected status and length",
        )],
    }
}

//! Input at and beyond the edges: whatever the figures hold, a report comes out, readable and safe.

use yieldpoint_figures::{
    AxisChart, Bar, BarChart, BarGroup, Facet, Fact, HeatMap, Line, Panel, Point, Report, Series,
    TimeChart,
};

use super::{drawings, elements, synthetic};
use crate::{files, markdown, page, paint};

/// Draws everything, judges texts and XML, renders the page.
fn judge(what: &str, report: &Report) -> String {
    for (name, drawing) in drawings(report) {
        assert_eq!(drawing.overlaps(), [], "{what}: {name}");
        assert_eq!(drawing.cut(), [] as [&str; 0], "{what}: {name}");
        elements(&paint::standalone(&drawing, &name).unwrap());
    }
    // Whatever it holds, it is one document of lines that end.
    assert!(markdown::render(report, &files::charts(report)).ends_with(".\n"));
    page::render(report).unwrap()
}

fn charts(axes: Vec<AxisChart>, timelines: Vec<TimeChart>, bars: Vec<BarChart>) -> Report {
    Report {
        axes,
        timelines,
        bars,
        ..Report::default()
    }
}

#[test]
fn an_empty_report() {
    let page = judge("empty", &Report::default());
    assert!(page.contains("The measurements support no finding."));
    assert!(!page.contains("<table>") && !page.contains("<figure"));
    // Charts without anything in them say so.
    let empty = charts(
        vec![AxisChart::default()],
        vec![TimeChart::default()],
        vec![BarChart::default()],
    );
    let empty = Report {
        maps: vec![HeatMap::default()],
        ..empty
    };
    let page = judge("empty charts", &empty);
    assert_eq!(page.matches("nothing was measured").count(), 8);
}

#[test]
fn one_point() {
    let time = TimeChart {
        seconds: 1.0,
        panels: vec![Panel {
            series: vec![Series {
                name: "one".into(),
                colour: 0,
                points: vec![(0.0, Some(1.0))],
            }],
            ..Panel::default()
        }],
        ..TimeChart::default()
    };
    let one = charts(
        vec![synthetic::axis("a", 1, &["alpha"], &["1"])],
        vec![time],
        vec![synthetic::bars("b", 1, |_| "only".into())],
    );
    judge("one point", &one);
}

#[test]
fn many_cells_and_facets() {
    let clients: Vec<String> = (0..12).map(|i| format!("client-{i}")).collect();
    let clients: Vec<&str> = clients.iter().map(String::as_str).collect();
    let mut report = charts(
        vec![
            synthetic::axis("few", 12, &clients[..3], &["1", "10", "50", "100"]),
            synthetic::axis(
                "many",
                4,
                &clients,
                &["1", "2", "4", "8", "16", "32", "64", "128", "256", "512"],
            ),
        ],
        vec![synthetic::time("t")],
        vec![synthetic::bars("b", 72, |g| {
            format!("keep_alive = true, threads = {g}")
        })],
    );
    report.axes[0].columns = 4;
    report.maps = vec![
        synthetic::map("large", 3, 12, &["1", "10", "50", "100"]),
        // Too narrow for numbers: colours alone.
        synthetic::map("wide", 1, 2, &["1024"; 40]),
    ];
    report.cells = synthetic::cells(72);
    let page = judge("many", &report);
    assert_eq!(page.matches("<tr").count(), 73);
}

#[test]
fn very_long_names() {
    let long = "a_rather_long_name=of,something/".repeat(12);
    let unbroken = "W".repeat(500);
    let mut report = charts(
        vec![synthetic::axis(
            "a",
            3,
            &[&long, &unbroken, "x"],
            &[&long, &unbroken, "1"],
        )],
        vec![synthetic::time("t")],
        vec![synthetic::bars("b", 5, |g| format!("{unbroken}{g}"))],
    );
    for title in [
        &mut report.axes[0].title,
        &mut report.timelines[0].title,
        &mut report.bars[0].y_label,
    ] {
        *title = long.clone();
    }
    report.axes[0].facets[1].title = unbroken.clone();
    let mut map = synthetic::map("m", 2, 2, &[&long, &unbroken, "1"]);
    for text in [
        &mut map.title,
        &mut map.x_label,
        &mut map.y_label,
        &mut map.value_label,
    ] {
        *text = unbroken.clone();
    }
    map.groups[0].title = unbroken.clone();
    map.groups[0].rows[0].label = unbroken.clone();
    map.groups[1].rows[1].label = unbroken.clone();
    report.maps = vec![map];
    report.timelines[0].panels[0].y_label = long.clone();
    report.timelines[0].panels[1].limit = Some((28_232.0, unbroken.clone()));
    judge("long names", &report);
}

#[test]
fn values_that_are_huge_tiny_or_no_numbers() {
    let odd = [
        0.0,
        -0.0,
        -5.0,
        1e308,
        -1e308,
        1e-308,
        5e-324,
        1e15,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for (i, a) in odd.into_iter().enumerate() {
        for b in [1.0, odd[(i + 1) % odd.len()], odd[(i + 4) % odd.len()]] {
            let what = format!("{a} and {b}");
            let point = |x, mid| Point {
                x,
                mid,
                low: b,
                high: a,
                mark: Some(what.clone()),
            };
            let axis = |log_y| AxisChart {
                log_y,
                x_values: vec!["1".into(), "2".into()],
                facets: vec![Facet {
                    title: String::new(),
                    lines: vec![Line {
                        name: "odd".into(),
                        colour: usize::MAX,
                        // The last one refers to a value that does not exist.
                        points: vec![point(0, a), point(1, b), point(9, 1.0)],
                    }],
                }],
                ..AxisChart::default()
            };
            let time = TimeChart {
                seconds: b,
                panels: vec![Panel {
                    y_label: "odd".into(),
                    limit: Some((b, "limit".into())),
                    series: vec![Series {
                        name: "odd".into(),
                        colour: 7,
                        points: vec![(0.0, Some(a)), (a, Some(b)), (b, None), (1.0, Some(1.0))],
                    }],
                }],
                ..TimeChart::default()
            };
            let bar = |mid| Bar {
                name: "odd".into(),
                colour: 1,
                mid: Some(mid),
                low: Some(b),
                high: None,
            };
            let bars = BarChart {
                groups: vec![BarGroup {
                    label: String::new(),
                    bars: vec![bar(a), bar(b)],
                }],
                ..BarChart::default()
            };
            let mut report = charts(vec![axis(false), axis(true)], vec![time], vec![bars]);
            for (log, range) in [(false, None), (true, Some((a, b)))] {
                let mut map = synthetic::map("m", 1, 1, &["1", "2"]);
                (map.log, map.range) = (log, range);
                for (cell, value) in map.groups[0].rows[0].cells.iter_mut().zip([a, b]) {
                    cell.as_mut().unwrap().value = Some(value);
                }
                report.maps.push(map);
            }
            judge(&what, &report);
        }
    }
}

#[test]
fn nothing_in_the_data_becomes_markup() {
    let evil = "</title></style></script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;\u{0}\u{1b}";
    let mut report = synthetic::report();
    let fact = || Fact {
        name: evil.into(),
        value: evil.into(),
    };
    for text in [&mut report.title, &mut report.question, &mut report.command] {
        *text = evil.into();
    }
    report.source = Some(evil.into());
    report.findings = vec![evil.into()];
    report.warnings = vec![evil.into()];
    report.facts = vec![fact()];
    report.glossary = vec![fact()];
    let axis = &mut report.axes[0];
    for text in [
        &mut axis.id,
        &mut axis.title,
        &mut axis.caption,
        &mut axis.x_label,
        &mut axis.y_label,
    ] {
        *text = evil.into();
    }
    axis.x_values[0] = evil.into();
    axis.facets[0].title = evil.into();
    axis.facets[0].lines[0].name = evil.into();
    axis.facets[0].lines[0].points[0].mark = Some(evil.into());
    let map = &mut report.maps[0];
    for text in [
        &mut map.id,
        &mut map.title,
        &mut map.caption,
        &mut map.x_label,
        &mut map.y_label,
        &mut map.value_label,
    ] {
        *text = evil.into();
    }
    map.groups[0].title = evil.into();
    map.groups[0].rows[0].label = evil.into();
    let cell = map.groups[0].rows[0].cells[0].as_mut().unwrap();
    cell.text = evil.into();
    cell.mark = Some(evil.into());
    let time = &mut report.timelines[0];
    for text in [
        &mut time.id,
        &mut time.title,
        &mut time.caption,
        &mut time.panels[1].y_label,
    ] {
        *text = evil.into();
    }
    time.panels[1].limit = Some((28_232.0, evil.into()));
    time.panels[1].series[0].name = evil.into();
    let bars = &mut report.bars[0];
    for text in [&mut bars.id, &mut bars.title, &mut bars.y_label] {
        *text = evil.into();
    }
    bars.groups[0].label = evil.into();
    bars.groups[0].bars[0].name = evil.into();
    for table in [&mut report.cells, &mut report.errors] {
        table.columns[0].name = evil.into();
        table.columns[0].unit = evil.into();
        table.columns[0].doc = evil.into();
        table.rows[0].cells[0] = evil.into();
        table.rows[0].mark = Some(evil.into());
    }
    let page = judge("evil", &report);
    let text = markdown::render(&report, &files::charts(&report));
    // Inside a fence nothing is markup; elsewhere no tag of the data stands.
    let (before, fenced) = text.split_once("```sh").unwrap();
    let (_, after) = fenced.split_once("```").unwrap();
    for part in [before, after] {
        assert!(
            !part.contains("<script") && !part.contains("<img src=x"),
            "{part}"
        );
    }
    let clean = page::render(&synthetic::report()).unwrap();
    for tag in ["<script", "</script", "<img", "</style", "</title", "<b>"] {
        assert_eq!(
            page.matches(tag).count(),
            clean.matches(tag).count(),
            "{tag}"
        );
    }
    assert!(
        !page.contains("src=x onerror=alert(1)>"),
        "escaped, so the bracket is an entity"
    );
}

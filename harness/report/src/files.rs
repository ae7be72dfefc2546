//! The files of a report: written aside, then renamed, so that a folder never holds half of one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use yieldpoint_figures::Report;

use crate::chart::{axis, bar, time};
use crate::drawing::Drawing;
use crate::frame::Frame;
use crate::theme::Theme;
use crate::{page, paint};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// the page; it needs no other file
    pub html: PathBuf,
    /// `<id>.svg` and `<id>.png` of every chart, in the order of the page
    pub charts: Vec<PathBuf>,
}

/// Width of a chart in a file, px.
const FILE_WIDTH: f64 = 900.0;

/// Writes `index.html` and each chart as SVG and PNG into `dir`, which is made if it is not there.
///
/// Files of the same names are replaced; no other file is touched. The page is renamed into
/// place last. On an error the folder holds what it held before, or charts that are complete.
pub fn write(report: &Report, dir: &Path) -> anyhow::Result<Written> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make folder \"{}\"", dir.display()))?;
    let aside = tempfile::Builder::new()
        .prefix(".partial-")
        .tempdir_in(dir)
        .with_context(|| format!("cannot write into \"{}\"", dir.display()))?;
    let mut names = Vec::new();
    for chart in charts(report) {
        let of = || format!("chart \"{}\"", chart.id);
        let drawing = (chart.draw)(Frame {
            width: FILE_WIDTH,
            title: true,
        });
        let svg = format!("{}.svg", chart.id);
        let png = format!("{}.png", chart.id);
        let text = paint::standalone(&drawing, chart.title).with_context(of)?;
        fs::write(aside.path().join(&svg), text).with_context(of)?;
        paint::png(&drawing, &Theme::LIGHT, &aside.path().join(&png)).with_context(of)?;
        names.extend([svg, png]);
    }
    let html = page::render(report)?;
    fs::write(aside.path().join("index.html"), html).context("page \"index.html\"")?;

    let place = |name: &str| -> anyhow::Result<PathBuf> {
        let to = dir.join(name);
        fs::rename(aside.path().join(name), &to)
            .with_context(|| format!("cannot replace \"{}\"", to.display()))?;
        Ok(to)
    };
    let charts = names.iter().map(|n| place(n)).collect::<Result<_, _>>()?;
    let html = place("index.html")?;
    Ok(Written { html, charts })
}

/// A chart of any kind: how it is named, and how it is drawn into a frame.
pub(crate) struct Chart<'a> {
    pub(crate) id: String,
    pub(crate) title: &'a str,
    pub(crate) caption: &'a str,
    pub(crate) draw: Box<dyn Fn(Frame) -> Drawing + 'a>,
    pub(crate) section: Section,
}

/// Where on the page a chart stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    Axes,
    Timelines,
    Bars,
}

/// All charts of a report, in the order of the page, each with a file name of its own.
pub(crate) fn charts(report: &Report) -> Vec<Chart<'_>> {
    let mut taken = BTreeSet::new();
    let mut out = Vec::new();
    for c in &report.axes {
        out.push(Chart {
            id: file_name(&c.id, &mut taken),
            title: &c.title,
            caption: &c.caption,
            draw: Box::new(|frame| axis::draw(c, frame)),
            section: Section::Axes,
        });
    }
    for c in &report.timelines {
        out.push(Chart {
            id: file_name(&c.id, &mut taken),
            title: &c.title,
            caption: &c.caption,
            draw: Box::new(|frame| time::draw(c, frame)),
            section: Section::Timelines,
        });
    }
    for c in &report.bars {
        out.push(Chart {
            id: file_name(&c.id, &mut taken),
            title: &c.title,
            caption: &c.caption,
            draw: Box::new(|frame| bar::draw(c, frame)),
            section: Section::Bars,
        });
    }
    out
}

/// A name that is safe on every file system, stays inside the folder and is not yet taken.
fn file_name(id: &str, taken: &mut BTreeSet<String>) -> String {
    // 200 bytes leave room for a number and a suffix below the usual limit of 255.
    let safe: String = id
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' => c,
            _ => '-',
        })
        .take(200)
        .collect();
    let safe = safe.trim_start_matches('.');
    let base = if safe.is_empty() { "chart" } else { safe };
    let mut name = base.to_owned();
    let mut n = 1;
    // Lower case, because some file systems take "A" and "a" for one name.
    while !taken.insert(name.to_lowercase()) {
        n += 1;
        name = format!("{base}-{n}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_stay_inside_and_apart() {
        let mut taken = BTreeSet::new();
        let table = [
            ("throughput-by-threads", "throughput-by-threads"),
            ("throughput-by-threads", "throughput-by-threads-2"), // twice the same id
            ("Throughput-by-threads", "Throughput-by-threads-3"), // one name where case is ignored
            ("../../etc/passwd", "-..-etc-passwd"),               // no way out of the folder
            ("a b/ü", "a-b--"),
            ("", "chart"),
            ("..", "chart-2"),
        ];
        for (id, want) in table {
            assert_eq!(file_name(id, &mut taken), want, "{id}");
        }
        assert_eq!(file_name(&"x".repeat(999), &mut taken).len(), 200);
    }
}

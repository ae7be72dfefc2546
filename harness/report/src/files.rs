//! The files of a report: written aside, then renamed, so that a folder never holds half of one.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use yieldpoint_figures::Report;

use crate::chart::{axis, bar, heat, time};
use crate::drawing::Drawing;
use crate::frame::Frame;
use crate::theme::Theme;
use crate::{markdown, page, paint};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// the page; it needs no other file
    pub html: PathBuf,
    /// the same as Markdown, for a repository or an issue; it shows the PNG files beside it
    pub markdown: PathBuf,
    /// `<id>.svg`, `<id>.png` and `<id>-dark.png` of every chart, in the order of the page
    pub charts: Vec<PathBuf>,
}

/// Width of a chart in a file, px.
const FILE_WIDTH: f64 = 900.0;
/// The names of the charts that a report left in its folder, so that the next one can take away
/// those that it has not.
const LIST: &str = "charts.json";

/// Writes `index.html`, `report.md` and each chart as SVG and PNG into `dir`, which is made if it is not there.
///
/// Files of the same names are replaced, and charts of an earlier report that this one does not
/// have are removed; no other file is touched. The page is renamed into place last. On an error
/// the folder holds what it held before, or charts that are complete.
pub fn write(report: &Report, dir: &Path) -> anyhow::Result<Written> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make folder \"{}\"", dir.display()))?;
    let aside = tempfile::Builder::new()
        .prefix(".partial-")
        .tempdir_in(dir)
        .with_context(|| format!("cannot write into \"{}\"", dir.display()))?;
    let charts = charts(report);
    let names = draw(&charts, aside.path())?;
    let before = listed(dir);
    let save = |name: &str, text: String| {
        fs::write(aside.path().join(name), text).with_context(|| format!("file \"{name}\""))
    };
    save("report.md", markdown::render(report, &charts))?;
    save("index.html", page::render(report)?)?;
    save(LIST, serde_json::to_string_pretty(&names)? + "\n")?;

    let place = |name: &str| -> anyhow::Result<PathBuf> {
        let to = dir.join(name);
        fs::rename(aside.path().join(name), &to)
            .with_context(|| format!("cannot replace \"{}\"", to.display()))?;
        Ok(to)
    };
    let charts = names.iter().map(|n| place(n)).collect::<Result<_, _>>()?;
    for stale in before.difference(&names.iter().cloned().collect()) {
        match fs::remove_file(dir.join(stale)) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("cannot remove \"{stale}\""));
            }
            _ => {}
        }
    }
    place(LIST)?;
    let markdown = place("report.md")?;
    let html = place("index.html")?;
    Ok(Written {
        html,
        markdown,
        charts,
    })
}

/// Draws every chart into a folder and gives the names of the files.
fn draw(charts: &[Chart], into: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for chart in charts {
        let of = || format!("chart \"{}\"", chart.id);
        let drawing = (chart.draw)(Frame {
            width: FILE_WIDTH,
            title: true,
        });
        let [svg, light, dark] = chart.files();
        let text = paint::standalone(&drawing, chart.title).with_context(of)?;
        fs::write(into.join(&svg), text).with_context(of)?;
        paint::png(&drawing, &Theme::LIGHT, &into.join(&light)).with_context(of)?;
        paint::png(&drawing, &Theme::DARK, &into.join(&dark)).with_context(of)?;
        names.extend([svg, light, dark]);
    }
    Ok(names)
}

/// Charts that an earlier report left. A list that cannot be read is as good as none: then nothing is removed.
fn listed(dir: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(dir.join(LIST)).unwrap_or_default();
    let names: Vec<String> = serde_json::from_str(&text).unwrap_or_default();
    // Whoever edited the list cannot make us remove anything but pictures of this folder.
    let ours = |n: &String| {
        let picture = n.ends_with(".svg") || n.ends_with(".png");
        picture && !n.starts_with('.') && !n.contains(['/', '\\', '\0'])
    };
    names.into_iter().filter(ours).collect()
}

/// A chart of any kind: how it is named, and how it is drawn into a frame.
pub(crate) struct Chart<'a> {
    pub(crate) id: String,
    pub(crate) title: &'a str,
    pub(crate) caption: &'a str,
    pub(crate) draw: Box<dyn Fn(Frame) -> Drawing + 'a>,
    pub(crate) section: Section,
}

impl Chart<'_> {
    /// Names of its files: SVG, light PNG, dark PNG.
    pub(crate) fn files(&self) -> [String; 3] {
        [".svg", ".png", "-dark.png"].map(|end| format!("{}{end}", self.id))
    }

    /// Its title, or its name where it has none.
    pub(crate) fn heading(&self) -> &str {
        if self.title.is_empty() {
            &self.id
        } else {
            self.title
        }
    }
}

/// Where on the page a chart stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    Confusion,
    Maps,
    Axes,
    Timelines,
    Bars,
}

/// All charts of a report, in the order of the page, each with a file name of its own.
pub(crate) fn charts(report: &Report) -> Vec<Chart<'_>> {
    let mut taken = BTreeSet::new();
    let mut out = Vec::new();
    for c in report.confusion.iter().map(|c| &c.map) {
        out.push(Chart {
            id: file_name(&c.id, &mut taken),
            title: &c.title,
            caption: &c.caption,
            draw: Box::new(|frame| heat::draw(c, frame)),
            section: Section::Confusion,
        });
    }
    for c in &report.maps {
        out.push(Chart {
            id: file_name(&c.id, &mut taken),
            title: &c.title,
            caption: &c.caption,
            draw: Box::new(|frame| heat::draw(c, frame)),
            section: Section::Maps,
        });
    }
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
    // Lower case, because some file systems take "A" and "a" for one name. The dark picture of "a"
    // must not be the light one of a chart "a-dark".
    loop {
        let (light, dark) = (name.to_lowercase(), format!("{}-dark", name.to_lowercase()));
        if !taken.contains(&light) && !taken.contains(&dark) {
            taken.extend([light, dark]);
            return name;
        }
        n += 1;
        name = format!("{base}-{n}");
    }
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
            ("a", "a"),
            ("a-dark", "a-dark-2"), // the dark picture of "a"
        ];
        for (id, want) in table {
            assert_eq!(file_name(id, &mut taken), want, "{id}");
        }
        assert_eq!(file_name(&"x".repeat(999), &mut taken).len(), 200);
    }
}

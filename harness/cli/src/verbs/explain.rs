//! `yieldpoint explain [NAME]`: what a name of a matrix, a table or a report means.
//!
//! Every text comes from where the thing is declared; this file only sets it out.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use console::style;
use yieldpoint_analysis::{columns, words};
use yieldpoint_protocol::ErrorKind;
use yieldpoint_record::flag;
use yieldpoint_run::Programs;
use yieldpoint_sample::METRICS;
use yieldpoint_terms::{Behaviour, Catalog, Kind, Knob, Metric, Value, nearest};

use crate::args::ExplainArgs;
use crate::installation::folder;

/// Explains one name, or lists all.
pub fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let programs = Programs::find(&folder()?);
    if programs.clients.is_empty() {
        eprintln!(
            "note: no client or target is beside `yieldpoint`; their own knobs are missing here (scripts/build makes them)"
        );
    }
    let catalog = yieldpoint_run::catalog(yieldpoint_clients_core::KNOBS, &programs);
    let all = entries(&catalog)?;
    match &args.name {
        None => print!("{}", listing(&all)),
        Some(name) => print!("{}", explained(name, &all)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// Something that has a name.
#[derive(Debug)]
struct Entry {
    sort: &'static str,
    /// how it is called; a column may share its line with others
    names: Vec<String>,
    /// label and text, in the order in which they are shown
    facts: Vec<(&'static str, String)>,
}

impl Entry {
    fn answers_to(&self, name: &str) -> bool {
        let below = |n: &String| {
            let prefix = n.strip_suffix('*');
            prefix.is_some_and(|p| name.len() > p.len() && name.starts_with(p))
        };
        self.names.iter().any(|n| n == name || below(n))
    }
}

/// Everything that has a name, sort by sort.
fn entries(catalog: &Catalog) -> anyhow::Result<Vec<Entry>> {
    let mut all: Vec<Entry> = catalog.iter().map(knob).collect();
    all.extend(METRICS.iter().map(metric));
    for column in columns()? {
        // A knob that has a column of its own is explained as a knob.
        if catalog.get(&column.name).is_some() {
            continue;
        }
        let files = match column.table {
            "histograms" => "tables/histograms.parquet".to_owned(),
            table => format!("tables/{table}.parquet, {table}.csv"),
        };
        let mut facts = vec![("values", column.values.to_owned())];
        if !column.doc.is_empty() {
            facts.insert(0, ("meaning", column.doc.to_owned()));
        }
        let same = |e: &&mut Entry| {
            e.sort == "column"
                && e.names == [column.name.as_str()]
                && e.facts[..facts.len()] == facts
        };
        match all.iter_mut().find(same) {
            // The same column in another table.
            Some(known) => known.facts.push(("found in", files)),
            None => {
                facts.push(("found in", files));
                let names = vec![column.name];
                all.push(Entry {
                    sort: "column",
                    names,
                    facts,
                });
            }
        }
    }
    all.extend(flag::ALL.iter().map(|(name, doc)| Entry {
        sort: "flag",
        names: vec![(*name).to_owned()],
        facts: vec![
            ("meaning", (*doc).to_owned()),
            (
                "found in",
                "column \"flags\" of trials; the row stays ok".to_owned(),
            ),
        ],
    }));
    all.extend(ErrorKind::ALL.into_iter().map(|kind| {
        let when = match (kind.before_sending(), kind.answered()) {
            (true, _) => "while the connection was being opened; the request never left",
            (_, true) => "after a complete response, which the target has counted",
            _ => "on an open connection",
        };
        Entry {
            sort: "error",
            names: vec![kind.name().to_owned()],
            facts: vec![
                ("meaning", kind.doc().to_owned()),
                ("when", when.to_owned()),
                (
                    "found in",
                    "column \"kind\" of errors; failed requests leave a row ok".to_owned(),
                ),
            ],
        }
    }));
    all.extend(words()?.into_iter().map(|(names, doc)| Entry {
        sort: "word",
        names: names.split(", ").map(str::to_owned).collect(),
        facts: vec![("meaning", doc.to_owned())],
    }));
    Ok(all)
}

fn knob(knob: &Knob) -> Entry {
    let default = match knob.default_value() {
        Some(value) => value.to_string(),
        None => "none: it is left out unless it is set".to_owned(),
    };
    let owner = match knob.name.split('.').next() {
        Some("target") => "the target",
        Some("lab") => "the lab",
        Some("options") => "one client",
        _ => "every client that honours it",
    };
    let name = match knob.name.strip_suffix('*') {
        Some(prefix) => format!("{prefix}NAME"),
        None => knob.name.to_string(),
    };
    let value = example(knob);
    Entry {
        sort: "knob",
        names: vec![knob.name.to_string()],
        facts: vec![
            ("meaning", knob.doc.to_string()),
            ("values", knob.kind.to_string()),
            ("default", default),
            ("obeyed by", owner.to_owned()),
            (
                "in a matrix",
                format!(
                    "[knobs] {name} = {}    a list of values is an axis",
                    toml(&value)
                ),
            ),
            ("typed", format!("--set {name}={value}")),
            (
                "found in",
                format!("column \"{name}\" of trials, where it is an axis or typed with --set"),
            ),
        ],
    }
}

/// A value that the knob takes.
fn example(knob: &Knob) -> Value {
    knob.default_value().unwrap_or_else(|| match &knob.kind {
        Kind::Bool => Value::Bool(true),
        Kind::Int { min, .. } => Value::Int(*min),
        Kind::Float { min, .. } => Value::Float(*min),
        Kind::Duration { min, .. } => Value::Duration(*min),
        Kind::Choice { of } => Value::Text(of.first().map(ToString::to_string).unwrap_or_default()),
        Kind::Text => Value::Text("…".into()),
        Kind::Any => Value::Int(0),
    })
}

fn toml(value: &Value) -> String {
    match value {
        Value::Text(_) | Value::Duration(_) => format!("\"{value}\""),
        plain => plain.to_string(),
    }
}

fn metric(metric: &Metric) -> Entry {
    let unit = match metric.unit.label() {
        "" => "a number of things".to_owned(),
        unit => unit.to_owned(),
    };
    let behaviour = match metric.behaviour {
        Behaviour::Gauge => "a level",
        Behaviour::Counter => "a running total; its slope is a rate",
    };
    Entry {
        sort: "metric",
        names: vec![metric.name.to_owned()],
        facts: vec![
            ("meaning", metric.doc.to_owned()),
            ("unit", unit),
            ("behaviour", behaviour.to_owned()),
            ("source", metric.source.to_owned()),
            (
                "found in",
                "column of tables/samples.parquet, samples.csv".to_owned(),
            ),
        ],
    }
}

/// Every name in a line, with the beginning of its meaning.
fn listing(all: &[Entry]) -> String {
    let mut out = String::new();
    let mut sort = "";
    for entry in all {
        if entry.sort != sort {
            sort = entry.sort;
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", style(format!("{sort}s")).bold());
        }
        let names = entry.names.join(", ");
        let meaning = entry.facts.iter().find(|(label, _)| *label == "meaning");
        let meaning = meaning.map_or("", |(_, text)| text.as_str());
        let _ = writeln!(
            out,
            "  {:<32} {}",
            style(names).cyan(),
            style(brief(meaning)).dim()
        );
    }
    out
}

/// The first 90 letters of a text.
fn brief(text: &str) -> String {
    const MOST: usize = 90;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let cut: String = text.chars().take(MOST - 1).collect();
    format!("{}…", cut.trim_end())
}

/// All that answers to a name; the error tells what may have been meant.
fn explained(name: &str, all: &[Entry]) -> anyhow::Result<String> {
    let name = name.trim();
    let found: Vec<&Entry> = all.iter().filter(|e| e.answers_to(name)).collect();
    if found.is_empty() {
        bail!("{}", unknown(name, all));
    }
    let mut out = String::new();
    for entry in found {
        let title = if entry.names.iter().any(|n| n == name) {
            entry.names.join(", ")
        } else {
            name.to_owned()
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{} {}", entry.sort, style(title).bold());
        for (label, text) in &entry.facts {
            // What a wildcard stands for is known by now.
            let text = text.replace(&wildcard(entry), name);
            let _ = writeln!(out, "  {label:<12} {text}");
        }
    }
    Ok(out)
}

/// The placeholder in the facts of a wildcard; of others, a text that occurs nowhere.
fn wildcard(entry: &Entry) -> String {
    match entry.names.first().and_then(|n| n.strip_suffix('*')) {
        Some(prefix) => format!("{prefix}NAME"),
        None => "\u{0}".to_owned(),
    }
}

fn unknown(name: &str, all: &[Entry]) -> String {
    let names = || all.iter().flat_map(|e| &e.names).map(String::as_str);
    let mut near: Vec<&str> = nearest(name, names()).into_iter().collect();
    let part = |n: &&str| name.len() >= 3 && n.contains(name);
    for candidate in names().filter(part).take(5) {
        if !near.contains(&candidate) {
            near.push(candidate);
        }
    }
    let near: Vec<_> = near.iter().map(|n| format!("\"{n}\"")).collect();
    let fix = if near.is_empty() {
        "`yieldpoint explain` lists every name".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    format!(
        "nothing is called \"{name}\": expected a knob, metric, column, flag, error or word; {fix}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Entry> {
        let mut catalog = Catalog::new();
        catalog.add(yieldpoint_clients_core::KNOBS.iter().cloned());
        catalog.add(yieldpoint_lab::KNOBS.iter().cloned());
        entries(&catalog).unwrap()
    }

    #[test]
    fn every_sort_of_name_is_explained() {
        let all = all();
        // each row: name, sort, a fact that must be told
        let table = [
            ("threads", "knob", "a whole number from 1 to 1024"),
            ("duration", "knob", "duration = \"10s\""),
            (
                "lab.sysctl.net.ipv4.tcp_tw_reuse",
                "knob",
                "--set lab.sysctl.net.ipv4.tcp_tw_reuse=0",
            ),
            ("client_rss_kib", "metric", "/proc/<pid>/status"),
            ("p99_ns", "column", "ns. Time from the start"),
            ("t_ms", "column", "tables/timeline.parquet"),
            ("burst_only", "flag", "TIME_WAIT cycle"),
            ("fd_limit", "error", "no descriptor left"),
            ("good request", "word", "complete response"),
        ];
        for (name, sort, fact) in table {
            let text = explained(name, &all).unwrap();
            assert!(
                text.starts_with(sort) && text.contains(fact),
                "{name}: {text}"
            );
        }
    }

    #[test]
    fn every_name_has_a_meaning_and_is_listed_once_a_sort() {
        let all = all();
        let listed = listing(&all);
        let mut seen = std::collections::BTreeSet::new();
        for entry in &all {
            assert!(listed.contains(&entry.names.join(", ")));
            for name in &entry.names {
                assert!(
                    seen.insert((entry.sort, name)),
                    "{} {name} twice",
                    entry.sort
                );
            }
            let told = entry
                .facts
                .iter()
                .any(|(l, t)| *l == "meaning" && !t.is_empty());
            // The names of these say it.
            let plain = ["error", "kind", "example", "histogram", "client"];
            assert!(
                told || plain.contains(&entry.names[0].as_str()),
                "{entry:?}"
            );
        }
    }

    #[test]
    fn a_slip_is_answered_with_the_nearest_names() {
        let all = all();
        let error = |name: &str| explained(name, &all).unwrap_err().to_string();
        assert!(error("thread").contains("did you mean \"threads\""));
        assert!(error("keepalive").contains("\"keep_alive\""));
        assert!(
            error("time_wait").contains("\"sockets_time_wait\""),
            "{}",
            error("time_wait")
        );
        assert!(error("lab.sysctl.").contains("did you mean \"lab.sysctl.*\""));
        assert!(error("zebra crossing").contains("`yieldpoint explain` lists"));
    }
}

//! Reads each table of the format.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use yieldpoint_terms::Rounds;

use crate::ClientCommand;
use crate::problem::Place;
use crate::reader::{Reader, described, in_order, integer, quoted};
use crate::wire::{Bundle, Label, Selection, Wire, WireClaim, WireRun};

/// The only version of the format there is.
pub(crate) const FORMAT: u64 = 1;
/// Rounds of a run; 8 suffice for a verdict.
pub(crate) const MAX_ROUNDS: u64 = 10_000;

const TOP_LEVEL: [&str; 10] = [
    "format", "question", "source", "analysis", "run", "knobs", "axis", "clients", "exclude",
    "claim",
];

const RUN_KEYS: [&str; 7] = [
    "rounds", "seed", "compare", "find", "along", "controls", "ceilings",
];

impl Reader {
    pub(crate) fn document(&mut self, root: &DeTable<'_>) -> Wire {
        let mut wire = Wire::default();
        let mut format = None;
        for (key, place, value) in in_order(root) {
            match key {
                "format" => format = Some((place, value)),
                "question" => wire.question = self.text(key, value),
                "source" => wire.source = self.text(key, value),
                "analysis" => wire.analysis = self.text(key, value),
                "run" => wire.run = self.table(key, value, Self::run),
                "knobs" => {
                    wire.knobs_unreadable = !value.get_ref().is_table();
                    wire.knobs = self.table(key, value, |r, t| r.entries(t));
                }
                "axis" => wire.bundles = self.table(key, value, Self::bundles),
                "clients" => wire.clients = self.table(key, value, Self::clients),
                "exclude" => wire.excludes = self.tables(key, value, Self::selection),
                "claim" => {
                    let claims = self.tables(key, value, Self::claim);
                    wire.claims = claims.into_iter().flatten().collect();
                }
                _ => self.unknown(
                    &place,
                    "top-level key",
                    key,
                    &TOP_LEVEL,
                    "a knob belongs below [knobs]",
                ),
            }
        }
        let fix = format!("begin the file with `format = {FORMAT}`");
        match format {
            None => self.problem(&Place::File, "\"format\" is missing", "1", "nothing", fix),
            Some((_, value)) if integer(value) == Some(FORMAT) => {}
            Some((_, value)) => {
                let place = value.span().into();
                self.problem(&place, "\"format\"", "1", described(value.get_ref()), fix);
            }
        }
        if !root.contains_key("question") {
            let fix = "add `question = \"…?\"`: what the run is to answer, in plain words";
            self.problem(
                &Place::File,
                "\"question\" is missing",
                "a text",
                "nothing",
                fix,
            );
        }
        wire
    }

    fn run(&mut self, table: &DeTable<'_>) -> WireRun {
        let mut run = WireRun::default();
        for (key, place, value) in in_order(table) {
            match key {
                "rounds" => {
                    let rounds = self.rounds(value);
                    run.rounds = rounds.map(|r| (r, value.span().into()));
                }
                "seed" => run.seed = self.number(key, value, 0, u64::MAX),
                "compare" => {
                    let axis = self.text(key, value);
                    run.compare = axis.map(|axis| (axis, value.span().into()));
                }
                "find" => {
                    let what = self.text(key, value);
                    run.find = what.map(|what| (what, value.span().into()));
                }
                "along" => {
                    let axis = self.text(key, value);
                    run.along = axis.map(|axis| (axis, value.span().into()));
                }
                "controls" => run.controls = self.truth(key, value),
                "ceilings" => run.ceilings = self.truth(key, value),
                _ => self.unknown(
                    &place,
                    "key of [run]",
                    key,
                    &RUN_KEYS,
                    "a knob belongs below [knobs]",
                ),
            }
        }
        run
    }

    fn rounds(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Rounds> {
        match value.get_ref() {
            DeValue::String(text) if text == "auto" => Some(Rounds::Auto),
            DeValue::String(text) => {
                let expected = format!("a whole number from 1 to {MAX_ROUNDS}, or \"auto\"");
                let fix = "write rounds = 8, or rounds = \"auto\"";
                let got = quoted(text);
                self.problem(&value.span().into(), "\"rounds\"", expected, got, fix);
                None
            }
            _ => {
                let number = self.number("rounds", value, 1, MAX_ROUNDS)?;
                u32::try_from(number).ok().map(Rounds::Fixed)
            }
        }
    }

    fn truth(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            let got = described(value.get_ref());
            let fix = format!("write {name} = true or {name} = false");
            let what = format!("\"{name}\"");
            self.problem(&value.span().into(), what, "true or false", got, fix);
        }
        truth
    }

    fn bundles(&mut self, table: &DeTable<'_>) -> Vec<Bundle> {
        let mut out = Vec::new();
        for (name, place, value) in in_order(table) {
            if !self.word(&place, "an axis", name) {
                continue;
            }
            if !value.get_ref().is_table() {
                let what = format!("\"axis.{name}\"");
                let fix = format!(
                    "write {name} below [knobs] to make a knob an axis; [axis.{name}.LABEL] is a set of knobs"
                );
                self.problem(
                    &value.span().into(),
                    what,
                    "tables of knobs",
                    described(value.get_ref()),
                    fix,
                );
                continue;
            }
            let path = format!("axis.{name}");
            let labels = self.table(&path, value, |r, labels| {
                let mut out = Vec::new();
                for (label, _, value) in in_order(labels) {
                    let path = format!("{path}.{label}");
                    let entries = r.table(&path, value, |r, t| r.entries(t));
                    out.push(Label {
                        name: label.to_owned(),
                        entries,
                    });
                }
                out
            });
            out.push(Bundle {
                name: name.to_owned(),
                place,
                labels,
            });
        }
        out
    }

    fn clients(&mut self, table: &DeTable<'_>) -> BTreeMap<String, ClientCommand> {
        let mut out = BTreeMap::new();
        for (name, place, value) in in_order(table) {
            if !self.word(&place, "a client", name) {
                continue;
            }
            let path = format!("clients.{name}");
            let DeValue::Table(table) = value.get_ref() else {
                self.not_a_table(&path, value);
                continue;
            };
            let mut command = None;
            for (key, place, value) in in_order(table) {
                match key {
                    "command" => command = Some(self.command(&path, value)),
                    _ => self.unknown(
                        &place,
                        &format!("key of [{path}]"),
                        key,
                        &["command"],
                        "remove it",
                    ),
                }
            }
            if command.is_none() {
                let fix = "add command = [\"./program\", \"argument\"]";
                let what = format!("\"command\" of [{path}] is missing");
                self.problem(&place, what, "a list of texts", "nothing", fix);
            }
            // Kept even if its command is bad, so that the client itself is not reported as unknown.
            let command = command.unwrap_or_default();
            out.insert(name.to_owned(), ClientCommand { command });
        }
        out
    }

    fn command(&mut self, path: &str, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        let words: Option<Vec<String>> = value.get_ref().as_array().and_then(|items| {
            let word = |v: &Spanned<DeValue<'_>>| v.get_ref().as_str().map(str::to_owned);
            items.iter().map(word).collect()
        });
        match words {
            Some(words) if words.first().is_some_and(|program| !program.is_empty()) => words,
            _ => {
                let what = format!("\"command\" of [{path}]");
                let expected = "a list of texts that begins with the program";
                let fix = "write command = [\"./program\", \"argument\"]";
                self.problem(
                    &value.span().into(),
                    what,
                    expected,
                    described(value.get_ref()),
                    fix,
                );
                Vec::new()
            }
        }
    }

    fn selection(&mut self, place: Place, table: &DeTable<'_>) -> Selection {
        Selection {
            place,
            entries: self.entries(table),
        }
    }

    fn claim(&mut self, place: Place, table: &DeTable<'_>) -> Option<WireClaim> {
        const KNOWN: [&str; 6] = ["id", "base", "changed", "published_ratio", "note", "source"];
        let (mut id, mut base, mut changed, mut published_ratio) = (None, None, None, None);
        let (mut note, mut source) = (None, None);
        for (key, place, value) in in_order(table) {
            match key {
                "id" => id = self.text(key, value),
                "note" => note = self.text(key, value),
                "source" => source = self.text(key, value),
                "base" | "changed" => {
                    let entries = self.table(key, value, |r, t| r.entries(t));
                    let selection = Some(Selection {
                        place: value.span().into(),
                        entries,
                    });
                    if key == "base" {
                        base = selection
                    } else {
                        changed = selection
                    }
                }
                "published_ratio" => published_ratio = self.ratio(value),
                _ => self.unknown(&place, "key of [[claim]]", key, &KNOWN, "remove it"),
            }
        }
        for key in &KNOWN[..4] {
            if !table.contains_key(*key) {
                let what = format!("\"{key}\" of [[claim]] is missing");
                let fix = "see \"claim\" in matrices/README.md";
                self.problem(
                    &place,
                    what,
                    "id, base, changed and published_ratio",
                    "no such key",
                    fix,
                );
            }
        }
        Some(WireClaim {
            place,
            id: id?,
            base: base?,
            changed: changed?,
            published_ratio: published_ratio?,
            note,
            source,
        })
    }

    fn ratio(&mut self, value: &Spanned<DeValue<'_>>) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Integer(i) => i.as_str().parse().ok().filter(|_| i.radix() == 10),
            DeValue::Float(f) => f.as_str().parse().ok(),
            _ => None,
        };
        let ratio = number.filter(|x: &f64| x.is_finite() && *x > 0.0);
        if ratio.is_none() {
            let expected = "a number above 0";
            let fix = "write throughput of changed ÷ throughput of base, such as 0.25";
            self.problem(
                &value.span().into(),
                "\"published_ratio\"",
                expected,
                described(value.get_ref()),
                fix,
            );
        }
        ratio
    }
}

//! A matrix file checked against the catalog: settings and axes, with `--set` and `--only` applied.

use std::collections::{BTreeMap, BTreeSet};

use yieldpoint_terms::{Value, nearest};

use crate::arguments::{Changes, shown};
use crate::problem::{Place, Problem};
use crate::reader::quoted;
use crate::values::Names;
use crate::wire::{Bundle, Entry, Label, Scalar, Wire, Written};

/// What every cell sets, and what the cells differ in.
pub(crate) struct Plan {
    pub(crate) settings: BTreeMap<String, Value>,
    /// in the order of the file
    pub(crate) axes: Vec<PlannedAxis>,
}

/// One axis with what each of its values sets.
pub(crate) struct PlannedAxis {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) bundle: bool,
    /// The values of the file: an exclusion or a claim may name one that `--only` left out.
    pub(crate) written: Vec<Value>,
    /// the values of this run
    pub(crate) choices: Vec<Choice>,
    /// A value of it was reported, so that "no such value" would be a guess.
    pub(crate) damaged: bool,
}

/// One value of an axis and the knobs it sets.
pub(crate) struct Choice {
    pub(crate) value: Value,
    pub(crate) knobs: Vec<(String, Value)>,
}

impl PlannedAxis {
    /// Every knob that one of its values sets, by name.
    pub(crate) fn knobs(&self) -> Vec<String> {
        let all = self.choices.iter().flat_map(|c| &c.knobs);
        let distinct: BTreeSet<&String> = all.map(|(name, _)| name).collect();
        distinct.into_iter().cloned().collect()
    }

    /// Whether a value is one of the file's or of the command line's.
    pub(crate) fn has(&self, value: &Value) -> bool {
        self.written.contains(value) || self.choices.iter().any(|c| c.value == *value)
    }

    /// What to expect in place of a value it does not have, and what to do.
    pub(crate) fn offer(&self, value: &Value) -> (String, String) {
        let chosen = self.choices.iter().map(|choice| &choice.value);
        let mut all: Vec<&Value> = self.written.iter().collect();
        all.extend(chosen.filter(|value| !self.written.contains(value)));
        offer(&all, value)
    }
}

/// A list of values in words, and the nearest of them if a word was misspelt. Of numbers none is
/// offered: 1 is not what a reader meant who wrote 9.
fn offer(values: &[&Value], wanted: &Value) -> (String, String) {
    let words: Vec<String> = values.iter().map(|v| shown(&v.to_string())).collect();
    let near = match wanted {
        Value::Text(text) => nearest(text, words.iter().map(String::as_str)),
        _ => None,
    };
    let fix = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "name one of them".to_owned(),
    };
    (format!("one of {}", words.join(", ")), fix)
}

/// Checks and applies everything; what is wrong is added to `problems`.
pub(crate) fn plan(
    wire: &Wire,
    names: &Names<'_>,
    changes: &Changes,
    problems: &mut Vec<Problem>,
) -> Plan {
    let mut planner = Planner {
        names,
        problems,
        settings: BTreeMap::new(),
        axes: Vec::new(),
    };
    planner.knobs(&wire.knobs);
    planner.bundles(&wire.bundles);
    planner.axes.sort_by(|a, b| a.place.cmp(&b.place));
    planner.set(&changes.set);
    planner.only(&changes.only);
    planner.client(wire);
    Plan {
        settings: planner.settings,
        axes: planner.axes,
    }
}

struct Planner<'a, 'c> {
    names: &'a Names<'c>,
    problems: &'a mut Vec<Problem>,
    settings: BTreeMap<String, Value>,
    axes: Vec<PlannedAxis>,
}

impl Planner<'_, '_> {
    fn problem(&mut self, place: &Place, what: String, expected: &str, got: &str, fix: &str) {
        self.problems
            .push(Problem::new(place, what, expected, got, fix));
    }

    fn axis(&mut self, name: &str) -> Option<&mut PlannedAxis> {
        self.axes.iter_mut().find(|axis| axis.name == name)
    }

    /// A value that was written in the file, in the type of its knob; `None`: reported.
    fn accept(&mut self, name: &str, scalar: &Scalar) -> Option<Value> {
        let accepted = self
            .names
            .accept(&scalar.place, name, scalar.value.as_ref()?);
        accepted
            .map_err(|problem| self.problems.push(*problem))
            .ok()
    }

    fn knobs(&mut self, entries: &[Entry]) {
        for Entry { name, place, value } in entries {
            if self.names.get(name).is_none() {
                self.problems.push(self.names.unknown(place, name));
                continue;
            }
            match value {
                Written::One(scalar) => {
                    if let Some(value) = self.accept(name, scalar) {
                        self.settings.insert(name.clone(), value);
                    }
                }
                Written::Many(items) => self.knob_axis(name, place, items),
            }
        }
    }

    fn knob_axis(&mut self, name: &str, place: &Place, items: &[Scalar]) {
        if items.is_empty() {
            let what = format!("axis {} is empty", quoted(name));
            let fix = "add a value, or remove the line to keep the knob's default";
            self.problem(place, what, "at least one value", "an empty list", fix);
        }
        let mut damaged = items.is_empty();
        let mut seen: BTreeMap<Value, Place> = BTreeMap::new();
        let mut written = Vec::new();
        for item in items {
            let Some(value) = self.accept(name, item) else {
                damaged = true;
                continue;
            };
            if let Some(first) = seen.get(&value) {
                let what = format!(
                    "axis {} has the value {} twice",
                    quoted(name),
                    shown(&value.to_string())
                );
                let problem = Problem::new(
                    &item.place,
                    what,
                    "each value once",
                    "it again",
                    "remove one of them",
                );
                self.problems.push(problem.beside(first, "the first is"));
                continue;
            }
            seen.insert(value.clone(), item.place.clone());
            written.push(value);
        }
        let choice = |value: &Value| Choice {
            value: value.clone(),
            knobs: vec![(name.to_owned(), value.clone())],
        };
        self.axes.push(PlannedAxis {
            name: name.to_owned(),
            place: place.clone(),
            bundle: false,
            choices: written.iter().map(choice).collect(),
            written,
            damaged,
        });
    }

    fn bundles(&mut self, bundles: &[Bundle]) {
        // Which bundle axis sets a knob, and where it first does.
        let mut setters: BTreeMap<String, (String, Place)> = BTreeMap::new();
        for Bundle {
            name,
            place,
            labels,
        } in bundles
        {
            if self.names.get(name).is_some() {
                let what = format!("axis {} of bundles has the name of a knob", quoted(name));
                let fix = "choose a name that says what the bundles differ in";
                self.problem(place, what, "a name of its own", &quoted(name), fix);
            }
            if labels.is_empty() {
                let what = format!("axis {} is empty", quoted(name));
                let fix = format!("add a table [axis.{name}.LABEL]");
                self.problem(place, what, "at least one bundle", "none", &fix);
            }
            let mut choices = Vec::new();
            for Label {
                name: label,
                entries,
                ..
            } in labels
            {
                let knobs = entries
                    .iter()
                    .filter_map(|entry| self.bundled(name, entry, &mut setters));
                choices.push(Choice {
                    value: Value::Text(label.clone()),
                    knobs: knobs.collect(),
                });
            }
            self.axes.push(PlannedAxis {
                name: name.clone(),
                place: place.clone(),
                bundle: true,
                written: choices.iter().map(|c| c.value.clone()).collect(),
                damaged: labels.is_empty(),
                choices,
            });
        }
    }

    /// One knob of a bundle; `None`: reported.
    fn bundled(
        &mut self,
        axis: &str,
        entry: &Entry,
        setters: &mut BTreeMap<String, (String, Place)>,
    ) -> Option<(String, Value)> {
        let Entry { name, place, value } = entry;
        if self.names.get(name).is_none() {
            self.problems.push(self.names.unknown(place, name));
            return None;
        }
        let contradiction = |what: &str, other: &Place, label: &str| {
            let what = format!(
                "knob {} is set by axis {} and {what}",
                quoted(name),
                quoted(axis)
            );
            let fix = "let one of the two set it";
            Problem::new(place, what, "one axis for a knob", "two", fix).beside(other, label)
        };
        if let Some(other) = self.axes.iter().find(|a| !a.bundle && a.name == *name) {
            let problem = contradiction("is an axis itself", &other.place, "the axis is");
            self.problems.push(problem);
            return None;
        }
        let setter = (axis.to_owned(), place.clone());
        let (first, at) = setters.entry(name.clone()).or_insert(setter);
        if first != axis {
            let what = format!("by axis {}", quoted(first));
            let problem = contradiction(&what, at, "the other is");
            self.problems.push(problem);
            return None;
        }
        match value {
            Written::One(scalar) => Some((name.clone(), self.accept(name, scalar)?)),
            Written::Many(_) => {
                let what = format!("knob {} of a bundle", quoted(name));
                let fix = "write one bundle for each value, or make the knob an axis in [knobs]";
                self.problem(place, what, "one value", "a list", fix);
                None
            }
        }
    }

    fn set(&mut self, set: &[(String, String)]) {
        let mut seen = BTreeSet::new();
        for (name, text) in set {
            let place = Place::Argument(format!("--set {name}={}", shown(text)));
            if !seen.insert(name) {
                let what = format!("knob {} is set twice", quoted(name));
                self.problem(
                    &place,
                    what,
                    "one --set for a knob",
                    "two",
                    "keep one of them",
                );
            } else if self.axis(name).is_some_and(|axis| axis.bundle) {
                self.keep(&place, name, std::slice::from_ref(text));
            } else {
                self.set_knob(&place, name, text);
            }
        }
    }

    fn set_knob(&mut self, place: &Place, name: &str, text: &str) {
        let value = match self.names.parse(place, name, text) {
            Ok(value) => value,
            Err(problem) => return self.problems.push(*problem),
        };
        // What was typed wins over the file, and so over its bundles.
        for choice in self.axes.iter_mut().flat_map(|axis| &mut axis.choices) {
            choice.knobs.retain(|(knob, _)| knob != name);
        }
        match self.axis(name) {
            Some(axis) => {
                let knobs = vec![(name.to_owned(), value.clone())];
                axis.choices = vec![Choice { value, knobs }];
            }
            None => {
                self.settings.insert(name.to_owned(), value);
            }
        }
    }

    fn only(&mut self, only: &[(String, Vec<String>)]) {
        let mut seen = BTreeSet::new();
        for (name, texts) in only {
            let typed: Vec<String> = texts.iter().map(|t| shown(t)).collect();
            let place = Place::Argument(format!("--only {name}={}", typed.join(",")));
            if !seen.insert(name) {
                let what = format!("axis {} is narrowed twice", quoted(name));
                let fix = "list its values in one: --only AXIS=VALUE,VALUE";
                self.problem(&place, what, "one --only for an axis", "two", fix);
            } else if self.axis(name).is_some() {
                self.keep(&place, name, texts);
            } else {
                self.no_such_axis(&place, name);
            }
        }
    }

    fn no_such_axis(&mut self, place: &Place, name: &str) {
        let axes: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        let fix = match nearest(name, axes.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if self.names.get(name).is_some() => {
                format!("use --set {name}=VALUE to change a setting")
            }
            None => "name one of its axes".to_owned(),
        };
        let expected = if axes.is_empty() {
            "an axis, and this matrix has none".to_owned()
        } else {
            format!("an axis of this matrix ({})", axes.join(", "))
        };
        self.problem(
            place,
            format!("unknown axis {}", quoted(name)),
            &expected,
            &quoted(name),
            &fix,
        );
    }

    /// Keeps the values of an axis that were typed, in the order of the file.
    fn keep(&mut self, place: &Place, name: &str, texts: &[String]) {
        let (names, problems) = (self.names, &mut *self.problems);
        let Some(axis) = self.axes.iter_mut().find(|axis| axis.name == name) else {
            return;
        };
        let mut kept = Vec::new();
        for text in texts {
            let parsed = if axis.bundle {
                Some(Value::Text(text.clone()))
            } else {
                names.parse(place, name, text).ok()
            };
            match parsed
                .clone()
                .filter(|v| axis.choices.iter().any(|c| c.value == *v))
            {
                Some(value) => kept.push(value),
                None if axis.damaged => {}
                None => {
                    let values: Vec<&Value> = axis.choices.iter().map(|c| &c.value).collect();
                    let wanted = parsed.unwrap_or_else(|| Value::Text(text.clone()));
                    let (expected, mut fix) = offer(&values, &wanted);
                    if !axis.bundle {
                        fix.push_str(&format!("; --set {name}=VALUE takes any other value"));
                    }
                    let what = format!("axis {} has no value {}", quoted(name), quoted(text));
                    problems.push(Problem::new(place, what, expected, quoted(text), fix));
                }
            }
        }
        axis.choices.retain(|choice| kept.contains(&choice.value));
    }

    /// A trial needs a client; there is no default that would be fair to the others.
    fn client(&mut self, wire: &Wire) {
        let written = wire.knobs.iter().any(|entry| entry.name == "client");
        let bundled = self.axes.iter().any(|axis| {
            let sets = |c: &Choice| c.knobs.iter().any(|(knob, _)| knob == "client");
            !axis.choices.is_empty() && axis.choices.iter().all(sets)
        });
        if wire.knobs_unreadable || written || bundled || self.settings.contains_key("client") {
            return;
        }
        let known: Vec<String> = self.names.clients().map(quoted).collect();
        let expected = format!("one or more of {}", known.join(", "));
        let fix = "write client = [\"…\", \"…\"] below [knobs]";
        self.problem(
            &Place::File,
            "\"client\" is missing".to_owned(),
            &expected,
            "nothing",
            fix,
        );
    }
}

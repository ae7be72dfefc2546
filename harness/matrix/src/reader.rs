//! Reads one value, one table: the grammar that all tables of a matrix file share.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use yieldpoint_terms::{Value, nearest};

use crate::problem::{Place, Problem};
use crate::wire::{Entry, Scalar, Written};

/// Collects what is wrong while it reads.
pub(crate) struct Reader {
    pub(crate) problems: Vec<Problem>,
}

pub(crate) type Key<'a, 'i> = (&'a str, Place, &'a Spanned<DeValue<'i>>);

/// The keys of a table in the order of the file; `toml` keeps them by name.
pub(crate) fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Key<'a, 'i>> {
    let mut keys: Vec<_> = table.iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    let place = |span: Range<usize>| Place::from(span);
    keys.into_iter()
        .map(|(key, value)| (key.get_ref().as_ref(), place(key.span()), value))
        .collect()
}

impl Reader {
    pub(crate) fn problem(
        &mut self,
        place: &Place,
        what: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.problems
            .push(Problem::new(place, what, expected, got, fix));
    }

    pub(crate) fn unknown(
        &mut self,
        place: &Place,
        kind: &str,
        key: &str,
        known: &[&str],
        else_fix: &str,
    ) {
        let what = format!("unknown {kind} {}", quoted(key));
        let fix = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => else_fix.to_owned(),
        };
        let known: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
        self.problem(
            place,
            what,
            format!("one of {}", known.join(", ")),
            quoted(key),
            fix,
        );
    }

    pub(crate) fn text(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(t) if !t.trim().is_empty() => Some(t.clone().into_owned()),
            other => {
                let place = value.span().into();
                let fix = format!("write {name} = \"…\"");
                self.problem(
                    &place,
                    format!("\"{name}\""),
                    "a text that is not empty",
                    described(other),
                    fix,
                );
                None
            }
        }
    }

    pub(crate) fn number(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        min: u64,
        max: u64,
    ) -> Option<u64> {
        if let Some(n) = integer(value).filter(|n| (min..=max).contains(n)) {
            return Some(n);
        }
        let fix = match value.get_ref() {
            DeValue::Array(_) => {
                format!("{name} is a setting of the run and never an axis: write one number")
            }
            _ => format!("write {name} = {}", min.max(1)),
        };
        let expected = format!("a whole number from {min} to {max}");
        self.problem(
            &value.span().into(),
            format!("\"{name}\""),
            expected,
            described(value.get_ref()),
            fix,
        );
        None
    }

    pub(crate) fn not_a_table(&mut self, name: &str, value: &Spanned<DeValue<'_>>) {
        let fix = format!("write it as [{name}] with its keys below");
        self.problem(
            &value.span().into(),
            format!("\"{name}\""),
            "a table",
            described(value.get_ref()),
            fix,
        );
    }

    pub(crate) fn table<T: Default>(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        read: impl FnOnce(&mut Self, &DeTable<'_>) -> T,
    ) -> T {
        if let DeValue::Table(table) = value.get_ref() {
            return read(self, table);
        }
        self.not_a_table(name, value);
        T::default()
    }

    pub(crate) fn tables<T>(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        read: impl Fn(&mut Self, Place, &DeTable<'_>) -> T,
    ) -> Vec<T> {
        let mut out = Vec::new();
        let items: &[Spanned<DeValue<'_>>] = match value.get_ref() {
            DeValue::Array(array) => array,
            _ => std::slice::from_ref(value),
        };
        let is_list = matches!(value.get_ref(), DeValue::Array(_));
        for item in items {
            match item.get_ref() {
                DeValue::Table(table) if is_list => out.push(read(self, item.span().into(), table)),
                other => {
                    let fix = format!("write [[{name}]] with two brackets, once for each");
                    let got = described(other);
                    self.problem(
                        &item.span().into(),
                        format!("\"{name}\""),
                        "a list of tables",
                        got,
                        fix,
                    );
                }
            }
        }
        out
    }

    /// Flattens a table to dotted names, in the order of the file, each name once.
    pub(crate) fn entries(&mut self, table: &DeTable<'_>) -> Vec<Entry> {
        let mut all = Vec::new();
        self.flatten(table, "", &mut all);
        all.sort_by(|a, b| a.place.cmp(&b.place));
        let mut first: BTreeMap<String, Place> = BTreeMap::new();
        let mut unique = Vec::new();
        for entry in all {
            if let Some(place) = first.get(&entry.name) {
                self.problems.push(twice(&entry.place, &entry.name, place));
            } else {
                first.insert(entry.name.clone(), entry.place.clone());
                unique.push(entry);
            }
        }
        unique
    }

    pub(crate) fn flatten(&mut self, table: &DeTable<'_>, prefix: &str, out: &mut Vec<Entry>) {
        for (key, place, value) in in_order(table) {
            let name = format!("{prefix}{key}");
            let written = match value.get_ref() {
                DeValue::Table(below) => {
                    // At most 32 levels: `read` has refused deeper names.
                    self.flatten(below, &format!("{name}."), out);
                    continue;
                }
                DeValue::Array(items) => Written::Many(self.items(&name, items)),
                _ => Written::One(self.scalar(&name, value)),
            };
            out.push(Entry {
                name,
                place,
                value: written,
            });
        }
    }

    pub(crate) fn items(&mut self, name: &str, items: &DeArray<'_>) -> Vec<Scalar> {
        items.iter().map(|item| self.scalar(name, item)).collect()
    }

    pub(crate) fn scalar(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Scalar {
        let taken = match value.get_ref() {
            DeValue::String(t) => Some(Value::Text(t.clone().into_owned())),
            DeValue::Boolean(b) => Some(Value::Bool(*b)),
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
                .ok()
                .map(Value::Int),
            DeValue::Float(f) => f
                .as_str()
                .parse()
                .ok()
                .filter(|x: &f64| x.is_finite())
                .map(Value::Float),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
        };
        let place = value.span().into();
        if taken.is_none() {
            let expected =
                "a text, true, false, a whole number of at most 63 bits or a finite number";
            let fix = "write one such value, or a list of them to make an axis";
            self.problem(
                &place,
                quoted(name),
                expected,
                described(value.get_ref()),
                fix,
            );
        }
        Scalar {
            value: taken,
            place,
        }
    }

    pub(crate) fn word(&mut self, place: &Place, kind: &str, name: &str) -> bool {
        let ok = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !ok {
            let what = format!("name of {kind} {}", quoted(name));
            let expected = "letters, digits, \"_\" and \"-\"";
            self.problem(place, what, expected, quoted(name), "choose a plain name");
        }
        ok
    }
}

pub(crate) fn integer(value: &Spanned<DeValue<'_>>) -> Option<u64> {
    let integer = value.get_ref().as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A value as an error names it.
pub(crate) fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(t) => quoted(t),
        DeValue::Integer(i) => format!("the number {i}"),
        DeValue::Float(f) => format!("the number {f}"),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(a) if a.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A text in quotes on one line, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out = String::from("\"");
    for c in text.chars().take(LONGEST) {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out.push('"');
    out
}

/// The same name in two places.
pub(crate) fn twice(second: &Place, name: &str, first: &Place) -> Problem {
    let what = format!("\"{name}\" is written twice");
    let fix = "keep one; quoted, dotted and nested forms are the same key";
    Problem::new(second, what, "one form", "two", fix).beside(first, "the first is")
}

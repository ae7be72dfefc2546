//! Knobs: what can be set, with type, default, range and meaning; and the catalog of all of them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Nanos, Value, nearest};

type Text = Cow<'static, str>;

/// A named setting of a trial. Declared once, by its owner; matrix parser, help, columns follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knob {
    /// Full name as in a matrix ("threads", "target.workers", "options.isahc.tcp_nodelay").
    /// A name that ends in ".*" stands for every name below it.
    pub name: Text,
    /// Type and range.
    pub kind: Kind,
    /// The value where the matrix sets none; `None`: the knob is then absent from the job.
    pub default: Option<Value>,
    /// One sentence with its unit.
    pub doc: Text,
}

/// Type and range of a knob.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Kind {
    /// true or false
    Bool,
    /// a whole number, both ends included
    Int {
        /// least
        min: i64,
        /// greatest
        max: i64,
    },
    /// a number, both ends included
    Float {
        /// least
        min: f64,
        /// greatest
        max: f64,
    },
    /// any text
    Text,
    /// a duration, both ends included
    Duration {
        /// least
        min: Nanos,
        /// greatest
        max: Nanos,
    },
    /// one of a list of words
    Choice {
        /// the words
        of: Cow<'static, [Text]>,
    },
    /// a whole number or a text, taken as it is (sysctls)
    Any,
}

/// Why a value does not fit a knob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{knob}\": expected {expected}, got {got}")]
pub struct KnobError {
    /// the knob
    pub knob: String,
    /// its type and range in words
    pub expected: String,
    /// the value in words
    pub got: String,
}

impl Knob {
    /// true or false
    #[must_use]
    pub const fn bool(name: &'static str, default: bool, doc: &'static str) -> Self {
        Self::new(name, Kind::Bool, Some(Value::Bool(default)), doc)
    }
    /// A whole number from `min` to `max`.
    #[must_use]
    pub const fn int(
        name: &'static str,
        default: i64,
        min: i64,
        max: i64,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Kind::Int { min, max }, Some(Value::Int(default)), doc)
    }
    /// A duration from `min` to `max`.
    #[must_use]
    pub const fn duration(
        name: &'static str,
        default: Nanos,
        min: Nanos,
        max: Nanos,
        doc: &'static str,
    ) -> Self {
        Self::new(
            name,
            Kind::Duration { min, max },
            Some(Value::Duration(default)),
            doc,
        )
    }
    /// One of `of`; the default is the first (texts cannot be built in a constant, so it is set by [`Knob::default_value`]).
    #[must_use]
    pub const fn choice(name: &'static str, of: &'static [Text], doc: &'static str) -> Self {
        Self::new(
            name,
            Kind::Choice {
                of: Cow::Borrowed(of),
            },
            None,
            doc,
        )
    }
    /// A knob with no default: absent from the job unless it is set.
    #[must_use]
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self::new(name, kind, None, doc)
    }
    const fn new(
        name: &'static str,
        kind: Kind,
        default: Option<Value>,
        doc: &'static str,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            default,
            doc: Cow::Borrowed(doc),
        }
    }

    /// The value where none is set: the declared one (with the type it loses on the wire, where a
    /// duration is a number), or the first word of a choice.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        match (&self.default, &self.kind) {
            (None, Kind::Choice { of }) => of.first().map(|w| Value::Text(w.to_string())),
            (Some(Value::Int(ns)), Kind::Duration { .. }) => {
                u64::try_from(*ns).ok().map(|ns| Value::Duration(Nanos(ns)))
            }
            (declared, _) => declared.clone(),
        }
    }

    /// The same knob below a prefix ("workers" → "target.workers").
    #[must_use]
    pub fn below(mut self, prefix: &str) -> Self {
        self.name = Cow::Owned(format!("{prefix}{}", self.name));
        self
    }

    /// Whether this knob answers to `name` (a wildcard answers to all below it).
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(prefix) => name.len() > prefix.len() && name.starts_with(prefix),
            None => self.name == name,
        }
    }

    /// Checks a value against type and range, and gives it the knob's own type
    /// ("130s" becomes a duration, 3 a float where a float is asked).
    pub fn accept(&self, name: &str, value: &Value) -> Result<Value, KnobError> {
        let wrong = || KnobError {
            knob: name.to_owned(),
            expected: self.kind.to_string(),
            got: match value {
                Value::Text(t) => format!("\"{t}\""),
                Value::Bool(b) => b.to_string(),
                other => format!("the number {other}"),
            },
        };
        match (&self.kind, value) {
            (Kind::Bool, Value::Bool(_)) | (Kind::Text, Value::Text(_)) => Ok(value.clone()),
            (Kind::Any, Value::Int(_) | Value::Text(_)) => Ok(value.clone()),
            (Kind::Int { min, max }, Value::Int(i)) if (min..=max).contains(&i) => {
                Ok(value.clone())
            }
            (Kind::Float { min, max }, Value::Float(x)) if x >= min && x <= max => {
                Ok(value.clone())
            }
            (Kind::Float { min, max }, Value::Int(i)) if *i as f64 >= *min && *i as f64 <= *max => {
                Ok(Value::Float(*i as f64))
            }
            (Kind::Duration { min, max }, Value::Text(t)) => match t.parse::<Nanos>() {
                Ok(d) if d >= *min && d <= *max => Ok(Value::Duration(d)),
                _ => Err(wrong()),
            },
            (Kind::Duration { min, max }, Value::Duration(d)) if d >= min && d <= max => {
                Ok(value.clone())
            }
            (Kind::Choice { of }, Value::Text(t)) if of.iter().any(|w| w == t) => Ok(value.clone()),
            _ => Err(wrong()),
        }
    }

    /// Reads a value typed on a command line, where everything is text.
    pub fn parse(&self, name: &str, text: &str) -> Result<Value, KnobError> {
        let int = || text.parse().map(Value::Int).ok();
        let value = match &self.kind {
            Kind::Bool => text.parse().map(Value::Bool).ok(),
            Kind::Int { .. } | Kind::Any => int(),
            Kind::Float { .. } => text.parse().map(Value::Float).ok(),
            Kind::Text | Kind::Duration { .. } | Kind::Choice { .. } => None,
        };
        self.accept(name, &value.unwrap_or_else(|| Value::Text(text.to_owned())))
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool => f.write_str("true or false"),
            Self::Int { min, max: i64::MAX } => write!(f, "a whole number, {min} or more"),
            Self::Int { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Float { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Text => f.write_str("a text"),
            Self::Duration { min, max } => write!(f, "a duration from \"{min}\" to \"{max}\""),
            Self::Choice { of } => {
                let words: Vec<_> = of.iter().map(|w| format!("\"{w}\"")).collect();
                write!(f, "one of {}", words.join(", "))
            }
            Self::Any => f.write_str("a whole number or a text"),
        }
    }
}

/// Every knob that exists in this run.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    knobs: Vec<Knob>,
}

impl Catalog {
    /// An empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds knobs; the first owner of a name keeps it.
    pub fn add(&mut self, knobs: impl IntoIterator<Item = Knob>) {
        for knob in knobs {
            if !self.knobs.iter().any(|k| k.name == knob.name) {
                self.knobs.push(knob);
            }
        }
    }
    /// The knob that answers to a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Knob> {
        self.knobs.iter().find(|k| k.answers_to(name))
    }
    /// All of them, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.iter()
    }
    /// The known name nearest to a misspelt one, if one is near enough to be meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.knobs.iter().map(|k| k.name.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_taken_in_the_type_of_its_knob() {
        let s = |t: &str| Value::Text(t.into());
        let d = Knob::duration(
            "duration",
            Nanos::from_secs(10),
            Nanos(1),
            Nanos::from_secs(86_400),
            "",
        );
        let threads = Knob::int("threads", 1, 1, 4096, "");
        const IO: &[Cow<'static, str>] = &[Cow::Borrowed("epoll"), Cow::Borrowed("blocking")];
        let io = Knob::choice("io", IO, "");
        // each row: knob, given, taken
        let table: [(&Knob, Value, Option<Value>); 8] = [
            (&d, s("130s"), Some(Value::Duration(Nanos::from_secs(130)))),
            (&d, Value::Int(130), None), // a bare number has no unit
            (&d, s("0s"), None),         // below the range
            (&threads, Value::Int(3), Some(Value::Int(3))),
            (&threads, Value::Int(0), None),
            (&threads, s("3"), None), // text in a file is not a number
            (&io, s("blocking"), Some(s("blocking"))),
            (&io, s("kqueue"), None),
        ];
        for (knob, given, taken) in table {
            assert_eq!(
                knob.accept(&knob.name, &given).ok(),
                taken,
                "{} = {given}",
                knob.name
            );
        }
        assert_eq!(
            io.default_value(),
            Some(s("epoll")),
            "the first word is the default"
        );
        assert_eq!(
            threads.parse("threads", "3").ok(),
            Some(Value::Int(3)),
            "a command line is all text"
        );
    }

    #[test]
    fn a_default_keeps_its_type_over_the_wire() {
        let (least, most) = (Nanos(1), Nanos::from_secs(86_400));
        let sent = Knob::duration("keepalive_timeout", Nanos::from_secs(75), least, most, "");
        let line = serde_json::to_string(&sent).unwrap();
        let heard: Knob = serde_json::from_str(&line).unwrap();
        assert_eq!(
            heard.default_value(),
            Some(Value::Duration(Nanos::from_secs(75)))
        );
    }

    #[test]
    fn a_wildcard_answers_to_what_is_below_it() {
        let sysctl = Knob::optional("lab.sysctl.*", Kind::Any, "");
        assert!(sysctl.answers_to("lab.sysctl.net.ipv4.tcp_tw_reuse"));
        assert!(!sysctl.answers_to("lab.sysctl."));
        assert!(!sysctl.answers_to("lab.mode"));
    }
}

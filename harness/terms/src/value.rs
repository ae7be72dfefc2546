//! The value of a knob, and a map of knobs.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Nanos;

/// The value of a knob.
///
/// On the wire and on disk a value is a JSON scalar; a duration is an integer in nanoseconds.
#[derive(Clone, Debug)]
pub enum Value {
    /// true or false
    Bool(bool),
    /// a whole number
    Int(i64),
    /// a number with a fraction; never NaN
    Float(f64),
    /// any text
    Text(String),
    /// a duration
    Duration(Nanos),
}

impl Value {
    fn rank(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Int(_) => 1,
            Self::Float(_) => 2,
            Self::Duration(_) => 3,
            Self::Text(_) => 4,
        }
    }

    /// As a number for an axis: integers, floats, and durations in nanoseconds; `None` for the rest.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(i) => Some(*i as f64),
            Self::Float(f) => Some(*f),
            Self::Duration(d) => Some(d.0 as f64),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Value {}
impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Duration(a), Self::Duration(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(b) => b.fmt(f),
            Self::Int(i) => i.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Text(t) => f.write_str(t),
            Self::Duration(d) => d.fmt(f),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(b) => s.serialize_bool(*b),
            Self::Int(i) => s.serialize_i64(*i),
            Self::Float(x) => s.serialize_f64(*x),
            Self::Text(t) => s.serialize_str(t),
            Self::Duration(d) => s.serialize_u64(d.0),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, a number or a text")
            }
            fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
                Ok(Value::Bool(b))
            }
            fn visit_i64<E>(self, i: i64) -> Result<Value, E> {
                Ok(Value::Int(i))
            }
            fn visit_u64<E: de::Error>(self, u: u64) -> Result<Value, E> {
                i64::try_from(u)
                    .map(Value::Int)
                    .map_err(|_| E::custom("a number beyond 2^63"))
            }
            fn visit_f64<E>(self, x: f64) -> Result<Value, E> {
                Ok(Value::Float(x))
            }
            fn visit_str<E>(self, t: &str) -> Result<Value, E> {
                Ok(Value::Text(t.to_owned()))
            }
        }
        d.deserialize_any(V)
    }
}

/// A knob that a program needs and its job does not have, or has with another type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("knob \"{name}\": expected {expected}, got {got}")]
pub struct MissingKnob {
    /// the knob
    pub name: String,
    /// the type that was expected
    pub expected: &'static str,
    /// what the job holds
    pub got: String,
}

/// Knobs by name, sorted; what a cell sets and what a job carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Knobs(pub BTreeMap<String, Value>);

impl Knobs {
    /// The value, if it is set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
    /// Sets a knob.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }

    fn want<T>(
        &self,
        name: &str,
        expected: &'static str,
        take: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, MissingKnob> {
        let value = self.get(name);
        value.and_then(take).ok_or_else(|| MissingKnob {
            name: name.to_owned(),
            expected,
            got: value.map_or_else(|| "nothing".to_owned(), |v| format!("\"{v}\"")),
        })
    }
    /// A knob that must be a bool.
    pub fn bool(&self, name: &str) -> Result<bool, MissingKnob> {
        self.want(name, "true or false", |v| {
            if let Value::Bool(b) = v {
                Some(*b)
            } else {
                None
            }
        })
    }
    /// A knob that must be a whole number, 0 or more.
    pub fn uint(&self, name: &str) -> Result<u64, MissingKnob> {
        self.want(name, "a whole number, 0 or more", |v| match v {
            Value::Int(i) => u64::try_from(*i).ok(),
            _ => None,
        })
    }
    /// A knob that must be a text.
    pub fn text(&self, name: &str) -> Result<&str, MissingKnob> {
        match self.get(name) {
            Some(Value::Text(t)) => Ok(t),
            _ => self.want(name, "a text", |_| None),
        }
    }
    /// A knob that must be a duration (an integer of nanoseconds after a trip over the wire).
    pub fn duration(&self, name: &str) -> Result<Nanos, MissingKnob> {
        self.want(name, "a duration in nanoseconds", |v| match v {
            Value::Duration(d) => Some(*d),
            Value::Int(i) => u64::try_from(*i).ok().map(Nanos),
            _ => None,
        })
    }
    /// All knobs below a prefix, with the prefix removed ("target." → "workers", …).
    #[must_use]
    pub fn below(&self, prefix: &str) -> Self {
        let strip =
            |(k, v): (&String, &Value)| Some((k.strip_prefix(prefix)?.to_owned(), v.clone()));
        Self(self.0.iter().filter_map(strip).collect())
    }
}

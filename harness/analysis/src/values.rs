//! Columns of knob values, counts and texts.

use polars::prelude::{Column, DataType};
use yieldpoint_terms::{Kind, Knob, Value};

/// A count as a cell: Polars' integers are signed. Beyond 2^63 there is no count, so it is missing.
pub(crate) fn int(n: u64) -> Option<i64> {
    i64::try_from(n).ok()
}

/// A column of knob values in the type that holds all of them; what a trial does not set is null.
///
/// `more` are values that the knob takes elsewhere (all values of an axis, even those no trial has yet),
/// so that the type depends on the matrix and not on how far the run came. Without any value the
/// declaration of the knob decides.
pub(crate) fn column(
    name: &str,
    values: &[Option<&Value>],
    more: &[Value],
    declared: Option<&Knob>,
) -> Column {
    let all = || values.iter().flatten().copied().chain(more);
    let dtype = match all().next() {
        Some(_) => type_of(all()),
        None => declared.map_or(DataType::String, |k| type_of_kind(&k.kind)),
    };
    let name = name.into();
    match dtype {
        DataType::Boolean => Column::new(name, gather(values, as_bool)),
        DataType::Int64 => Column::new(name, gather(values, as_int)),
        DataType::Float64 => Column::new(name, gather(values, Value::as_f64)),
        _ => Column::new(name, gather(values, |v| Some(v.to_string()))),
    }
}

fn gather<T>(values: &[Option<&Value>], take: impl Fn(&Value) -> Option<T>) -> Vec<Option<T>> {
    values.iter().map(|v| v.and_then(&take)).collect()
}

fn as_bool(v: &Value) -> Option<bool> {
    if let Value::Bool(b) = v {
        Some(*b)
    } else {
        None
    }
}

fn as_int(v: &Value) -> Option<i64> {
    match v {
        Value::Int(i) => Some(*i),
        Value::Duration(d) => int(d.0),
        _ => None,
    }
}

/// The narrowest type that holds every value as it is; a mixture is text.
fn type_of<'a>(values: impl Iterator<Item = &'a Value>) -> DataType {
    values
        .map(|v| match v {
            Value::Bool(_) => DataType::Boolean,
            Value::Int(_) | Value::Duration(_) => DataType::Int64,
            Value::Float(_) => DataType::Float64,
            Value::Text(_) => DataType::String,
        })
        .reduce(|a, b| match (&a, &b) {
            _ if a == b => a,
            (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => {
                DataType::Float64
            }
            _ => DataType::String,
        })
        .unwrap_or(DataType::String)
}

fn type_of_kind(kind: &Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int { .. } | Kind::Duration { .. } => DataType::Int64,
        Kind::Float { .. } => DataType::Float64,
        Kind::Text | Kind::Choice { .. } | Kind::Any => DataType::String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yieldpoint_terms::Nanos;

    #[test]
    fn a_column_has_the_type_of_its_values() {
        let text = |t: &str| Value::Text(t.into());
        let threads = Knob::int("threads", 1, 1, 9, "");
        let table: [(Vec<Value>, Option<&Knob>, DataType); 9] = [
            (vec![Value::Int(1), Value::Int(2)], None, DataType::Int64),
            (vec![Value::Bool(true)], None, DataType::Boolean),
            (vec![Value::Float(0.5)], None, DataType::Float64),
            (
                vec![Value::Int(1), Value::Float(0.5)],
                None,
                DataType::Float64,
            ), // "rate = [1, 2.5]"
            (vec![Value::Duration(Nanos(5))], None, DataType::Int64), // ns
            (vec![Value::Int(1), text("auto")], None, DataType::String), // mixed
            (
                vec![Value::Bool(true), Value::Int(1)],
                None,
                DataType::String,
            ), // mixed
            (vec![], Some(&threads), DataType::Int64), // no value: the declaration decides
            (vec![], None, DataType::String),
        ];
        for (values, declared, want) in table {
            let refs: Vec<_> = values.iter().map(Some).collect();
            assert_eq!(
                column("x", &refs, &[], declared).dtype(),
                &want,
                "{values:?}"
            );
        }
        // The values of the axis count although no trial has them.
        let one = Value::Int(1);
        let narrowed = column("x", &[Some(&one), None], &[text("auto")], None);
        assert_eq!(narrowed.dtype(), &DataType::String);
        assert_eq!(narrowed.null_count(), 1);
    }
}

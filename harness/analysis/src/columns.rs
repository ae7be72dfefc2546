//! What each column of each table means, for whoever asks by name.

use polars::prelude::DataType;
use yieldpoint_record::{Asked, FORMAT, LabFact, Machine, Manifest};

use crate::figures::WORDS;
use crate::{bulk, tables};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFact {
    /// name of the table, which is also that of its files
    pub table: &'static str,
    /// name of the column, with its unit
    pub name: String,
    /// type of its values in words
    pub values: &'static str,
    /// meaning; empty: the name says it, or the knob of the same name does
    pub doc: &'static str,
}

/// Every column that is in the tables of each run, whatever its axes and metrics.
///
/// # Errors
/// None that an input could cause: the tables of no trials are made.
pub fn columns() -> anyhow::Result<Vec<ColumnFact>> {
    let manifest = blank();
    let made = tables(&manifest, &[])?;
    let mut all: Vec<_> = made.named().map(|(name, t)| (name, t.clone())).into();
    for table in &bulk::ALL {
        all.push((table.name, (table.rows)(&manifest, &[])?));
    }
    all.sort_by_key(|(name, _)| *name);
    let mut out = Vec::new();
    for (table, frame) in all {
        for column in frame.columns() {
            out.push(ColumnFact {
                table,
                name: column.name().to_string(),
                values: in_words(column.dtype()),
                doc: meaning(column.name()).unwrap_or_default(),
            });
        }
    }
    Ok(out)
}

/// Words of a report that are no columns, with their meaning.
///
/// # Errors
/// As [`columns`].
pub fn words() -> anyhow::Result<Vec<(&'static str, &'static str)>> {
    let columns = columns()?;
    let is_column = |name: &str| columns.iter().any(|c| c.name == name);
    let words = WORDS
        .iter()
        .filter(|(names, _)| !names.split(", ").any(is_column));
    Ok(words.copied().collect())
}

fn meaning(column: &str) -> Option<&'static str> {
    let of = |names: &str| names.split(", ").any(|n| n == column);
    let found = WORDS.iter().find(|(names, _)| of(names));
    found.map(|(_, doc)| *doc)
}

fn in_words(dtype: &DataType) -> &'static str {
    match dtype {
        DataType::Boolean => "true or false",
        DataType::Float32 | DataType::Float64 => "a number",
        d if d.is_integer() => "a whole number",
        _ => "a text",
    }
}

/// A run without trials, axes and metrics.
fn blank() -> Manifest {
    Manifest {
        format: FORMAT,
        yieldpoint: String::new(),
        run: String::new(),
        matrix: String::new(),
        question: String::new(),
        source: None,
        analysis: None,
        started: String::new(),
        command: vec![],
        asked: Asked::default(),
        seed: 0,
        rounds: 0,
        sequential: None,
        along: None,
        trials: 0,
        axes: vec![],
        set: vec![],
        knobs: vec![],
        metrics: vec![],
        machine: Machine::default(),
        programs: vec![],
        lab: LabFact::default(),
        notes: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_type_and_meaning_and_words_are_the_rest() {
        let columns = columns().unwrap();
        let of = |table, name: &str| {
            let found = columns.iter().find(|c| c.table == table && c.name == name);
            found.unwrap_or_else(|| panic!("{table}.{name}"))
        };
        assert_eq!(of("trials", "good_per_s").values, "a number");
        assert_eq!(of("trials", "attempts").values, "a whole number");
        assert!(of("trials", "p99_ns").doc.starts_with("ns. "));
        assert!(of("samples", "t_ms").doc.starts_with("ms from go"));
        let words: Vec<_> = words().unwrap().into_iter().map(|(w, _)| w).collect();
        assert!(words.contains(&"good request") && words.contains(&"window"));
        assert!(!words.iter().any(|w| w.contains("p99_ns")), "{words:?}");
    }
}

//! The rows of a table in the order in which a report first shows them.

use yieldpoint_figures::{Row, Table};

/// Rows by the keys of the column `sorted_by`, greatest first, those without a key last; rows of
/// equal keys, and all rows of a table that names no column, as they stand.
pub(crate) fn rows(table: &Table) -> Vec<&Row> {
    let mut rows: Vec<&Row> = table.rows.iter().collect();
    if let Some(column) = table.sorted_by {
        let key = |r: &Row| {
            let key = r.keys.get(column).copied().flatten();
            key.filter(|k| k.is_finite()).unwrap_or(f64::NEG_INFINITY)
        };
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    }
    rows
}

/// Whether marks need a column of their own: not where a last column of notes already tells them.
pub(crate) fn marked(table: &Table) -> bool {
    let told = table.columns.last().is_some_and(|c| c.name == "note");
    !told && table.rows.iter().any(|r| r.mark.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_stand_first_and_what_was_not_measured_last() {
        let row = |name: &str, key| Row {
            cells: vec![name.into()],
            keys: vec![key],
            mark: None,
        };
        let mut table = Table {
            rows: vec![
                row("a", None),
                row("b", Some(1.0)),
                row("c", Some(f64::NAN)),
                row("d", Some(2.0)),
                row("e", Some(1.0)),
            ],
            ..Table::default()
        };
        let names = |t: &Table| {
            rows(t)
                .iter()
                .map(|r| r.cells[0].clone())
                .collect::<String>()
        };
        assert_eq!(names(&table), "abcde", "as they stand");
        table.sorted_by = Some(0);
        assert_eq!(names(&table), "dbeac");
        table.sorted_by = Some(7);
        assert_eq!(names(&table), "abcde", "no such column");
    }
}

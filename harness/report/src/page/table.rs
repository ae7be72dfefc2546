//! Tables: sortable by script, readable without it.

use maud::{Markup, html};
use yieldpoint_figures::{Column, Row, Table};

use crate::order;

/// A table with its heading; nothing if it has no rows.
pub(super) fn section(id: &str, heading: &str, table: &Table) -> Markup {
    let marked = order::marked(table);
    html! {
        @if !table.rows.is_empty() && !table.columns.is_empty() {
            section aria-labelledby=(id) {
                h2 id=(id) { (heading) " " span.count { (count(table.rows.len())) } }
                @if !table.caption.is_empty() { p.caption { (table.caption) } }
                // It scrolls by itself, so it must be reachable with the keyboard.
                div.scroll role="region" aria-labelledby=(id) tabindex="0" {
                    table {
                        thead {
                            tr {
                                @for (i, column) in table.columns.iter().enumerate() {
                                    (head(column, table.sorted_by == Some(i)))
                                }
                                @if marked { th scope="col" { span.name { "note" } } }
                            }
                        }
                        tbody { @for r in order::rows(table) { (row(r, &table.columns, marked)) } }
                    }
                }
            }
        }
    }
}

fn count(rows: usize) -> String {
    match rows {
        1 => "(1 row)".into(),
        n => format!("({n} rows)"),
    }
}

fn head(column: &Column, sorted: bool) -> Markup {
    let sorted = sorted.then_some("descending");
    let doc = (!column.doc.is_empty()).then_some(&column.doc);
    html! {
        th scope="col" class=[column.number.then_some("number")] title=[doc] aria-sort=[sorted] {
            span.name { (column.name) }
            @if !column.unit.is_empty() { " " span.unit { (column.unit) } }
        }
    }
}

fn row(row: &Row, columns: &[Column], marked: bool) -> Markup {
    let cell = |i: usize| row.cells.get(i).map_or("", String::as_str);
    // A key that is not a number would sort at random.
    let key = |i: usize| row.keys.get(i).copied().flatten().filter(|k| k.is_finite());
    html! {
        tr class=[row.mark.as_ref().map(|_| "marked")] {
            @for (i, column) in columns.iter().enumerate() {
                td class=[column.number.then_some("number")] data-key=[key(i)] {
                    @if cell(i).is_empty() {
                        span.none title="not measured" { "–" }
                    } @else {
                        (cell(i))
                    }
                }
            }
            @if marked { td.note { (row.mark.as_deref().unwrap_or("")) } }
        }
    }
}

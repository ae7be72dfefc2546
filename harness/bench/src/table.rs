//! How rows look: an aligned table, and JSON.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::row::{Row, Verdict};

const HEAD: [&str; 7] = [
    "figure",
    "ours",
    "peer or limit",
    "ratio",
    "95 %",
    "n",
    "verdict",
];

/// The table, with notes below it.
pub fn text(rows: &[Row]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let mut widths = [0; HEAD.len()];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for line in &lines {
        let mut shown = String::new();
        for (i, (cell, width)) in line.iter().zip(widths).enumerate() {
            let blanks = " ".repeat(width - cell.chars().count());
            // Numbers stand to the right, words to the left.
            let words = i == 0 || i == HEAD.len() - 1;
            let (before, after) = if words {
                ("", blanks.as_str())
            } else {
                (blanks.as_str(), "")
            };
            shown.push_str(&format!("{before}{cell}{after}  "));
        }
        out.push_str(shown.trim_end());
        out.push('\n');
    }
    let noted = rows.iter().filter(|r| !r.note.is_empty());
    for (i, row) in noted.enumerate() {
        let gap = if i == 0 { "\n" } else { "" };
        out.push_str(&format!("{gap}{}: {}\n", row.figure, row.note));
    }
    out
}

fn cells(row: &Row) -> [String; HEAD.len()] {
    let (ratio, ends, n) = match row.interval {
        None => Default::default(),
        Some(i) => (
            format!("{:.3}", i.ratio),
            format!("[{:.3}, {:.3}]", i.low, i.high),
            i.n.to_string(),
        ),
    };
    let (ours, peer) = (row.ours.clone(), row.peer.clone());
    [
        row.figure.clone(),
        ours,
        peer,
        ratio,
        ends,
        n,
        words(&row.verdict),
    ]
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Reached => "reached".to_owned(),
        Verdict::NotReached => "NOT reached".to_owned(),
        Verdict::Inconclusive(why) => format!("inconclusive: {why}"),
        Verdict::Information => "(for information)".to_owned(),
        Verdict::Unmeasured(why) => format!("NOT reached: {why}"),
    }
}

/// Writes the rows as one JSON array.
pub fn write_json(path: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let rows: Vec<Value> = rows.iter().map(row_json).collect();
    let text = serde_json::to_string_pretty(&rows)? + "\n";
    std::fs::write(path, text).with_context(|| format!("\"{}\" cannot be written", path.display()))
}

fn row_json(row: &Row) -> Value {
    let i = row.interval;
    json!({
        "figure": row.figure,
        "ours": row.ours,
        "peer": row.peer,
        "ratio": i.map(|i| i.ratio),
        "ratio_low": i.map(|i| i.low),
        "ratio_high": i.map(|i| i.high),
        "n": i.map(|i| i.n),
        "verdict": words(&row.verdict),
        "note": row.note,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_heads_and_notes_below() {
        let pairs = [(100_000.0, 110_000.0), (100_000.0, 110_000.0)];
        let rows = [
            Row::information("µ", &pairs, "a note".to_owned()),
            Row::unmeasured("a longer figure", "wrk is missing: scripts/peers"),
        ];
        let text = text(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        let end = |line: &str, word: &str| {
            line[..line.find(word).unwrap() + word.len()]
                .chars()
                .count()
        };
        assert_eq!(end(lines[0], "ours"), end(lines[1], "110,000"), "{text}");
        assert!(lines[2].ends_with("NOT reached: wrk is missing: scripts/peers"));
        assert_eq!(lines[4], "µ: a note");
    }

    #[test]
    fn missing_is_null() {
        let row = row_json(&Row::unmeasured("x", "no"));
        assert!(row["ratio"].is_null() && row["n"].is_null());
        assert_eq!(row["verdict"], "NOT reached: no");
    }
}

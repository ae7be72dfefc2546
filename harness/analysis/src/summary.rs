//! The table of cells for a terminal.

use yieldpoint_figures::{Report, Row, Table};

use crate::figures::{GOOD, NOTE, SHORT};

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";

/// Coordinates, throughput, errors, connections and notes of every cell as aligned text, one line a cell, then
/// the shares of right verdicts, where causes were injected, and the noise floor, as sentences. No line is longer than `width` characters. Ends with a line break; empty if
/// there are no cells.
#[must_use]
pub fn summary(report: &Report, width: usize, color: bool) -> String {
    let table = &report.cells;
    if table.rows.is_empty() {
        return String::new();
    }
    let shown = shown(table);
    let widths: Vec<usize> = shown.iter().map(|i| column_width(table, *i)).collect();
    let headings: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let mut out = painted(&line(table, &shown, &widths, &headings, width), BOLD, color);
    for row in &table.rows {
        let cells: Vec<&str> = row.cells.iter().map(String::as_str).collect();
        out.push_str(&painted(
            &line(table, &shown, &widths, &cells, width),
            colour(row),
            color,
        ));
    }
    for share in report.confusion.iter().flat_map(|c| &c.shares) {
        out.push_str(&wrapped(share, width));
    }
    out.push_str(&wrapped(&report.noise, width));
    out
}

/// A sentence in lines of at most `width` characters; a word that is longer is cut.
fn wrapped(sentence: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, width)),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Columns up to the throughput are coordinates; of the others the short ones.
fn shown(table: &Table) -> Vec<usize> {
    let good = table
        .columns
        .iter()
        .position(|c| c.name == GOOD)
        .unwrap_or(0);
    let short = |i: &usize| *i < good || SHORT.contains(&table.columns[*i].name.as_str());
    (0..table.columns.len()).filter(short).collect()
}

fn column_width(table: &Table, i: usize) -> usize {
    let cells = table.rows.iter().filter_map(|r| r.cells.get(i));
    let widest = cells.map(|c| c.chars().count()).max().unwrap_or(0);
    widest.max(table.columns[i].name.chars().count())
}

fn line(table: &Table, shown: &[usize], widths: &[usize], texts: &[&str], width: usize) -> String {
    let mut out = String::new();
    for (i, w) in shown.iter().zip(widths) {
        if !out.is_empty() {
            out.push_str("  ");
        }
        // Line breaks of an error text would break the table.
        let text = texts
            .get(*i)
            .map_or_else(String::new, |t| t.replace(['\n', '\r', '\t'], " "));
        // Numbers to the right, and the last column is not padded.
        match &table.columns[*i] {
            c if c.name == NOTE => out.push_str(&text),
            c if c.number => out.push_str(&format!("{text:>w$}")),
            _ => out.push_str(&format!("{text:<w$}")),
        }
    }
    cut(out.trim_end(), width)
}

/// At most `width` characters; what is cut off shows as "…".
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        kept.push('…');
    }
    kept
}

fn colour(row: &Row) -> &'static str {
    match row.mark.as_deref() {
        Some("error" | "unsupported") => RED,
        Some(_) => YELLOW,
        None => "",
    }
}

fn painted(line: &str, colour: &str, color: bool) -> String {
    if color && !colour.is_empty() {
        format!("{colour}{line}{RESET}\n")
    } else {
        format!("{line}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report, synthetic, tables};
    use yieldpoint_record::Status;
    use yieldpoint_terms::Value;

    fn sample() -> Report {
        let threads = [Value::Int(1), Value::Int(16)];
        let manifest = synthetic::manifest(&[("threads", &threads)]);
        let at = |c, t: &Value| synthetic::at(synthetic::trial(c, 1), "threads", t.clone());
        let trials = [
            synthetic::good(at("ureq", &threads[0]), 24_690),
            synthetic::ran_out(at("ureq", &threads[1]), 2_000),
            synthetic::failed(at("isahc", &threads[1]), Status::Error, "died\nby signal 9"),
        ];
        let made = tables(&manifest, &trials).unwrap();
        report(&manifest, &trials, &made).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_notes_stand_last() {
        let want = "\
client  threads  good/s  errors  connections  verdict          note
ureq          1  12,345     0 %           20  unexplained
isahc        16                                                error: died by signal 9
ureq         16   1,000  20.0 %        2,000  ports_exhausted  ran out of ports, burst only
";
        let got = summary(&sample(), 200, false);
        let rest = got.strip_prefix(want).expect(&got);
        assert_eq!(rest, format!("{}\n", crate::controls::NO_FLOOR));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [0, 1, 20, 50] {
            let text = summary(&sample(), width, false);
            assert!(
                text.lines().all(|l| l.chars().count() <= width),
                "{width}:\n{text}"
            );
            assert!(text.lines().count() > 4);
        }
        assert!(summary(&sample(), 50, false).contains('…'));
    }

    #[test]
    fn colour_marks_rows_and_changes_no_text() {
        let mut text = summary(&sample(), 200, true);
        assert!(
            text.contains(&format!("{YELLOW}ureq         16"))
                && text.contains(&format!("{RED}isahc"))
        );
        for code in [RESET, BOLD, RED, YELLOW] {
            text = text.replace(code, "");
        }
        assert_eq!(text, summary(&sample(), 200, false));
        assert_eq!(summary(&Report::default(), 80, true), "");
    }
}

//! What is wrong with a matrix, where, and what to do about it.

use std::fmt;
use std::ops::Range;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report,
};

/// Characters of a wrong value that are shown; the place says where the rest is.
const MOST_SHOWN: usize = 200;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole: something is missing from it.
    File,
    /// Bytes of the file's text.
    Span {
        /// first byte
        start: usize,
        /// one beyond the last
        end: usize,
    },
    /// An argument of the command line, as it was typed ("--set threads=2").
    Argument(String),
}

impl From<Range<usize>> for Place {
    fn from(span: Range<usize>) -> Self {
        Self::Span {
            start: span.start,
            end: span.end,
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// where
    pub place: Place,
    /// lower-case fragment that names the thing in quotes
    pub what: String,
    /// what was expected
    pub expected: String,
    /// what was found
    pub got: String,
    /// what to do
    pub fix: String,
    /// The other place of a contradiction, with a word on what stands there.
    pub other: Option<(Place, String)>,
}

impl Problem {
    pub(crate) fn new(
        place: &Place,
        what: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            place: place.clone(),
            what: one_line(&what.into()),
            expected: one_line(&expected.into()),
            got: shortened(&one_line(&got.into())),
            fix: one_line(&fix.into()),
            other: None,
        }
    }

    pub(crate) fn beside(mut self, other: &Place, label: impl Into<String>) -> Self {
        self.other = Some((other.clone(), label.into()));
        self
    }

    fn message(&self) -> String {
        format!(
            "{}: expected {}, got {}",
            self.what, self.expected, self.got
        )
    }
}

/// Everything that is wrong with a matrix, in the order of the file; the command line comes last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixErrors {
    path: String,
    text: String,
    problems: Vec<Problem>,
}

impl std::error::Error for MatrixErrors {}

impl fmt::Display for MatrixErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl MatrixErrors {
    pub(crate) fn new(path: &str, text: &str, mut problems: Vec<Problem>) -> Self {
        // A stable sort: two problems of one place stay in the order they were found.
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        problems.dedup();
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            problems,
        }
    }

    /// The problems one by one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// As text for a human. `color`: with the lines of the file and colours, for a terminal;
    /// else one stable line a problem, `file:line:column: what: expected …, got …; fix`.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let mut out = String::new();
        for problem in &self.problems {
            if color {
                out.push_str(&self.fancy(problem));
            } else {
                out.push_str(&self.plain(problem));
            }
            out.push('\n');
        }
        out
    }

    fn plain(&self, problem: &Problem) -> String {
        let mut line = format!("{}: {}", self.shown(&problem.place), problem.message());
        if let Some((place, label)) = &problem.other {
            line.push_str(&format!(" ({label} at {})", self.shown(place)));
        }
        format!("{line}; {}", problem.fix)
    }

    fn shown(&self, place: &Place) -> String {
        match place {
            Place::File => self.path.clone(),
            Place::Span { start, .. } => {
                let (line, column) = line_and_column(&self.text, *start);
                format!("{}:{line}:{column}", self.path)
            }
            Place::Argument(typed) => typed.clone(),
        }
    }

    fn fancy(&self, problem: &Problem) -> String {
        let mut labels = Vec::new();
        if let Place::Span { start, end } = problem.place {
            let label = Some("here".to_owned());
            labels.push(LabeledSpan::new_primary_with_span(label, start..end));
        }
        if let Some((Place::Span { start, end }, label)) = &problem.other {
            labels.push(LabeledSpan::new_with_span(
                Some(label.clone()),
                *start..*end,
            ));
        }
        let message = match &problem.place {
            // Without a span nothing else would say where.
            Place::File | Place::Argument(_) => {
                format!("{}: {}", self.shown(&problem.place), problem.message())
            }
            Place::Span { .. } => problem.message(),
        };
        let diagnostic = MietteDiagnostic::new(message)
            .with_help(problem.fix.clone())
            .with_labels(labels);
        let report = Report::new(diagnostic)
            .with_source_code(NamedSource::new(&self.path, self.text.clone()));
        let mut out = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode());
        match handler.render_report(&mut out, report.as_ref()) {
            Ok(()) => out,
            // The plain form cannot fail, so no problem is ever lost to its picture.
            Err(fmt::Error) => self.plain(problem),
        }
    }
}

/// A value of several lines, or one that would steer the terminal, stays text in the line of its problem.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Line and column of a byte, both from 1; a column is a character, not a byte.
fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    (line, before[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_written_is_told_in_one_line() {
        let table = [
            ("a\nb\t\u{1b}[0m", "a\\nb\\t\\u{1b}[0m"), // lines, and what steers a terminal
            ("\u{85}ü", "\\u{85}ü"),                   // the other end of a line; letters stay
            ("\"x\"", "\"x\""),
        ];
        for (given, want) in table {
            assert_eq!(one_line(given), want);
        }
        assert_eq!(shortened(&"ü".repeat(200)), "ü".repeat(200));
        assert_eq!(shortened(&"ü".repeat(201)), "ü".repeat(200) + "…");
    }

    #[test]
    fn lines_and_columns_are_counted_in_characters_from_one() {
        let text = "a\nüb\n";
        let table = [
            (0, (1, 1)),
            (1, (1, 2)),  // the newline belongs to its line
            (2, (2, 1)),  // first of the next
            (3, (2, 1)),  // inside ü: its first byte
            (4, (2, 2)),  // ü is one column, two bytes
            (6, (3, 1)),  // the end
            (99, (3, 1)), // beyond the end
        ];
        for (byte, want) in table {
            assert_eq!(line_and_column(text, byte), want, "byte {byte}");
        }
    }
}

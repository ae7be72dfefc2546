//! Every key of a TOML text with its full path and its place.
//!
//! `toml` drops the second of two equal keys and says only where that one stood. A reader who
//! wrote `target.workers` and `[knobs.target]` in two corners of a file needs both lines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml_parser::Source;
use toml_parser::parser::{Event, EventKind, RecursionGuard, parse_document};

/// Greatest number of parts of a name, tables included. Far above any knob, far below the depth
/// at which walking or dropping nested tables could run out of stack.
const MAX_PARTS: usize = 32;

/// Nesting of arrays and inline tables that is looked into; `toml` has the same limit.
const MAX_NESTING: u32 = 80;

/// One key: its path from the root, with the place of each part.
type Path = Vec<(String, Range<usize>)>;

/// All keys of a text in the order of the text, table headers included.
pub(crate) struct Keys {
    paths: Vec<Path>,
    /// The first name that has too many parts; nothing after it was read.
    pub(crate) too_deep: Option<Range<usize>>,
}

impl Keys {
    /// Reads a text, which need not be valid.
    pub(crate) fn scan(text: &str) -> Self {
        let source = Source::new(text);
        let tokens = source.lex().into_vec();
        let mut events: Vec<Event> = Vec::new();
        let mut receiver = |event: Event| events.push(event);
        let mut guarded = RecursionGuard::new(&mut receiver, MAX_NESTING);
        // Errors are `toml`'s to report.
        parse_document(&tokens, &mut guarded, &mut ());
        let mut scan = Scan::default();
        let too_deep = events
            .iter()
            .find_map(|event| scan.take(event, source).err());
        Self {
            paths: scan.paths,
            too_deep,
        }
    }

    /// Where the key at `second` was first written, if it was written before.
    pub(crate) fn first_of(&self, second: &Range<usize>) -> Option<(String, Range<usize>)> {
        let (at, parts) = self.paths.iter().enumerate().find_map(|(at, path)| {
            let part = path.iter().position(|(_, span)| span == second)?;
            Some((at, &path[..=part]))
        })?;
        let same = |path: &&Path| {
            path.len() >= parts.len() && path.iter().zip(parts).all(|((a, _), (b, _))| a == b)
        };
        let first = self.paths[..at].iter().find(same)?;
        let name: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        Some((name.join("."), first[parts.len() - 1].1.clone()))
    }
}

#[derive(Default)]
struct Scan {
    paths: Vec<Path>,
    /// the table header that is in force
    header: Path,
    /// values that are open (arrays and inline tables), each with the path of its key
    open: Vec<Path>,
    /// parts of the key that is being read
    parts: Path,
    /// the key whose value comes next
    key: Path,
    /// how many `[[name]]` there were: each is a table of its own
    repeats: BTreeMap<String, usize>,
}

impl Scan {
    /// Takes one event; an error is the place of a name with too many parts.
    fn take(&mut self, event: &Event, source: Source<'_>) -> Result<(), Range<usize>> {
        let span = event.span().start()..event.span().end();
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                self.parts.clear();
                self.open.clear();
            }
            EventKind::SimpleKey => {
                let mut name = Cow::Borrowed("");
                if let Some(raw) = source.get(event) {
                    raw.decode_key(&mut name, &mut ());
                }
                self.parts.push((name.into_owned(), span.clone()));
                let above = self.open.last().unwrap_or(&self.header).len();
                if above + self.parts.len() > MAX_PARTS {
                    return Err(span);
                }
            }
            EventKind::StdTableClose => {
                self.header = std::mem::take(&mut self.parts);
                self.paths.push(self.header.clone());
            }
            EventKind::ArrayTableClose => {
                self.header = std::mem::take(&mut self.parts);
                if let Some((name, _)) = self.header.last_mut() {
                    let nth = self.repeats.entry(name.clone()).or_default();
                    *nth += 1;
                    name.push_str(&format!("[{nth}]"));
                }
                self.paths.push(self.header.clone());
            }
            EventKind::KeyValSep => {
                self.key = self.open.last().unwrap_or(&self.header).clone();
                self.key.append(&mut self.parts);
                self.paths.push(self.key.clone());
            }
            EventKind::InlineTableOpen | EventKind::ArrayOpen => self.open.push(self.key.clone()),
            EventKind::InlineTableClose | EventKind::ArrayClose => {
                self.open.pop();
            }
            // A line that holds no more than a name is an error of its own; forget the name.
            EventKind::Newline if self.open.is_empty() => self.parts.clear(),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the second `what` of the text repeats an earlier key, in bytes.
    fn first(text: &str, what: &str) -> Option<(String, usize)> {
        let at = text.rfind(what).unwrap();
        let (name, span) = Keys::scan(text).first_of(&(at..at + what.len()))?;
        Some((name, span.start))
    }

    #[test]
    fn a_repeated_key_finds_its_first_form() {
        // each row: text, the part that repeats, full name and byte of the first
        let table = [
            ("a = 1\na = 2", "a", Some(("a", 0))),
            // another table's key of the same name is another key
            ("a = 1\n[t]\na = 2", "a", None),
            // dotted, then as a header: the dotted form's own part
            ("[t]\nb.c = 1\n[t.b]", "b", Some(("t.b", 4))),
            // inside inline tables
            ("t = { a = 1, a = 2 }", "a", Some(("t.a", 6))),
            // each [[x]] is a table of its own
            ("[[x]]\na = 1\n[[x]]\na = 2", "a", None),
            // a quoted name is the same key
            ("[t]\n\"a\" = 1\na = 2", "a", Some(("t.a", 4))),
        ];
        for (text, what, want) in table {
            let want = want.map(|(name, at): (&str, usize)| (name.to_owned(), at));
            assert_eq!(first(text, what), want, "{text}");
        }
    }

    #[test]
    fn a_name_of_too_many_parts_is_found_before_anything_recurses() {
        let deep = vec!["a"; MAX_PARTS + 1].join(".");
        assert!(Keys::scan(&format!("{deep} = 1")).too_deep.is_some());
        assert!(
            Keys::scan(&format!("{} = 1", &deep[2..]))
                .too_deep
                .is_none()
        );
        assert!(
            Keys::scan(&format!("[{}]\na = 1", &deep[2..]))
                .too_deep
                .is_some()
        );
        assert!(
            Keys::scan(&format!("[x]\n{} = {{ b = 1 }}", &deep[4..]))
                .too_deep
                .is_some()
        );
    }
}

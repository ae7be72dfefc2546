//! What a human wrote: the tables of a matrix file, every value with its place, nothing judged yet
//! that would need the catalog of knobs.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeTable;
use yieldpoint_terms::{Rounds, Value};

use crate::ClientCommand;
use crate::keys::Keys;
use crate::problem::{Place, Problem};
use crate::reader::{Reader, quoted, twice};

/// A matrix is written by hand; beyond this the file is something else.
const MAX_BYTES: usize = 1024 * 1024;
/// A matrix file as it was written.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) question: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) analysis: Option<String>,
    pub(crate) run: WireRun,
    pub(crate) knobs: Vec<Entry>,
    /// `knobs` is no table, so that nothing can be said to be missing from it.
    pub(crate) knobs_unreadable: bool,
    pub(crate) bundles: Vec<Bundle>,
    pub(crate) clients: BTreeMap<String, ClientCommand>,
    pub(crate) excludes: Vec<Selection>,
    pub(crate) claims: Vec<WireClaim>,
}

/// `[run]`.
#[derive(Default)]
pub(crate) struct WireRun {
    /// and where it stands
    pub(crate) rounds: Option<(Rounds, Place)>,
    pub(crate) seed: Option<u64>,
    /// an axis, and where it is named
    pub(crate) compare: Option<(String, Place)>,
    /// what is searched for, not judged yet, and where it stands
    pub(crate) find: Option<(String, Place)>,
    /// the axis of the search, and where it is named
    pub(crate) along: Option<(String, Place)>,
    pub(crate) controls: Option<bool>,
    pub(crate) ceilings: Option<bool>,
}

/// One key of a flattened table.
pub(crate) struct Entry {
    /// the whole dotted name
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) value: Written,
}

/// A scalar is a setting, an array an axis.
pub(crate) enum Written {
    One(Scalar),
    Many(Vec<Scalar>),
}

/// A value; `None` where it is none that a knob could have, which is already reported.
pub(crate) struct Scalar {
    pub(crate) value: Option<Value>,
    pub(crate) place: Place,
}

/// `[axis.NAME.LABEL]` tables of one NAME.
pub(crate) struct Bundle {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) labels: Vec<Label>,
}

/// One named set of knobs.
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) entries: Vec<Entry>,
}

/// A set of axis = value.
pub(crate) struct Selection {
    pub(crate) place: Place,
    pub(crate) entries: Vec<Entry>,
}

/// `[[claim]]`; complete, or it was reported and is not here.
pub(crate) struct WireClaim {
    pub(crate) place: Place,
    pub(crate) id: String,
    pub(crate) base: Selection,
    pub(crate) changed: Selection,
    pub(crate) published_ratio: f64,
    pub(crate) note: Option<String>,
    pub(crate) source: Option<String>,
}

/// Reads a text. `Err`: it is not TOML, so nothing else can be said about it.
pub(crate) fn read(text: &str) -> Result<(Wire, Vec<Problem>), Vec<Problem>> {
    if text.len() > MAX_BYTES {
        let got = format!("{} bytes", text.len());
        let expected = format!("at most {MAX_BYTES} bytes");
        let fix = "give the path of a matrix file";
        return Err(vec![Problem::new(
            &Place::File,
            "size of the file",
            expected,
            got,
            fix,
        )]);
    }
    let keys = Keys::scan(text);
    if let Some(span) = keys.too_deep {
        let fix = "write the names of knobs as `yieldpoint plan` lists them";
        let place = span.into();
        return Err(vec![Problem::new(
            &place,
            "depth of a name",
            "at most 32 parts",
            "more",
            fix,
        )]);
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        problems: Vec::new(),
    };
    let mut is_toml = true;
    for error in &errors {
        let repeated = error.span().and_then(|second| keys.first_of(&second));
        // Keys that are there twice leave the rest of the tree sound: go on and find what else
        // is wrong. After any other error values are made up by the recovery, and judging those
        // would report problems that nobody wrote.
        is_toml &= repeated.is_some();
        reader
            .problems
            .push(syntax(text, error.message(), error.span(), repeated));
    }
    if !is_toml {
        return Err(reader.problems);
    }
    let wire = reader.document(root.get_ref());
    Ok((wire, reader.problems))
}

fn syntax(
    text: &str,
    message: &str,
    span: Option<Range<usize>>,
    repeated: Option<(String, Range<usize>)>,
) -> Problem {
    let place = span.clone().map_or(Place::File, Place::from);
    if let Some((name, first)) = repeated {
        // Knobs are called by their own names wherever they are told.
        let name = name.strip_prefix("knobs.").unwrap_or(&name);
        return twice(&place, name, &first.into());
    }
    let (what, expected) = message
        .split_once(", expected ")
        .unwrap_or((message, "TOML"));
    let got = match span.and_then(|s| text.get(s)) {
        None => "something else".to_owned(),
        Some(t) if t.trim().is_empty() => "nothing".to_owned(),
        Some(t) => quoted(t),
    };
    // The library takes an absent value for a text without quotes.
    let (what, expected) = match (what, got.as_str()) {
        ("string values must be quoted", "nothing") => {
            ("a value is missing", "a value after \"=\"")
        }
        other => (other.0, expected),
    };
    let fix = "texts stand in quotes, lists in [ ], one key = value a line; see matrices/README.md";
    Problem::new(&place, format!("syntax: {what}"), expected, got, fix)
}

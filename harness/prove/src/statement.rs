//! What is expected, what was seen, and whether it holds.

/// One line of a proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// what it is about: a cell, a client, a verdict
    pub about: String,
    /// what theory or the injection says
    pub expected: String,
    /// what was measured
    pub got: String,
    /// whether they agree within what was allowed
    pub holds: bool,
}

impl Statement {
    /// A statement about `about`.
    pub fn new(about: &str, expected: String, got: String, holds: bool) -> Self {
        Self {
            about: about.to_owned(),
            expected,
            got,
            holds,
        }
    }
}

/// A table with a column for each part.
pub fn text(statements: &[Statement]) -> String {
    let width = |of: fn(&Statement) -> &str, title: &str| {
        let widest = statements.iter().map(|s| of(s).chars().count()).max();
        widest.unwrap_or(0).max(title.len())
    };
    let (a, e, g) = (
        width(|s| &s.about, "about"),
        width(|s| &s.expected, "expected"),
        width(|s| &s.got, "measured"),
    );
    let mut out = format!(
        "{:<a$}  {:<e$}  {:<g$}  holds\n",
        "about", "expected", "measured"
    );
    for s in statements {
        let holds = if s.holds { "yes" } else { "NO" };
        out.push_str(&format!(
            "{:<a$}  {:<e$}  {:<g$}  {holds}\n",
            s.about, s.expected, s.got
        ));
    }
    out
}

//! `--set name=value` and `--only name=value,value` as they are typed.

use yieldpoint_terms::Rounds;

/// What was typed on the command line beside the path of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// `--set`: knob and value; see [`parse_set`]
    pub set: Vec<(String, String)>,
    /// `--only`: axis and the values to keep; see [`parse_only`]
    pub only: Vec<(String, Vec<String>)>,
    /// `--rounds`
    pub rounds: Option<Rounds>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--compare`
    pub compare: Option<String>,
    /// `--find`: what is searched for
    pub find: Option<String>,
    /// `--along`: the axis of the search
    pub along: Option<String>,
    /// `--no-controls`
    pub no_controls: bool,
    /// `--no-ceilings`
    pub no_ceilings: bool,
}

/// A text that is not `name=value`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{typed}\": {why}; write {form}, with quotes around a {protected}")]
pub struct ArgumentError {
    typed: String,
    why: &'static str,
    form: &'static str,
    protected: &'static str,
}

/// Reads the argument of `--set`: a knob and one value, split at the first `=`.
///
/// Quotes (`"` or `'`) at the start of a part protect what is in it; in double quotes `\"` and
/// `\\` stand for `"` and `\`.
pub fn parse_set(text: &str) -> Result<(String, String), ArgumentError> {
    let error = |why| ArgumentError {
        typed: text.to_owned(),
        why,
        form: "NAME=VALUE",
        protected: "name that holds \"=\"",
    };
    let (name, rest) = name_and_rest(text).map_err(error)?;
    let (value, _) = part(rest, &[]).map_err(error)?;
    Ok((name, value))
}

/// Reads the argument of `--only`: an axis and the values to keep, split at the first `=` and at
/// commas. Quotes protect, as for [`parse_set`].
pub fn parse_only(text: &str) -> Result<(String, Vec<String>), ArgumentError> {
    let error = |why| ArgumentError {
        typed: text.to_owned(),
        why,
        form: "AXIS=VALUE,VALUE",
        protected: "value that holds a comma",
    };
    let (name, mut rest) = name_and_rest(text).map_err(error)?;
    let mut values = Vec::new();
    loop {
        let (value, after) = part(rest, &[',']).map_err(error)?;
        values.push(value);
        match after {
            Some(after) => rest = after,
            None => return Ok((name, values)),
        }
    }
}

fn name_and_rest(text: &str) -> Result<(String, &str), &'static str> {
    match part(text, &['='])? {
        (_, None) => Err("there is no \"=\""),
        (name, Some(_)) if name.is_empty() => Err("there is no name before \"=\""),
        (name, Some(rest)) => Ok((name, rest)),
    }
}

/// One part up to an unprotected separator, and what follows that separator.
fn part<'a>(text: &'a str, separators: &[char]) -> Result<(String, Option<&'a str>), &'static str> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (value, after) = match quote {
        None => {
            let end = text.find(separators).unwrap_or(text.len());
            (text[..end].trim_end().to_owned(), &text[end..])
        }
        Some(quote) => {
            let (value, length) = protected(&text[1..], quote).ok_or("a quote is not closed")?;
            (value, text[1 + length..].trim_start())
        }
    };
    match after.chars().next() {
        None => Ok((value, None)),
        // Separators are one byte long.
        Some(c) if separators.contains(&c) => Ok((value, Some(&after[1..]))),
        Some(_) => Err("something follows a closing quote"),
    }
}

/// What stands before the closing quote, and its length in bytes, that quote included.
fn protected(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((value, at + 1));
        }
        if c == '\\' && quote == '"' {
            value.push(chars.next()?.1);
        } else {
            value.push(c);
        }
    }
    None
}

/// A value as it stands in the id of a cell, and as [`parse_only`] reads it back.
pub(crate) fn shown(value: &str) -> String {
    let plain = !value.is_empty()
        && value.trim() == value
        && !value.starts_with(['"', '\''])
        && !value.contains(|c: char| c == ',' || c.is_control());
    if plain {
        value.to_owned()
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_split_at_the_first_equals_sign_and_at_commas() {
        let only = |t: &str| parse_only(t).map(|(name, values)| (name, values.join("|")));
        // each row: typed, name, values joined by "|"; None: refused
        let table = [
            ("threads=1", Some(("threads", "1"))),
            ("threads=1,2", Some(("threads", "1|2"))),
            (" threads = 1 , 2 ", Some(("threads", "1|2"))), // blanks around
            ("a=b=c", Some(("a", "b=c"))),                   // only the first "=" splits
            ("a=\"b,c\",d", Some(("a", "b,c|d"))),           // double quotes protect
            ("a='b,c'", Some(("a", "b,c"))),                 // and single ones
            ("\"a=b\"=c", Some(("a=b", "c"))),               // the name as well
            (r#"a="x\"y\\""#, Some(("a", r#"x"y\"#))),       // escapes
            ("a=it's", Some(("a", "it's"))),                 // a quote inside is a letter
            ("a=32768 60999", Some(("a", "32768 60999"))),   // blanks inside
            ("a=", Some(("a", ""))), // an empty value is the knob's business
            ("a=1,", Some(("a", "1|"))),
            ("a", None),
            ("=1", None),
            ("", None),
            ("a=\"b", None),
            ("a=\"b\"c", None),
        ];
        for (typed, want) in table {
            let want = want.map(|(name, values)| (name.to_owned(), values.to_owned()));
            assert_eq!(only(typed).ok(), want, "{typed}");
        }
        let set = parse_set("a=1,2").unwrap();
        assert_eq!(
            set,
            ("a".into(), "1,2".into()),
            "a comma does not split --set"
        );
    }

    #[test]
    fn a_refusal_says_what_to_write() {
        let error = parse_only("threads").unwrap_err().to_string();
        assert_eq!(
            error,
            "\"threads\": there is no \"=\"; write AXIS=VALUE,VALUE, with quotes around a value that holds a comma"
        );
    }

    #[test]
    fn what_is_shown_reads_back() {
        for value in [
            "1",
            "32768 60999",
            "a,b",
            "",
            " x",
            "\"q\"",
            "it's",
            "a\\,\"b",
            "a\nb",
            "'",
        ] {
            let typed = format!("a={}", shown(value));
            assert_eq!(parse_only(&typed).unwrap().1, [value], "{typed}");
        }
    }
}

//! Which part of a resource a request gets: all, a range, or nothing new (RFC 9110, 13 and 14). Pure.

use std::ops::Range;

use crate::date;
use crate::http::Head;

/// What tells two states of a resource apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// with its quotes
    pub etag: String,
    /// seconds since 1970
    pub modified_s: u64,
}

impl Validators {
    /// As nginx makes them, so that the same file has the same tag there and here.
    pub fn new(modified_s: u64, length: usize) -> Self {
        Self {
            etag: format!("\"{modified_s:x}-{length:x}\""),
            modified_s,
        }
    }
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    Whole,
    Part(Range<usize>),
    NotModified,
    Unsatisfiable,
}

/// Chooses for GET and HEAD; a resource without validators is always new.
pub fn select(head: &Head<'_>, length: usize, validators: Option<&Validators>) -> Selected {
    if let Some(v) = validators
        && is_known(head, v)
    {
        return Selected::NotModified;
    }
    if head.range.is_empty() || !if_range_holds(head.if_range, validators) {
        return Selected::Whole;
    }
    match range(head.range, length) {
        None => Selected::Whole,
        Some(None) => Selected::Unsatisfiable,
        Some(Some(part)) => Selected::Part(part),
    }
}

/// If-None-Match decides alone where it is there (RFC 9110, 13.2.2).
fn is_known(head: &Head<'_>, v: &Validators) -> bool {
    if !head.if_none_match.is_empty() {
        return head.if_none_match.split(|b| *b == b',').any(|tag| {
            let tag = tag.trim_ascii();
            // The weak comparison: "W/" does not matter here.
            tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == v.etag.as_bytes()
        });
    }
    date::parse_http(head.if_modified_since).is_some_and(|since| v.modified_s <= since)
}

fn if_range_holds(if_range: &[u8], validators: Option<&Validators>) -> bool {
    if if_range.is_empty() {
        return true;
    }
    validators.is_some_and(|v| {
        if_range == v.etag.as_bytes() || date::parse_http(if_range) == Some(v.modified_s)
    })
}

/// `None`: not a range that we serve, and so ignored (several ranges are); `Some(None)`: beyond the end.
fn range(text: &[u8], length: usize) -> Option<Option<Range<usize>>> {
    let text = std::str::from_utf8(text).ok()?;
    let (unit, spec) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = spec.trim().split_once('-')?;
    let number = |t: &str| {
        let digits = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        // More than 2^64 is beyond every end, not malformed.
        digits.then(|| t.parse::<usize>().unwrap_or(usize::MAX))
    };
    if first.is_empty() {
        let last_bytes = number(last)?.min(length);
        return Some((last_bytes > 0).then(|| length - last_bytes..length));
    }
    let first = number(first)?;
    let end = if last.is_empty() {
        length
    } else {
        let last = number(last)?;
        if last < first {
            return None;
        }
        last.saturating_add(1).min(length)
    };
    Some((first < length).then_some(first..end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};
    use Selected::{NotModified, Part, Unsatisfiable, Whole};

    fn selected(headers: &str, validators: Option<&Validators>) -> Selected {
        let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        let Parsed::Head(head) = parse(text.as_bytes(), 0) else {
            panic!("a whole head: {text}");
        };
        select(&head, 1000, validators)
    }

    #[test]
    fn ranges_and_conditions() {
        let v = Validators::new(784_111_777, 1000);
        assert_eq!(v.etag, "\"2ebc98a1-3e8\"".to_owned());
        // each row: headers, what is selected
        let table = [
            ("", Whole),
            ("Range: bytes=0-0\r\n", Part(0..1)),
            ("Range: bytes=10-19\r\n", Part(10..20)),
            ("Range: bytes=990-\r\n", Part(990..1000)),
            ("Range: bytes=990-5000\r\n", Part(990..1000)), // cut to the end
            ("Range: bytes=-10\r\n", Part(990..1000)),      // the last ten
            ("Range: bytes=-5000\r\n", Part(0..1000)),
            ("Range: bytes=1000-\r\n", Unsatisfiable), // one beyond the end
            ("Range: bytes=99999999999999999999-\r\n", Unsatisfiable),
            ("Range: bytes=-0\r\n", Unsatisfiable),
            // not understood, so ignored (RFC 9110, 14.2)
            ("Range: bytes=5-4\r\n", Whole),
            ("Range: bytes=a-b\r\n", Whole),
            ("Range: bytes=0-1,5-6\r\n", Whole),
            ("Range: lines=0-1\r\n", Whole),
            // conditions
            ("If-None-Match: \"2ebc98a1-3e8\"\r\n", NotModified),
            ("If-None-Match: \"x\", W/\"2ebc98a1-3e8\"\r\n", NotModified),
            ("If-None-Match: *\r\n", NotModified),
            ("If-None-Match: \"x\"\r\n", Whole),
            (
                "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                NotModified,
            ),
            (
                "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n",
                Whole,
            ),
            ("If-Modified-Since: yesterday\r\n", Whole),
            // a tag that differs outweighs the date
            (
                "If-None-Match: \"x\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                Whole,
            ),
            (
                "If-Range: \"2ebc98a1-3e8\"\r\nRange: bytes=1-2\r\n",
                Part(1..3),
            ),
            ("If-Range: \"x\"\r\nRange: bytes=1-2\r\n", Whole), // it has changed: all of it
            (
                "If-None-Match: \"2ebc98a1-3e8\"\r\nRange: bytes=1-2\r\n",
                NotModified,
            ),
        ];
        for (headers, want) in table {
            assert_eq!(selected(headers, Some(&v)), want, "{headers}");
        }
        // Without validators there is nothing to compare with.
        assert_eq!(selected("If-None-Match: *\r\n", None), Whole);
        assert_eq!(
            selected("If-Range: \"x\"\r\nRange: bytes=1-2\r\n", None),
            Whole
        );
        assert_eq!(selected("Range: bytes=1-2\r\n", None), Part(1..3));
    }
}

//! Lines and numbers of a /proc file.

/// The complete lines of a text, without their ends.
///
/// A last line without an end is left out: it may have been cut in the middle of a number, and a
/// missing value is better than a wrong one.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|b| *b == b'\n')
        .filter_map(|line| line.strip_suffix(b"\n"))
}

/// The words of a line, separated by blanks and tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t'))
        .filter(|word| !word.is_empty())
}

/// A whole number, 0 to 2^63 − 1, in decimal digits and nothing else.
pub(crate) fn number(word: &[u8]) -> Option<i64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0i64, |n, b| {
        let digit = b.is_ascii_digit().then(|| i64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// A whole number of at most 8 hexadecimal digits, as 32-bit counters are written.
pub(crate) fn hexadecimal(word: &[u8]) -> Option<i64> {
    if word.is_empty() || word.len() > 8 {
        return None;
    }
    word.iter().try_fold(0i64, |n, b| {
        Some(n * 16 + i64::from(char::from(*b).to_digit(16)?))
    })
}

/// The number that follows `key` in a line of pairs ("inuse 1 orphan 0").
pub(crate) fn after(line: &[u8], key: &[u8]) -> Option<i64> {
    let mut words = words(line);
    words.find(|word| *word == key)?;
    number(words.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_numbers_only() {
        let table: [(&[u8], Option<i64>); 8] = [
            (b"0", Some(0)),
            (b"007", Some(7)), // leading zeros are decimal
            (b"9223372036854775807", Some(i64::MAX)),
            (b"9223372036854775808", None), // one beyond the range: missing, not wrapped
            (b"", None),
            (b"-1", None), // nothing here is negative
            (b"12kB", None),
            (b"total=5", None),
        ];
        for (word, want) in table {
            assert_eq!(number(word), want, "{}", String::from_utf8_lossy(word));
        }
    }

    #[test]
    fn reads_hexadecimal_numbers_of_32_bits() {
        let table: [(&[u8], Option<i64>); 5] = [
            (b"0000001f", Some(31)),
            (b"ffffffff", Some(0xffff_ffff)),
            (b"0ffffffff", None), // longer than the kernel writes
            (b"0x1f", None),
            (b"", None),
        ];
        for (word, want) in table {
            assert_eq!(hexadecimal(word), want, "{}", String::from_utf8_lossy(word));
        }
    }

    #[test]
    fn leaves_out_a_line_that_was_cut() {
        assert_eq!(lines(b"a 1\nb 2\nc").collect::<Vec<_>>(), [b"a 1", b"b 2"]);
        assert_eq!(lines(b"").count(), 0);
    }

    #[test]
    fn finds_the_number_after_a_word() {
        assert_eq!(after(b"TCP: inuse 1 orphan 2", b"orphan"), Some(2));
        assert_eq!(after(b"TCP: inuse 1 orphan", b"orphan"), None); // no number
        assert_eq!(after(b"TCP: inuse 1", b"use"), None); // whole words only
    }
}

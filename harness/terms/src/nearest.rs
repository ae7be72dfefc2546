//! The nearest known name to a misspelt one.

/// The candidate with the least edit distance to `word`, if at most a third of its letters differ.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = candidates
        .into_iter()
        .map(|c| (distance(word, c), c))
        .min_by_key(|(d, _)| *d)?;
    (best.0 <= word.chars().count().div_ceil(3)).then_some(best.1)
}

/// Levenshtein distance, one row at a time (Wagner and Fischer 1974).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_slip_and_not_a_stranger() {
        let known = ["threads", "keep_alive", "same_user"];
        assert_eq!(nearest("thread", known), Some("threads"));
        assert_eq!(nearest("keepalive", known), Some("keep_alive"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

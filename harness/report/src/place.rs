//! Where labels go so that they never overlap. Pure: positions and texts in, positions and texts out.

use std::collections::BTreeSet;

use crate::text;

/// Moves labels of height `gap` apart, each as little as possible, all within `lo..hi`.
/// Gives their centres in the order of `wanted`, or nothing if they do not fit.
///
/// Subtracting `i · gap` turns "at least `gap` apart" into "not decreasing", which pooling
/// adjacent violators solves with the least squared displacement (Ayer et al. 1955).
pub(crate) fn spread(wanted: &[f64], gap: f64, lo: f64, hi: f64) -> Option<Vec<f64>> {
    let n = wanted.len();
    if n as f64 * gap > hi - lo + 1e-9 {
        return None;
    }
    let want = |i: usize| if wanted[i].is_finite() { wanted[i] } else { lo };
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| want(*a).total_cmp(&want(*b)));
    // Blocks of labels that touch: sum of the wanted places and count.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (rank, i) in order.iter().enumerate() {
        let mut block = (want(*i) - rank as f64 * gap, 1);
        while let Some(before) = blocks.pop_if(|b| b.0 / b.1 as f64 > block.0 / block.1 as f64) {
            block = (block.0 + before.0, block.1 + before.1);
        }
        blocks.push(block);
    }
    let (least, most) = (lo + gap / 2.0, hi + gap / 2.0 - n as f64 * gap);
    let places = blocks
        .iter()
        .flat_map(|(sum, count)| std::iter::repeat_n(sum / *count as f64, *count));
    let mut out = vec![0.0; n];
    for ((rank, i), place) in order.iter().enumerate().zip(places) {
        out[*i] = place.min(most).max(least) + rank as f64 * gap;
    }
    Some(out)
}

/// A text no wider than `room` px: its middle gives way to "…", since names differ at their ends.
pub(crate) fn shorten(name: &str, room: f64, size: f64, bold: bool) -> String {
    let name = &text::printable(name);
    if text::width(name, size, bold) <= room {
        return name.to_owned();
    }
    let letters: Vec<char> = name.chars().collect();
    let with = |kept: usize| {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        let head: String = letters[..head].iter().collect();
        let tail: String = letters[letters.len() - tail..].iter().collect();
        format!("{head}…{tail}")
    };
    // The width grows with the letters kept: find the most that fit. Longer names than 400
    // letters fit nowhere, so the search stays short.
    let most = letters.len().saturating_sub(1).min(400);
    let fits: Vec<usize> = (0..=most).collect();
    let kept = fits.partition_point(|k| text::width(&with(*k), size, bold) <= room);
    with(kept.saturating_sub(1))
}

/// Cuts a text behind blanks and the joints of names, but not inside a number ("100,000").
fn pieces(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let digit = |i: Option<usize>| {
        i.and_then(|i| letters.get(i))
            .is_some_and(char::is_ascii_digit)
    };
    let mut out = vec![String::new()];
    for (i, c) in letters.iter().enumerate() {
        // There is always a last piece: the list starts with one and only grows.
        if let Some(piece) = out.last_mut() {
            piece.push(*c);
        }
        let joint = " _,=/-.;:".contains(*c);
        let in_number = *c != ' ' && digit(i.checked_sub(1)) && digit(Some(i + 1));
        if joint && !in_number {
            out.push(String::new());
        }
    }
    out
}

/// Breaks a text into lines no wider than `room` px: between its clauses if each fits a line ("keep_alive =
/// true, " and "threads = 2"), else behind blanks and the joints of names.
/// A piece that is too wide by itself stands alone, too wide.
pub(crate) fn wrap(name: &str, room: f64, size: f64, bold: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let name = text::printable(name);
    let clauses = name.split_inclusive(", ");
    let whole = |clause: &str| text::width(clause.trim_end(), size, bold) <= room;
    for piece in clauses.flat_map(|c| {
        if whole(c) {
            vec![c.to_owned()]
        } else {
            pieces(c)
        }
    }) {
        match lines.last_mut() {
            Some(line) if text::width(format!("{line}{piece}").trim_end(), size, bold) <= room => {
                line.push_str(&piece);
            }
            _ if piece.is_empty() => {}
            _ => lines.push(piece),
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// The same in at most `most` lines: what does not fit is shortened.
pub(crate) fn wrap_short(name: &str, room: f64, most: usize, size: f64, bold: bool) -> Vec<String> {
    let mut lines = wrap(name, room, size, bold);
    if lines.len() > most.max(1) {
        let rest = lines.split_off(most.max(1) - 1).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|l| shorten(l, room, size, bold)).collect()
}

/// How the labels of equally spaced categories are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Categories {
    /// written upwards, because they are wider than their place
    pub(crate) turned: bool,
    /// lines of each label; none: left out, because even turned labels would touch
    pub(crate) labels: Vec<Vec<String>>,
    /// room they take below the axis, px
    pub(crate) height: f64,
}

/// Chooses between one line, several lines and turned labels for places that are `step` px wide.
pub(crate) fn categories(names: &[String], step: f64, size: f64) -> Categories {
    const LINES: usize = 3;
    const LONGEST: f64 = 200.0;
    let line = size * text::LEADING;
    let room = step - 8.0;
    let flat: Vec<_> = names.iter().map(|n| wrap(n, room, size, false)).collect();
    let fits = |lines: &Vec<String>| {
        lines.len() <= LINES && lines.iter().all(|l| text::width(l, size, false) <= room)
    };
    if flat.iter().all(fits) {
        let lines = flat.iter().map(Vec::len).max().unwrap_or(0);
        return Categories {
            turned: false,
            labels: flat,
            height: lines as f64 * line + 4.0,
        };
    }
    // Both are positive and the quotient is at most the number of px of a picture.
    let every = (line / step.max(0.1)).ceil().max(1.0) as usize;
    let turned = |room: f64| -> Vec<String> {
        let short = |n: &String| shorten(n, room, size, false);
        names.iter().map(short).collect()
    };
    // Two places that read the same would be worse than a long label.
    let count = |of: &[String]| of.iter().collect::<BTreeSet<_>>().len();
    let mut short = turned(LONGEST);
    if count(&short) < count(names) {
        short = turned(2.0 * LONGEST);
    }
    let labels: Vec<Vec<String>> = short
        .into_iter()
        .enumerate()
        .map(|(i, label)| {
            if i % every == 0 {
                vec![label]
            } else {
                Vec::new()
            }
        })
        .collect();
    let longest = labels
        .iter()
        .flatten()
        .map(|l| text::width(l, size, false))
        .fold(0.0, f64::max);
    Categories {
        turned: true,
        labels,
        height: longest + 8.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_pushed_apart_as_little_as_possible() {
        let table: [(&[f64], Option<&[f64]>); 8] = [
            (&[], Some(&[])),
            (&[50.0], Some(&[50.0])),                      // alone: stays
            (&[50.0, 50.0], Some(&[45.0, 55.0])),          // equal: share the displacement
            (&[80.0, 20.0], Some(&[80.0, 20.0])),          // far apart, order of the input kept
            (&[-9.0, 99.0], Some(&[5.0, 95.0])),           // held inside
            (&[0.0, 2.0, 50.0], Some(&[5.0, 15.0, 50.0])), // a block at the edge
            (&[f64::NAN, 50.0], Some(&[5.0, 50.0])),
            (&[1.0; 11], None), // 11 labels of 10 px in 100 px
        ];
        for (wanted, want) in table {
            assert_eq!(
                spread(wanted, 10.0, 0.0, 100.0).as_deref(),
                want,
                "{wanted:?}"
            );
        }
    }

    #[test]
    fn long_names_keep_both_ends() {
        let long = "keepalive/client=ureq,keep_alive=true,requests_per_iteration=100";
        let short = shorten(long, 100.0, 12.0, false);
        assert!(
            short.starts_with("keep") && short.ends_with("100"),
            "{short}"
        );
        assert_eq!(shorten("ureq", 100.0, 12.0, false), "ureq");
        assert_eq!(shorten("ureq", 0.0, 12.0, false), "…", "no room at all");
        assert!(
            text::width(
                &shorten(&"x".repeat(100_000), 90.0, 12.0, false),
                12.0,
                false
            ) <= 90.0
        );
    }

    #[test]
    fn names_break_at_their_joints() {
        assert_eq!(
            wrap("requests_per_iteration", 82.0, 12.0, false),
            ["requests_", "per_iteration"]
        );
        assert_eq!(
            wrap("100,000 1.5-2", 10.0, 12.0, false),
            ["100,000", "1.5-2"],
            "numbers stay whole"
        );
        assert_eq!(wrap("", 70.0, 12.0, false), [""]);
        let two = wrap_short("one two three four five six", 60.0, 2, 12.0, false);
        assert_eq!(two.len(), 2);
        assert!(two[1].contains('…'), "{two:?}");
    }

    #[test]
    fn categories_are_wrapped_then_turned_then_thinned() {
        let names = |n: &[&str]| n.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let flat = categories(&names(&["1", "10", "100"]), 60.0, 12.0);
        assert!(!flat.turned && flat.labels.iter().all(|l| l.len() == 1));
        let wrapped = categories(&names(&["keep_alive=true", "x"]), 70.0, 12.0);
        assert!(
            !wrapped.turned && wrapped.labels[0].len() > 1,
            "{wrapped:?}"
        );
        let turned = categories(&names(&["unbreakablename"; 4]), 30.0, 12.0);
        assert!(turned.turned && turned.labels.iter().all(|l| l.len() == 1));
        let apart = ["true", "false"].map(|v| format!("{0}={v},{0}=1", "a_long_knob".repeat(2)));
        let apart = categories(&apart, 30.0, 12.0);
        assert_ne!(
            apart.labels[0], apart.labels[1],
            "what differs is not shortened away"
        );
        let thinned = categories(&names(&["unbreakablename"; 9]), 6.0, 12.0);
        let shown: Vec<_> = thinned.labels.iter().map(|l| !l.is_empty()).collect();
        assert_eq!(
            shown,
            [true, false, false, true, false, false, true, false, false]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_two_labels_overlap(wanted in proptest::collection::vec(-50.0..250.0f64, 0..20), gap in 1.0..30.0f64) {
            match spread(&wanted, gap, 0.0, 200.0) {
                None => assert!(wanted.len() as f64 * gap > 200.0),
                Some(mut placed) => {
                    placed.sort_by(f64::total_cmp);
                    assert!(placed.windows(2).all(|w| w[1] - w[0] >= gap - 1e-6), "{placed:?}");
                    assert!(placed.iter().all(|p| *p >= gap / 2.0 - 1e-6 && *p <= 200.0 - gap / 2.0 + 1e-6), "{placed:?}");
                }
            }
        }

        #[test]
        fn a_shortened_name_fits(name in ".{0,60}", room in 12.0..200.0f64) {
            assert!(text::width(&shorten(&name, room, 12.0, false), 12.0, false) <= room);
        }
    }
}

//! The slips: each changes an input in place. All of them take any bytes, empty ones included.

use std::ops::Range;

use fastrand::Rng;

/// Numbers at which parsers trip: ends of integer types, signs, exponents, other notations.
const NUMBERS: [&str; 22] = [
    "0",
    "-0",
    "-1",
    "00",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e999",
    "-1e-999",
    "0x7fffffffffffffff",
];

/// Letters of one to four bytes, marks without width, and bytes that are no letters.
const LETTERS: [&[u8]; 14] = [
    "ü".as_bytes(),
    "€".as_bytes(),
    "𝄞".as_bytes(),
    "\u{301}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{feff}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{85}".as_bytes(),
    "\0".as_bytes(),
    b"\x1b",
    b"\x7f",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xff",
];

/// What opens a level in TOML or JSON, what closes it.
const NESTS: [(&str, &str); 5] = [
    ("[", "]"),
    ("{", "}"),
    ("{\"a\":", "}"),
    ("{a=", "}"),
    ("a.", ""),
];

/// One slip of a kind drawn at random.
pub fn any(rng: &mut Rng, input: &mut Vec<u8>, other: &[u8], words: &[Vec<u8>]) {
    match rng.u8(..14) {
        0 => flip_bits(rng, input),
        1 => set_byte(rng, input),
        2 => set_integer(rng, input),
        3 => remove(rng, input),
        4 => repeat(rng, input),
        5 => splice(rng, input, other),
        6 => input.truncate(rng.usize(..=input.len())),
        7 | 8 => swap_tokens(rng, input),
        9 => swap_lines(rng, input),
        10 => replace_number(rng, input),
        11 => insert_letter(rng, input),
        12 => nest(rng, input),
        _ => insert_word(rng, input, words),
    }
}

/// A stretch of the input: mostly short, at times any length.
fn stretch(rng: &mut Rng, length: usize) -> Range<usize> {
    let start = rng.usize(..=length);
    let rest = length - start;
    let most = if rng.u8(..4) == 0 { rest } else { rest.min(16) };
    start..start + rng.usize(..=most)
}

fn insert(rng: &mut Rng, input: &mut Vec<u8>, piece: &[u8]) {
    let at = rng.usize(..=input.len());
    input.splice(at..at, piece.iter().copied());
}

fn insert_letter(rng: &mut Rng, input: &mut Vec<u8>) {
    let letter = LETTERS[rng.usize(..LETTERS.len())];
    insert(rng, input, letter);
}

fn flip_bits(rng: &mut Rng, input: &mut [u8]) {
    for _ in 0..rng.u8(1..4) {
        if !input.is_empty() {
            input[rng.usize(..input.len())] ^= 1 << rng.u8(..8);
        }
    }
}

fn set_byte(rng: &mut Rng, input: &mut [u8]) {
    if !input.is_empty() {
        input[rng.usize(..input.len())] = rng.u8(..);
    }
}

/// An extreme at an aligned place, as binary messages carry it (lengths of netlink attributes).
fn set_integer(rng: &mut Rng, input: &mut [u8]) {
    let size = 1 << rng.u8(..4);
    let places = input.len() / size;
    if places == 0 {
        return;
    }
    let at = rng.usize(..places) * size;
    let extremes = [
        0,
        1,
        3,
        4,
        u64::MAX,
        u64::MAX >> 1,
        1 << 31,
        1 << 15,
        rng.u64(..64),
    ];
    let value = extremes[rng.usize(..extremes.len())];
    input[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

fn remove(rng: &mut Rng, input: &mut Vec<u8>) {
    let cut = stretch(rng, input.len());
    input.drain(cut);
}

/// A stretch again, once or (rarely) often.
fn repeat(rng: &mut Rng, input: &mut Vec<u8>) {
    let piece = input[stretch(rng, input.len())].to_vec();
    let often = if rng.u8(..16) == 0 {
        rng.usize(..200)
    } else {
        1
    };
    // A long piece is not repeated often: an input of megabytes tests patience only.
    let often = often.min(8192 / piece.len().max(1)).max(1);
    insert(rng, input, &piece.repeat(often));
}

/// A stretch of another sound input in place of one of this.
fn splice(rng: &mut Rng, input: &mut Vec<u8>, other: &[u8]) {
    let piece = stretch(rng, other.len());
    let place = stretch(rng, input.len());
    input.splice(place, other[piece].iter().copied());
}

/// Words (with their dots and dashes), texts in quotes, and single signs; blanks are none.
fn tokens(input: &[u8]) -> Vec<Range<usize>> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b) || b >= 0x80;
    let mut found = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let start = at;
        at += 1;
        if input[start].is_ascii_whitespace() {
            continue;
        }
        if input[start] == b'"' {
            let end = input[at..].iter().position(|b| *b == b'"' || *b == b'\n');
            at += end.map_or(0, |n| n + 1);
        } else if word(input[start]) {
            at += input[at..].iter().take_while(|b| word(**b)).count();
        }
        found.push(start..at);
    }
    found
}

fn swap_tokens(rng: &mut Rng, input: &mut Vec<u8>) {
    let tokens = tokens(input);
    if tokens.len() < 2 {
        return;
    }
    let (a, b) = (rng.usize(..tokens.len()), rng.usize(..tokens.len()));
    let (first, last) = (tokens[a.min(b)].clone(), tokens[a.max(b)].clone());
    if first == last {
        return;
    }
    let swapped = [
        &input[last.clone()],
        &input[first.end..last.start],
        &input[first.clone()],
    ]
    .concat();
    input.splice(first.start..last.end, swapped);
}

/// A line in another place, or there too.
fn swap_lines(rng: &mut Rng, input: &mut Vec<u8>) {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let from = rng.usize(..lines.len());
    let line = if rng.bool() {
        lines[from]
    } else {
        lines.remove(from)
    };
    lines.insert(rng.usize(..=lines.len()), line);
    *input = lines.concat();
}

fn replace_number(rng: &mut Rng, input: &mut Vec<u8>) {
    let number = NUMBERS[rng.usize(..NUMBERS.len())];
    let mut digits = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let length = input[at..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        if length > 0 {
            digits.push(at..at + length);
        }
        at += length.max(1);
    }
    if digits.is_empty() {
        return insert(rng, input, number.as_bytes());
    }
    let place = digits.swap_remove(rng.usize(..digits.len()));
    input.splice(place, number.bytes());
}

/// Brackets within brackets, closed or not; mostly few, at times thousands.
fn nest(rng: &mut Rng, input: &mut Vec<u8>) {
    let (open, close) = NESTS[rng.usize(..NESTS.len())];
    let depth = rng.usize(1..4) << rng.u8(..12).saturating_sub(1);
    if rng.bool() {
        insert(rng, input, open.repeat(depth).as_bytes());
    } else {
        let inner = stretch(rng, input.len());
        let nested = [
            open.repeat(depth).as_bytes(),
            &input[inner.clone()],
            close.repeat(depth).as_bytes(),
        ]
        .concat();
        input.splice(inner, nested);
    }
}

fn insert_word(rng: &mut Rng, input: &mut Vec<u8>, words: &[Vec<u8>]) {
    if words.is_empty() {
        return set_byte(rng, input);
    }
    let word = &words[rng.usize(..words.len())];
    let tokens = tokens(input);
    if rng.bool() && !tokens.is_empty() {
        input.splice(
            tokens[rng.usize(..tokens.len())].clone(),
            word.iter().copied(),
        );
    } else {
        insert(rng, input, word);
    }
}

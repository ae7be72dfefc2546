//! Damages captured inputs and feeds them to the parsers. Every input follows from a seed and its number.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use yieldpoint_sample::fuzz::PARSERS;

/// What became of the inputs of one parser.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub parser: &'static str,
    pub inputs: u64,
    /// inputs in which something was still found
    pub understood: u64,
    /// time of the slowest, preemption included
    pub slowest: Duration,
}

/// A file of `tests/data`.
pub fn captured(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("\"{path}\": {error}"))
}

/// Feeds that many inputs to the parsers in turn; the error tells how to make the input that did harm.
pub fn run(seed: u64, count: u64) -> Result<Vec<Summary>, String> {
    let corpus: Vec<_> = PARSERS.iter().map(|(name, _)| captured(name)).collect();
    let progress = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let work = scope.spawn(|| feed(&corpus, seed, count, &progress));
        let mut last = (0, Instant::now());
        while !work.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            let now = progress.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > HANGS {
                // A thread cannot be stopped: the process ends.
                eprintln!("input {now} of seed {seed} hangs");
                std::process::exit(3);
            }
        }
        work.join()
            .map_err(|_| "the mutator itself failed".to_owned())?
    })
}

/// A parser takes some µs; this only bounds a hang on a machine that is busy.
const HANGS: Duration = Duration::from_secs(120);

fn feed(
    corpus: &[Vec<u8>],
    seed: u64,
    count: u64,
    progress: &AtomicU64,
) -> Result<Vec<Summary>, String> {
    let mut summaries: Vec<_> = PARSERS
        .iter()
        .map(|(parser, _)| Summary {
            parser,
            ..Summary::default()
        })
        .collect();
    let mut bytes = Vec::new();
    for number in 0..count {
        progress.store(number, Ordering::Relaxed);
        // Below the number of parsers.
        let which = (number % PARSERS.len() as u64) as usize;
        mutate(&mut bytes, corpus, which, seed, number);
        let began = Instant::now();
        let found = catch_unwind(AssertUnwindSafe(|| PARSERS[which].1(&bytes))).map_err(|_| {
            let (parser, input) = (PARSERS[which].0, bytes.escape_ascii());
            format!("\"{parser}\" panicked at input {number} of seed {seed}: \"{input}\"")
        })?;
        let summary = &mut summaries[which];
        summary.inputs += 1;
        summary.understood += u64::from(found > 0);
        summary.slowest = summary.slowest.max(began.elapsed());
    }
    Ok(summaries)
}

/// Input `number` of a seed: a captured input, damaged one to four times.
pub fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], which: usize, seed: u64, number: u64) {
    let mut random = Random(seed.wrapping_add(number.wrapping_mul(0xd134_2543_de82_ef95)));
    bytes.clear();
    bytes.extend(&corpus[which]);
    for _ in 0..=random.below(4) {
        damage(bytes, corpus, &mut random);
    }
}

/// Numbers at and beyond the limits of what a parser may hold.
const EXTREMES: [&[u8]; 9] = [
    b"0",
    b"-1",
    b"",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"99999999999999999999999999999999999999999",
    b"ffffffff",
];
/// The same as 32 bits: lengths of messages, and one off.
const WORDS: [u32; 9] = [0, 1, 15, 16, 17, 87, 0x7fff_ffff, 0xffff_fff0, 0xffff_ffff];
/// Bounds what repetitions make of an input.
const LONGEST: usize = 64 * 1024;

fn damage(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let length = bytes.len();
    let (a, b) = (random.below(length + 1), random.below(length + 1));
    let range = a.min(b)..a.max(b);
    match random.below(10) {
        // a bit
        0 if a < length => bytes[a] ^= 1 << random.below(8),
        // a byte, of those that mean something to a parser
        1 if a < length => bytes[a] = b"\n\0 :\t)(-=/0f\xff"[random.below(13)],
        // the end is missing
        2 => bytes.truncate(a),
        // a part is missing
        3 => drop(bytes.drain(range)),
        // a part comes twice
        4 => {
            let part = bytes[range].to_vec();
            splice(bytes, b, 0, &part);
        }
        // a part of another file
        5 => {
            let other = &corpus[random.below(corpus.len())];
            let start = random.below(other.len() + 1);
            let end = start + random.below(other.len() - start + 1);
            splice(bytes, a, b.saturating_sub(a), &other[start..end]);
        }
        // an extreme number instead of one
        6 | 7 => {
            let digit = |b: &u8| b.is_ascii_digit();
            if let Some(start) = bytes[a..].iter().position(digit).map(|at| a + at) {
                let digits = bytes[start..].iter().take_while(|b| digit(b)).count();
                splice(bytes, start, digits, EXTREMES[random.below(EXTREMES.len())]);
            }
        }
        // the same in binary, where such words begin
        8 => {
            let word = WORDS[random.below(WORDS.len())].to_ne_bytes();
            splice(bytes, a / 4 * 4, 4, &word);
        }
        // noise
        _ => {
            let noise: Vec<u8> = (0..random.below(16)).map(|_| random.next() as u8).collect();
            splice(bytes, a, random.below(16), &noise);
        }
    }
    bytes.truncate(LONGEST);
}

/// Puts a part in the place of `length` bytes.
fn splice(bytes: &mut Vec<u8>, at: usize, length: usize, part: &[u8]) {
    let end = (at + length).min(bytes.len());
    bytes.splice(at..end, part.iter().copied());
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// 0 up to, but not including, a limit above 0. Its bias of 2^-40 or so does not matter here.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

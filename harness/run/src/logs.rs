//! What a program writes to stderr, kept up to a cap.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// Kept of one program of one trial; the rest is read and thrown away, so that the program never blocks.
const CAP: usize = 256 * 1024;

/// Of the end of a log, for the reason of a row: this many bytes at most.
const LAST_WORDS: usize = 2_000;
/// What Rust's runtime writes below the reason of a panic or an abort.
const BACKTRACE: [&str; 3] = ["stack backtrace:", "skipping backtrace", "note: "];

/// A log being written. The file is made with the first byte: most programs say nothing.
pub struct Log {
    copier: JoinHandle<Vec<u8>>,
}

/// Starts a log; the descriptor is the program's stderr.
pub fn start(path: PathBuf) -> io::Result<(Log, OwnedFd)> {
    let (from, to) = io::pipe()?;
    let copier = std::thread::Builder::new()
        .name("log".into())
        .spawn(move || copy(from, &path))?;
    Ok((Log { copier }, to.into()))
}

impl Log {
    /// Waits until every holder of the descriptor is gone, which the end of the lab guarantees, and returns
    /// the last line that says something, if there is one.
    pub fn finish(self) -> Option<String> {
        // A copier does not panic; if it did, only a log would be lost.
        last_words(&self.copier.join().unwrap_or_default())
    }
}

/// The last line of `end` that is neither blank nor part of a backtrace, whose frames are indented.
fn last_words(end: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(end);
    let says = |l: &&str| {
        !l.trim().is_empty()
            && !l.starts_with(char::is_whitespace)
            && !BACKTRACE.iter().any(|b| l.starts_with(b))
    };
    text.lines().rfind(says).map(|l| l.trim_end().to_owned())
}

/// Copies to the file, and returns the last bytes.
fn copy(mut from: PipeReader, path: &std::path::Path) -> Vec<u8> {
    let mut buffer = [0; 8192];
    let mut file: Option<File> = None;
    let mut kept = 0;
    let mut end: Vec<u8> = Vec::new();
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        end.extend_from_slice(&buffer[n.saturating_sub(LAST_WORDS)..n]);
        end.drain(..end.len().saturating_sub(LAST_WORDS));
        if kept == CAP {
            continue;
        }
        if file.is_none() {
            file = File::create(path).ok();
        }
        let Some(f) = &mut file else { continue };
        let take = n.min(CAP - kept);
        kept += take;
        // A full disk loses the log, not the trial.
        let _ = f.write_all(&buffer[..take]);
        if kept == CAP {
            let _ = f.write_all(b"\n[cut here: more than 256 KiB]\n");
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_last_line_that_says_something() {
        for (text, want) in [
            ("", None),
            ("\n \n", None),
            ("one", Some("one")),
            ("one\ntwo\n\n", Some("two")), // blank lines say nothing
            (
                "no memory\nstack backtrace:\n   0: main\nskipping backtrace printing\n",
                Some("no memory"),
            ), // where it happened is not what
        ] {
            assert_eq!(last_words(text.as_bytes()).as_deref(), want, "{text:?}");
        }
    }
}

//! What a program writes to stderr, kept up to a cap.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// Kept of one program of one trial; the rest is read and thrown away, so that the program never blocks.
const CAP: usize = 256 * 1024;

/// A log being written. The file is made with the first byte: most programs say nothing.
pub struct Log {
    copier: JoinHandle<()>,
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
    /// Waits until every holder of the descriptor is gone, which the end of the lab guarantees.
    pub fn finish(self) {
        // A copier does not panic; if it did, only a log would be lost.
        let _ = self.copier.join();
    }
}

fn copy(mut from: PipeReader, path: &std::path::Path) {
    let mut buffer = [0; 8192];
    let mut file: Option<File> = None;
    let mut kept = 0;
    while let Ok(n @ 1..) = from.read(&mut buffer) {
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
}

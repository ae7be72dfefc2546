//! A /proc file that is opened once and read again and again.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

/// An open /proc file.
///
/// An open descriptor goes on meaning the process (or network namespace) for which it was opened,
/// also after its pid was given to another. It also keeps a network namespace alive: drop
/// every reader before the lab goes down.
#[derive(Debug)]
pub(crate) struct ProcFile(OwnedFd);

impl ProcFile {
    /// Opens a file; the error names it.
    pub(crate) fn open(path: &str) -> io::Result<Self> {
        open(path, OFlags::RDONLY).map(Self)
    }

    /// Opens a file below an open directory.
    pub(crate) fn open_at(directory: &OwnedFd, path: &[u8]) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(
            directory,
            path,
            flags,
            Mode::empty(),
        )?))
    }

    /// The whole text of now, in `buffer`, which grows if it is too small and then keeps its size.
    ///
    /// One pread(2) at offset 0 makes the kernel write such a file anew and hand out all of it;
    /// reading it in parts could mix two moments.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        loop {
            let got = rustix::io::pread(&self.0, buffer.as_mut_slice(), 0)?;
            if got < buffer.len() {
                return Ok(&buffer[..got]);
            }
            if buffer.len() >= LARGEST {
                return Err(io::Error::other(format!(
                    "a /proc file is longer than {LARGEST} bytes"
                )));
            }
            let wider = (buffer.len() * 2).clamp(SMALLEST, LARGEST);
            buffer.resize(wider, 0);
        }
    }
}

/// Enough for every file that is read here on a machine with a hundred CPUs.
const SMALLEST: usize = 64 * 1024;
/// A bound, so that no mistake eats the memory.
const LARGEST: usize = 16 * 1024 * 1024;

/// Opens a path; the error names it.
pub(crate) fn open(path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("cannot open \"{path}\": {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_to_the_file_and_a_second_read_is_fresh() {
        let file = ProcFile::open("/proc/self/status").unwrap();
        let mut buffer = Vec::new();
        let first = file.read(&mut buffer).unwrap().to_vec();
        assert!(first.starts_with(b"Name:"));
        assert!(first.ends_with(b"\n"), "the whole file came");
        let size = buffer.len();
        assert!(file.read(&mut buffer).unwrap().starts_with(b"Name:"));
        assert_eq!(buffer.len(), size);
    }

    #[test]
    fn an_error_names_the_file() {
        let error = ProcFile::open("/proc/self/no-such-file").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("\"/proc/self/no-such-file\""));
    }
}

//! The threads of a process: /proc/<pid>/task, and the files in it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, RawDir};

use crate::proc_file::ProcFile;
use crate::stack_path::StackPath;
use crate::text::number;

/// An open directory of threads.
#[derive(Debug)]
pub(crate) struct TaskDir(OwnedFd);

impl TaskDir {
    /// Opens that of a process, whose open directory is /proc/<pid>.
    pub(crate) fn open(process: &OwnedFd) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(
            process,
            c"task",
            flags,
            Mode::empty(),
        )?))
    }

    /// Calls `each` with every thread. One that starts or ends meanwhile may be missing.
    pub(crate) fn for_each(&self, mut each: impl FnMut(u32)) -> io::Result<()> {
        let mut space = [MaybeUninit::<u8>::uninit(); 8192];
        let mut entries = RawDir::new(&self.0, &mut space);
        while let Some(entry) = entries.next() {
            // "." and ".." are the only names that are not numbers.
            let tid = number(entry?.file_name().to_bytes());
            if let Some(tid) = tid.and_then(|tid| u32::try_from(tid).ok()) {
                each(tid);
            }
        }
        Ok(())
    }

    /// Opens a file of a thread.
    pub(crate) fn file(&self, tid: u32, name: &str) -> io::Result<ProcFile> {
        let path = StackPath::new().number(tid).text("/").text(name);
        ProcFile::open_at(&self.0, path.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc_file::open;

    #[test]
    fn this_thread_is_among_them_and_has_files() {
        let process = open("/proc/self", OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
        let tasks = TaskDir::open(&process).unwrap();
        let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let mut found = false;
        tasks.for_each(|tid| found |= tid == own).unwrap();
        assert!(found);
        let mut buffer = Vec::new();
        let file = tasks.file(own, "status").unwrap();
        let text = file.read(&mut buffer).unwrap();
        let line = format!("\nPid:\t{own}\n");
        assert!(String::from_utf8_lossy(text).contains(&line));
    }
}

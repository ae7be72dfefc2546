//! A folder in memory. Read once at the start, so that no request touches a disk or a path.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Greatest number of files.
pub const MOST_FILES: usize = 10_000;
/// Greatest sum of their lengths, bytes.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// Greatest depth of folders.
const MOST_DEPTH: usize = 32;

/// One file.
#[derive(Debug)]
pub struct File {
    /// from the folder, with a leading "/"
    pub path: Vec<u8>,
    pub bytes: Arc<[u8]>,
    /// seconds since 1970
    pub modified_s: u64,
}

/// Why a folder cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error(
        "knob \"files\": cannot read \"{0}\": {1}; name a folder that the target may read, best by its absolute path"
    )]
    Unreadable(PathBuf, std::io::Error),
    #[error(
        "knob \"files\": \"{0}\" has more than {MOST_FILES} files, {mib} MiB or {MOST_DEPTH} levels, which would not fit into memory; name a smaller folder", mib = MOST_BYTES / 1024 / 1024
    )]
    TooLarge(PathBuf),
    #[error("knob \"files\": \"{0}\" holds no file; name a folder with at least one")]
    Empty(PathBuf),
}

/// Reads every regular file below `folder`. Symbolic links are not followed: they could lead out
/// of it, or in circles.
pub fn load(folder: &Path) -> Result<Vec<File>, FilesError> {
    let mut files = Vec::new();
    let mut bytes = 0;
    let mut todo = vec![(folder.to_owned(), Vec::new(), 0)];
    while let Some((here, prefix, depth)) = todo.pop() {
        let unreadable = |e| FilesError::Unreadable(here.clone(), e);
        for entry in std::fs::read_dir(&here).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let file = entry.path();
            let unreadable = |e| FilesError::Unreadable(file.clone(), e);
            let mut path: Vec<u8> = prefix.clone();
            path.push(b'/');
            path.extend_from_slice(entry.file_name().as_bytes());
            // Of the entry itself, not of what a link points to.
            let meta = entry.metadata().map_err(unreadable)?;
            if meta.is_dir() {
                if depth + 1 >= MOST_DEPTH {
                    return Err(FilesError::TooLarge(folder.to_owned()));
                }
                todo.push((file, path, depth + 1));
            } else if meta.is_file() {
                bytes += meta.len();
                if bytes > MOST_BYTES || files.len() >= MOST_FILES {
                    return Err(FilesError::TooLarge(folder.to_owned()));
                }
                let modified = meta.modified().map_err(unreadable)?;
                files.push(File {
                    bytes: std::fs::read(&file).map_err(unreadable)?.into(),
                    path,
                    modified_s: modified
                        .duration_since(UNIX_EPOCH)
                        .map_or(0, |d| d.as_secs()),
                });
            }
        }
    }
    if files.is_empty() {
        return Err(FilesError::Empty(folder.to_owned()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_with_what_is_below_and_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let www = dir.path().join("www");
        std::fs::create_dir_all(www.join("sub/deep")).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::fs::write(www.join("index.html"), "i").unwrap();
        std::fs::write(www.join("sub/deep/a.txt"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), www.join("link")).unwrap();
        std::os::unix::fs::symlink(&www, www.join("circle")).unwrap();
        let mut paths: Vec<_> = load(&www).unwrap().into_iter().map(|f| f.path).collect();
        paths.sort();
        assert_eq!(
            paths,
            [b"/index.html".to_vec(), b"/sub/deep/a.txt".to_vec()]
        );
    }

    #[test]
    fn what_cannot_be_served_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let e = load(dir.path()).unwrap_err().to_string();
        assert!(e.contains("holds no file"), "{e}");
        let e = load(&dir.path().join("none")).unwrap_err().to_string();
        assert!(e.contains("none\"") && e.contains("absolute path"), "{e}");
        // A hole: large without taking room.
        let large = std::fs::File::create(dir.path().join("large")).unwrap();
        large.set_len(MOST_BYTES + 1).unwrap();
        let e = load(dir.path()).unwrap_err().to_string();
        assert!(e.contains("more than 10000 files, 256 MiB"), "{e}");
    }
}

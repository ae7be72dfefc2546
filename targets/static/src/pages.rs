//! What can be asked for, by path. Pure, but for the folder that it is made from.
//!
//! A path that was asked for is compared with those that were loaded, and never given to the
//! kernel: to leave the folder is impossible by construction.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::files::{self, FilesError};
use crate::media;
use crate::select::Validators;

/// One thing that can be asked for.
#[derive(Debug)]
pub struct Resource {
    pub body: Arc<[u8]>,
    pub content_type: &'static str,
    pub validators: Option<Validators>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// the number of a resource
    Resource(usize),
    /// the number of a folder, whose path lacks its "/"
    Folder(usize),
    Nothing,
}

/// All of it; shared by all workers.
#[derive(Debug, Default)]
pub struct Pages {
    pub resources: Vec<Resource>,
    /// paths of folders, with "/" at the end
    pub folders: Vec<Vec<u8>>,
    /// no map: every path leads to the one resource
    by_path: Option<HashMap<Vec<u8>, Place>>,
}

impl Pages {
    /// One page of `bytes` bytes of HTML at every path.
    pub fn one(bytes: usize) -> Self {
        let line = b"<p>yieldpoint</p>\n";
        let mut page = line.repeat(bytes.div_ceil(line.len()));
        page.truncate(bytes);
        Self {
            resources: vec![Resource {
                body: page.into(),
                content_type: "text/html",
                validators: None,
            }],
            ..Self::default()
        }
    }

    /// The files of a folder.
    pub fn of_folder(folder: &Path) -> Result<Self, FilesError> {
        let (mut resources, mut folders, mut by_path) = (vec![], vec![], HashMap::new());
        for file in files::load(folder)? {
            let place = Place::Resource(resources.len());
            resources.push(Resource {
                content_type: media::of(&file.path),
                validators: Some(Validators::new(file.modified_s, file.bytes.len())),
                body: file.bytes,
            });
            if let Some(folder) = file.path.strip_suffix(b"index.html")
                && folder.ends_with(b"/")
            {
                by_path.insert(folder.to_vec(), place);
                if folder.len() > 1 {
                    by_path.insert(
                        folder[..folder.len() - 1].to_vec(),
                        Place::Folder(folders.len()),
                    );
                    folders.push(folder.to_vec());
                }
            }
            by_path.insert(file.path, place);
        }
        Ok(Self {
            resources,
            folders,
            by_path: Some(by_path),
        })
    }

    /// What the target of a request line leads to.
    pub fn find(&self, target: &[u8]) -> Place {
        let Some(by_path) = &self.by_path else {
            return Place::Resource(0);
        };
        let path = path_of(target);
        let found = match decoded(path) {
            None => by_path.get(path),
            Some(decoded) => by_path.get(&decoded),
        };
        found.copied().unwrap_or(Place::Nothing)
    }
}

/// Without scheme and authority (RFC 9112, 3.2.2), query and fragment.
fn path_of(target: &[u8]) -> &[u8] {
    let mut path = target;
    if path.len() > 7 && path[..7].eq_ignore_ascii_case(b"http://") {
        let rest = &path[7..];
        let slash = rest.iter().position(|b| *b == b'/');
        path = slash.map_or(b"/", |at| &rest[at..]);
    }
    let end = path.iter().position(|b| *b == b'?' || *b == b'#');
    &path[..end.unwrap_or(path.len())]
}

/// With its percent signs resolved; `None`: there is none. A wrong escape stays as it is.
fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    if !path.contains(&b'%') {
        return None;
    }
    let hex = |b: Option<&u8>| (*b? as char).to_digit(16);
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while at < path.len() {
        match (path[at], hex(path.get(at + 1)), hex(path.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                // Two hexadecimal digits fit into a byte.
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_what_was_loaded_or_to_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let www = dir.path().join("www");
        std::fs::create_dir_all(www.join("sub")).unwrap();
        std::fs::write(dir.path().join("secret.txt"), "s").unwrap();
        for file in ["index.html", "a b.css", "sub/index.html", "notindex.html"] {
            std::fs::write(www.join(file), file).unwrap();
        }
        let pages = Pages::of_folder(&www).unwrap();
        // each row: what is asked, the file that is meant
        let table = [
            ("/", Some("index.html")),
            ("/index.html", Some("index.html")),
            ("/?q=/sub/", Some("index.html")),
            ("/a%20b.css", Some("a b.css")),
            ("/%61%20b%2Ecss?x", Some("a b.css")),
            ("http://h:80/sub/", Some("sub/index.html")),
            ("HTTP://h", Some("index.html")),
            ("/a%2", None), // half an escape
            ("/notindex.html", Some("notindex.html")),
            ("/not", None),
            ("", None),
            ("*", None),
            // ways out that are none
            ("/../secret.txt", None),
            ("/sub/../../secret.txt", None),
            ("/%2e%2e/secret.txt", None),
            ("/..%2fsecret.txt", None),
            ("//etc/passwd", None),
            ("/index.html%00", None),
        ];
        for (target, want) in table {
            let got = match pages.find(target.as_bytes()) {
                Place::Resource(i) => Some(&*pages.resources[i].body),
                _ => None,
            };
            assert_eq!(got, want.map(str::as_bytes), "{target}");
        }
        let Place::Folder(i) = pages.find(b"/sub") else {
            panic!("a folder without its slash");
        };
        assert_eq!(pages.folders[i], b"/sub/");
        assert_eq!(Pages::one(5).find(b"/anything"), Place::Resource(0));
    }
}

//! The text of responses. Pure.

use std::sync::Arc;

use crate::date;
use crate::pages::Resource;
use crate::status::{STATUSES, index_of};

/// Bodies up to this length follow their head in one piece of memory, so that a response is one plain send.
pub const IN_ONE_PIECE: usize = 16 * 1024;

/// One response in memory.
pub struct Template {
    pub status_index: usize,
    /// head and, where it is short, body
    pub first: Vec<u8>,
    pub head_bytes: usize,
    date_at: usize,
    /// the second whose date is written in it
    date_s: u64,
    pub body: Arc<[u8]>,
    /// where the body goes on behind `first`; its length where nothing is left
    pub body_from: usize,
}

impl Template {
    /// Not in all of them once a second: of ten thousand files few are asked for.
    pub fn set_date(&mut self, unix_s: u64) {
        if self.date_s != unix_s {
            self.date_s = unix_s;
            let at = self.date_at..self.date_at + date::HTTP_LENGTH;
            self.first[at].copy_from_slice(date::http(unix_s).as_bytes());
        }
    }
}

pub fn page_of_status(status: u16) -> Arc<[u8]> {
    let phrase = STATUSES[index_of(status)].1;
    let page = format!("<html><body><h1>{status} {phrase}</h1></body></html>\n");
    page.into_bytes().into()
}

pub fn headers_of(r: &Resource) -> String {
    // A page that has no validators has no ranges to speak of either: its head is that of
    // nginx's `return 200`.
    let ranges = if r.validators.is_some() {
        "Accept-Ranges: bytes\r\n"
    } else {
        ""
    };
    format!(
        "Content-Type: {}\r\n{}{ranges}",
        r.content_type,
        validators_of(r)
    )
}

pub fn validators_of(r: &Resource) -> String {
    r.validators.as_ref().map_or(String::new(), |v| {
        let modified = date::http(v.modified_s);
        format!("Last-Modified: {modified}\r\nETag: {}\r\n", v.etag)
    })
}

/// A path as a header may carry it.
pub fn escaped(path: &[u8]) -> String {
    let mut out = String::new();
    for &b in path {
        if b.is_ascii_alphanumeric() || b"/-._~".contains(&b) {
            out.push(b as char);
        } else {
            out += &format!("%{b:02X}");
        }
    }
    out
}

/// A head and where its date stands.
pub fn head(
    status: u16,
    headers: &str,
    length: Option<usize>,
    closes: bool,
    unix_s: u64,
) -> (Vec<u8>, usize) {
    let phrase = STATUSES[index_of(status)].1;
    let mut text = format!(
        "HTTP/1.1 {status} {phrase}\r\nServer: yieldpoint/{}\r\nDate: ",
        env!("CARGO_PKG_VERSION")
    );
    let date_at = text.len();
    let length = length.map_or(String::new(), |n| format!("Content-Length: {n}\r\n"));
    let connection = if closes { "close" } else { "keep-alive" };
    text += &date::http(unix_s);
    text += &format!("\r\n{headers}{length}Connection: {connection}\r\n\r\n");
    (text.into_bytes(), date_at)
}

pub fn template(status: u16, headers: &str, body: &Arc<[u8]>, closes: bool) -> Template {
    let (mut first, date_at) = head(status, headers, Some(body.len()), closes, 0);
    let head_bytes = first.len();
    let inline = body.len() <= IN_ONE_PIECE;
    if inline {
        first.extend_from_slice(body);
    }
    Template {
        status_index: index_of(status),
        first,
        head_bytes,
        date_at,
        date_s: 0,
        body: body.clone(),
        body_from: if inline { body.len() } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_forge_a_header() {
        assert_eq!(escaped(b"/a b\r\n/"), "/a%20b%0D%0A/");
    }
}

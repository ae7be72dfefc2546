//! Responses, built once and patched with the date once a second. Pure.

use std::sync::Arc;

use crate::date;

/// Bodies up to this length follow their head in one piece of memory, so that a response is one plain send.
const IN_ONE_PIECE: usize = 16 * 1024;

/// The kinds of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// the page
    Page,
    /// the page's head only
    PageHead,
    BadRequest,
    NotAllowed,
    BodyTooLarge,
    ExpectationFailed,
    HeadTooLarge,
    NotImplemented,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Page,
        Self::PageHead,
        Self::BadRequest,
        Self::NotAllowed,
        Self::BodyTooLarge,
        Self::ExpectationFailed,
        Self::HeadTooLarge,
        Self::NotImplemented,
    ];

    /// Its place among [`STATUSES`], and so among the counters.
    pub fn status_index(self) -> usize {
        match self {
            Self::Page | Self::PageHead => 0,
            Self::BadRequest => 1,
            Self::NotAllowed => 2,
            Self::BodyTooLarge => 3,
            Self::ExpectationFailed => 4,
            Self::HeadTooLarge => 5,
            Self::NotImplemented => 6,
        }
    }
    /// Its status code.
    pub fn status(self) -> u16 {
        STATUSES[self.status_index()].0
    }
}

/// Every status that is ever answered, with its phrase.
pub const STATUSES: [(u16, &str); 7] = [
    (200, "OK"),
    (400, "Bad Request"),
    (405, "Not Allowed"),
    (413, "Request Entity Too Large"),
    (417, "Expectation Failed"),
    (431, "Request Header Fields Too Large"),
    (501, "Not Implemented"),
];

/// One response in memory.
struct Template {
    /// head and, where it is short, body
    first: Vec<u8>,
    date_at: usize,
    /// where the body goes on in the page; its length where nothing is left
    page_from: usize,
}

/// All responses of one worker.
pub struct Replies {
    templates: Vec<Template>,
    page: Arc<[u8]>,
    unix_s: u64,
}

/// The page: `bytes` of HTML, shared by all workers.
pub fn page(bytes: usize) -> Arc<[u8]> {
    let line = b"<p>yieldpoint</p>\n";
    let mut page = line.repeat(bytes.div_ceil(line.len()));
    page.truncate(bytes);
    page.into()
}

impl Replies {
    /// Builds every response.
    pub fn new(page: Arc<[u8]>) -> Self {
        let both = |kind| [template(kind, &page, false), template(kind, &page, true)];
        Self {
            templates: Kind::ALL.into_iter().flat_map(both).collect(),
            page,
            unix_s: 0,
        }
    }

    /// Writes the date of this second into every head.
    pub fn refresh(&mut self, unix_s: u64) {
        if unix_s == self.unix_s {
            return;
        }
        self.unix_s = unix_s;
        let date = date::http(unix_s);
        for t in &mut self.templates {
            t.first[t.date_at..t.date_at + date::HTTP_LENGTH].copy_from_slice(date.as_bytes());
        }
    }

    /// The second whose date the heads carry, since 1970.
    pub fn unix_s(&self) -> u64 {
        self.unix_s
    }

    /// The two pieces of a response; the second may be empty. `closes` is what its
    /// Connection header says.
    pub fn pieces(&self, kind: Kind, closes: bool) -> (&[u8], &[u8]) {
        // The order of `Kind::ALL` is that of the variants, each with its two heads.
        let t = &self.templates[kind as usize * 2 + usize::from(closes)];
        (&t.first, &self.page[t.page_from..])
    }

    /// Length of the page.
    pub fn page_bytes(&self) -> usize {
        self.page.len()
    }

    /// The end of the page.
    pub fn page_from(&self, at: usize) -> &[u8] {
        &self.page[at..]
    }

    /// Bytes of the body that a kind carries, for the access log.
    pub fn body_bytes(&self, kind: Kind) -> usize {
        match kind {
            Kind::Page => self.page.len(),
            Kind::PageHead => 0,
            _ => error_page(kind).len(),
        }
    }
}

fn error_page(kind: Kind) -> String {
    let (status, phrase) = STATUSES[kind.status_index()];
    format!("<html><body><h1>{status} {phrase}</h1></body></html>\n")
}

fn template(kind: Kind, page: &[u8], closes: bool) -> Template {
    let (status, phrase) = STATUSES[kind.status_index()];
    let error = error_page(kind);
    let body = match kind {
        Kind::Page | Kind::PageHead => page,
        _ => error.as_bytes(),
    };
    let mut first = format!(
        "HTTP/1.1 {status} {phrase}\r\nServer: yieldpoint/{}\r\nDate: ",
        env!("CARGO_PKG_VERSION")
    )
    .into_bytes();
    let date_at = first.len();
    first.extend_from_slice(date::http(0).as_bytes());
    let allow = if kind == Kind::NotAllowed {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let connection = if closes { "close" } else { "keep-alive" };
    let end = format!(
        "\r\nContent-Type: text/html\r\nContent-Length: {}\r\n{allow}Connection: {connection}\r\n\r\n",
        body.len()
    );
    first.extend_from_slice(end.as_bytes());
    let apart = kind == Kind::Page && page.len() > IN_ONE_PIECE;
    if kind != Kind::PageHead && !apart {
        first.extend_from_slice(body);
    }
    Template {
        first,
        date_at,
        page_from: if apart { 0 } else { page.len() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(replies: &Replies, kind: Kind, closes: bool) -> String {
        let (first, rest) = replies.pieces(kind, closes);
        String::from_utf8([first, rest].concat()).unwrap()
    }

    #[test]
    fn every_response_has_the_head_of_its_kind() {
        for bytes in [0, 612, IN_ONE_PIECE, IN_ONE_PIECE + 1] {
            let mut replies = Replies::new(page(bytes));
            replies.refresh(784_111_777);
            for kind in Kind::ALL {
                for closes in [false, true] {
                    let text = whole(&replies, kind, closes);
                    let (head, body) = text.split_once("\r\n\r\n").unwrap();
                    let says = |line: String| assert!(head.contains(&line), "{line} in {head}");
                    says(format!("HTTP/1.1 {} ", kind.status()));
                    says("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".into());
                    says(format!(
                        "Connection: {}",
                        if closes { "close" } else { "keep-alive" }
                    ));
                    let length = if kind == Kind::PageHead {
                        bytes
                    } else {
                        body.len()
                    };
                    says(format!("Content-Length: {length}\r\n"));
                    assert_eq!(body.len(), replies.body_bytes(kind), "{kind:?}");
                }
            }
            assert_eq!(replies.body_bytes(Kind::Page), bytes);
        }
    }

    #[test]
    fn a_long_page_is_shared_and_not_copied() {
        let replies = Replies::new(page(10_000_000));
        let (first, rest) = replies.pieces(Kind::Page, true);
        assert!(first.len() < 1000);
        assert_eq!(rest.len(), 10_000_000);
    }
}

//! Responses: those that are the same for many are built once and get their date once a second,
//! the others (a range, "not modified") are made when they are asked for. Pure.

use std::ops::Range;
use std::sync::Arc;

use crate::http::{Head, Method};
use crate::outgoing::Message;
use crate::pages::{Pages, Place};
use crate::select::{Selected, select};
use crate::status::{Kind, index_of};
use crate::template::{
    Template, escaped, head, headers_of, page_of_status, template, validators_of,
};

/// A response that was chosen.
#[derive(Debug)]
pub enum Reply {
    /// the number of a template; to HEAD without its body
    Ready { template: usize, head_only: bool },
    /// for this request alone
    Made(Box<Made>),
}

/// A response for one request.
#[derive(Debug)]
pub struct Made {
    status_index: usize,
    message: Message,
}

/// All responses of one worker.
pub struct Replies {
    pages: Arc<Pages>,
    templates: Vec<Template>,
    unix_s: u64,
}

/// Templates come in pairs, "keep-alive" and "close": first the kinds, then the resources, then
/// the folders.
fn place(nth: usize, closes: bool) -> usize {
    nth * 2 + usize::from(closes)
}

impl Replies {
    /// Builds every response.
    pub fn new(pages: Arc<Pages>) -> Self {
        let mut templates = Vec::new();
        let mut both = |status, headers: &str, body: &Arc<[u8]>| {
            for closes in [false, true] {
                templates.push(template(status, headers, body, closes));
            }
        };
        for kind in Kind::ALL {
            let allow = match kind {
                Kind::NotAllowed => "Allow: GET, HEAD, POST\r\n",
                _ => "",
            };
            let headers = format!("Content-Type: text/html\r\n{allow}");
            both(kind.status(), &headers, &page_of_status(kind.status()));
        }
        for r in &pages.resources {
            both(200, &headers_of(r), &r.body);
        }
        for folder in &pages.folders {
            let headers = format!(
                "Content-Type: text/html\r\nLocation: {}\r\n",
                escaped(folder)
            );
            both(301, &headers, &page_of_status(301));
        }
        Self {
            pages,
            templates,
            unix_s: 0,
        }
    }

    /// The wall clock: every response that leaves from now on carries this second.
    pub fn set_clock(&mut self, unix_s: u64) {
        self.unix_s = unix_s;
    }
    /// The second whose date the heads carry, since 1970.
    pub fn unix_s(&self) -> u64 {
        self.unix_s
    }

    /// The response to a request that went wrong.
    pub fn failure(&self, kind: Kind, closes: bool, head_only: bool) -> Reply {
        // The order of `Kind::ALL` is that of the variants.
        Reply::Ready {
            template: place(kind as usize, closes),
            head_only,
        }
    }

    /// The response to a request; `closes` is what its Connection header says.
    pub fn answer(&self, head: &Head<'_>, closes: bool) -> Reply {
        let head_only = head.method == Method::Head;
        if head.method == Method::Other {
            return self.failure(Kind::NotAllowed, closes, false);
        }
        let ready = |nth| Reply::Ready {
            template: place(Kind::ALL.len() + nth, closes),
            head_only,
        };
        let nth = match self.pages.find(head.target) {
            Place::Resource(nth) => nth,
            Place::Folder(nth) => return ready(self.pages.resources.len() + nth),
            Place::Nothing => return self.failure(Kind::NotFound, closes, head_only),
        };
        if head.is_plain() || head.method == Method::Post {
            return ready(nth);
        }
        let r = &self.pages.resources[nth];
        let length = r.body.len();
        match select(head, length, r.validators.as_ref()) {
            Selected::Whole => ready(nth),
            // A range of HEAD is none (RFC 9110, 14.2).
            Selected::Part(_) | Selected::Unsatisfiable if head_only => ready(nth),
            Selected::Part(part) => {
                let range = format!(
                    "{}Content-Range: bytes {}-{}/{length}\r\n",
                    headers_of(r),
                    part.start,
                    part.end - 1
                );
                self.made(206, &range, &r.body, part, closes)
            }
            Selected::Unsatisfiable => {
                let headers =
                    format!("Content-Type: text/html\r\nContent-Range: bytes */{length}\r\n");
                let page = page_of_status(416);
                self.made(416, &headers, &page, 0..page.len(), closes)
            }
            Selected::NotModified => self.made(304, &validators_of(r), &r.body, 0..0, closes),
        }
    }

    fn made(
        &self,
        status: u16,
        headers: &str,
        body: &Arc<[u8]>,
        part: Range<usize>,
        closes: bool,
    ) -> Reply {
        // 304 tells of a body that it does not have (RFC 9110, 8.6): no length is better than a wrong one.
        let length = (status != 304).then_some(part.len());
        Reply::Made(Box::new(Made {
            status_index: index_of(status),
            message: Message {
                head: head(status, headers, length, closes, self.unix_s).0,
                body: body.clone(),
                part,
            },
        }))
    }

    /// The two pieces of a response; the second may be empty.
    pub fn pieces<'a>(&'a mut self, reply: &'a Reply) -> (&'a [u8], &'a [u8]) {
        match reply {
            Reply::Ready {
                template,
                head_only,
            } => {
                let t = &mut self.templates[*template];
                t.set_date(self.unix_s);
                if *head_only {
                    (&t.first[..t.head_bytes], &[])
                } else {
                    (&t.first, &t.body[t.body_from..])
                }
            }
            Reply::Made(made) => made.message.pieces(0..made.message.len()),
        }
    }

    /// The same as a message of its own, for a response that does not leave at once.
    pub fn message(&mut self, reply: Reply) -> Message {
        match reply {
            Reply::Ready {
                template,
                head_only,
            } => {
                let t = &mut self.templates[template];
                t.set_date(self.unix_s);
                Message {
                    head: t.first[..t.head_bytes].to_vec(),
                    part: 0..if head_only { 0 } else { t.body.len() },
                    body: t.body.clone(),
                }
            }
            Reply::Made(made) => made.message,
        }
    }

    /// The place of its status among [`STATUSES`].
    pub fn status_index(&self, reply: &Reply) -> usize {
        match reply {
            Reply::Ready { template, .. } => self.templates[*template].status_index,
            Reply::Made(made) => made.status_index,
        }
    }

    /// Bytes of the body that it carries, for the access log.
    pub fn body_bytes(&self, reply: &Reply) -> usize {
        match reply {
            Reply::Ready {
                head_only: true, ..
            } => 0,
            Reply::Ready { template, .. } => self.templates[*template].body.len(),
            Reply::Made(made) => made.message.part.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};
    use crate::pages::Resource;
    use crate::select::Validators;
    use crate::status::STATUSES;
    use crate::template::IN_ONE_PIECE;

    fn whole(replies: &mut Replies, reply: Reply) -> String {
        let (first, rest) = replies.pieces(&reply);
        let text = String::from_utf8([first, rest].concat()).unwrap();
        let status = STATUSES[replies.status_index(&reply)].0;
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        let body_bytes = replies.body_bytes(&reply);
        let message = replies.message(reply);
        let (head, body) = message.pieces(0..message.len());
        assert_eq!([head, body].concat(), text.as_bytes(), "both forms are one");
        assert_eq!(body.len(), body_bytes);
        text
    }

    fn asked(replies: &mut Replies, request: &str, closes: bool) -> String {
        let Parsed::Head(head) = parse(request.as_bytes(), 0) else {
            panic!("a whole head: {request}");
        };
        let reply = replies.answer(&head, closes);
        whole(replies, reply)
    }

    #[test]
    fn every_response_has_a_right_head() {
        for bytes in [0, 612, IN_ONE_PIECE, IN_ONE_PIECE + 1] {
            let mut replies = Replies::new(Arc::new(Pages::one(bytes)));
            replies.set_clock(784_111_777);
            for closes in [false, true] {
                let mut texts = vec![
                    (200, asked(&mut replies, "GET / HTTP/1.0\r\n\r\n", closes)),
                    (200, asked(&mut replies, "POST /x HTTP/1.0\r\n\r\n", closes)),
                ];
                for kind in Kind::ALL {
                    let reply = replies.failure(kind, closes, false);
                    texts.push((kind.status(), whole(&mut replies, reply)));
                }
                for (status, text) in texts {
                    let (head, body) = text.split_once("\r\n\r\n").unwrap();
                    let says = |line: String| assert!(head.contains(&line), "{line} in {head}");
                    says(format!("HTTP/1.1 {status} "));
                    says("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n".into());
                    says(format!("\r\nContent-Length: {}\r\n", body.len()));
                    let connection = if closes { "close" } else { "keep-alive" };
                    says(format!("\r\nConnection: {connection}"));
                    assert_eq!(status == 200, body.len() == bytes, "{text:.300}");
                }
            }
        }
    }

    #[test]
    fn a_file_has_validators_and_parts() {
        let mut pages = Pages::one(0);
        pages.resources[0] = Resource {
            body: Arc::from(&b"0123456789"[..]),
            content_type: "text/plain",
            validators: Some(Validators::new(784_111_777, 10)),
        };
        let mut replies = Replies::new(Arc::new(pages));
        // each row: method, headers, what the response must hold, how it must end
        let table = [
            (
                "GET",
                "",
                "200 OK|Accept-Ranges: bytes|Content-Length: 10|Content-Type: text/plain|Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT|ETag: \"2ebc98a1-a\"",
                "\r\n\r\n0123456789",
            ),
            ("HEAD", "", "200 OK|Content-Length: 10|ETag: ", "\r\n\r\n"),
            (
                "GET",
                "Range: bytes=2-4\r\n",
                "206 Partial|Content-Range: bytes 2-4/10|Content-Length: 3|ETag: ",
                "\r\n\r\n234",
            ),
            (
                "HEAD",
                "Range: bytes=2-4\r\n",
                "200 OK|Content-Length: 10",
                "\r\n\r\n",
            ),
            (
                "POST",
                "Range: bytes=2-4\r\n",
                "200 OK|Content-Length: 10",
                "\r\n\r\n0123456789",
            ),
            (
                "GET",
                "Range: bytes=10-\r\n",
                "416 |Content-Range: bytes */10",
                "</html>\n",
            ),
            (
                "GET",
                "If-None-Match: *\r\n",
                "304 Not|ETag: |Last-Modified: ",
                "\r\n\r\n",
            ),
            ("HEAD", "If-None-Match: *\r\n", "304 Not|ETag: ", "\r\n\r\n"),
            ("PUT", "", "405 |Allow: GET, HEAD, POST", "</html>\n"),
        ];
        for (method, headers, holds, end) in table {
            let text = asked(
                &mut replies,
                &format!("{method} / HTTP/1.1\r\nHost: x\r\n{headers}\r\n"),
                false,
            );
            for part in holds.split('|') {
                assert!(text.contains(part), "{part} in {text}");
            }
            assert!(text.ends_with(end), "{text}");
            assert_eq!(text.contains("304"), !text.contains("Content-Length"));
        }
    }

    #[test]
    fn a_long_page_is_shared_and_not_copied() {
        let pages = Arc::new(Pages::one(10_000_000));
        let mut replies = Replies::new(pages.clone());
        let (template, head_only) = (place(Kind::ALL.len(), true), false);
        let reply = Reply::Ready {
            template,
            head_only,
        };
        let (first, rest) = replies.pieces(&reply);
        assert!(first.len() < 1000);
        assert!(std::ptr::eq(rest, &*pages.resources[0].body));
    }
}

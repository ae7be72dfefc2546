//! The head of a request, from bytes. Pure: the same bytes give the same answer.

use std::mem::MaybeUninit;

use crate::status::Kind;

/// Greatest length of a request's head in bytes.
pub const MAX_HEAD: usize = 8 * 1024;
const MAX_HEADERS: usize = 64;

/// What the bytes hold.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// the start of a head; more bytes are needed
    Partial,
    /// a whole head
    Head(Head<'a>),
    /// not a request that we read on with: answer with this kind and close
    Refused(Kind),
}

/// A request's head.
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// its bytes, the empty line included
    pub raw: &'a [u8],
    pub method: Method,
    /// what is asked for, as it stands in the request line
    pub target: &'a [u8],
    /// the client will send another request on this connection
    pub keep_alive: bool,
    /// bytes of body that follow
    pub body: u64,
    /// the client sends that body only after a "100 Continue"
    pub expects_continue: bool,
    // Values of headers; empty where there is none.
    pub referer: &'a [u8],
    pub user_agent: &'a [u8],
    pub range: &'a [u8],
    pub if_range: &'a [u8],
    pub if_none_match: &'a [u8],
    pub if_modified_since: &'a [u8],
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    /// its body is read and dropped, its answer is that of GET
    Post,
    Other,
}

impl Head<'_> {
    /// Neither a range is asked for nor a condition set.
    pub fn is_plain(&self) -> bool {
        self.range.is_empty() && self.if_none_match.is_empty() && self.if_modified_since.is_empty()
    }

    /// The request line, without its end.
    pub fn line(&self) -> &[u8] {
        let end = |b: &u8| *b == b'\r' || *b == b'\n';
        self.raw
            .split(end)
            .find(|line| !line.is_empty())
            .unwrap_or_default()
    }
}

/// Reads the head at the start of `bytes`; a body of more than `max_body` bytes is refused.
pub fn parse(bytes: &[u8], max_body: u64) -> Parsed<'_> {
    // Uninitialised, so that no request pays for clearing 64 headers.
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => return Parsed::Partial,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return Parsed::Refused(Kind::HeadTooLarge);
        }
        Err(_) => return Parsed::Refused(Kind::BadRequest),
    };
    // HTTP/1.1 keeps a connection unless told otherwise, HTTP/1.0 the other way round (RFC 9112, 9.3).
    let modern = request.version == Some(1);
    let mut head = Head {
        raw: &bytes[..length],
        method: match request.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            Some("POST") => Method::Post,
            _ => Method::Other,
        },
        target: request.path.unwrap_or_default().as_bytes(),
        keep_alive: modern,
        body: 0,
        expects_continue: false,
        referer: &[],
        user_agent: &[],
        range: &[],
        if_range: &[],
        if_none_match: &[],
        if_modified_since: &[],
    };
    let (mut has_host, mut has_length) = (false, false);
    for header in request.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            has_host = true;
        } else if is("connection") {
            if has_token(header.value, b"close") {
                head.keep_alive = false;
            } else if has_token(header.value, b"keep-alive") {
                head.keep_alive = true;
            }
        } else if is("user-agent") {
            head.user_agent = header.value;
        } else if is("referer") {
            head.referer = header.value;
        } else if is("content-length") {
            match decimal(header.value) {
                // Two lengths that differ are how requests are smuggled (RFC 9112, 6.3).
                Some(n) if !has_length || n == head.body => head.body = n,
                _ => return Parsed::Refused(Kind::BadRequest),
            }
            has_length = true;
        } else if is("transfer-encoding") {
            return Parsed::Refused(Kind::NotImplemented);
        } else if is("expect") {
            if !header.value.eq_ignore_ascii_case(b"100-continue") {
                return Parsed::Refused(Kind::ExpectationFailed);
            }
            // HTTP/1.0 does not know it (RFC 9110, 10.1.1).
            head.expects_continue = modern;
        } else if is("range") {
            head.range = header.value;
        } else if is("if-range") {
            head.if_range = header.value;
        } else if is("if-none-match") {
            head.if_none_match = header.value;
        } else if is("if-modified-since") {
            head.if_modified_since = header.value;
        }
    }
    if modern && !has_host {
        return Parsed::Refused(Kind::BadRequest);
    }
    if head.body > max_body {
        return Parsed::Refused(Kind::BodyTooLarge);
    }
    Parsed::Head(head)
}

fn has_token(list: &[u8], token: &[u8]) -> bool {
    list.split(|b| *b == b',')
        .any(|t| t.trim_ascii().eq_ignore_ascii_case(token))
}

fn decimal(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| digits)?;
    // More than 2^64 is too large, not malformed.
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (keep_alive, body) or the refusal's status; None: partial.
    fn read(text: &str) -> Option<Result<(bool, u64), u16>> {
        match parse(text.as_bytes(), 1024 * 1024) {
            Parsed::Partial => None,
            Parsed::Head(h) => Some(Ok((h.keep_alive, h.body))),
            Parsed::Refused(kind) => Some(Err(kind.status())),
        }
    }

    #[test]
    fn heads_and_what_is_not_one() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(MAX_HEAD));
        let table = [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", Some(Ok((true, 0)))),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nconnection: Close\r\n\r\n",
                Some(Ok((false, 0))),
            ),
            // one of several tokens
            (
                "GET / HTTP/1.1\r\nHost: x\r\nConnection: te, close\r\n\r\n",
                Some(Ok((false, 0))),
            ),
            // HTTP/1.0 needs no Host and closes
            ("GET / HTTP/1.0\r\n\r\n", Some(Ok((false, 0)))),
            (
                "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                Some(Ok((true, 0))),
            ),
            // HTTP/1.1 needs one (RFC 9112, 3.2)
            ("GET / HTTP/1.1\r\n\r\n", Some(Err(400))),
            (
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
                Some(Ok((true, 5))),
            ),
            // twice the same length is one length
            (
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
                Some(Ok((true, 5))),
            ),
            (
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                Some(Err(400)),
            ),
            (
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n",
                Some(Err(400)),
            ),
            (
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n",
                Some(Err(413)),
            ),
            // beyond 2^64
            (
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                Some(Err(413)),
            ),
            (
                "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n",
                Some(Ok((true, 5))),
            ),
            // an expectation that nobody knows
            (
                "POST / HTTP/1.1\r\nHost: x\r\nExpect: mercy\r\nContent-Length: 5\r\n\r\n",
                Some(Err(417)),
            ),
            (
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                Some(Err(501)),
            ),
            (many.as_str(), Some(Err(431))),
            (long.as_str(), Some(Err(431))),
            // 8 KiB without an end
            (&long[..MAX_HEAD], Some(Err(431))),
            // one byte less may still end well
            (&long[..MAX_HEAD - 1], None),
            ("\u{1}\u{2}\r\n\r\n", Some(Err(400))),
            ("GET / HTTP/3.0\r\n\r\n", Some(Err(400))),
            ("", None),
            ("GET / HT", None),
        ];
        for (text, want) in table {
            assert_eq!(read(text), want, "{:.80}", text);
        }
    }

    #[test]
    fn a_head_ends_where_the_next_begins() {
        let two = b"GET /a HTTP/1.1\r\nHost: x\r\nUser-Agent: u\r\nReferer: r\r\n\r\nHEAD /b";
        let Parsed::Head(head) = parse(two, 0) else {
            panic!("a whole head");
        };
        assert_eq!(&two[head.raw.len()..], b"HEAD /b");
        assert_eq!(head.line(), b"GET /a HTTP/1.1");
        assert_eq!((head.user_agent, head.referer), (&b"u"[..], &b"r"[..]));
        assert_eq!(head.method, Method::Get);
    }

    #[test]
    fn no_prefix_of_a_head_is_refused() {
        let whole = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end], 9), Parsed::Partial, "{end} bytes");
        }
    }
}

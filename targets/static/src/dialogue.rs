//! Which answer is due on a connection and what follows it. Pure of sockets and of time.

use crate::http::{self, Head, Method, Parsed};
use crate::reply::Kind;

/// When the target closes by itself.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub keep_alive: bool,
    /// answers on one connection
    pub keepalive_requests: u64,
}

/// An answer that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub kind: Kind,
    pub then: Then,
    /// it answers a request that was read to its end (and not one that was refused before)
    pub request: bool,
}

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// the next request
    Continue,
    /// the target closes, and nothing more has come from the client: one close() does everything
    Close,
    /// the target closes while the client may be sending still: its bytes are read and dropped
    /// for a while, because close() with unread bytes sends a reset that can destroy the response
    CloseGently,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// wait for more bytes
    More,
    Answer(Answer),
}

/// The state of one connection's exchange.
#[derive(Debug, Default)]
pub struct Dialogue {
    answered: u64,
    /// bytes of a request's body that are still to be read and dropped
    body_left: u64,
    /// the answer that follows that body
    due: Option<Answer>,
}

impl Dialogue {
    /// Whether no request has been begun since the last answer (for bytes in hand, ask the caller).
    pub fn is_idle(&self) -> bool {
        self.due.is_none()
    }
    /// Whether a request has been answered.
    pub fn has_answered(&self) -> bool {
        self.answered > 0
    }

    /// Reads on in `bytes`; gives the number of bytes used and what to do. `log` is told of each
    /// request when its answer is decided; no head: it was refused.
    pub fn step(
        &mut self,
        bytes: &[u8],
        rules: Rules,
        log: impl FnOnce(Option<&Head<'_>>, Kind),
    ) -> (usize, Step) {
        if self.due.is_some() {
            return self.drop_body(bytes);
        }
        if bytes.is_empty() {
            return (0, Step::More);
        }
        match http::parse(bytes) {
            Parsed::Partial => (0, Step::More),
            Parsed::Refused(kind) => {
                log(None, kind);
                self.answered += 1;
                let answer = Answer {
                    kind,
                    then: Then::CloseGently,
                    request: false,
                };
                (0, Step::Answer(answer))
            }
            Parsed::Head(head) => {
                self.answered += 1;
                let answer = answer(&head, self.answered, rules);
                log(Some(&head), answer.kind);
                self.due = Some(answer);
                self.body_left = head.body;
                let length = head.raw.len();
                let (used, step) = self.drop_body(&bytes[length..]);
                (length + used, step)
            }
        }
    }

    fn drop_body(&mut self, bytes: &[u8]) -> (usize, Step) {
        // Never more than the bytes in hand, so it fits.
        let used = self.body_left.min(bytes.len() as u64) as usize;
        self.body_left -= used as u64;
        if self.body_left > 0 {
            return (used, Step::More);
        }
        (used, self.due.take().map_or(Step::More, Step::Answer))
    }
}

/// The answer to a whole head; `nth` counts from 1.
fn answer(head: &Head<'_>, nth: u64, rules: Rules) -> Answer {
    Answer {
        kind: match head.method {
            Method::Get => Kind::Page,
            Method::Head => Kind::PageHead,
            Method::Other => Kind::NotAllowed,
        },
        then: if !head.keep_alive || !rules.keep_alive || nth >= rules.keepalive_requests {
            Then::Close
        } else {
            Then::Continue
        },
        request: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        keep_alive: true,
        keepalive_requests: 3,
    };
    const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// Feeds all bytes in chunks and collects the answers, as a connection does.
    fn answers(text: &str, chunk: usize, rules: Rules) -> Vec<(u16, Then, bool)> {
        let (mut dialogue, mut held, mut got) = (Dialogue::default(), Vec::new(), Vec::new());
        for part in text.as_bytes().chunks(chunk) {
            held.extend_from_slice(part);
            loop {
                let (used, step) = dialogue.step(&held, rules, |_, _| ());
                held.drain(..used);
                let Step::Answer(a) = step else { break };
                got.push((a.kind.status(), a.then, a.request));
                if a.then != Then::Continue {
                    return got;
                }
            }
        }
        got
    }

    #[test]
    fn the_answers_do_not_depend_on_how_the_bytes_arrive() {
        let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /";
        let close = "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let go_on = (200, Then::Continue, true);
        // each row: bytes, answers
        let table = [
            (format!("{GET}{GET}"), vec![go_on, go_on]),
            // the third of three closes; the fourth is not read
            (GET.repeat(4), vec![go_on, go_on, (200, Then::Close, true)]),
            // a body that looks like a request is not one
            (
                format!("{post}{GET}"),
                vec![(405, Then::Continue, true), go_on],
            ),
            // as the client asked; what follows is not read
            (format!("{close}{GET}"), vec![(200, Then::Close, true)]),
            // garbage after a request
            (
                format!("{GET}\x01\r\n\r\n"),
                vec![go_on, (400, Then::CloseGently, false)],
            ),
            // half a body: no answer yet
            (post[..post.len() - 1].to_owned(), vec![]),
        ];
        for (text, want) in table {
            for chunk in [1, 2, 7, 64, 100_000] {
                assert_eq!(answers(&text, chunk, RULES), want, "{text} by {chunk}");
            }
        }
    }

    #[test]
    fn without_keep_alive_every_answer_closes() {
        let never = Rules {
            keep_alive: false,
            ..RULES
        };
        assert_eq!(answers(GET, 100, never), [(200, Then::Close, true)]);
    }
}

//! Which answer is due on a connection and what follows it. Pure of sockets, of time, and of what
//! the answers are: that is decided by whoever is asked, once a request.

use crate::http::{self, Head, Parsed};
use crate::status::Kind;

/// When the target refuses, and when it closes by itself.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub keep_alive: bool,
    /// answers on one connection
    pub keepalive_requests: u64,
    /// greatest length of a request's body, bytes
    pub max_body_bytes: u64,
}

/// An answer that is due now; `D` is what was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<D> {
    pub decided: D,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<D> {
    /// wait for more bytes
    More,
    /// say "100 Continue", then step on
    GoAhead,
    Answer(Answer<D>),
}

/// The state of one connection's exchange.
#[derive(Debug)]
pub struct Dialogue<D> {
    answered: u64,
    /// bytes of a request's body that are still to be read and dropped
    body_left: u64,
    /// the answer that follows that body
    due: Option<Answer<D>>,
}

impl<D> Default for Dialogue<D> {
    fn default() -> Self {
        Self {
            answered: 0,
            body_left: 0,
            due: None,
        }
    }
}

impl<D> Dialogue<D> {
    /// Whether no head has been read since the last answer (for bytes in hand, ask the caller).
    pub fn is_idle(&self) -> bool {
        self.due.is_none()
    }
    /// Whether a request has been answered.
    pub fn has_answered(&self) -> bool {
        self.answered > 0
    }

    /// Reads on in `bytes`; gives the number of bytes used and what to do. `decide` is asked once a
    /// request, when its head is whole (or is refused): what is the answer, given whether its
    /// Connection header says "close"?
    pub fn step(
        &mut self,
        bytes: &[u8],
        rules: Rules,
        decide: impl FnOnce(Result<&Head<'_>, Kind>, bool) -> D,
    ) -> (usize, Step<D>) {
        if self.due.is_some() {
            return self.drop_body(bytes);
        }
        if bytes.is_empty() {
            return (0, Step::More);
        }
        match http::parse(bytes, rules.max_body_bytes) {
            Parsed::Partial => (0, Step::More),
            Parsed::Refused(kind) => {
                self.answered += 1;
                let answer = Answer {
                    decided: decide(Err(kind), true),
                    then: Then::CloseGently,
                    request: false,
                };
                (0, Step::Answer(answer))
            }
            Parsed::Head(head) => {
                self.answered += 1;
                let closes = !head.keep_alive
                    || !rules.keep_alive
                    || self.answered >= rules.keepalive_requests;
                let answer = Answer {
                    decided: decide(Ok(&head), closes),
                    then: if closes { Then::Close } else { Then::Continue },
                    request: true,
                };
                let length = head.raw.len();
                if head.body == 0 {
                    return (length, Step::Answer(answer));
                }
                self.due = Some(answer);
                self.body_left = head.body;
                // A client that has begun its body does not wait (RFC 9110, 10.1.1).
                if head.expects_continue && bytes.len() == length {
                    return (length, Step::GoAhead);
                }
                let (used, step) = self.drop_body(&bytes[length..]);
                (length + used, step)
            }
        }
    }

    fn drop_body(&mut self, bytes: &[u8]) -> (usize, Step<D>) {
        // Never more than the bytes in hand, so it fits.
        let used = self.body_left.min(bytes.len() as u64) as usize;
        self.body_left -= used as u64;
        if self.body_left > 0 {
            return (used, Step::More);
        }
        (used, self.due.take().map_or(Step::More, Step::Answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        keep_alive: true,
        keepalive_requests: 3,
        max_body_bytes: 100,
    };
    const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// Feeds all bytes in chunks and collects the answers, as a connection does; 299 is an answer
    /// whose head says "close".
    fn answers(text: &str, chunk: usize, rules: Rules) -> Vec<(u16, Then, bool)> {
        let (mut dialogue, mut held, mut got) = (Dialogue::default(), Vec::new(), Vec::new());
        for part in text.as_bytes().chunks(chunk) {
            held.extend_from_slice(part);
            loop {
                let (used, step) = dialogue.step(&held, rules, |asked, closes| match asked {
                    Err(kind) => kind.status(),
                    Ok(_) if closes => 299,
                    Ok(_) => 200,
                });
                held.drain(..used);
                let a = match step {
                    Step::More => break,
                    Step::GoAhead => {
                        got.push((100, Then::Continue, false));
                        continue;
                    }
                    Step::Answer(a) => a,
                };
                got.push((a.decided, a.then, a.request));
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
            (GET.repeat(4), vec![go_on, go_on, (299, Then::Close, true)]),
            // a body that looks like a request is not one
            (format!("{post}{GET}"), vec![go_on, go_on]),
            // as the client asked; what follows is not read
            (format!("{close}{GET}"), vec![(299, Then::Close, true)]),
            // garbage after a request
            (
                format!("{GET}\x01\r\n\r\n"),
                vec![go_on, (400, Then::CloseGently, false)],
            ),
            // too long a body is refused before it is read
            (
                post.replace(": 5", ": 101"),
                vec![(413, Then::CloseGently, false)],
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
        assert_eq!(answers(GET, 100, never), [(299, Then::Close, true)]);
    }

    #[test]
    fn a_client_that_waits_is_told_to_go_ahead() {
        let head =
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        let (go_ahead, answer) = ((100, Then::Continue, false), (200, Then::Continue, true));
        let text = format!("{head}hello");
        assert_eq!(answers(&text, head.len(), RULES), [go_ahead, answer]);
        // It did not wait.
        assert_eq!(answers(&text, 1000, RULES), [answer]);
        // Nothing to wait for.
        assert_eq!(answers(&head.replace(": 5", ": 0"), 1000, RULES), [answer]);
    }

    #[test]
    fn damaged_requests_get_the_same_answers_however_they_arrive() {
        let post = "POST /a%20b?c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nRange: bytes=1-2\r\n\r\nhello";
        let sound = format!("{GET}{post}{GET}");
        // xorshift64 (Marsaglia 2003); the same damage in every run
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        };
        let mut outcomes = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            let mut bytes = sound.clone().into_bytes();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = random(128) as u8,
                    1 => drop(bytes.drain(at..(at + 1 + random(8)).min(bytes.len()))),
                    _ => bytes.insert(at, b"\r\n :/\0z9"[random(8)]),
                }
            }
            let text = String::from_utf8(bytes).unwrap();
            let whole = answers(&text, text.len(), RULES);
            assert_eq!(answers(&text, 1 + random(9), RULES), whole, "{text:?}");
            outcomes.extend(whole.into_iter().map(|(status, ..)| status));
        }
        // The damage reached more than one way out.
        assert!(
            [200, 299, 400].iter().all(|s| outcomes.contains(s)),
            "{outcomes:?}"
        );
    }
}

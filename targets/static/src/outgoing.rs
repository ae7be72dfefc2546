//! A response on its way that does not leave in one write. Pure.

use std::ops::Range;
use std::sync::Arc;

/// The bytes of a response: a head of its own, and a stretch of a shared body.
#[derive(Clone, Debug)]
pub struct Message {
    pub head: Vec<u8>,
    pub body: Arc<[u8]>,
    pub part: Range<usize>,
}

impl Message {
    pub fn len(&self) -> usize {
        self.head.len() + self.part.len()
    }
    /// The two pieces of memory that hold the bytes `range`.
    pub fn pieces(&self, range: Range<usize>) -> (&[u8], &[u8]) {
        let head = self.head.len();
        let body = &self.body[self.part.clone()];
        (
            &self.head[range.start.min(head)..range.end.min(head)],
            &body[range.start.saturating_sub(head)..range.end.saturating_sub(head)],
        )
    }
}

/// How much of it has left, and how far it may go before the next pause.
#[derive(Debug)]
pub struct Outgoing {
    message: Message,
    sent: usize,
    limit: usize,
    end: usize,
    step: usize,
}

impl Outgoing {
    /// The rest of a response of which `sent` bytes have left.
    pub fn rest(message: Message, sent: usize) -> Self {
        let end = message.len();
        Self {
            message,
            sent,
            limit: end,
            end,
            step: end,
        }
    }

    /// The body in `pieces` equal pieces (of at least one byte), the head with the first.
    pub fn slowly(message: Message, pieces: usize) -> Self {
        let (head, body) = (message.head.len(), message.part.len());
        let step = body.div_ceil(pieces.max(1)).max(1);
        let mut it = Self::rest(message, 0);
        it.step = step;
        it.limit = (head + step).min(it.end);
        it
    }

    /// Ends in the middle of the body; in the middle of the head where there is no body.
    pub fn cut_short(mut self) -> Self {
        let (head, body) = (self.message.head.len(), self.message.part.len());
        self.end = if body > 0 { head + body / 2 } else { head / 2 };
        self.limit = self.limit.min(self.end);
        self
    }

    /// What may be written now.
    pub fn pieces(&self) -> (&[u8], &[u8]) {
        self.message.pieces(self.sent..self.limit)
    }
    /// So much was written.
    pub fn took(&mut self, n: usize) {
        self.sent += n;
    }
    /// Whether what may be written now is all that is left.
    pub fn is_last_piece(&self) -> bool {
        self.limit == self.end
    }
    /// Whether the piece is out; what comes next is a pause, or the end.
    pub fn is_piece_out(&self) -> bool {
        self.sent == self.limit
    }
    /// The pause is over.
    pub fn next_piece(&mut self) {
        self.limit = (self.limit + self.step).min(self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(part: Range<usize>) -> Message {
        Message {
            head: b"HEAD".to_vec(),
            body: Arc::from(&b"0123456789"[..]),
            part,
        }
    }

    /// The pieces that leave, each by writes of at most `most` bytes.
    fn leave(mut out: Outgoing, most: usize) -> Vec<String> {
        let mut pieces = vec![String::new()];
        loop {
            let (a, b) = out.pieces();
            let bytes: Vec<u8> = [a, b].concat().into_iter().take(most).collect();
            out.took(bytes.len());
            pieces
                .last_mut()
                .unwrap()
                .push_str(std::str::from_utf8(&bytes).unwrap());
            if out.is_piece_out() {
                if out.is_last_piece() {
                    return pieces;
                }
                out.next_piece();
                pieces.push(String::new());
            }
        }
    }

    #[test]
    fn the_pieces_do_not_depend_on_how_much_a_write_takes() {
        let all = || message(0..10);
        type Row = (fn(Message) -> Outgoing, Message, &'static [&'static str]);
        // each row: how it leaves, what, its pieces
        let table: [Row; 9] = [
            (|m| Outgoing::rest(m, 0), all(), &["HEAD0123456789"]),
            (|m| Outgoing::rest(m, 2), all(), &["AD0123456789"]),
            (|m| Outgoing::rest(m, 6), all(), &["23456789"]),
            (|m| Outgoing::rest(m, 0), message(3..5), &["HEAD34"]),
            // the last piece is what is left
            (
                |m| Outgoing::slowly(m, 4),
                all(),
                &["HEAD012", "345", "678", "9"],
            ),
            // more pieces than bytes
            (|m| Outgoing::slowly(m, 9), message(0..2), &["HEAD0", "1"]),
            // no body, no pause
            (|m| Outgoing::slowly(m, 3), message(0..0), &["HEAD"]),
            (|m| Outgoing::rest(m, 0).cut_short(), all(), &["HEAD01234"]),
            (
                |m| Outgoing::slowly(m, 5).cut_short(),
                all(),
                &["HEAD01", "23", "4"],
            ),
        ];
        for (make, message, want) in table {
            for most in [1, 3, 5, 100] {
                assert_eq!(leave(make(message.clone()), most), want, "by {most}");
            }
        }
        let no_body = Outgoing::rest(message(0..0), 0).cut_short();
        assert_eq!(leave(no_body, 100), ["HE"]);
    }
}

//! netlink sock_diag as bytes: the request for a dump of TCP sockets and its answer. Pure.
//!
//! Layout: `struct nlmsghdr` (linux/netlink.h), `struct inet_diag_req_v2` and `struct
//! inet_diag_msg` (linux/inet_diag.h); see sock_diag(7). Numbers are in the byte order of
//! the machine, ports in that of the network.

/// States of a TCP socket as the kernel numbers them (net/tcp_states.h).
pub(crate) mod state {
    pub(crate) const ESTABLISHED: u8 = 1;
    pub(crate) const SYN_SENT: u8 = 2;
    pub(crate) const SYN_RECV: u8 = 3;
    pub(crate) const FIN_WAIT_1: u8 = 4;
    pub(crate) const FIN_WAIT_2: u8 = 5;
    pub(crate) const TIME_WAIT: u8 = 6;
    pub(crate) const CLOSE_WAIT: u8 = 8;
    pub(crate) const LISTEN: u8 = 10;
}

/// A set of states, each below 32.
pub(crate) const fn mask(states: &[u8]) -> u32 {
    let (mut mask, mut i) = (0, 0);
    while i < states.len() {
        mask |= 1 << states[i];
        i += 1;
    }
    mask
}

/// Length of a request.
pub(crate) const REQUEST_LEN: usize = HEADER_LEN + 56;

const HEADER_LEN: usize = 16;
const ENTRY_LEN: usize = 72;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSG_OVERRUN: u16 = 4;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x10;
const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;

/// A request for all IPv4 TCP sockets in a set of states; with a local port other than 0, for those on it.
pub(crate) fn request(seq: u32, states: u32, local_port: u16) -> [u8; REQUEST_LEN] {
    let mut bytes = [0; REQUEST_LEN];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    // 72 fits u32.
    put(0, &(REQUEST_LEN as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    put(8, &seq.to_ne_bytes());
    put(HEADER_LEN, &[AF_INET, IPPROTO_TCP]);
    put(HEADER_LEN + 4, &states.to_ne_bytes());
    put(HEADER_LEN + 8, &local_port.to_be_bytes());
    bytes
}

/// One socket of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub local_port: u16,
    pub remote_port: u16,
    /// of a listening socket: connections that wait for accept()
    pub receive_queue: u32,
    /// of a listening socket: how many may wait
    pub send_queue: u32,
    pub state: u8,
}

/// What a datagram said beside its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// no more datagrams follow
    pub done: bool,
    /// the table changed while it was walked: the dump may miss or repeat sockets
    pub interrupted: bool,
}

/// Why a datagram is not an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error(
        "sock_diag: a message of {got} bytes at byte {at}, expected {expected} or more within {len}"
    )]
    Length {
        at: usize,
        got: usize,
        expected: usize,
        len: usize,
    },
    #[error("sock_diag: the kernel lost a part of its answer")]
    Overrun,
    /// errno of the kernel's refusal
    #[error("sock_diag: the kernel answered with error {0}")]
    Refused(i32),
}

/// Reads one datagram, which holds whole messages; those of another request (`seq`) are passed over.
pub(crate) fn read_datagram(
    datagram: &[u8],
    seq: u32,
    mut each: impl FnMut(Entry),
) -> Result<Part, WireError> {
    let mut part = Part::default();
    let mut at = 0;
    while at < datagram.len() {
        let rest = &datagram[at..];
        let wrong = |got, expected| WireError::Length {
            at,
            got,
            expected,
            len: datagram.len(),
        };
        let (Some(length), Some(kind), Some(flags), Some(of)) = (
            u32_at(rest, 0),
            u16_at(rest, 4),
            u16_at(rest, 6),
            u32_at(rest, 8),
        ) else {
            return Err(wrong(rest.len(), HEADER_LEN));
        };
        // u32 fits usize on every machine that Linux runs on.
        let length = length as usize;
        let body = rest
            .get(HEADER_LEN..length)
            .ok_or_else(|| wrong(length, HEADER_LEN))?;
        if of == seq {
            part.interrupted |= flags & NLM_F_DUMP_INTR != 0;
            match kind {
                SOCK_DIAG_BY_FAMILY => {
                    let entry = entry(body).ok_or_else(|| wrong(length, HEADER_LEN + ENTRY_LEN))?;
                    each(entry);
                }
                NLMSG_DONE | NLMSG_ERROR => {
                    // Both carry 0 or a negative errno; an old kernel's DONE may be empty.
                    let code = u32_at(body, 0).map_or(0, |n| n.cast_signed());
                    if code != 0 {
                        return Err(WireError::Refused(code.saturating_neg()));
                    }
                    part.done = true;
                    return Ok(part);
                }
                NLMSG_OVERRUN => return Err(WireError::Overrun),
                _ => {}
            }
        }
        // Messages start at multiples of 4. The body was within the datagram, so this cannot overflow.
        at += length.next_multiple_of(4);
    }
    Ok(part)
}

fn entry(body: &[u8]) -> Option<Entry> {
    let body = body.get(..ENTRY_LEN)?;
    Some(Entry {
        local_port: u16::from_be_bytes(array_at(body, 4)?),
        remote_port: u16::from_be_bytes(array_at(body, 6)?),
        receive_queue: u32_at(body, 56)?,
        send_queue: u32_at(body, 60)?,
        state: body[1],
    })
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_ne_bytes)
}
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEQ: u32 = 7;

    /// A message as the kernel writes it.
    fn message(kind: u16, flags: u16, seq: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(
            u32::try_from(HEADER_LEN + body.len())
                .unwrap()
                .to_ne_bytes(),
        );
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(seq.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }
    fn socket(local: u16, remote: u16, queue: u32) -> Vec<u8> {
        let mut body = vec![0; ENTRY_LEN];
        body[0] = AF_INET;
        body[1] = state::LISTEN;
        body[4..6].copy_from_slice(&local.to_be_bytes());
        body[6..8].copy_from_slice(&remote.to_be_bytes());
        body[56..60].copy_from_slice(&queue.to_ne_bytes());
        body[60..64].copy_from_slice(&511u32.to_ne_bytes());
        // an attribute after the entry, of an odd length, as kernels add them
        body.extend([5, 0, 8, 0, 0]);
        body
    }
    fn read(bytes: &[u8]) -> Result<(Part, Vec<Entry>), WireError> {
        let mut seen = Vec::new();
        let part = read_datagram(bytes, SEQ, |e| seen.push(e))?;
        Ok((part, seen))
    }

    #[test]
    fn reads_an_answer() {
        let one = message(SOCK_DIAG_BY_FAMILY, 2, SEQ, &socket(80, 40_000, 3));
        let stale = message(SOCK_DIAG_BY_FAMILY, 2, SEQ - 1, &socket(81, 40_001, 0));
        let torn = message(
            SOCK_DIAG_BY_FAMILY,
            2 | NLM_F_DUMP_INTR,
            SEQ,
            &socket(80, 40_000, 3),
        );
        let done = message(NLMSG_DONE, 2, SEQ, &0i32.to_ne_bytes());
        let refused = message(NLMSG_ERROR, 0, SEQ, &(-16i32).to_ne_bytes());
        let failed = message(NLMSG_DONE, 2, SEQ, &(-12i32).to_ne_bytes());
        let entry = Entry {
            local_port: 80,
            remote_port: 40_000,
            receive_queue: 3,
            send_queue: 511,
            state: state::LISTEN,
        };
        let part = |done, interrupted| Part { done, interrupted };
        let table = [
            (vec![], Ok((part(false, false), vec![]))),
            (one.clone(), Ok((part(false, false), vec![entry]))),
            // several messages in one datagram, the last ends the dump
            (
                [&one[..], &one, &done].concat(),
                Ok((part(true, false), vec![entry, entry])),
            ),
            // what is left of an earlier dump is not ours
            (
                [&stale[..], &one].concat(),
                Ok((part(false, false), vec![entry])),
            ),
            (
                [&torn[..], &done].concat(),
                Ok((part(true, true), vec![entry])),
            ),
            (refused, Err(WireError::Refused(16))), // EBUSY
            (failed, Err(WireError::Refused(12))),  // a dump can fail at its end
            (
                message(NLMSG_DONE, 2, SEQ, &[]),
                Ok((part(true, false), vec![])),
            ),
            (message(NLMSG_OVERRUN, 2, SEQ, &[]), Err(WireError::Overrun)),
            // a length of 0 must not loop
            (
                vec![0; 16],
                Err(WireError::Length {
                    at: 0,
                    got: 0,
                    expected: 16,
                    len: 16,
                }),
            ),
            // a message longer than its datagram
            (
                one[..60].to_vec(),
                Err(WireError::Length {
                    at: 0,
                    got: 93,
                    expected: 16,
                    len: 60,
                }),
            ),
            // a header cut short
            (
                one[..10].to_vec(),
                Err(WireError::Length {
                    at: 0,
                    got: 10,
                    expected: 16,
                    len: 10,
                }),
            ),
            // an entry shorter than its structure
            (
                message(SOCK_DIAG_BY_FAMILY, 2, SEQ, &[0; 40]),
                Err(WireError::Length {
                    at: 0,
                    got: 56,
                    expected: 88,
                    len: 56,
                }),
            ),
        ];
        for (i, (bytes, want)) in table.into_iter().enumerate() {
            assert_eq!(read(&bytes), want, "row {i}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_damaged_answer_ends_and_invents_no_sockets(at in 0..558usize, with: u8, cut in 0..=558usize) {
            let one = message(SOCK_DIAG_BY_FAMILY, 2, SEQ, &socket(80, 40_000, 3));
            let mut bytes = one.repeat(6);
            bytes.truncate(558);
            bytes[at] = with;
            bytes.truncate(cut);
            let mut seen = 0;
            let _ = read_datagram(&bytes, SEQ, |_| seen += 1);
            prop_assert!(seen <= 558 / (HEADER_LEN + ENTRY_LEN));
        }
    }
}

//! What workers count. Each worker has its own counters, so that the path of a request takes no lock
//! and shares no cache line.

use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::status::STATUSES;

/// A counter with one writer, its worker, and readers that may be a little late.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds. Only the owning worker may call this: a load and a store are cheaper than a locked add.
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Release);
    }
    /// Whoever sees a value sees all that the worker counted before it.
    fn get(&self) -> u64 {
        self.0.load(Acquire)
    }
}

/// The counters of one worker; 128 bytes, since processors fetch cache lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    pub accepted: Counter,
    /// descriptors given back: accepted − released are open
    pub released: Counter,
    pub requests: Counter,
    /// in the order of [`STATUSES`]
    pub responses: [Counter; STATUSES.len()],
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    // Each connection is counted in exactly one of these three, when the first of its ends is seen.
    pub closed_by_client: Counter,
    pub closed_by_target: Counter,
    pub reset: Counter,
    /// accept() calls that failed for want of descriptors or memory
    pub accept_failures: Counter,
}

/// The sum over all workers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub accepted: u64,
    pub released: u64,
    pub requests: u64,
    pub responses: [u64; STATUSES.len()],
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub closed_by_client: u64,
    pub closed_by_target: u64,
    pub reset: u64,
    pub accept_failures: u64,
}

impl Totals {
    /// Reads all workers. Each counter is exact; two of them may be some requests apart while load runs.
    pub fn read(workers: &[impl AsRef<Counters>]) -> Self {
        let mut t = Self::default();
        for c in workers.iter().map(AsRef::as_ref) {
            // Released first: what is open can then never seem negative, and where nothing is
            // open, everything that a closed connection did is in this reading.
            t.released += c.released.get();
            t.accepted += c.accepted.get();
            t.requests += c.requests.get();
            for (sum, one) in t.responses.iter_mut().zip(&c.responses) {
                *sum += one.get();
            }
            t.bytes_in += c.bytes_in.get();
            t.bytes_out += c.bytes_out.get();
            t.closed_by_client += c.closed_by_client.get();
            t.closed_by_target += c.closed_by_target.get();
            t.reset += c.reset.get();
            t.accept_failures += c.accept_failures.get();
        }
        t
    }

    /// What was counted after an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            accepted: self.accepted - earlier.accepted,
            released: self.released - earlier.released,
            requests: self.requests - earlier.requests,
            responses: std::array::from_fn(|i| self.responses[i] - earlier.responses[i]),
            bytes_in: self.bytes_in - earlier.bytes_in,
            bytes_out: self.bytes_out - earlier.bytes_out,
            closed_by_client: self.closed_by_client - earlier.closed_by_client,
            closed_by_target: self.closed_by_target - earlier.closed_by_target,
            reset: self.reset - earlier.reset,
            accept_failures: self.accept_failures - earlier.accept_failures,
        }
    }

    /// Connections open now (of a reading, not of a difference).
    pub fn active(&self) -> u64 {
        self.accepted - self.released
    }

    /// Responses of every status.
    pub fn all_responses(&self) -> u64 {
        self.responses.iter().sum()
    }

    /// Responses by status, those that occurred.
    pub fn by_status(&self) -> BTreeMap<u16, u64> {
        let pairs = STATUSES.iter().zip(&self.responses);
        pairs
            .filter(|(_, n)| **n > 0)
            .map(|((s, _), n)| (*s, *n))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn workers_add_up_and_a_difference_forgets_what_was_before() {
        let workers = [Arc::new(Counters::default()), Arc::new(Counters::default())];
        workers[0].accepted.add(2);
        workers[0].responses[0].add(5);
        let before = Totals::read(&workers);
        workers[1].accepted.add(3);
        workers[1].released.add(1);
        workers[1].responses[0].add(1);
        workers[1].responses[1].add(4);
        let now = Totals::read(&workers);
        assert_eq!(now.active(), 4);
        let delta = now.since(&before);
        assert_eq!((delta.accepted, delta.all_responses()), (3, 5));
        assert_eq!(delta.by_status(), BTreeMap::from([(200, 1), (206, 4)]));
        assert_eq!(std::mem::align_of::<Counters>(), 128);
    }
}

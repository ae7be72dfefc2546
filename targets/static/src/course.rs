//! The course of a run: 100 ms slots between absolute deadlines. Pure: time and totals are given.

use yieldpoint_protocol::TargetSeries;

use crate::counters::Totals;

/// Length of a slot, ns.
pub const SLOT_NS: u64 = 100_000_000;

/// What happened since `go`, slot by slot.
///
/// Invariant: the slots are differences of successive readings, so their sums are the totals
/// of the last reading whatever the timing.
#[derive(Debug)]
pub struct Course {
    base: Totals,
    last: Totals,
    series: TargetSeries,
    queue_peak: u64,
}

impl Course {
    /// Begins at `start_ns` with what had been counted before.
    pub fn new(start_ns: u64, base: Totals) -> Self {
        Self {
            base,
            last: base,
            series: TargetSeries {
                start_ns,
                slot_ns: SLOT_NS,
                ..TargetSeries::default()
            },
            queue_peak: 0,
        }
    }

    /// When the open slot ends, ns. What was counted before the start belongs to the first slot.
    pub fn slot_end_ns(&self) -> u64 {
        self.series.start_ns + (self.series.responses.len() as u64 + 1) * SLOT_NS
    }

    /// Whole seconds whose slots are closed.
    pub fn seconds(&self) -> u64 {
        self.series.responses.len() as u64 * SLOT_NS / 1_000_000_000
    }

    /// Closes every slot that has ended. Where the reading is late by more than a slot, the first
    /// has all of it: what cannot be told apart is not spread out.
    pub fn advance(&mut self, now_ns: u64, totals: Totals, queue: u64) {
        while self.slot_end_ns() <= now_ns {
            self.close_slot(totals, queue);
        }
    }

    /// Closes the open slot early if anything was counted in it.
    pub fn finish(&mut self, totals: Totals, queue: u64) {
        if totals != self.last {
            self.close_slot(totals, queue);
        }
    }

    fn close_slot(&mut self, totals: Totals, queue: u64) {
        let slot = totals.since(&self.last);
        self.series.responses.push(slot.all_responses());
        self.series.connections.push(slot.accepted);
        self.series.bytes_out.push(slot.bytes_out);
        self.series.active.push(totals.active());
        self.series.listen_queue.push(queue);
        self.queue_peak = self.queue_peak.max(queue);
        self.last = totals;
    }

    /// Totals of the last reading since the beginning.
    pub fn totals(&self) -> Totals {
        self.last.since(&self.base)
    }
    /// The slots closed so far.
    pub fn series(&self) -> &TargetSeries {
        &self.series
    }
    /// Greatest accept queue at the end of a slot.
    pub fn queue_peak(&self) -> u64 {
        self.queue_peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(responses: u64, accepted: u64) -> Totals {
        let mut t = Totals {
            accepted,
            ..Totals::default()
        };
        t.responses[0] = responses;
        t
    }

    #[test]
    fn slots_end_at_absolute_deadlines_and_add_up() {
        let ms = |n: u64| n * 1_000_000;
        let mut course = Course::new(ms(1000), totals(7, 1));
        // each row: time, responses so far, accept queue, slots closed by then
        let table = [
            (999, 7, 9, 0),   // before the start: nothing, and its queue is not ours
            (1099, 17, 9, 0), // 1 ms short of the first slot
            (1103, 18, 2, 1), // 3 ms late: the slot is closed …
            (1199, 20, 9, 1), // … and the next still ends at 1,200
            (1200, 21, 3, 2), // to the ns
            (1450, 30, 1, 4), // late by two slots: the first has all, the second none
        ];
        for (at, responses, queue, closed) in table {
            course.advance(ms(at), totals(responses, 2), queue);
            assert_eq!(course.series().responses.len(), closed, "at {at}");
        }
        course.finish(totals(31, 2), 0);
        course.finish(totals(31, 2), 0); // nothing new: no slot
        assert_eq!(course.series().responses, [11, 3, 9, 0, 1]);
        assert_eq!(course.series().connections, [1, 0, 0, 0, 0]);
        assert_eq!(course.series().listen_queue, [2, 3, 1, 1, 0]);
        assert_eq!(course.queue_peak(), 3);
        let sum: u64 = course.series().responses.iter().sum();
        assert_eq!(sum, course.totals().all_responses());
        assert_eq!(course.totals().accepted, 1, "what was before is forgotten");
    }
}

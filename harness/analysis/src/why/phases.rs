//! The phases of a trial, from its course in equal slots.
//!
//! A port in TIME_WAIT is back after 60 s, so a client that burns ports runs in cycles: **burst** (ports are
//! free), **search** (over half of them are not, and connect() looks long for one), **exhausted** (none is),
//! **recovery** (the first come back). What such a trial sustains is counted from burst start to burst start:
//! a window that ends within a cycle holds a burst too many. Every other trial is **steady**, but for
//! levels that fall (**decay**) and rise again (**recovery**).

use yieldpoint_statistics::changes;

/// A stretch of a trial.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phase {
    pub name: &'static str,
    /// ms from `go`
    pub start_ms: u64,
    /// ms from `go`
    pub end_ms: u64,
    /// good requests per second
    pub good_per_s: f64,
}

pub(crate) const BURST: &str = "burst";
pub(crate) const SEARCH: &str = "search";
pub(crate) const EXHAUSTED: &str = "exhausted";
pub(crate) const RECOVERY: &str = "recovery";
pub(crate) const DECAY: &str = "decay";
pub(crate) const STEADY: &str = "steady";

/// The course of a trial's window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slots {
    /// start of the first slot, ms from `go`
    pub start_ms: u64,
    /// length of a slot, ms; 0 where there is no course
    pub slot_ms: u64,
    /// responses of each slot
    pub good: Vec<u64>,
    /// failed requests of each slot, as far as they are known; a second of the client's is spread evenly
    pub errors: Vec<f64>,
}

/// What the ports had to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// nothing that showed
    Free,
    /// no cycle was seen, but the rate would not have lasted for one
    WouldRunOut,
    /// they were burned: over half of them were in TIME_WAIT, or none was free
    Burned,
}

/// What the course says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    pub phases: Vec<Phase>,
    /// the first 10 s, or the first phase where that is shorter
    pub early_per_s: Option<f64>,
    /// `None` where ports were burned and no whole cycle was seen
    pub sustained_per_s: Option<f64>,
    /// whole cycles that were seen
    pub cycles: usize,
}

/// Levels shorter than this are noise of the machine (a timer, a context switch), ms.
const SHORTEST_MS: u64 = 500;
/// A level counts as fast if it reaches this share of the burst.
const FAST: f64 = 0.3;
/// Levels that differ by less than this share are one phase.
const SAME: f64 = 0.25;
/// A stretch between two recoveries that is shorter belongs to them: the timers that end TIME_WAIT fire in
/// steps of some seconds, ms.
const WITHIN_RECOVERY_MS: u64 = 5_000;
/// "At first" is no longer than this, ms.
const EARLY_MS: u64 = 10_000;

/// Finds the phases.
pub(crate) fn course(slots: &Slots, ports: Ports) -> Course {
    if slots.slot_ms == 0 || slots.good.is_empty() {
        return Course::default();
    }
    // A count of slots, at most that of the series.
    let shortest = usize::try_from(SHORTEST_MS.div_ceil(slots.slot_ms)).unwrap_or(usize::MAX);
    let mut cuts = changes(&slots.good, shortest.max(2));
    cuts.insert(0, 0);
    cuts.push(slots.good.len());
    let levels: Vec<Level> = cuts
        .windows(2)
        .map(|w| Level::new(slots, w[0], w[1]))
        .collect();
    let named = match ports {
        Ports::Burned => of_ports(slots, levels),
        Ports::Free | Ports::WouldRunOut => of_levels(slots, levels),
    };
    let early_slots = (named[0].to).min(slots.count_in(EARLY_MS)).max(1);
    let starts: Vec<usize> = (named.iter())
        .filter(|l| matches!(l.name, BURST | RECOVERY))
        .map(|l| l.from)
        .collect();
    let (cycles, sustained) = match ports {
        Ports::Free => (0, Some(slots.per_s(0, slots.good.len()))),
        Ports::WouldRunOut => (0, None),
        Ports::Burned => {
            let whole = starts.first().zip(starts.last()).filter(|(a, b)| a < b);
            let rate = whole.map(|(from, to)| slots.per_s(*from, *to));
            (starts.len().saturating_sub(1), rate)
        }
    };
    Course {
        early_per_s: Some(slots.per_s(0, early_slots)),
        sustained_per_s: sustained,
        cycles,
        phases: named.iter().map(|l| l.phase(slots)).collect(),
    }
}

impl Slots {
    fn ms(&self, slot: usize) -> u64 {
        self.start_ms + self.slot_ms * slot as u64
    }

    fn count_in(&self, ms: u64) -> usize {
        usize::try_from(ms / self.slot_ms).unwrap_or(usize::MAX)
    }

    fn per_s(&self, from: usize, to: usize) -> f64 {
        let seconds = (to - from) as f64 * self.slot_ms as f64 / 1e3;
        self.good[from..to].iter().sum::<u64>() as f64 / seconds
    }
}

/// Slots `from..to` of one rate.
#[derive(Clone, Debug)]
struct Level {
    name: &'static str,
    from: usize,
    to: usize,
    per_s: f64,
}

impl Level {
    fn new(slots: &Slots, from: usize, to: usize) -> Self {
        Self {
            name: STEADY,
            from,
            to,
            per_s: slots.per_s(from, to),
        }
    }

    fn phase(&self, slots: &Slots) -> Phase {
        Phase {
            name: self.name,
            start_ms: slots.ms(self.from),
            end_ms: slots.ms(self.to),
            good_per_s: slots.per_s(self.from, self.to),
        }
    }
}

/// Names the levels of a trial that burned its ports.
fn of_ports(slots: &Slots, mut levels: Vec<Level>) -> Vec<Level> {
    let peak = levels.iter().map(|l| l.per_s).fold(0.0, f64::max);
    let failed = |l: &Level| -> f64 {
        let known = l.to.min(slots.errors.len());
        slots
            .errors
            .get(l.from..known)
            .map_or(0.0, |e| e.iter().sum())
    };
    for level in &mut levels {
        let good: u64 = slots.good[level.from..level.to].iter().sum();
        level.name = if good == 0 || failed(level) > good as f64 {
            EXHAUSTED
        } else if level.per_s >= FAST * peak {
            BURST
        } else {
            SEARCH
        };
    }
    let levels = joined(slots, levels, |a, b| a.name == b.name);
    let mut levels: Vec<Level> = levels.iter().flat_map(|l| woken(slots, l)).collect();
    let mut done = false;
    for level in &mut levels {
        if level.name == BURST {
            level.name = if done { RECOVERY } else { BURST };
        }
        done = true;
    }
    // Out of exhaustion leads only the end of TIME_WAIT, however few ports it frees at first.
    for i in 1..levels.len() {
        let short = (levels[i].to - levels[i].from) as u64 * slots.slot_ms < WITHIN_RECOVERY_MS;
        if short && levels[i].name == SEARCH && levels[i - 1].name == EXHAUSTED {
            levels[i].name = RECOVERY;
        }
    }
    let mut levels = joined(slots, levels, |a, b| a.name == b.name);
    wake(slots, &mut levels);
    // Ports that come back all at once are gone for a moment before the next do.
    for i in 1..levels.len().saturating_sub(1) {
        let short = (levels[i].to - levels[i].from) as u64 * slots.slot_ms < WITHIN_RECOVERY_MS;
        if short && levels[i].name == EXHAUSTED && levels[i - 1].name == RECOVERY {
            levels[i].name = RECOVERY;
        }
    }
    let recoveries: Vec<usize> = (0..levels.len())
        .filter(|i| levels[*i].name == RECOVERY)
        .collect();
    for pair in recoveries.windows(2) {
        let between = levels[pair[1]].from - levels[pair[0]].to;
        if (between as u64) * slots.slot_ms < WITHIN_RECOVERY_MS {
            levels[pair[0]..pair[1]]
                .iter_mut()
                .for_each(|level| level.name = RECOVERY);
        }
    }
    joined(slots, levels, |a, b| a.name == b.name)
}

/// Few ports come back and are gone again within less than the shortest level, or among many more requests that
/// find none. Still a recovery: what was good after a long time of nothing, up to the next such time.
fn woken(slots: &Slots, level: &Level) -> Vec<Level> {
    let long = slots.count_in(WITHIN_RECOVERY_MS).max(1);
    let mut cuts = vec![level.from];
    let mut last_good: Option<usize> = None;
    for slot in (level.from..level.to).filter(|s| slots.good[*s] > 0) {
        let since = last_good.map_or(level.from, |last| last + 1);
        if level.name == EXHAUSTED && slot - since >= long {
            // The end of the recovery before, if there is one, and the start of this one.
            cuts.extend(last_good.filter(|_| cuts.len() > 1).map(|last| last + 1));
            cuts.push(slot);
        }
        last_good = Some(slot);
    }
    if cuts.len() > 1 {
        // Without `long` slots of nothing behind it, it may not have ended.
        let end = last_good.map_or(level.to, |last| last + 1);
        cuts.extend((level.to - end >= long).then_some(end));
    }
    cuts.push(level.to);
    cuts.dedup();
    let part = |(i, w): (usize, &[usize])| Level {
        // What follows the exhaustion is fast whatever its mean: it is named after the burst, and so becomes
        // a recovery.
        name: if i % 2 == 1 { BURST } else { level.name },
        ..Level::new(slots, w[0], w[1])
    };
    cuts.windows(2).enumerate().map(part).collect()
}

/// Ports come back in steps: the first few may be gone again before the rest follow. The recovery begins
/// with the first slot that got one, after a second of none.
fn wake(slots: &Slots, levels: &mut [Level]) {
    let second = slots.count_in(1_000).max(1);
    for i in 0..levels.len().saturating_sub(1) {
        if levels[i].name != EXHAUSTED || levels[i + 1].name != RECOVERY {
            continue;
        }
        let (mut quiet, mut woke) = (0, None);
        for slot in levels[i].from..levels[i].to {
            if slots.good[slot] == 0 {
                quiet += 1;
            } else if quiet >= second && woke.is_none() {
                woke = Some(slot);
            }
        }
        if let Some(slot) = woke {
            levels[i].to = slot;
            levels[i + 1].from = slot;
        }
    }
}

/// Names the levels of any other trial.
fn of_levels(slots: &Slots, levels: Vec<Level>) -> Vec<Level> {
    let alike = |a: &Level, b: &Level| {
        let (low, high) = (a.per_s.min(b.per_s), a.per_s.max(b.per_s));
        low >= (1.0 - SAME) * high
    };
    let mut levels = joined(slots, levels, alike);
    let mut best: f64 = 0.0;
    let mut fell = false;
    for level in &mut levels {
        let low = level.per_s < (1.0 - SAME) * best;
        level.name = match (low, fell) {
            (true, _) => DECAY,
            (false, true) => RECOVERY,
            (false, false) => STEADY,
        };
        fell |= low;
        best = best.max(level.per_s);
    }
    joined(slots, levels, |a, b| a.name == b.name)
}

/// Joins neighbours that are alike.
fn joined(slots: &Slots, levels: Vec<Level>, alike: impl Fn(&Level, &Level) -> bool) -> Vec<Level> {
    let mut out: Vec<Level> = Vec::with_capacity(levels.len());
    for level in levels {
        match out.last_mut() {
            Some(last) if alike(last, &level) => {
                last.to = level.to;
                last.per_s = slots.per_s(last.from, last.to);
            }
            _ => out.push(level),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up course: (seconds, good a second, failed a second).
    fn slots(stretches: &[(f64, u64, f64)]) -> Slots {
        let mut out = Slots {
            slot_ms: 100,
            ..Slots::default()
        };
        for (seconds, good, errors) in stretches {
            // Whole tenths of seconds, few of them.
            for i in 0..(seconds * 10.0).round() as u64 {
                // The rest of an uneven division is spread over the slots.
                out.good.push(good * (i + 1) / 10 - good * i / 10);
                out.errors.push(errors / 10.0);
            }
        }
        out
    }

    fn names(course: &Course) -> Vec<(&'static str, u64, u64)> {
        course
            .phases
            .iter()
            .map(|p| (p.name, p.start_ms, p.end_ms))
            .collect()
    }

    /// Where cycles begin.
    fn starts(course: &Course) -> Vec<u64> {
        let begins = |p: &&Phase| matches!(p.name, BURST | RECOVERY);
        let phases = course.phases.iter().filter(begins);
        phases.map(|p| p.start_ms).collect()
    }

    #[test]
    fn the_cycle_of_the_ports_has_four_phases() {
        let seen = slots(&[
            (2.5, 6_000, 0.0),
            (35.0, 380, 0.0),
            (23.0, 0, 160.0),
            (0.1, 5_000, 160.0), // some come back and are gone again
            (1.0, 0, 160.0),
            (2.4, 6_000, 20.0),
            (36.0, 380, 0.0),
            (22.0, 0, 160.0),
            (2.0, 6_000, 0.0),
        ]);
        let got = course(&seen, Ports::Burned);
        assert_eq!(
            names(&got),
            [
                (BURST, 0, 2_500),
                (SEARCH, 2_500, 37_500),
                (EXHAUSTED, 37_500, 60_500),
                (RECOVERY, 60_500, 64_000),
                (SEARCH, 64_000, 100_000),
                (EXHAUSTED, 100_000, 122_000),
                (RECOVERY, 122_000, 124_000),
            ]
        );
        assert_eq!(got.cycles, 2);
        // 15,000 + 13,300 and 500 + 14,400 + 13,680, over 122 s.
        let sustained = got.sustained_per_s.unwrap();
        assert!((sustained - 56_880.0 / 122.0).abs() < 0.01, "{sustained}");
        assert_eq!(
            got.early_per_s,
            Some(6_000.0),
            "the burst is shorter than 10 s"
        );
    }

    #[test]
    fn a_burst_of_a_moment_begins_a_cycle() {
        // 2,000 ports are gone within 0.3 s, and come back in two steps among requests that find none.
        let seen = slots(&[
            (0.3, 6_667, 0.0),
            (59.7, 0, 5_000.0),
            (0.1, 6_340, 5_000.0),
            (1.9, 0, 5_000.0),
            (0.2, 6_830, 5_000.0),
            (59.3, 0, 5_000.0),
            (0.1, 1_320, 5_000.0),
            (2.0, 0, 5_000.0),
            (0.4, 4_600, 5_000.0),
            (6.0, 0, 5_000.0),
        ]);
        let got = course(&seen, Ports::Burned);
        assert_eq!(starts(&got), [0, 60_000, 121_500], "{:?}", names(&got));
        assert_eq!(got.cycles, 2);
        // 2,000 and 2,000 connections, over 121.5 s.
        let sustained = got.sustained_per_s.unwrap();
        assert!((sustained - 4_000.0 / 121.5).abs() < 0.1, "{sustained}");
    }

    #[test]
    fn ports_that_come_back_in_two_steps_are_one_recovery() {
        // The first step is used up by a burst and a search before the second comes.
        let seen = slots(&[
            (0.5, 8_350, 0.0),
            (2.5, 1_530, 0.0),
            (58.4, 0, 1_000.0),
            (0.5, 8_240, 0.0),
            (1.0, 1_370, 0.0),
            (0.5, 0, 1_000.0),
            (1.9, 1_320, 0.0),
            (57.5, 0, 1_000.0),
            (0.6, 6_450, 0.0),
            (1.0, 1_410, 0.0),
            (0.5, 0, 1_000.0),
            (2.6, 1_000, 0.0),
            (4.0, 0, 1_000.0),
        ]);
        let got = course(&seen, Ports::Burned);
        assert_eq!(starts(&got), [0, 61_400, 122_800], "{:?}", names(&got));
        assert_eq!(got.cycles, 2);
    }

    #[test]
    fn what_was_not_seen_is_not_said() {
        // A burst that ends in nothing: no cycle, nothing is sustained.
        let short = course(
            &slots(&[(0.8, 2_500, 0.0), (1.2, 0, 5_000.0)]),
            Ports::Burned,
        );
        assert_eq!(names(&short), [(BURST, 0, 800), (EXHAUSTED, 800, 2_000)]);
        assert_eq!((short.sustained_per_s, short.cycles), (None, 0));
        // A constant rate for which the ports would not have lasted.
        let would = course(&slots(&[(2.0, 2_500, 0.0)]), Ports::WouldRunOut);
        assert_eq!(names(&would), [(STEADY, 0, 2_000)]);
        assert_eq!(would.sustained_per_s, None);
        assert_eq!(course(&Slots::default(), Ports::Free), Course::default());
    }

    #[test]
    fn search_that_is_never_exhausted_has_a_cycle_too() {
        let seen = slots(&[
            (4.3, 7_000, 0.0),
            (57.0, 150, 0.0),
            (0.8, 7_000, 0.0),
            (1.0, 150, 0.0), // between two steps of the timers
            (3.0, 7_000, 0.0),
            (50.0, 150, 0.0),
        ]);
        let got = course(&seen, Ports::Burned);
        assert_eq!(
            names(&got),
            [
                (BURST, 0, 4_300),
                (SEARCH, 4_300, 61_300),
                (RECOVERY, 61_300, 66_100),
                (SEARCH, 66_100, 116_100),
            ]
        );
        // 30,100 + 8,550 over 61.3 s.
        assert!((got.sustained_per_s.unwrap() - 38_650.0 / 61.3).abs() < 0.01);
    }

    #[test]
    fn other_courses_are_steady_or_fall() {
        for (stretches, want) in [
            (&[(20.0, 1_000, 0.0)][..], &[STEADY][..]),
            (&[(10.0, 1_000, 0.0), (10.0, 900, 0.0)], &[STEADY]), // a tenth is not a phase
            (&[(10.0, 1_000, 0.0), (10.0, 500, 0.0)], &[STEADY, DECAY]),
            // A stall, and back.
            (
                &[(4.0, 1_000, 0.0), (2.0, 0, 0.0), (4.0, 1_000, 0.0)],
                &[STEADY, DECAY, RECOVERY],
            ),
            // It only grows: nothing fell.
            (&[(5.0, 100, 0.0), (5.0, 1_000, 0.0)], &[STEADY]),
        ] {
            let got = course(&slots(stretches), Ports::Free);
            let names: Vec<_> = got.phases.iter().map(|p| p.name).collect();
            assert_eq!(names, want, "{stretches:?}");
            assert!(got.sustained_per_s.is_some());
        }
    }
}

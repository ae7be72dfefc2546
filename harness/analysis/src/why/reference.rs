//! What the reference client reached on a target: the best known rate, and whether it bounds anything.
//!
//! Many users of a client that does nothing but send get out of a target what it has, if something was at its
//! limit: the CPU of the target, or their own. Where neither was, the rate is that of so many users and says
//! nothing about the target (Jain, "The art of computer systems performance analysis" (1991), chapter 3: a
//! system has its capacity at the knee, and only a saturated one has passed it).

use super::ceilings::{Ceiling, NO_PORT, TARGET};
use super::evidence::Evidence;
use crate::stats::{paired_ratio, spread};
use crate::text;

/// A CPU set that is used for this share of the time is at its limit.
const SATURATED: f64 = 0.8;

/// The trials of role "ceiling" of one target, lab and use of connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reference {
    pub cell: String,
    users: Option<f64>,
    /// good requests per second of each round
    rates: Vec<f64>,
    /// of each round: share of its CPU set that the target used, 0–1
    target_cpu: Vec<f64>,
    /// the same of the reference client
    client_cpu: Vec<f64>,
    /// whether the rates are those of the time before the ports ran out
    pub early: bool,
}

/// A rate over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// geometric mean, good requests per second
    pub per_s: f64,
    /// 95 % t interval from eight rounds on, below that the least and the greatest round
    pub range: (f64, f64),
    pub rounds: usize,
}

/// What was at its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Saturated {
    /// share of its CPU set
    Target(f64),
    /// share of its CPU set
    Client(f64),
}

impl Saturated {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Target(_) => "target",
            Self::Client(_) => "client",
        }
    }
}

impl Reference {
    /// Adds a round, unless something disturbed it or its requests failed for another reason than its ports.
    pub fn add(&mut self, e: &Evidence) {
        self.cell.clone_from(&e.cell);
        self.users = e.users;
        let failed: f64 = e.errors.values().sum::<f64>() - e.failed(&NO_PORT);
        let disturbed = e.noisy || e.crowded() || e.shared_cpus;
        if disturbed || failed > 0.01 * e.attempts {
            return;
        }
        let ran_out = e.no_port_s.is_some() || e.course.sustained_per_s.is_none();
        let rate = if ran_out {
            e.course.early_per_s
        } else {
            e.course.sustained_per_s
        };
        let Some(rate) = rate.filter(|x| x.is_finite() && *x > 0.0) else {
            return;
        };
        self.early |= ran_out;
        self.rates.push(rate);
        let most = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).max_by(f64::total_cmp);
        self.target_cpu
            .extend(most(e.target_cpu, e.target_set_busy));
        self.client_cpu
            .extend(most(e.client_cpu, e.client_set_busy));
    }

    /// `None` where no round counts.
    pub fn rate(&self) -> Option<Rate> {
        let pairs: Vec<_> = self.rates.iter().map(|x| (1.0, *x)).collect();
        let mean = paired_ratio(&pairs)?;
        let seen = spread(self.rates.iter().copied())?;
        Some(Rate {
            per_s: mean.mean,
            range: mean.interval.unwrap_or((seen.low, seen.high)),
            rounds: mean.rounds,
        })
    }

    /// Mean share of its CPU set that the target used, 0–1.
    pub fn target_cpu(&self) -> Option<f64> {
        mean(&self.target_cpu)
    }

    /// Mean share of its CPU set that the reference client used, 0–1.
    pub fn client_cpu(&self) -> Option<f64> {
        mean(&self.client_cpu)
    }

    /// What was at its limit; the target, where both were.
    pub fn saturated(&self) -> Option<Saturated> {
        let at_its_limit = |share: &f64| *share >= SATURATED;
        let target = self.target_cpu().filter(at_its_limit);
        let client = self.client_cpu().filter(at_its_limit);
        target
            .map(Saturated::Target)
            .or(client.map(Saturated::Client))
    }

    /// The bound of a trial on the same target: none where nothing was at its limit, and none where the trial
    /// did better than the reference client ever may have.
    pub fn bound(&self, e: &Evidence) -> Option<Ceiling> {
        let (rate, saturated) = (self.rate()?, self.saturated()?);
        let refuted = e.lasting_per_s().is_some_and(|x| x > rate.range.1);
        if refuted || e.reference {
            return None;
        }
        let used = |share: f64| text::percent(share, 1.0).unwrap_or_default();
        let why = match saturated {
            Saturated::Target(share) => format!("with {} of the target's CPU used", used(share)),
            Saturated::Client(share) => format!(
                "with {} of its own CPU used, so that the target may do more",
                used(share)
            ),
        };
        let users = self
            .users
            .map_or_else(String::new, |n| format!(" with {} users", text::counted(n)));
        let before = if self.early {
            " before its ports ran out"
        } else {
            ""
        };
        let rounds = if rate.rounds > 1 {
            let range = text::range(rate.range.0, rate.range.1, text::significant);
            format!(", mean of {} rounds ({range}/s)", rate.rounds)
        } else {
            String::new()
        };
        Some(Ceiling {
            kind: TARGET,
            per_s: rate.per_s,
            from: format!(
                "the reference client's rate on the same target{users}{before}{rounds}, {why} (\"{}\")",
                self.cell
            ),
        })
    }
}

fn mean(shares: &[f64]) -> Option<f64> {
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::phases::Course;
    use yieldpoint_protocol::ErrorKind;

    /// A made-up ceiling trial of 1,000/s: the target's CPU is used for 97 %.
    fn round(per_s: f64) -> Evidence {
        Evidence {
            cell: "m/ceiling=reference".into(),
            client: "reference".into(),
            reference: true,
            users: Some(64.0),
            attempts: 1_000.0,
            target_cpu: Some(0.97),
            client_cpu: Some(0.5),
            course: Course {
                sustained_per_s: Some(per_s),
                early_per_s: Some(2.0 * per_s),
                ..Course::default()
            },
            ..Evidence::default()
        }
    }

    fn of(rounds: &[Evidence]) -> Reference {
        let mut all = Reference::default();
        rounds.iter().for_each(|e| all.add(e));
        all
    }

    fn cell(per_s: f64) -> Evidence {
        let mut e = round(per_s);
        e.cell = "m/client=a".into();
        e.reference = false;
        e
    }

    #[test]
    fn a_rate_has_the_spread_of_its_rounds_and_from_eight_on_an_interval() {
        let few = of(&[round(1_000.0), round(1_210.0)]).rate().unwrap();
        assert!((few.per_s - 1_100.0).abs() < 1e-6, "{few:?}");
        assert_eq!((few.range, few.rounds), ((1_000.0, 1_210.0), 2));
        let eight: Vec<_> = (0..8).map(|i| round(1_000.0 + f64::from(i))).collect();
        let eight = of(&eight).rate().unwrap();
        assert!(
            eight.range.0 > 1_000.0 && eight.range.1 < 1_007.0,
            "{eight:?}"
        );
        assert_eq!(of(&[]).rate(), None);
    }

    #[test]
    fn only_what_was_at_its_limit_bounds_and_what_does_better_refutes_it() {
        let with = |change: &dyn Fn(&mut Evidence)| {
            let mut e = round(1_000.0);
            change(&mut e);
            of(&[e])
        };
        let slow = cell(500.0);
        // The target's CPU was used up.
        let bound = with(&|_| ()).bound(&slow).unwrap();
        assert_eq!((bound.kind, bound.per_s.round()), (TARGET, 1_000.0));
        assert!(
            bound.from.contains("97.0 % of the target's CPU used"),
            "{}",
            bound.from
        );
        // The reference client's own CPU was.
        let own = with(&|e| (e.target_cpu, e.client_cpu) = (Some(0.3), Some(0.95)));
        assert!(
            own.bound(&slow)
                .unwrap()
                .from
                .contains("the target may do more")
        );
        // Interrupts count as use where the whole set was busy.
        let busy = with(&|e| (e.target_cpu, e.target_set_busy) = (Some(0.6), Some(0.99)));
        assert_eq!(busy.saturated(), Some(Saturated::Target(0.99)));
        // Nothing was at its limit, or nobody knows: so many users reach so much, and no more is said.
        assert_eq!(with(&|e| e.target_cpu = Some(0.79)).bound(&slow), None);
        assert_eq!(
            with(&|e| (e.target_cpu, e.client_cpu) = (None, None)).bound(&slow),
            None
        );
        // A client that does better refutes it; the trial itself is not judged by itself.
        assert_eq!(with(&|_| ()).bound(&cell(1_001.0)), None);
        assert_eq!(with(&|_| ()).bound(&round(500.0)), None);
    }

    #[test]
    fn a_disturbed_round_does_not_count_and_ports_that_ran_out_leave_the_time_before() {
        let rate = |change: &dyn Fn(&mut Evidence)| {
            let mut e = round(1_000.0);
            change(&mut e);
            of(&[e]).rate().map(|r| r.per_s.round())
        };
        assert_eq!(rate(&|_| ()), Some(1_000.0));
        assert_eq!(rate(&|e| e.noisy = true), None);
        assert_eq!(
            rate(&|e| e.errors = [(ErrorKind::Timeout, 100.0)].into()),
            None
        );
        // The ports are not the target's: what it did before they ran out counts.
        let ran_out = |e: &mut Evidence| {
            e.errors = [(ErrorKind::AddressNotAvailable, 900.0)].into();
            e.no_port_s = Some(0.3);
        };
        assert_eq!(rate(&ran_out), Some(2_000.0));
        assert_eq!(rate(&|e| e.course.sustained_per_s = None), Some(2_000.0));
    }
}

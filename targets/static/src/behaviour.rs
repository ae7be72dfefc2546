//! How the target misbehaves on purpose: delays, stalls, errors, closes. Pure: what happens to the
//! n-th request of a worker is a function of the seed, of the worker and of n.

/// Longest delay that is drawn, ns: every client has long given up.
const LONGEST_DELAY_NS: f64 = 3600e9;

/// What is asked of the target beyond serving; all zero: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Behaviour {
    pub seed: u64,
    /// fixed delay, or the median of a distribution, ns
    pub delay_ns: u64,
    /// σ of the logarithm of a log-normal delay; 0: the delay is fixed
    pub delay_sigma: f64,
    /// from `go`, ns: nothing is answered in [at, at + for)
    pub stall_at_ns: u64,
    pub stall_for_ns: u64,
    pub error_rate: f64,
    pub early_close_rate: f64,
    pub reset_rate: f64,
    /// between two pieces of a body, ns
    pub slow_body_ns: u64,
    pub slow_body_pieces: usize,
    pub cpu_burn_ns: u64,
}

/// How a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Whole,
    /// a 500 in place of what was asked
    Error,
    /// the head, half of the body, and a FIN
    CutShort,
    /// no byte, and a RST
    Reset,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub delay_ns: u64,
    pub ending: Ending,
}

/// What is drawn for a request; each has a stream of its own, so that to ask for errors too does
/// not change the delays.
#[derive(Clone, Copy)]
enum Lane {
    Radius,
    Angle,
    Ending,
}

impl Behaviour {
    /// Nothing is asked: a request needs no plan.
    pub fn is_plain(&self) -> bool {
        let rates = self.error_rate + self.early_close_rate + self.reset_rate;
        let times = [
            self.delay_ns,
            self.stall_for_ns,
            self.slow_body_ns,
            self.cpu_burn_ns,
        ];
        rates == 0.0 && times.iter().all(|ns| *ns == 0)
    }

    /// What happens to the `nth` request of a worker.
    pub fn plan(&self, worker: u64, nth: u64) -> Plan {
        Plan {
            delay_ns: self.delay(worker, nth),
            ending: self.ending(uniform(self.seed, worker, nth, Lane::Ending)),
        }
    }

    fn delay(&self, worker: u64, nth: u64) -> u64 {
        if self.delay_sigma == 0.0 || self.delay_ns == 0 {
            return self.delay_ns;
        }
        let z = normal(
            uniform(self.seed, worker, nth, Lane::Radius),
            uniform(self.seed, worker, nth, Lane::Angle),
        );
        let ns = self.delay_ns as f64 * (self.delay_sigma * z).exp();
        // Finite, and not negative; whole nanoseconds are enough.
        ns.min(LONGEST_DELAY_NS).round() as u64
    }

    fn ending(&self, u: f64) -> Ending {
        // One draw for all: their rates add up, and no request ends in two ways.
        let reset = self.reset_rate;
        let cut = reset + self.early_close_rate;
        let error = cut + self.error_rate;
        match u {
            u if u < reset => Ending::Reset,
            u if u < cut => Ending::CutShort,
            u if u < error => Ending::Error,
            _ => Ending::Whole,
        }
    }

    /// When a request that was read at `now_ns` is answered; `go_ns` is the start, 0 before it.
    pub fn due_ns(&self, now_ns: u64, delay_ns: u64, go_ns: u64) -> u64 {
        let due_ns = now_ns + delay_ns;
        let from = go_ns + self.stall_at_ns;
        let until = from + self.stall_for_ns;
        if go_ns > 0 && (from..until).contains(&due_ns) {
            until
        } else {
            due_ns
        }
    }
}

/// A number in (0, 1): SplitMix64 (Steele, Lea, Flood 2014) at a place of its sequence, so that no
/// state is kept and no draw depends on how many were made before.
fn uniform(seed: u64, worker: u64, nth: u64, lane: Lane) -> f64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let stream = mix(mix(seed.wrapping_add(GOLDEN)) ^ (worker << 8 | lane as u64));
    let bits = mix(stream.wrapping_add(nth.wrapping_add(1).wrapping_mul(GOLDEN)));
    // 52 bits in the middle of their slots: never 0, whose logarithm has no value, and never 1.
    ((bits >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A draw of the standard normal distribution from two uniform ones (Box and Muller 1958).
fn normal(u: f64, v: f64) -> f64 {
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u64 = 200_000;

    fn lognormal(seed: u64) -> Vec<f64> {
        let b = Behaviour {
            seed,
            delay_ns: 70_000_000,
            delay_sigma: 0.3,
            ..Behaviour::default()
        };
        // Two workers, as their streams must be one distribution too.
        let mut all: Vec<f64> = (0..N)
            .map(|i| b.plan(i % 2, i / 2).delay_ns as f64)
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn log_normal_quantiles_are_those_of_theory() {
        // each row: p, z with Φ(z) = p
        let table = [
            (0.01, -2.326_347_87),
            (0.1, -1.281_551_57),
            (0.5, 0.0),
            (0.9, 1.281_551_57),
            (0.99, 2.326_347_87),
            (0.999, 3.090_232_31),
        ];
        for seed in 1..=3 {
            let sorted = lognormal(seed);
            for (p, z) in table {
                let n = N as f64;
                let got = sorted[(p * n) as usize];
                // How many of N draws lie below a quantile is binomial: five standard deviations
                // of the empirical p, as bounds of z by the density there. One in a million fails.
                let density = (-z * z / 2.0_f64).exp() / std::f64::consts::TAU.sqrt();
                let sd_z = 5.0 * (p * (1.0 - p) / n).sqrt() / density;
                let got_z = (got / 70e6).ln() / 0.3;
                assert!(
                    (got_z - z).abs() < sd_z,
                    "seed {seed}, p {p}: z {got_z}, expected {z} ± {sd_z}"
                );
            }
        }
    }

    #[test]
    fn successive_draws_do_not_hang_together() {
        let b = Behaviour {
            delay_ns: 1_000_000_000,
            delay_sigma: 1.0,
            ..Behaviour::default()
        };
        let z: Vec<f64> = (0..N)
            .map(|i| (b.plan(0, i).delay_ns as f64 / 1e9).ln())
            .collect();
        let correlation = z.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / N as f64;
        // Of independent draws its standard deviation is 1/√N.
        assert!(correlation.abs() < 5.0 / (N as f64).sqrt(), "{correlation}");
    }

    #[test]
    fn a_plan_depends_on_seed_worker_and_number_alone() {
        let b = |seed| Behaviour {
            seed,
            delay_ns: 1000,
            delay_sigma: 0.5,
            error_rate: 0.5,
            ..Behaviour::default()
        };
        assert_eq!(b(1).plan(0, 7), b(1).plan(0, 7));
        let differ = |x: (u64, u64), y: (u64, u64)| {
            (0..100).any(|i| b(x.0).plan(x.1, i) != b(y.0).plan(y.1, i))
        };
        assert!(differ((1, 0), (2, 0)), "another seed");
        assert!(differ((1, 0), (1, 1)), "another worker");
        // To ask for errors does not change the delays.
        let without = Behaviour {
            error_rate: 0.0,
            ..b(1)
        };
        assert!((0..100).all(|i| without.plan(0, i).delay_ns == b(1).plan(0, i).delay_ns));
    }

    #[test]
    fn endings_have_their_rates_and_exclude_each_other() {
        let b = Behaviour {
            error_rate: 0.5,
            early_close_rate: 0.25,
            reset_rate: 0.05,
            ..Behaviour::default()
        };
        // each row: ending, its rate
        let table = [
            (Ending::Error, 0.5),
            (Ending::CutShort, 0.25),
            (Ending::Reset, 0.05),
            (Ending::Whole, 0.2),
        ];
        for (ending, rate) in table {
            let got = (0..N).filter(|i| b.plan(3, *i).ending == ending).count() as f64;
            let (mean, sd) = (N as f64 * rate, (N as f64 * rate * (1.0 - rate)).sqrt());
            assert!(
                (got - mean).abs() < 5.0 * sd,
                "{ending:?}: {got}, expected {mean}"
            );
        }
        let never = Behaviour::default();
        let always = Behaviour {
            error_rate: 1.0,
            ..Behaviour::default()
        };
        for i in 0..1000 {
            assert_eq!(never.plan(0, i).ending, Ending::Whole);
            assert_eq!(always.plan(0, i).ending, Ending::Error);
        }
        assert!(never.is_plain() && !always.is_plain());
    }

    #[test]
    fn nothing_is_due_within_a_stall() {
        let b = Behaviour {
            stall_at_ns: 100,
            stall_for_ns: 50,
            ..Behaviour::default()
        };
        // each row: now, delay, go, due
        let table = [
            (1099, 0, 1000, 1099),  // just before it
            (1100, 0, 1000, 1150),  // its first moment
            (1149, 0, 1000, 1150),  // its last
            (1150, 0, 1000, 1150),  // over
            (1050, 60, 1000, 1150), // a delay that would end within it
            (1140, 20, 1000, 1160), // one that ends after it is not made longer
            (1120, 0, 0, 1120),     // no go yet
        ];
        for (now, delay, go, due) in table {
            assert_eq!(b.due_ns(now, delay, go), due, "{now} + {delay}");
        }
        assert_eq!(Behaviour::default().due_ns(5, 2, 1), 7);
    }
}

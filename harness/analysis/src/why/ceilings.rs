//! Upper bounds of throughput, each with the resource that sets it.
//!
//! Asymptotic bounds (Lazowska and others, "Quantitative system performance" (1984), chapter 5): what a
//! resource can do at most, and users ÷ R0, the throughput if nobody waited for anybody. They come from laws
//! of the kernel, from what was asked, and from *other* cells: a bound taken from the trial it judges
//! would be an identity.

use std::collections::{BTreeMap, HashMap};

use yieldpoint_protocol::ErrorKind;

use super::evidence::Evidence;
use super::reference::Reference;
use super::search::{PORT_SEARCH, Searches};
use crate::text;

/// TIME_WAIT lasts 60 s and up to a step of the kernel's timers more: 60.1 to 62.0 s were seen at 250 ticks a
/// second. From burst start to burst start this is the cycle.
pub(crate) const CYCLE_S: f64 = 61.0;
/// Below this share of connections that leave TIME_WAIT at the client, its ports do not bind.
const CLOSES_THAT_COUNT: f64 = 0.02;

pub(crate) const PORTS: &str = "ports";
pub(crate) const USERS: &str = "users";
pub(crate) const TARGET: &str = "target";
pub(crate) const CLIENT_CPU: &str = "client_cpu";
pub(crate) const NETWORK: &str = "network";
pub(crate) const PACING: &str = "pacing";

/// An upper bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ceiling {
    /// the resource that sets it
    pub kind: &'static str,
    /// good requests per second
    pub per_s: f64,
    /// how it was computed, in figures
    pub from: String,
}

/// What all trials of a run know of one another.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// by `target_key`: what the reference client reached
    references: BTreeMap<String, Reference>,
    /// by `target_key`: the best cell of each client
    best: HashMap<String, BTreeMap<String, Best>>,
    /// by `client_key`: the cell of one user
    one_user: HashMap<String, Mean>,
    /// by `client_key`: the cells by number of users
    cpu: HashMap<String, BTreeMap<u64, Mean>>,
    searches: Searches,
}

#[derive(Clone, Debug)]
struct Best {
    cell: String,
    per_s: f64,
}

/// The mean of a cell's rounds.
#[derive(Clone, Debug, Default)]
struct Mean {
    cell: String,
    sum: f64,
    n: f64,
}

impl Mean {
    fn add(&mut self, cell: &str, x: f64) {
        if self.cell.is_empty() {
            cell.clone_into(&mut self.cell);
        }
        if self.cell == cell {
            self.sum += x;
            self.n += 1.0;
        }
    }

    fn get(&self) -> f64 {
        self.sum / self.n
    }
}

impl Known {
    /// Gathers what may bound others.
    pub fn of<'e>(all: impl Iterator<Item = &'e Evidence>) -> Self {
        let mut known = Self::default();
        // Mean of the rounds of each cell: (target_key, client) → cell → mean.
        let mut rates: HashMap<(&str, &str), HashMap<&str, Mean>> = HashMap::new();
        for e in all {
            if e.reference {
                let of_key = known.references.entry(e.target_key.clone());
                of_key.or_default().add(e);
                continue;
            }
            // A control is its cell once more; it would count that cell twice.
            if e.control || !sound(e) {
                continue;
            }
            known.searches.add(e);
            if let Some(x) = e.course.sustained_per_s {
                let of_key = rates.entry((&e.target_key, &e.client)).or_default();
                of_key.entry(&e.cell).or_default().add(&e.cell, x);
            }
            let one = e.users == Some(1.0);
            if let Some(r) = e.latency_mean_s.filter(|r| one && *r > 0.0) {
                let cell = known.one_user.entry(e.client_key.clone()).or_default();
                cell.add(&e.cell, r);
            }
            if let Some((users, cpu)) = e.users.zip(e.client_cpu_s_per_good) {
                let cells = known.cpu.entry(e.client_key.clone()).or_default();
                // Users are whole numbers, far below 2^53.
                cells.entry(users as u64).or_default().add(&e.cell, cpu);
            }
        }
        for ((key, client), cells) in rates {
            let best = cells.values().max_by(|a, b| {
                // Of equal ones the first by name, so that every analysis says the same.
                a.get()
                    .total_cmp(&b.get())
                    .then_with(|| b.cell.cmp(&a.cell))
            });
            let Some(best) = best else { continue };
            let new = Best {
                cell: best.cell.clone(),
                per_s: best.get(),
            };
            let of_key = known.best.entry(key.to_owned()).or_default();
            of_key.insert(client.to_owned(), new);
        }
        known
    }

    /// What the reference client reached, a target at a time, in the order of their cells.
    pub fn references(self) -> Vec<Reference> {
        let mut all: Vec<Reference> = self.references.into_values().collect();
        all.sort_by(|a, b| a.cell.cmp(&b.cell));
        all
    }

    /// The fastest other client on the target of `e`.
    fn fastest_other(&self, e: &Evidence) -> Option<&Best> {
        let others = self.best.get(&e.target_key)?.iter();
        let others = others.filter(|(client, best)| **client != e.client && best.cell != e.cell);
        let others = others.map(|(_, best)| best);
        others.max_by(|a, b| a.per_s.total_cmp(&b.per_s))
    }
}

/// Whether a trial may bound others: little of it failed, and its client had its CPUs for itself.
fn sound(e: &Evidence) -> bool {
    let failed: f64 = e.errors.values().sum();
    failed <= 0.01 * e.attempts && !e.noisy && !e.crowded() && !e.shared_cpus
}

/// All bounds of a trial that are known, the least first.
pub(crate) fn ceilings(e: &Evidence, known: &Known) -> Vec<Ceiling> {
    let mut all: Vec<Ceiling> = [
        ports(e),
        port_search(e, known),
        users(e, known),
        target(e, known),
        client_cpu(e, known),
        network(e),
        pacing(e),
    ]
    .into_iter()
    .flatten()
    .filter(|c| c.per_s.is_finite() && !refuted(c, e))
    .collect();
    all.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
    all
}

/// Whether the trial did better than an estimate from other cells, by more than rounds differ. What the
/// kernel or the asker sets is no estimate: there an excess must be seen.
fn refuted(c: &Ceiling, e: &Evidence) -> bool {
    let estimate = matches!(c.kind, USERS | TARGET | CLIENT_CPU | PORT_SEARCH);
    estimate && e.lasting_per_s().is_some_and(|x| x > 1.05 * c.per_s)
}

/// Connections per cycle ÷ cycle × requests per connection. A window that is shorter than a cycle holds
/// one burst, whatever its length: its bound is that of the window.
fn ports(e: &Evidence) -> Option<Ceiling> {
    let share = e.client_closes.filter(|p| *p >= CLOSES_THAT_COUNT)?;
    let (ports, requests) = (e.ports?, e.requests_per_connection?);
    let connections = ports / share;
    let (seconds, why) = match e.reuse_after_s {
        Some(delay) if delay > 0.0 => (
            delay,
            format!("{} s until a port is reused", text::significant(delay)),
        ),
        Some(_) => return None,
        None if e.window_s < CYCLE_S => (
            e.window_s,
            format!(
                "the window of {} s, shorter than a cycle",
                text::significant(e.window_s)
            ),
        ),
        None => (CYCLE_S, format!("{CYCLE_S} s of TIME_WAIT")),
    };
    let of_closes = if share < 0.995 {
        format!(
            " ÷ {} of the connections that the client closes first",
            text::percent(share, 1.0)?
        )
    } else {
        String::new()
    };
    Some(Ceiling {
        kind: PORTS,
        per_s: connections * requests / seconds,
        from: format!(
            "{} ports{of_closes} × {} a connection ÷ {why}",
            text::counted(ports),
            requests_text(requests),
        ),
    })
}

fn port_search(e: &Evidence, known: &Known) -> Option<Ceiling> {
    let share = e.client_closes.filter(|p| *p >= CLOSES_THAT_COUNT)?;
    known.searches.ceiling(e, share)
}

fn requests_text(n: f64) -> String {
    let s = if n == 1.0 { "" } else { "s" };
    format!("{} request{s}", text::counted(n))
}

/// Users ÷ the response time of one user alone.
fn users(e: &Evidence, known: &Known) -> Option<Ceiling> {
    let users = e.users.filter(|_| e.rate.is_none())?;
    let alone = known
        .one_user
        .get(&e.client_key)
        .filter(|m| m.cell != e.cell)?;
    let r0 = alone.get();
    Some(Ceiling {
        kind: USERS,
        per_s: users / r0,
        from: format!(
            "{} users ÷ {}, the response time of one user alone (\"{}\")",
            text::counted(users),
            text::time(r0 * 1e9),
            alone.cell
        ),
    })
}

/// The best known rate of the target: what the reference client reached where it was measured, otherwise the
/// fastest of the other clients.
fn target(e: &Evidence, known: &Known) -> Option<Ceiling> {
    match known.references.get(&e.target_key) {
        Some(reference) => reference.bound(e),
        None => {
            let best = known.fastest_other(e)?;
            Some(Ceiling {
                kind: TARGET,
                per_s: best.per_s,
                from: format!(
                    "the rate of the fastest other client on the same target, which may do more (\"{}\")",
                    best.cell
                ),
            })
        }
    }
}

/// CPUs of the client ÷ what a request costs it in the cell of fewest users.
fn client_cpu(e: &Evidence, known: &Known) -> Option<Ceiling> {
    let cores = e.client_cores?;
    let cells = known.cpu.get(&e.client_key)?;
    let (users, cheapest) = cells.first_key_value()?;
    if cheapest.cell == e.cell || cheapest.get() <= 0.0 {
        return None;
    }
    Some(Ceiling {
        kind: CLIENT_CPU,
        per_s: cores / cheapest.get(),
        from: format!(
            "{} of CPU ÷ {} a request with {users} user{} (\"{}\")",
            text::plural(cores.round() as usize, "core"),
            text::time(cheapest.get() * 1e9),
            if *users == 1 { "" } else { "s" },
            cheapest.cell
        ),
    })
}

/// The link ÷ bits on the wire per request. The bits are a size, not a rate: they may come from the trial.
fn network(e: &Evidence) -> Option<Ceiling> {
    let (link, used, x) = (e.link_bit_per_s?, e.link_used_bit_per_s?, e.good_per_s?);
    let bits = used / x;
    (x > 0.0 && bits > 0.0).then(|| Ceiling {
        kind: NETWORK,
        per_s: link / bits,
        from: format!(
            "{} Mbit/s ÷ {} bytes on the wire a request",
            text::significant(link / 1e6),
            text::significant(bits / 8.0)
        ),
    })
}

fn pacing(e: &Evidence) -> Option<Ceiling> {
    e.rate.map(|rate| Ceiling {
        kind: PACING,
        per_s: rate,
        from: format!("{} requests/s were asked for", text::significant(rate)),
    })
}

/// Requests that found no local port.
pub(crate) const NO_PORT: [ErrorKind; 2] =
    [ErrorKind::AddressNotAvailable, ErrorKind::AddressInUse];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::phases::Course;

    /// A made-up trial: 10 s, one user, 1,000/s, 28,232 ports that it does not touch.
    fn made_up(client: &str, cell: &str) -> Evidence {
        Evidence {
            client: client.into(),
            cell: cell.into(),
            target_key: "t".into(),
            client_key: format!("t {client}"),
            window_s: 10.0,
            users: Some(1.0),
            ports: Some(28_232.0),
            requests_per_connection: Some(1.0),
            good_per_s: Some(1_000.0),
            attempts: 10_000.0,
            course: Course {
                sustained_per_s: Some(1_000.0),
                ..Course::default()
            },
            ..Evidence::default()
        }
    }

    #[test]
    fn ports_bind_by_their_number_and_the_time_until_they_are_back() {
        let base = || Evidence {
            window_s: 130.0,
            client_closes: Some(1.0),
            ..made_up("a", "a1")
        };
        let of = |change: &dyn Fn(&mut Evidence)| {
            let mut e = base();
            change(&mut e);
            ports(&e).map(|c| c.per_s.round())
        };
        // 28,232 ÷ 61.
        assert_eq!(of(&|_| ()), Some(463.0));
        // Ten requests a connection.
        assert_eq!(
            of(&|e| e.requests_per_connection = Some(10.0)),
            Some(4_628.0)
        );
        // The client closes first in half of the cases: twice the connections.
        assert_eq!(of(&|e| e.client_closes = Some(0.5)), Some(926.0));
        // Free again after a second.
        assert_eq!(of(&|e| e.reuse_after_s = Some(1.0)), Some(28_232.0));
        // A window of 2 s holds one burst.
        assert_eq!(of(&|e| e.window_s = 2.0), Some(14_116.0));
        // The target closes first: the client's ports do not bind.
        assert_eq!(of(&|e| e.client_closes = Some(0.001)), None);
        // Who closes first was not measured: nothing is said.
        assert_eq!(of(&|e| e.client_closes = None), None);
        // Free at once.
        assert_eq!(of(&|e| e.reuse_after_s = Some(0.0)), None);
    }

    #[test]
    fn a_bound_never_comes_from_the_trial_it_judges() {
        let alone = Evidence {
            latency_mean_s: Some(0.001),
            client_cpu_s_per_good: Some(0.0001),
            client_cores: Some(1.0),
            ..made_up("a", "a1")
        };
        let eight = Evidence {
            users: Some(8.0),
            latency_mean_s: Some(0.002),
            client_cpu_s_per_good: Some(0.0002),
            ..Evidence {
                cell: "a8".into(),
                ..alone.clone()
            }
        };
        let known = Known::of([&alone, &eight].into_iter());
        // The cell of one user has no bound of its own making.
        assert_eq!(ceilings(&alone, &known), []);
        // That of eight has two: 8 ÷ 1 ms and 1 core ÷ 100 µs.
        let got = ceilings(&eight, &known);
        let kinds: Vec<_> = got.iter().map(|c| (c.kind, c.per_s.round())).collect();
        assert_eq!(kinds, [(USERS, 8_000.0), (CLIENT_CPU, 10_000.0)]);
    }

    #[test]
    fn the_best_known_rate_is_that_of_another_client() {
        let rate = |client: &str, x: f64| {
            let mut e = made_up(client, client);
            e.course.sustained_per_s = Some(x);
            e
        };
        let (slow, fast) = (rate("slow", 500.0), rate("fast", 900.0));
        let known = Known::of([&slow, &fast].into_iter());
        assert_eq!(target(&slow, &known).unwrap().per_s, 900.0);
        // Nobody slower bounds the fastest: its own rate refutes it.
        assert_eq!(ceilings(&fast, &known), []);
        // A trial run for this purpose goes before every other.
        let mut reference = rate("reference", 700.0);
        reference.reference = true;
        reference.target_cpu = Some(0.97);
        let known = Known::of([&slow, &fast, &reference].into_iter());
        assert_eq!(target(&slow, &known).unwrap().per_s.round(), 700.0);
        // A control is its cell once more: it changes nothing.
        let mut twin = rate("fast", 2_000.0);
        twin.control = true;
        let known = Known::of([&slow, &fast, &twin].into_iter());
        assert_eq!(target(&slow, &known).unwrap().per_s, 900.0);
        // Another target, lab or keep-alive is no bound.
        let mut elsewhere = rate("slow", 500.0);
        elsewhere.target_key = "other".into();
        assert_eq!(target(&elsewhere, &known), None);
        // One that failed, or burned its ports, does not know the target's limit.
        let mut failing = rate("fast", 900.0);
        failing.errors = [(ErrorKind::Timeout, 5_000.0)].into();
        assert_eq!(target(&slow, &Known::of([&failing].into_iter())), None);
    }

    #[test]
    fn what_was_asked_and_what_the_link_carries_bind() {
        let e = Evidence {
            rate: Some(2_000.0),
            link_bit_per_s: Some(100e6),
            link_used_bit_per_s: Some(8e6), // 1,000 bytes a request
            users: Some(4.0),
            ..made_up("a", "a1")
        };
        let got = ceilings(&e, &Known::default());
        let kinds: Vec<_> = got.iter().map(|c| (c.kind, c.per_s)).collect();
        assert_eq!(kinds, [(PACING, 2_000.0), (NETWORK, 12_500.0)]);
    }
}

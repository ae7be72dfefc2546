//! Whether the load that was asked for was put on.

/// Share of an asked rate that may be missing: what is less is not seen in a comparison.
const MISSING: f64 = 0.02;
/// Standard deviations that a Poisson count may lie below its mean; a sound client does so in 3 of 100,000 trials.
const DEVIATIONS: f64 = 4.0;

/// What was asked of a client, and what it did.
#[derive(Clone, Copy, Debug)]
pub struct AskedLoad {
    /// users of all processes together
    pub users: u64,
    /// users that ran
    pub ran: u64,
    /// open loop: requests per second of all processes together
    pub rate: Option<f64>,
    /// whether the starts are spread at random (Poisson)
    pub random: bool,
    /// from `go` to the end of the window, ns
    pub load_ns: u64,
    /// requests begun since `go`, those still in flight at the window's end included
    pub started: u64,
}

/// Whether fewer users ran than were asked for, or requests began at less than the asked rate, whatever the
/// cause: in an open loop all users may be busy because the target is slow, and then the asked rate
/// was not reached either.
///
/// Allowed are 2 % of the expected requests, or 4 √n where their number is Poisson's (its variance is
/// its mean), whichever is more; and one request a user, which may be due and not begun when the window ends.
#[must_use]
pub fn starved(a: AskedLoad) -> bool {
    let too_slow = a.rate.is_some_and(|rate| {
        let expected = rate * a.load_ns as f64 / 1e9;
        let spread = if a.random {
            DEVIATIONS * expected.sqrt()
        } else {
            0.0
        };
        let allowed = spread.max(MISSING * expected) + a.users as f64;
        (a.started as f64) < expected - allowed
    });
    a.ran < a.users || too_slow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_was_not_put_on() {
        let users = |users, ran| AskedLoad {
            users,
            ran,
            rate: None,
            random: false,
            load_ns: 10_000_000_000,
            started: 5,
        };
        // 1,000/s for 10 s by 10 users
        let open = |random, started| AskedLoad {
            rate: Some(1_000.0),
            random,
            started,
            ..users(10, 10)
        };
        let table = [
            (users(4, 4), false), // a closed loop asks for users, not for a rate
            (users(4, 3), true),  // one did not run
            (users(4, 5), false), // more than asked is no lack
            (open(false, 10_000), false),
            (open(false, 9_790), false), // 2 % and one request a user: at the limit
            (open(false, 9_789), true),  // below it
            (open(true, 9_590), false),  // 4 √10,000 = 400, and one a user
            (open(true, 9_589), true),
            (open(false, 0), true), // a target that never answers has all users wait
            (
                AskedLoad {
                    rate: Some(1e6),
                    random: true,
                    started: 9_799_990,
                    ..users(10, 10)
                },
                false,
            ), // of many, 4 √n are less than 2 %
            (
                AskedLoad {
                    rate: Some(0.1),
                    started: 0,
                    ..users(1, 1)
                },
                false,
            ), // one request was due, at the very end perhaps
        ];
        for (i, (load, want)) in table.into_iter().enumerate() {
            assert_eq!(starved(load), want, "row {i}: {load:?}");
        }
    }
}

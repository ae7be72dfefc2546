//! The virtual user: a pure state machine whose only clock is its argument.

use crate::{Pace, Setup};

/// The times of a run, CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// the common start that `go` carried; warm-up begins here
    pub go_ns: u64,
    /// first moment of the window
    pub start_ns: u64,
    /// planned end of the window; not part of it
    pub end_ns: u64,
}

impl Window {
    /// The window of a job that starts at `go_ns`.
    #[must_use]
    pub fn new(setup: &Setup, go_ns: u64) -> Self {
        let start_ns = go_ns.saturating_add(setup.warmup.0);
        Self {
            go_ns,
            start_ns,
            end_ns: start_ns.saturating_add(setup.duration.0),
        }
    }

    /// Whether something that happened at `ns` belongs to the window.
    #[must_use]
    pub const fn holds(&self, ns: u64) -> bool {
        self.start_ns <= ns && ns < self.end_ns
    }
}

/// What a virtual user does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this time of CLOCK_MONOTONIC.
    Wait {
        /// ns
        until_ns: u64,
    },
    /// Drop connection, pool and cookies; go on as a new user. Nothing is opened yet.
    Connect,
    /// Make one request, then call [`VirtualUser::done`].
    Request {
        /// Open loop: when it should have started, ns; not after now. `None` in a closed loop.
        intended_ns: Option<u64>,
    },
    /// Never again.
    Stop,
}

/// One loop of iterations, closed or, by its [`Pace`], open.
///
/// The driver calls [`next`](Self::next) until it says [`Step::Stop`], and answers every
/// [`Step::Request`] with exactly one [`done`](Self::done) before it asks again.
#[derive(Clone, Debug)]
pub struct VirtualUser {
    window: Window,
    iterations: u64,
    requests_per_iteration: u64,
    same_user: bool,
    // A fresh session is due before anything else.
    connect_due: bool,
    iterations_ended: u64,
    // Requests of the current iteration that have ended.
    requests_ended: u64,
    iteration_start_ns: u64,
    // The start that this user has taken from the pace and not used yet, ns.
    intended_ns: Option<u64>,
}

impl VirtualUser {
    /// A user that has done nothing yet.
    #[must_use]
    pub fn new(setup: &Setup, window: Window) -> Self {
        Self {
            window,
            iterations: setup.iterations.unwrap_or(u64::MAX),
            requests_per_iteration: setup.requests_per_iteration,
            same_user: setup.same_user,
            connect_due: true,
            iterations_ended: 0,
            requests_ended: 0,
            iteration_start_ns: 0,
            intended_ns: None,
        }
    }

    /// What to do at `now_ns`. A free user takes the next start from the pace that it shares with
    /// the other users of its thread; a start that is due at the window's end or later is none.
    pub fn next(&mut self, now_ns: u64, pace: &mut Pace) -> Step {
        // First of all, so that the drop at the end of the last iteration is not forgotten.
        if self.connect_due {
            self.connect_due = false;
            return Step::Connect;
        }
        if now_ns < self.window.go_ns {
            return Step::Wait {
                until_ns: self.window.go_ns,
            };
        }
        if self.out_of_iterations() || now_ns >= self.window.end_ns {
            return Step::Stop;
        }
        if self.intended_ns.is_none() {
            self.intended_ns = pace.take();
        }
        match self.intended_ns {
            Some(until_ns) if until_ns >= self.window.end_ns => return Step::Stop,
            Some(until_ns) if until_ns > now_ns => return Step::Wait { until_ns },
            _ => {}
        }
        if self.requests_ended == 0 {
            self.iteration_start_ns = now_ns;
        }
        Step::Request {
            intended_ns: self.intended_ns.take(),
        }
    }

    /// The request has ended, well or not. Returns the start (ns) of the iteration that it
    /// completed without an error, if it did.
    ///
    /// A failure ends the iteration, and that iteration counts: otherwise a user without
    /// a port would loop for ever.
    pub fn done(&mut self, ok: bool) -> Option<u64> {
        self.requests_ended += 1;
        let complete = self.requests_ended == self.requests_per_iteration;
        if ok && !complete {
            return None;
        }
        self.requests_ended = 0;
        self.iterations_ended += 1;
        self.connect_due = !self.same_user;
        ok.then_some(self.iteration_start_ns)
    }

    /// Whether the count of iterations, not the window's end, stops this user.
    #[must_use]
    pub const fn out_of_iterations(&self) -> bool {
        self.iterations_ended >= self.iterations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::tests::setup;

    /// Runs a user whose requests take 10 ns each from `from_ns`; `fails` are the numbers of the
    /// requests that fail. One letter a step: W, C, R, S; `|` where an iteration was completed.
    fn steps(mut user: VirtualUser, pace: &mut Pace, from_ns: u64, fails: &[usize]) -> String {
        let (mut now, mut requests, mut out) = (from_ns, 0, String::new());
        for _ in 0..100 {
            match user.next(now, pace) {
                Step::Wait { until_ns } => {
                    assert!(until_ns > now, "a wait leads forward");
                    now = until_ns;
                    out.push('W');
                }
                Step::Connect => out.push('C'),
                Step::Request { intended_ns } => {
                    assert!(intended_ns.is_none_or(|t| t <= now), "never early");
                    now += 10;
                    out.push('R');
                    let ok = !fails.contains(&requests);
                    requests += 1;
                    if user.done(ok).is_some() {
                        out.push('|');
                    }
                }
                Step::Stop => {
                    out.push('S');
                    return out;
                }
            }
        }
        panic!("no stop after 100 steps: {out}");
    }

    #[test]
    fn sequences() {
        const WINDOW: Window = Window {
            go_ns: 100,
            start_ns: 100,
            end_ns: 150,
        };
        type Row = (bool, u64, Option<u64>, u64, &'static [usize], &'static str);
        // each row: same_user, requests an iteration, iterations, asked first at, failing requests, steps
        let table: &[Row] = &[
            // Asked early: the session is made before the start, the first request waits for it.
            (true, 1, Some(2), 0, &[], "CWR|R|S"),
            // Asked late: no wait.
            (true, 2, Some(2), 100, &[], "CRR|RR|S"),
            // A forgetful user drops at every end of an iteration, the last included.
            (false, 2, Some(2), 100, &[], "CRR|CRR|CS"),
            // 50 ns hold five requests; the third iteration is cut, and it is not counted.
            (true, 2, None, 100, &[], "CRR|RR|RS"),
            // The same for a forgetful user: what the cut iteration holds is dropped after Stop.
            (false, 2, None, 100, &[], "CRR|CRR|CRS"),
            // The window's end beats a larger count.
            (true, 1, Some(9), 100, &[], "CR|R|R|R|R|S"),
            // A failure ends its iteration: the next request starts another one.
            (true, 3, Some(2), 100, &[0], "CRRRR|S"),
            // ... and a forgetful user drops there too.
            (false, 3, Some(2), 100, &[1], "CRRCRRR|CS"),
            // Failed iterations count, else exhaustion would loop for ever.
            (true, 5, Some(3), 100, &[0, 1, 2], "CRRRS"),
            // Failure of the last request of an iteration: not completed, once ended.
            (true, 2, Some(2), 100, &[1], "CRRRR|S"),
            // Nothing starts at the window's end, not even the first request.
            (true, 1, None, 150, &[], "CS"),
            // The last nanosecond of the window is in it.
            (true, 1, None, 149, &[], "CR|S"),
        ];
        for (same_user, rpi, iterations, from, fails, want) in table {
            let setup = Setup {
                same_user: *same_user,
                requests_per_iteration: *rpi,
                iterations: *iterations,
                ..setup()
            };
            let got = steps(
                VirtualUser::new(&setup, WINDOW),
                &mut Pace::Closed,
                *from,
                fails,
            );
            assert_eq!(
                &got, want,
                "same_user {same_user}, {rpi} requests, {iterations:?} iterations, fails {fails:?}"
            );
        }
    }

    /// A request of a closed loop.
    const NOW: Step = Step::Request { intended_ns: None };

    #[test]
    fn paced_sequences() {
        type Row = (f64, u64, bool, u64, u64, &'static str);
        // The common start is at 100 ns, a request takes 10 ns.
        // each row: rate, requests an iteration, same_user, window's length, asked first at, steps
        let table: &[Row] = &[
            // A start every 20 ns: three of them in 50 ns. The user waits for each but the first.
            (5e7, 1, true, 50, 100, "CR|WR|WR|S"),
            // The start of the load is waited for as in a closed loop.
            (5e7, 1, true, 50, 0, "CWR|WR|WR|S"),
            // Faster than the user: starts are late, none is skipped, none is early.
            (2e8, 1, true, 50, 100, "CR|R|R|R|R|S"),
            // Late by 30 ns, the user catches up (starts at 100, 120, 140, 160 are overdue).
            (5e7, 1, true, 80, 165, "CR|R|S"),
            // Every request of an iteration is paced, and the drop at its end comes before the wait.
            (5e7, 2, false, 90, 100, "CRWR|CWRWR|CWRS"),
            // The next start is beyond the window: the user stops at once, without a wait.
            (1e7, 1, true, 50, 100, "CR|S"),
            // A start on the window's end is outside.
            (2e7, 1, true, 50, 100, "CR|S"),
        ];
        for (rate, rpi, same_user, length, from, want) in table {
            let setup = Setup {
                same_user: *same_user,
                requests_per_iteration: *rpi,
                rate: Some(*rate),
                ..setup()
            };
            let window = Window {
                go_ns: 100,
                start_ns: 100,
                end_ns: 100 + length,
            };
            let mut pace = Pace::new(&setup, window, 0);
            let got = steps(VirtualUser::new(&setup, window), &mut pace, *from, &[]);
            assert_eq!(
                &got, want,
                "{rate}/s, {rpi} requests, same_user {same_user}"
            );
        }
    }

    #[test]
    fn users_share_the_starts_of_their_thread() {
        let setup = Setup {
            rate: Some(1e8),
            ..setup()
        };
        let window = Window::new(&setup, 0);
        let mut pace = Pace::new(&setup, window, 0);
        let mut users = [(); 3].map(|()| VirtualUser::new(&setup, window));
        for user in &mut users {
            assert_eq!(user.next(0, &mut pace), Step::Connect);
        }
        let starts = users.each_mut().map(|user| user.next(0, &mut pace));
        let wait = |until_ns| Step::Wait { until_ns };
        let first = Step::Request {
            intended_ns: Some(0),
        };
        assert_eq!(starts, [first, wait(10), wait(20)]);
        // Whoever is free first takes the next one; who holds one keeps it.
        users[0].done(true);
        assert_eq!(users[0].next(5, &mut pace), wait(30));
        assert_eq!(users[2].next(15, &mut pace), wait(20));
        let late = Step::Request {
            intended_ns: Some(10),
        };
        assert_eq!(users[1].next(17, &mut pace), late);
    }

    #[test]
    fn an_iteration_begins_with_its_first_request() {
        let setup = Setup {
            requests_per_iteration: 2,
            ..setup()
        };
        let mut user = VirtualUser::new(&setup, Window::new(&setup, 0));
        assert_eq!(user.next(5, &mut Pace::Closed), Step::Connect);
        assert_eq!(user.next(6, &mut Pace::Closed), NOW);
        assert_eq!(user.done(true), None);
        assert_eq!(user.next(8, &mut Pace::Closed), NOW);
        assert_eq!(user.done(true), Some(6));
        assert_eq!(user.next(9, &mut Pace::Closed), NOW);
        assert_eq!(user.done(false), None, "a failed iteration has no time");
    }

    #[test]
    fn a_window_follows_the_warm_up_and_excludes_its_end() {
        let setup = Setup {
            warmup: yieldpoint_terms::Nanos(7),
            duration: yieldpoint_terms::Nanos(10),
            ..setup()
        };
        let w = Window::new(&setup, 100);
        assert_eq!((w.go_ns, w.start_ns, w.end_ns), (100, 107, 117));
        assert_eq!(
            [106, 107, 116, 117].map(|t| w.holds(t)),
            [false, true, true, false]
        );
    }
}

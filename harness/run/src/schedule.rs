//! Which trial comes next: a function of the plan and of what the trials so far gave, so that a run that was
//! interrupted goes on as it would have without. Pure.

use std::ops::RangeInclusive;

use yieldpoint_matrix::Shuffled;
use yieldpoint_record::{Role, Status, Trial};
use yieldpoint_terms::{Nanos, Rounds};

use crate::compare::{Compared, Decisions, LOOKS};
use crate::plan::Plan;
use crate::searches::Searches;

/// One place in the order of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// from 1
    pub round: u32,
    /// why it runs
    pub role: Role,
    /// index among the plan's cells, or among its ceilings
    pub cell: usize,
}

/// How much of a run there is in all; a range where its results decide, and of a search the most until it is
/// known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// passes over all cells
    pub rounds: RangeInclusive<u32>,
    /// trials, without cells that their client cannot do
    pub trials: RangeInclusive<usize>,
    /// time of all windows and of what stands between them, estimated
    pub time: RangeInclusive<Nanos>,
}

/// The order of a run.
pub struct Schedule<'a> {
    plan: &'a Plan,
    /// What a client cannot do is a row of every round, too, and costs no time: first of all.
    unsupported: Vec<usize>,
    /// what each round runs; of a search, what this one does
    trials: Vec<(Role, usize)>,
    /// estimated time of a round
    time_of_round: Nanos,
    orders: Shuffled,
    /// order of the round under way
    order: Vec<usize>,
    /// the round under way, from 1
    round: u32,
    /// rows of it that are done
    done: usize,
    /// trials of earlier rounds
    ran: usize,
    over: bool,
    stop: Stop,
}

/// When there are enough rounds.
enum Stop {
    After(u32),
    Decided(Decisions),
    Found(Searches),
}

impl<'a> Schedule<'a> {
    /// From the first trial on.
    #[must_use]
    pub fn new(plan: &'a Plan) -> Self {
        let can_run = plan.runnable();
        let roles = [
            (Role::Cell, can_run),
            (Role::Control, plan.controls.clone()),
            (Role::Ceiling, (0..plan.ceilings.len()).collect()),
        ];
        let trials: Vec<(Role, usize)> = roles
            .into_iter()
            .flat_map(|(role, cells)| cells.into_iter().map(move |cell| (role, cell)))
            .collect();
        let unsupported = plan.cells.iter().enumerate();
        let unsupported = unsupported.filter(|(_, c)| c.unsupported.is_some());
        let stop = match (&plan.auto, plan.matrix.run.rounds) {
            (Some(auto), _) => {
                Stop::Decided(Decisions::new(auto.rule.clone(), auto.comparisons.clone()))
            }
            (None, Rounds::Fixed(rounds)) => {
                Searches::new(plan).map_or(Stop::After(rounds), Stop::Found)
            }
            // A plan of "auto" has comparisons; without one, a round is all there is to see.
            (None, Rounds::Auto) => Stop::After(1),
        };
        let mut orders = Shuffled::new(trials.len(), plan.matrix.run.seed);
        let (trials, order) = match &stop {
            Stop::Found(searches) => in_turn(searches.pass(plan, 1)),
            Stop::After(_) | Stop::Decided(_) => (trials, orders.round()),
        };
        Self {
            plan,
            unsupported: unsupported.map(|(i, _)| i).collect(),
            time_of_round: Nanos(trials.iter().map(|(role, i)| plan.cost(*role, *i)).sum()),
            trials,
            order,
            orders,
            round: 1,
            done: 0,
            ran: 0,
            over: matches!(stop, Stop::After(0)),
            stop,
        }
    }

    /// The next trial; `None`: the run is complete. The same until it is [`Self::done`].
    #[must_use]
    pub fn next(&self) -> Option<Slot> {
        if self.over {
            return None;
        }
        let (role, cell) = match self.done.checked_sub(self.unsupported.len()) {
            None => (Role::Cell, self.unsupported[self.done]),
            Some(place) => self.trials[self.order[place]],
        };
        Some(Slot {
            round: self.round,
            role,
            cell,
        })
    }

    /// The next trial is done; `good_per_s` of a cell that was measured (see [`good_per_s`]).
    pub fn done(&mut self, good_per_s: Option<f64>) {
        let Some(slot) = self.next() else { return };
        if slot.role == Role::Cell {
            match (&mut self.stop, good_per_s) {
                (Stop::Decided(decisions), Some(rate)) => decisions.measured(slot.cell, rate),
                (Stop::Found(searches), _) => searches.measured(slot.cell, good_per_s),
                (Stop::After(_) | Stop::Decided(_), _) => {}
            }
        }
        self.done += 1;
        if self.done < self.unsupported.len() + self.trials.len() {
            return;
        }
        self.ran += self.trials.len();
        self.over = match &mut self.stop {
            Stop::Found(searches) => {
                // What cannot be done is said once: there are many passes, and nothing depends on it.
                self.unsupported.clear();
                let next = in_turn(searches.pass(self.plan, self.round + 1));
                (self.trials, self.order) = next;
                self.trials.is_empty()
            }
            Stop::After(rounds) => self.round >= *rounds,
            Stop::Decided(decisions) => decisions.round_ended(),
        };
        if !self.over {
            self.done = 0;
            self.round += 1;
            if !matches!(self.stop, Stop::Found(_)) {
                self.order = self.orders.round();
            }
        }
    }

    /// How much there is in all, as far as that is known now.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let rounds = match &self.stop {
            Stop::Found(searches) => return self.of_a_search(searches),
            Stop::After(rounds) => *rounds..=*rounds,
            Stop::Decided(_) if self.over => self.round..=self.round,
            Stop::Decided(_) => {
                let next = LOOKS.into_iter().find(|look| *look >= self.round);
                let last = LOOKS[LOOKS.len() - 1];
                next.unwrap_or(last)..=last
            }
        };
        let trials = |rounds: u32| self.trials.len() * rounds as usize;
        let time = |rounds: u32| Nanos(self.time_of_round.0 * u64::from(rounds));
        let (least, most) = (*rounds.start(), *rounds.end());
        Extent {
            rounds,
            trials: trials(least)..=trials(most),
            time: time(least)..=time(most),
        }
    }

    /// The most; what there was once it is over.
    fn of_a_search(&self, searches: &Searches) -> Extent {
        let (cells, beside) = searches.most(self.plan);
        let (rounds, trials) = if self.over {
            (self.round, self.ran)
        } else {
            (searches.passes(), cells + beside)
        };
        let time = Nanos(searches.time(self.plan));
        Extent {
            rounds: rounds..=rounds,
            trials: trials..=trials,
            time: time..=time,
        }
    }

    /// Where each comparison of `rounds = "auto"` stands.
    #[must_use]
    pub fn compared(&self) -> Vec<Compared> {
        match &self.stop {
            Stop::After(_) | Stop::Found(_) => vec![],
            Stop::Decided(decisions) => decisions.all(),
        }
    }
}

/// Trials that stand in their order already.
fn in_turn(trials: Vec<(Role, usize)>) -> (Vec<(Role, usize)>, Vec<usize>) {
    let order = (0..trials.len()).collect();
    (trials, order)
}

/// What a row says of its cell's throughput: good requests per second of the window; `None` where it was not
/// measured, or is not of a cell.
#[must_use]
pub fn good_per_s(row: &Trial) -> Option<f64> {
    if row.status != Status::Ok || row.role != Role::Cell {
        return None;
    }
    let outcome = row.outcome.as_ref()?;
    let length = outcome.window_end_ns.checked_sub(outcome.window_start_ns)?;
    (length > 0).then(|| outcome.window.good as f64 / Nanos(length).as_secs_f64())
}

#[cfg(test)]
mod tests;

//! The progress of a run on a terminal: cell, round, time left, live throughput. Plain lines where there is none.

use std::time::Duration;

use console::style;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use yieldpoint_record::{Role, Status, Trial};
use yieldpoint_run::{Event, Extent, Observer, Plan};
use yieldpoint_terms::clock::now_ns;

/// Draws on stderr, so that stdout stays for results.
pub struct Progress {
    bar: ProgressBar,
    /// how much there is, as far as that is known by now
    extent: Extent,
    done: usize,
    // Those that a resumed run found finished say nothing about its pace.
    found: usize,
    began_ns: u64,
    label: String,
}

impl Progress {
    /// Of a plan about to run.
    pub fn new(plan: &Plan) -> Self {
        let extent = plan.extent();
        let bar = ProgressBar::new(*extent.trials.start() as u64);
        // The template is a constant that the library accepts.
        let style = ProgressStyle::with_template("{bar:24.cyan/dim} {pos}/{len}  {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━╸─"));
        Self {
            bar,
            extent,
            done: 0,
            found: 0,
            began_ns: now_ns(),
            label: String::new(),
        }
    }

    /// Trials there are at least.
    fn total(&self) -> usize {
        *self.extent.trials.start()
    }

    fn message(&self, live: &str) {
        let left = time_left(
            now_ns() - self.began_ns,
            self.extent.time.start().0,
            self.done - self.found,
            self.total().saturating_sub(self.found),
        );
        let left = HumanDuration(Duration::from_nanos(left));
        self.bar
            .set_message(format!("{left} left  {}{live}", self.label));
    }

    /// Leaves the terminal as it was.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn ended(&self, row: &Trial) {
        let line = line_of(row, self.done, self.total());
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else if row.status != Status::Ok {
            // On a terminal the bar tells of what went well; the rest must stay to be read.
            self.bar.println(line);
        }
    }
}

impl Observer for Progress {
    fn event(&mut self, event: Event) {
        match event {
            Event::Resumed { finished } => {
                self.done = finished;
                self.found = finished;
                self.bar.set_position(finished as u64);
            }
            Event::Began {
                cell,
                role,
                round,
                extent,
            } => {
                self.extent = extent.clone();
                self.bar.set_length(self.total() as u64);
                self.label = format!(
                    "round {round} of {}  {}{}",
                    rounds(extent),
                    of_role(role),
                    short(cell)
                );
                self.message("");
            }
            Event::Second(live) => self.message(&format!("  {} requests/s", live.requests_per_s)),
            Event::Ended(row) => {
                if row.status != Status::Unsupported {
                    self.done += 1;
                    self.bar.set_position(self.done as u64);
                }
                self.ended(row);
            }
        }
    }
}

/// Time left in ns: the plan's estimate at first, the measured pace as soon as there is one.
fn time_left(elapsed: u64, expected: u64, done: usize, total: usize) -> u64 {
    if done == 0 || total == 0 {
        return expected.saturating_sub(elapsed);
    }
    let pace = elapsed as f64 / done as f64;
    (pace * total.saturating_sub(done) as f64) as u64
}

/// "8", or "8–40" where the results decide.
fn rounds(extent: &Extent) -> String {
    let (least, most) = (extent.rounds.start(), extent.rounds.end());
    match least == most {
        true => most.to_string(),
        false => format!("{least}–{most}"),
    }
}

/// What tells a control from its cell; the id of a ceiling says it itself.
const fn of_role(role: Role) -> &'static str {
    match role {
        Role::Control => "control of ",
        Role::Cell | Role::Ceiling => "",
    }
}

/// A cell's id without the name of its matrix.
fn short(cell: &str) -> &str {
    cell.split_once('/').map_or(cell, |(_, rest)| rest)
}

fn line_of(row: &Trial, done: usize, total: usize) -> String {
    let cell = short(&row.cell);
    let role = of_role(row.role);
    let place = format!("[{done}/{total}] round {} {role}{cell}", row.round);
    match (row.status, &row.outcome) {
        (Status::Ok, Some(o)) => {
            let seconds = (o.window_end_ns - o.window_start_ns) as f64 / 1e9;
            let flags = if row.flags.is_empty() {
                String::new()
            } else {
                format!("  {}", row.flags.join(" "))
            };
            format!(
                "{place}: {:.0} good/s, {} errors, {} connections{flags}",
                o.window.good as f64 / seconds,
                o.window.errors,
                o.window.connections
            )
        }
        (status, _) => format!(
            "{place}: {} {}",
            style(status.name()).red().for_stderr(),
            row.error.as_deref().unwrap_or("without a reason")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_measured_pace() {
        // elapsed, expected, done, total → left
        let table = [
            ((0, 100, 0, 10), 100),  // the plan's estimate
            ((30, 100, 0, 10), 70),  // still the first trial
            ((20, 100, 1, 10), 180), // twice as slow as planned
            ((200, 100, 10, 10), 0), // done
        ];
        for ((elapsed, expected, done, total), want) in table {
            assert_eq!(time_left(elapsed, expected, done, total), want);
        }
    }
}

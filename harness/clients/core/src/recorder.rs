//! What one thread counts, in memory that does not grow with the number of requests.

use yieldpoint_protocol::{Counts, ErrorCount, ErrorKind, Histogram, Outcome};
use yieldpoint_terms::clock;

use crate::seconds::{SECOND_NS, Seconds};
use crate::{Failure, Meter, Response, Setup, VirtualUser, Window};

type Hdr = hdrhistogram::Histogram<u64>;

/// Greatest length of an example, characters.
const EXAMPLE: usize = 200;

/// The counts, histograms and seconds of one thread.
///
/// A request belongs to the window in which it *ended*, a connection to the one in which it was
/// *opened*. Histograms and seconds are of the window; errors are of the whole run.
pub struct Recorder {
    expect_status: u16,
    expect_body_bytes: Option<u64>,
    window: Window,
    in_window: Counts,
    total: Counts,
    // In the order of ErrorKind::ALL.
    errors: [Option<ErrorCount>; ErrorKind::ALL.len()],
    seconds: Seconds,
    latency: Hdr,
    // Of an open loop only.
    latency_intended: Option<Hdr>,
    connect: Hdr,
    iteration: Hdr,
    saturated: u64,
    latency_sum_ns: u64,
    last_end_ns: u64,
    // Every user so far ran out of iterations before the window ended.
    ended_by_count: bool,
}

impl Recorder {
    /// Reserves everything. The error is one sentence for the runner.
    pub fn new(setup: &Setup) -> Result<Self, String> {
        let seconds = Seconds::new(setup.duration.0).map_err(|e| {
            format!(
                "no memory for the seconds of a window of \"{}\" on each of {} threads ({e}); take a shorter duration",
                setup.duration, setup.threads
            )
        })?;
        Ok(Self {
            expect_status: setup.expect_status,
            expect_body_bytes: setup.expect_body_bytes,
            window: Window::new(setup, 0),
            in_window: Counts::default(),
            total: Counts::default(),
            errors: [const { None }; ErrorKind::ALL.len()],
            seconds,
            latency: Histogram::recorder(),
            latency_intended: setup.rate.map(|_| Histogram::recorder()),
            connect: Histogram::recorder(),
            iteration: Histogram::recorder(),
            saturated: 0,
            latency_sum_ns: 0,
            last_end_ns: 0,
            ended_by_count: true,
        })
    }

    /// The window is known; nothing has been recorded yet. Its length is the job's.
    pub fn begin(&mut self, window: Window) {
        self.window = window;
    }

    /// A request from `start_ns` (before a connect that it needed) to `end_ns`; in an open loop it
    /// should have started at `intended_ns`. Returns whether it was good. Ends of one thread do
    /// not run backwards.
    pub fn request(
        &mut self,
        start_ns: u64,
        intended_ns: Option<u64>,
        end_ns: u64,
        result: Result<Response, Failure>,
    ) -> bool {
        let body_bytes = result.as_ref().map_or(0, |r| r.body_bytes);
        let failure = self.judge(result);
        let good = failure.is_none();
        let add = |c: &mut Counts| {
            c.attempts += 1;
            c.good += u64::from(good);
            c.errors += u64::from(!good);
            c.body_bytes += body_bytes;
        };
        add(&mut self.total);
        self.last_end_ns = end_ns;
        if self.window.holds(end_ns) {
            add(&mut self.in_window);
            let took_ns = end_ns.saturating_sub(start_ns);
            // 2^64 ns are 584 years of one thread's users.
            self.latency_sum_ns = self.latency_sum_ns.saturating_add(took_ns);
            let latency = good.then_some(took_ns);
            self.seconds.request(end_ns - self.window.start_ns, latency);
            if let Some(ns) = latency {
                record(&mut self.latency, &mut self.saturated, ns);
                if let Some((intended, times)) = intended_ns.zip(self.latency_intended.as_mut()) {
                    let ns = end_ns.saturating_sub(intended);
                    record(times, &mut self.saturated, ns);
                }
            }
        }
        if let Some(failure) = failure {
            self.failed(end_ns, failure);
        }
        good
    }

    /// An iteration that was completed without an error.
    pub fn iteration(&mut self, start_ns: u64, end_ns: u64) {
        self.total.iterations += 1;
        if self.window.holds(end_ns) {
            self.in_window.iterations += 1;
            let ns = end_ns.saturating_sub(start_ns);
            record(&mut self.iteration, &mut self.saturated, ns);
        }
    }

    /// A connection that was opened at `at_ns`, in `connect_ns` if that is known.
    pub fn connected_at(&mut self, at_ns: u64, connect_ns: Option<u64>) {
        self.total.connections += 1;
        if self.window.holds(at_ns) {
            self.in_window.connections += 1;
            self.seconds.connection(at_ns - self.window.start_ns);
            if let Some(ns) = connect_ns {
                record(&mut self.connect, &mut self.saturated, ns);
            }
        }
    }

    /// A connection that was asked for and not got, known at `at_ns`.
    pub fn connect_failed_at(&mut self, at_ns: u64) {
        self.total.connect_failures += 1;
        if self.window.holds(at_ns) {
            self.in_window.connect_failures += 1;
        }
    }

    /// A user has stopped.
    pub fn stopped(&mut self, user: &VirtualUser) {
        self.ended_by_count &= user.out_of_iterations();
    }

    /// Why a request was not good, if it was not.
    fn judge(&self, result: Result<Response, Failure>) -> Option<Failure> {
        let response = match result {
            Ok(response) => response,
            Err(failure) => return Some(failure),
        };
        if response.status != self.expect_status {
            return Some(Failure {
                kind: ErrorKind::BadStatus,
                example: format!(
                    "status: expected {}, got {}",
                    self.expect_status, response.status
                ),
            });
        }
        let expected = self.expect_body_bytes?;
        (response.body_bytes != expected).then(|| Failure {
            kind: ErrorKind::BadLength,
            example: format!(
                "body: expected {expected} bytes, got {}",
                response.body_bytes
            ),
        })
    }

    fn failed(&mut self, at_ns: u64, failure: Failure) {
        // ALL holds every kind, which a test of the protocol checks.
        let at = ErrorKind::ALL.iter().position(|k| *k == failure.kind);
        let Some(slot) = at.map(|i| &mut self.errors[i]) else {
            return;
        };
        match slot {
            Some(error) => error.count += 1,
            None => {
                *slot = Some(ErrorCount {
                    kind: failure.kind,
                    count: 1,
                    first_ns: at_ns,
                    example: failure.example.chars().take(EXAMPLE).collect(),
                });
            }
        }
    }

    /// The outcome of a process whose threads have ended.
    #[must_use]
    pub fn outcome(setup: &Setup, window: Window, threads: Vec<Self>) -> Outcome {
        let last_end_ns = threads.iter().map(|t| t.last_end_ns).max().unwrap_or(0);
        let by_count = threads.iter().all(|t| t.ended_by_count);
        let end_ns = if by_count && last_end_ns < window.end_ns {
            last_end_ns.max(window.start_ns)
        } else {
            window.end_ns
        };
        // The last response of a counted run is in its window, also on the edge of a second.
        let length = end_ns - window.start_ns + u64::from(by_count);
        let rows = length.min(setup.duration.0).div_ceil(SECOND_NS);
        let mut sum = Sum::default();
        let mut seconds = Vec::with_capacity(threads.len());
        for thread in threads {
            sum.add(&thread);
            seconds.push(thread.seconds);
        }
        Outcome {
            window_start_ns: window.start_ns,
            window_end_ns: end_ns,
            window: sum.in_window,
            total: sum.total,
            errors: sum.errors.into_iter().flatten().collect(),
            // At most 86,400 rows.
            series: Seconds::merge(&mut seconds, rows as usize),
            latency: Histogram::encode(&sum.latency),
            latency_intended: match setup.rate {
                Some(_) => Histogram::encode(&sum.latency_intended),
                None => Histogram::default(),
            },
            connect: Histogram::encode(&sum.connect),
            iteration: Histogram::encode(&sum.iteration),
            saturated: sum.saturated,
            users: setup.users() as u64,
            latency_sum_ns: sum.latency_sum_ns,
        }
    }
}

/// Blocking sessions report at the moment of the event, so the clock is read here.
impl Meter for Recorder {
    fn connected(&mut self, connect_ns: Option<u64>) {
        self.connected_at(clock::now_ns(), connect_ns);
    }
    fn connect_failed(&mut self) {
        self.connect_failed_at(clock::now_ns());
    }
}

fn record(histogram: &mut Hdr, saturated: &mut u64, ns: u64) {
    *saturated += u64::from(ns > Histogram::HIGH_NS);
    histogram.saturating_record(ns.min(Histogram::HIGH_NS));
}

/// The threads' counts added up.
struct Sum {
    in_window: Counts,
    total: Counts,
    errors: [Option<ErrorCount>; ErrorKind::ALL.len()],
    latency: Hdr,
    latency_intended: Hdr,
    connect: Hdr,
    iteration: Hdr,
    saturated: u64,
    latency_sum_ns: u64,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            in_window: Counts::default(),
            total: Counts::default(),
            errors: [const { None }; ErrorKind::ALL.len()],
            latency: Histogram::recorder(),
            latency_intended: Histogram::recorder(),
            connect: Histogram::recorder(),
            iteration: Histogram::recorder(),
            saturated: 0,
            latency_sum_ns: 0,
        }
    }
}

impl Sum {
    fn add(&mut self, thread: &Recorder) {
        add_counts(&mut self.in_window, &thread.in_window);
        add_counts(&mut self.total, &thread.total);
        self.saturated += thread.saturated;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(thread.latency_sum_ns);
        for (mine, theirs) in [
            (&mut self.latency, Some(&thread.latency)),
            (&mut self.latency_intended, thread.latency_intended.as_ref()),
            (&mut self.connect, Some(&thread.connect)),
            (&mut self.iteration, Some(&thread.iteration)),
        ]
        .into_iter()
        .filter_map(|(mine, theirs)| Some((mine, theirs?)))
        {
            // All are made by Histogram::recorder, so their ranges are the same.
            mine.add(theirs).expect("equal ranges add up");
        }
        for (mine, theirs) in self.errors.iter_mut().zip(&thread.errors) {
            match (&mut *mine, theirs) {
                (_, None) => {}
                (None, Some(theirs)) => *mine = Some(theirs.clone()),
                (Some(mine), Some(theirs)) => {
                    mine.count += theirs.count;
                    if theirs.first_ns < mine.first_ns {
                        mine.first_ns = theirs.first_ns;
                        mine.example.clone_from(&theirs.example);
                    }
                }
            }
        }
    }
}

fn add_counts(to: &mut Counts, from: &Counts) {
    to.attempts += from.attempts;
    to.good += from.good;
    to.errors += from.errors;
    to.iterations += from.iterations;
    to.connections += from.connections;
    to.connect_failures += from.connect_failures;
    to.body_bytes += from.body_bytes;
}

#[cfg(test)]
mod tests;

//! Latency against theory: log-normal delays, whose quantiles are known, and a stall in an open loop, whose course
//! is that of a queue. What theory does not know of a client is measured beside it: its own latency with one user,
//! and how fast it works off a queue.

use anyhow::Context as _;
use yieldpoint_protocol::Histogram;
use yieldpoint_record::{Status, Trial};
use yieldpoint_terms::Value;

use crate::runs::Source;
use crate::statement::Statement;

/// Quantiles of log-normal delays may be off by this share.
const LOGNORMAL: f64 = 0.02;
/// Quantiles of a stall may be off by this share.
const STALL: f64 = 0.03;
/// Fewer requests leave the p99 of a log-normal delay with a standard error above 0.7 %: the error of the
/// quantile p of n draws is √(p(1 − p)/n) ÷ density there, times σ for a quantile of the logarithm.
const REQUESTS: u64 = 25_000;
/// p and z with Φ(z) = p.
const NORMAL: [(f64, f64); 3] = [(0.5, 0.0), (0.9, 1.281_551_57), (0.99, 2.326_347_87)];
/// Within the stall of `matrices/latency.toml`, which meets a fifth of all requests, and its drain.
const LATE: [f64; 4] = [0.9, 0.95, 0.99, 1.0];

/// Runs the matrix, or reads a run of it, and compares.
pub fn prove(source: &Source) -> anyhow::Result<Vec<Statement>> {
    let run = source.get("matrices/latency.toml")?;
    let mut all = Vec::new();
    for trial in &run.trials {
        all.extend(statements(trial, &run.trials).with_context(|| trial.cell.clone())?);
    }
    Ok(all)
}

/// What is known of one trial; `all` has the cells it is compared with.
fn statements(trial: &Trial, all: &[Trial]) -> anyhow::Result<Vec<Statement>> {
    if trial.status != Status::Ok {
        let error = trial.error.clone().unwrap_or_default();
        let expected = "a trial that was measured".into();
        return Ok(vec![Statement::new(&trial.cell, expected, error, false)]);
    }
    match axis(trial, "load").as_deref() {
        Some("lognormal") => lognormal(trial, all),
        Some("stall") => stall(trial, all),
        _ => Ok(Vec::new()),
    }
}

fn axis(trial: &Trial, name: &str) -> Option<String> {
    let (_, value) = trial.coordinates.iter().find(|(axis, _)| axis == name)?;
    Some(value.to_string())
}

/// The trial of the same client without a delay, with one user or as many as `trial` has.
fn plain<'t>(trial: &Trial, users: Option<&str>, all: &'t [Trial]) -> anyhow::Result<&'t Trial> {
    let users = users.map(str::to_owned).or_else(|| axis(trial, "users"));
    let client = axis(trial, "client");
    let is = |t: &&Trial| {
        axis(t, "load").as_deref() == Some("plain")
            && axis(t, "users") == users
            && axis(t, "client") == client
    };
    all.iter()
        .find(is)
        .context("the cell without a delay is not in this run")
}

/// A knob in its own unit; durations in ns.
fn knob(trial: &Trial, name: &str) -> anyhow::Result<f64> {
    let value = match trial.knobs.get(name) {
        Some(Value::Duration(ns)) => Some(ns.0 as f64),
        Some(other) => other.as_f64(),
        None => None,
    };
    value.with_context(|| format!("knob \"{name}\" is not set"))
}

/// One statement: `p` of the measured times against a time of theory, both in ns.
fn quantile(trial: &Trial, p: f64, theory_ns: f64, got_ns: u64, within: f64) -> Statement {
    let name = match p {
        1.0 => "max".to_owned(),
        p => format!("p{}", p * 100.0),
    };
    let off = got_ns as f64 / theory_ns - 1.0;
    Statement::new(
        &trial.cell,
        format!("{name} {:.2} ms ± {:.0} %", theory_ns / 1e6, within * 100.0),
        format!("{:.2} ms ({:+.2} %)", got_ns as f64 / 1e6, off * 100.0),
        off.abs() <= within,
    )
}

/// The quantile `p` of a log-normal delay is median · exp(σ z(p)); to it comes what the client and the way to the
/// target take anyhow, the median of one user without a delay.
fn lognormal(trial: &Trial, all: &[Trial]) -> anyhow::Result<Vec<Statement>> {
    let median_ns = knob(trial, "target.delay")?;
    let sigma = knob(trial, "target.delay_sigma")?;
    let outcome = |t: &Trial| t.outcome.clone().context("no outcome");
    let alone = outcome(plain(trial, Some("one"), all)?)?.latency.decode()?;
    let floor_ns = alone.value_at_quantile(0.5) as f64;
    let got = outcome(trial)?.latency.decode()?;
    let mut statements = vec![Statement::new(
        &trial.cell,
        format!("{REQUESTS} requests or more"),
        format!("{}, floor {:.3} ms", got.len(), floor_ns / 1e6),
        got.len() >= REQUESTS,
    )];
    statements.extend(NORMAL.map(|(p, z)| {
        let theory_ns = median_ns * (sigma * z).exp() + floor_ns;
        let got_ns = got.value_at_quantile(p);
        quantile(trial, p, theory_ns, got_ns, LOGNORMAL)
    }));
    Ok(statements)
}

/// A stall in an open loop of constant rate.
#[derive(Clone, Copy, Debug)]
struct Stall {
    /// length, s
    stall_s: f64,
    /// window in which it lies, drain and all, s
    window_s: f64,
    /// intended starts a second
    rate: f64,
    /// requests a second at which the queue is worked off; above `rate`
    drain: f64,
}

impl Stall {
    /// The latency that a share `p` of the requests of the window does not exceed, from their intended starts, s.
    ///
    /// Request i (0, 1, …) after the begin of a stall of S is meant to start at i/λ and is answered at S + i/μ, when
    /// those before it are: its latency is S − i/λ + i/μ, which falls with i, down to nothing at i = S·λμ/(μ − λ),
    /// where the queue is empty. No other request has any. So the (1 − p)·λT longest of all λT latencies are those
    /// of i < (1 − p)·λT, and the quantile p is that of i = (1 − p)·λT: S − (1 − p)·T·(1 − λ/μ), or nothing.
    fn quantile_s(&self, p: f64) -> f64 {
        let late = self.stall_s - (1.0 - p) * self.window_s * (1.0 - self.rate / self.drain);
        late.max(0.0)
    }
}

fn stall(trial: &Trial, all: &[Trial]) -> anyhow::Result<Vec<Statement>> {
    let many = plain(trial, None, all)?;
    let outcome = many.outcome.as_ref().context("no outcome")?;
    let window_ns = outcome.window_end_ns - outcome.window_start_ns;
    let law = Stall {
        stall_s: knob(trial, "target.stall_for")? / 1e9,
        window_s: knob(trial, "duration")? / 1e9,
        rate: knob(trial, "rate")?,
        drain: outcome.window.good as f64 * 1e9 / window_ns as f64,
    };
    let intended: &Histogram = &trial
        .outcome
        .as_ref()
        .context("no outcome")?
        .latency_intended;
    let got = intended.decode()?;
    let meant = law.rate * law.window_s;
    let mut statements = vec![Statement::new(
        &trial.cell,
        format!("{meant} requests, none left out"),
        format!("{}, queue drains at {:.0}/s", got.len(), law.drain),
        // The last few are on their way when the window ends.
        (meant - got.len() as f64).abs() <= meant / 1_000.0,
    )];
    statements.extend(LATE.map(|p| {
        let theory_ns = law.quantile_s(p) * 1e9;
        quantile(trial, p, theory_ns, got.value_at_quantile(p), STALL)
    }));
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue with one server that stalls, request by request: the latencies in ascending order, s.
    fn simulated(law: &Stall, stall_at_s: f64) -> Vec<f64> {
        let requests = (law.rate * law.window_s) as usize;
        let mut free_s = 0.0_f64;
        let mut latencies: Vec<f64> = (0..requests)
            .map(|i| {
                let meant_s = i as f64 / law.rate;
                let mut done_s = meant_s.max(free_s);
                if (stall_at_s..stall_at_s + law.stall_s).contains(&done_s) {
                    done_s = stall_at_s + law.stall_s;
                }
                free_s = done_s + 1.0 / law.drain;
                done_s - meant_s
            })
            .collect();
        latencies.sort_by(f64::total_cmp);
        latencies
    }

    #[test]
    fn the_formula_is_that_of_a_queue() {
        // each row: stall, window, rate, drain
        let table = [
            (2.0, 10.0, 1_000.0, 20_000.0), // as in the matrix: it drains in a tenth of a second
            (2.0, 10.0, 1_000.0, 4_000.0),  // a slow client needs 0.7 s
            (2.0, 10.0, 1_000.0, 1_500.0), // four seconds more: more than half of the window is late
            (0.5, 20.0, 3_000.0, 9_000.0), // p95 and below are not late
        ];
        for (stall_s, window_s, rate, drain) in table {
            let law = Stall {
                stall_s,
                window_s,
                rate,
                drain,
            };
            let sorted = simulated(&law, 2.0);
            for p in [0.5, 0.9, 0.95, 0.99, 0.999] {
                let got = sorted[(p * sorted.len() as f64) as usize];
                let want = law.quantile_s(p);
                // Two neighbours differ by at most a period.
                assert!(
                    (got - want).abs() <= 2.0 / rate,
                    "{law:?}, p {p}: {got}, expected {want}"
                );
            }
            assert!((sorted[sorted.len() - 1] - law.quantile_s(1.0)).abs() <= 2.0 / rate);
        }
    }

    #[test]
    fn a_client_that_forgives_a_stall_is_told() {
        let law = Stall {
            stall_s: 2.0,
            window_s: 10.0,
            rate: 1_000.0,
            drain: 20_000.0,
        };
        // 200 users that start late, and count from there: one answer each is late, the rest is not.
        let mut forgiving = vec![0.0; 9_800];
        forgiving.extend(vec![2.0; 200]);
        for p in [0.9, 0.95] {
            let got = forgiving[(p * 10_000.0) as usize];
            assert!((got / law.quantile_s(p) - 1.0_f64).abs() > STALL, "p {p}");
        }
        // One p99 late by 4 % is too much.
        let trial = trial();
        let late = |share: f64| quantile(&trial, 0.99, 1e9, (1e9 * share) as u64, STALL).holds;
        assert!(late(1.029) && late(0.971) && !late(1.04) && !late(0.96));
    }

    fn trial() -> Trial {
        let json = serde_json::json!({
            "format": yieldpoint_record::FORMAT, "cell": "c", "round": 1, "role": "cell", "order": 0,
            "coordinates": [], "knobs": {}, "status": "ok", "error": null, "flags": [],
            "started": "", "start_at_ns": null, "elapsed_ns": 0, "lab_mode": null, "sysctls": {},
            "outcome": null, "testimony": null, "samples": null, "time_wait": null, "checks": [],
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_p99_of_so_many_requests_is_good_enough_for_its_bound() {
        // Density of the standard normal distribution at z(0.99).
        let density = (-2.326_347_87_f64.powi(2) / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let error = 0.3 * (0.99 * 0.01 / REQUESTS as f64).sqrt() / density;
        assert!(error < 0.0072, "{error}");
        assert!(2.5 * error < LOGNORMAL);
    }
}

//! Whether the machine left a trial alone, by what was sampled.

use yieldpoint_record::flag;
use yieldpoint_terms::SampleSeries;

use super::rise;

/// Steal beyond this share of the sampled time makes a trial noisy: what a hypervisor takes is lost to the
/// programs one for one, and 5 % is the least difference that comparisons are asked to find.
const STEAL_LIMIT: f64 = 0.05;
/// The same for the time that a CPU quota held the client's tasks back.
const THROTTLED_LIMIT: f64 = 0.05;
/// Other programs may use this share of a set of CPUs. /proc/stat counts in ticks of 10 ms, so that one second of
/// one busy CPU is known to ±5 %; three times that is no accident.
const OTHERS_LIMIT: f64 = 0.15;
/// … if beside it some task of the machine waited for a CPU in this share of the time: where nobody waits, others
/// took nothing away. That alone says nothing, since the threads of one client wait for each other, too.
const WAITED_LIMIT: f64 = 0.10;
/// A gap of more than this many periods between samples: the sampler, which needs next to nothing, got no CPU.
const GAP_PERIODS: u64 = 3;

/// Flags that the samples give away: noise of the machine, quotas, TIME_WAIT entries that were dropped.
/// `shared`: client and target may run on the same CPU, so that either is at home on the other's.
#[must_use]
pub fn of_samples(s: &SampleSeries, period_ns: u64, shared: bool) -> Vec<&'static str> {
    let mut flags = Vec::new();
    if has_gap(s, period_ns) || stolen(s) || crowded(s, shared) || held_back(s) {
        flags.push(flag::NOISY);
    }
    let rose = |metric| rise(s, metric).is_some_and(|n| n > 0);
    if rose("cgroup_throttled") {
        flags.push(flag::THROTTLED);
    }
    if rose("tcp_time_wait_overflow") {
        flags.push(flag::TIME_WAIT_OVERFLOW);
    }
    flags
}

fn has_gap(s: &SampleSeries, period_ns: u64) -> bool {
    let mut steps = s.t_ns.windows(2);
    steps.any(|w| w[1].saturating_sub(w[0]) > GAP_PERIODS * period_ns)
}

fn stolen(s: &SampleSeries) -> bool {
    share(s, "cpu_steal_ns", 1.0).is_some_and(|share| share > STEAL_LIMIT)
}

fn held_back(s: &SampleSeries) -> bool {
    share(s, "cgroup_throttled_us", 1e3).is_some_and(|share| share > THROTTLED_LIMIT)
}

/// Whether other programs were busy on the CPUs of client or target while tasks waited.
fn crowded(s: &SampleSeries, shared: bool) -> bool {
    let ends = [
        (
            "client_set_busy_ns",
            "client_set_softirq_ns",
            "client_cpu_ns",
            "target_cpu_ns",
        ),
        (
            "target_set_busy_ns",
            "target_set_softirq_ns",
            "target_cpu_ns",
            "client_cpu_ns",
        ),
    ];
    let others = ends
        .into_iter()
        .filter_map(|(busy, softirq, own, other)| {
            let of = |metric| rise(s, metric);
            let other = if shared { of(other)? } else { 0 };
            // Soft interrupts serve the network of the load. Where the kernel books them to a process as well,
            // others seem to use less than they do, never more.
            let others = of(busy)? - of(softirq).unwrap_or(0) - of(own)? - other;
            Some(others as f64 / span_ns(s)?)
        })
        .fold(0.0, f64::max);
    match share(s, "cpu_pressure_us", 1e3) {
        Some(waited) => others > OTHERS_LIMIT && waited > WAITED_LIMIT,
        // Without the kernel's account of waiting, twice as much must be there to be sure of anything.
        None => others > 2.0 * OTHERS_LIMIT,
    }
}

/// How much of the sampled time a running total rose by; `to_ns`: its unit in ns.
fn share(s: &SampleSeries, metric: &str, to_ns: f64) -> Option<f64> {
    Some(rise(s, metric)? as f64 * to_ns / span_ns(s)?)
}

/// From the first to the last sample, ns; `None` where no time passed.
fn span_ns(s: &SampleSeries) -> Option<f64> {
    let span = s.t_ns.last()?.saturating_sub(*s.t_ns.first()?);
    (span > 0).then_some(span as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const PERIOD: u64 = 100_000_000;

    /// Rows every 100 ms for a second; each total rises evenly to its value.
    fn series(totals: &[(&str, i64)]) -> SampleSeries {
        let column = |total: i64| (0..=10).map(|i| Some(7 + total * i / 10)).collect();
        SampleSeries {
            t_ns: (0..=10).map(|i| i * PERIOD).collect(),
            columns: totals
                .iter()
                .map(|(name, total)| ((*name).to_owned(), column(*total)))
                .collect(),
        }
    }

    #[test]
    fn what_the_machine_took_makes_noise() {
        use flag::{NOISY, THROTTLED, TIME_WAIT_OVERFLOW};
        let busy = ("client_set_busy_ns", 990 * MS);
        let softirq = ("client_set_softirq_ns", 200 * MS);
        let half = ("client_cpu_ns", 500 * MS);
        let most = ("client_cpu_ns", 700 * MS);
        let target = ("target_cpu_ns", 300 * MS);
        let waited = ("cpu_pressure_us", 150_000);
        type Row<'a> = (&'a [(&'a str, i64)], bool, &'a [&'a str]);
        // totals of a second, shared CPUs, flags
        let table: [Row; 15] = [
            (&[], false, &[]),                                   // nothing was read
            (&[("cpu_steal_ns", 50 * MS)], false, &[]),          // 5 %: at the limit
            (&[("cpu_steal_ns", 51 * MS)], false, &[NOISY]),     // above it
            (&[busy, softirq, half, waited], false, &[NOISY]), // 29 % are neither ours nor the network's
            (&[busy, softirq, most, waited], false, &[]),      // 9 %: within what ticks can tell
            (&[busy, half, target, waited], true, &[NOISY]),   // 19 % beside both on one CPU
            (&[busy, softirq, half, target, waited], true, &[]), // the rest is the network
            (&[busy, half, target, waited], false, &[NOISY]),  // the target has a CPU of its own
            (
                &[busy, softirq, half, ("cpu_pressure_us", 90_000)],
                false,
                &[],
            ), // nobody had to wait
            (&[busy, softirq, half], false, &[]), // waiting is not known: 29 % are too few
            (&[busy, half], false, &[NOISY]),     // 49 % are not
            (&[busy, waited], false, &[]),        // the client's own share is not known
            (
                &[("cgroup_throttled", 3), ("cgroup_throttled_us", 20_000)],
                false,
                &[THROTTLED],
            ), // 2 %: held back, hardly
            (
                &[("cgroup_throttled", 9), ("cgroup_throttled_us", 60_000)],
                false,
                &[NOISY, THROTTLED],
            ), // 6 %
            (
                &[("tcp_time_wait_overflow", 1)],
                false,
                &[TIME_WAIT_OVERFLOW],
            ),
        ];
        for (i, (totals, shared, want)) in table.into_iter().enumerate() {
            assert_eq!(of_samples(&series(totals), PERIOD, shared), want, "row {i}");
        }
    }

    #[test]
    fn a_gap_makes_noise() {
        let at = |t: &[u64]| SampleSeries {
            t_ns: t.to_vec(),
            ..SampleSeries::default()
        };
        assert!(of_samples(&at(&[0, 100, 400]), 100, false).is_empty());
        assert_eq!(
            of_samples(&at(&[0, 100, 401]), 100, false),
            [flag::NOISY],
            "more than 3 periods"
        );
    }
}

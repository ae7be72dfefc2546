//! The recorder against a recount of everything that it was told.

use super::*;
use crate::setup::tests::setup;
use yieldpoint_terms::Nanos;

/// Seeded numbers (splitmix64), so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// Spread evenly over the octaves up to 2^36 ns: some beyond the histogram's 60 s.
    fn latency(&mut self) -> u64 {
        let bits = self.below(37);
        self.next() & ((1 << bits) - 1)
    }
}

/// A request that ended, as the test remembers it.
#[derive(Clone, Copy)]
struct Ended {
    at_ns: u64,
    /// of a good one
    latency_ns: Option<u64>,
    /// of any
    took_ns: u64,
}

const S: u64 = SECOND_NS;

fn good() -> Result<Response, Failure> {
    Ok(Response {
        status: 200,
        body_bytes: 612,
    })
}

fn failed(kind: ErrorKind, example: &str) -> Result<Response, Failure> {
    Err(Failure {
        kind,
        example: example.to_owned(),
    })
}

#[test]
fn three_threads_against_a_recount() {
    for seed in 0..8 {
        let mut numbers = Numbers(seed);
        let setup = Setup {
            threads: 3,
            warmup: Nanos(S / 2),
            duration: Nanos(3 * S + S / 4),
            ..setup()
        };
        let window = Window::new(&setup, 100 * S);
        let (mut all, mut connections, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut recorder = Recorder::new(&setup).unwrap();
            recorder.begin(window);
            let mut now = window.go_ns;
            // Beyond the window's end too: what is in flight then counts in the total only.
            while now < window.end_ns + S / 8 {
                now += numbers.below(S / 200);
                if numbers.below(3) == 0 {
                    recorder.connected_at(now, Some(numbers.latency()));
                    connections.push(now);
                }
                let latency = numbers.latency();
                let start = now.saturating_sub(latency);
                let ok = numbers.below(4) > 0;
                let result = if ok {
                    good()
                } else {
                    failed(ErrorKind::Reset, "")
                };
                assert_eq!(recorder.request(start, None, now, result), ok);
                all.push(Ended {
                    at_ns: now,
                    latency_ns: ok.then_some(now - start),
                    took_ns: now - start,
                });
            }
            recorder.stopped(&VirtualUser::new(&setup, window));
            threads.push(recorder);
        }
        let o = Recorder::outcome(&setup, window, threads);

        let count = |from: u64, to: u64| {
            let there: Vec<_> = all
                .iter()
                .filter(|e| (from..to).contains(&e.at_ns))
                .collect();
            let good = there.iter().filter(|e| e.latency_ns.is_some()).count();
            let opened = connections
                .iter()
                .filter(|t| (from..to).contains(t))
                .count();
            (there.len() as u64, good as u64, opened as u64)
        };
        let of = |c: &Counts| (c.attempts, c.good, c.connections);
        assert_eq!(of(&o.total), count(0, u64::MAX), "seed {seed}");
        assert_eq!(
            of(&o.window),
            count(window.start_ns, window.end_ns),
            "seed {seed}"
        );
        assert!(
            o.total.attempts > o.window.attempts,
            "the test has warm-up and overhang"
        );
        let took = all.iter().filter(|e| window.holds(e.at_ns));
        assert_eq!(
            o.latency_sum_ns,
            took.map(|e| e.took_ns).sum::<u64>(),
            "good and failed ones of the window, seed {seed}"
        );
        assert_eq!(
            (o.window_start_ns, o.window_end_ns),
            (window.start_ns, window.end_ns)
        );

        assert_eq!(o.series.len(), 4, "the last second is a quarter of one");
        for (i, row) in o.series.iter().enumerate() {
            let from = window.start_ns + i as u64 * S;
            let to = (from + S).min(window.end_ns);
            let got = (row.attempts, row.good, row.connections);
            assert_eq!(got, count(from, to), "seed {seed}, second {i}");
            assert_eq!(row.errors, row.attempts - row.good);
            let mut latencies: Vec<u64> = all
                .iter()
                .filter(|e| (from..to).contains(&e.at_ns))
                .filter_map(|e| Some(e.latency_ns?.min(Histogram::HIGH_NS)))
                .collect();
            latencies.sort_unstable();
            assert_eq!(row.max_ns, latencies.last().copied());
            for (per_cent, got) in [(50, row.p50_ns), (90, row.p90_ns), (99, row.p99_ns)] {
                let exact = latencies[(latencies.len() * per_cent).div_ceil(100) - 1];
                let off = got.unwrap().abs_diff(exact);
                assert!(off * 50 <= exact, "p{per_cent}: {got:?}, exactly {exact}");
            }
        }
        let in_window = |e: &&Ended| window.holds(e.at_ns);
        let beyond = all
            .iter()
            .filter(in_window)
            .filter(|e| e.latency_ns > Some(Histogram::HIGH_NS));
        assert!(
            o.saturated >= beyond.count() as u64,
            "connects saturate too"
        );
        assert_eq!(o.latency.decode().unwrap().len(), o.window.good);
        assert_eq!(o.connect.decode().unwrap().len(), o.window.connections);
    }
}

#[test]
fn memory_does_not_grow_with_requests() {
    let setup = Setup {
        duration: Nanos(2 * S),
        ..setup()
    };
    let mut recorder = Recorder::new(&setup).unwrap();
    recorder.begin(Window::new(&setup, 0));
    let before = (
        recorder.seconds.reserved(),
        recorder.latency.distinct_values(),
    );
    let mut numbers = Numbers(7);
    for i in 0..300_000u64 {
        let end = i * 2 * S / 300_000;
        let result = match i % 3 {
            0 => failed(ErrorKind::ALL[(i % 12) as usize], "again and again"),
            _ => good(),
        };
        recorder.connected_at(end, Some(numbers.latency()));
        recorder.request(end.saturating_sub(numbers.latency()), None, end, result);
        recorder.iteration(0, end);
    }
    let after = (
        recorder.seconds.reserved(),
        recorder.latency.distinct_values(),
    );
    assert_eq!(after, before);
    assert!(!recorder.latency.is_auto_resize());
}

#[test]
fn only_the_expected_is_good() {
    let response = |status, body_bytes| Ok(Response { status, body_bytes });
    type Row = (
        u16,
        Option<u64>,
        Result<Response, Failure>,
        Option<(ErrorKind, &'static str)>,
    );
    // each row: expected status and length, what came, the error
    let table: [Row; 6] = [
        (200, None, response(200, 7), None), // the length is unchecked
        (200, Some(7), response(200, 7), None),
        (
            200,
            Some(0),
            response(200, 7),
            Some((ErrorKind::BadLength, "body: expected 0 bytes, got 7")),
        ),
        // the status tells more than the length of an error page
        (
            200,
            Some(7),
            response(503, 9),
            Some((ErrorKind::BadStatus, "status: expected 200, got 503")),
        ),
        (404, Some(7), response(404, 7), None), // any status can be the expected one
        (
            200,
            None,
            failed(ErrorKind::Reset, "gone"),
            Some((ErrorKind::Reset, "gone")),
        ),
    ];
    for (expect_status, expect_body_bytes, came, want) in table {
        let setup = Setup {
            expect_status,
            expect_body_bytes,
            ..setup()
        };
        let window = Window::new(&setup, 0);
        let mut recorder = Recorder::new(&setup).unwrap();
        recorder.begin(window);
        let row = format!("{expect_status} {expect_body_bytes:?} {came:?}");
        let body_bytes = came.as_ref().map_or(0, |r| r.body_bytes);
        assert_eq!(recorder.request(1, None, 2, came), want.is_none(), "{row}");
        let o = Recorder::outcome(&setup, window, vec![recorder]);
        let errors: Vec<_> = o
            .errors
            .iter()
            .map(|e| (e.kind, e.example.as_str()))
            .collect();
        assert_eq!(errors, want.into_iter().collect::<Vec<_>>(), "{row}");
        assert_eq!(o.total.body_bytes, body_bytes, "{row}");
    }
}

#[test]
fn the_first_failure_of_all_threads_is_the_example() {
    let setup = setup();
    let window = Window::new(&setup, 0);
    let threads = [(30, "late"), (20, "early"), (40, "later")].map(|(at, example)| {
        let mut recorder = Recorder::new(&setup).unwrap();
        recorder.begin(window);
        recorder.request(0, None, at, failed(ErrorKind::Timeout, example));
        recorder.request(0, None, at + 1, failed(ErrorKind::Timeout, "not the first"));
        recorder.request(0, None, at + 2, failed(ErrorKind::Other, &"ä".repeat(300)));
        recorder
    });
    let o = Recorder::outcome(&setup, window, threads.into());
    assert_eq!(o.errors.len(), 2);
    let e = &o.errors[0];
    assert_eq!((e.count, e.first_ns, e.example.as_str()), (6, 20, "early"));
    assert_eq!(o.errors[1].example.chars().count(), 200);
}

#[test]
fn the_end_of_a_window() {
    // Stops a user that has made `done` of two iterations; the last response came at `last`.
    let end = |done: u64, last: u64| {
        let setup = Setup {
            iterations: Some(2),
            duration: Nanos(5 * S),
            ..setup()
        };
        let window = Window::new(&setup, 0);
        let mut recorder = Recorder::new(&setup).unwrap();
        recorder.begin(window);
        let mut user = VirtualUser::new(&setup, window);
        for _ in 0..done {
            user.done(true);
        }
        recorder.request(0, None, last, good());
        recorder.stopped(&user);
        let o = Recorder::outcome(&setup, window, vec![recorder]);
        let held = o.series.iter().map(|s| s.attempts).sum::<u64>();
        assert_eq!(held, o.window.attempts, "the series adds up to the window");
        (o.window_end_ns, o.series.len(), held)
    };
    // each row: iterations done, last response; window's end, rows, requests in it
    let table = [
        ((2, S / 2), (S / 2, 1, 1)), // the count ended it
        ((2, 2 * S), (2 * S, 3, 1)), // ... on the edge of a second: the response has its row
        ((1, S / 2), (5 * S, 5, 1)), // time ended it
        ((2, 6 * S), (5 * S, 5, 0)), // both: the last response came too late
    ];
    for ((done, last), want) in table {
        assert_eq!(end(done, last), want, "{done} iterations, last at {last}");
    }
}

#[test]
fn an_open_loop_has_two_latencies() {
    let setup = Setup {
        rate: Some(10.0),
        ..setup()
    };
    let window = Window::new(&setup, 0);
    let mut recorder = Recorder::new(&setup).unwrap();
    recorder.begin(window);
    // each row: intended start, actual start, end; the second one was late by 2 ms
    for (intended, start, end) in [
        (1_000_000, 1_000_000, 2_000_000),
        (2_000_000, 4_000_000, 5_000_000),
    ] {
        recorder.request(start, Some(intended), end, good());
    }
    recorder.request(0, Some(0), 6_000_000, failed(ErrorKind::Reset, ""));
    let o = Recorder::outcome(&setup, window, vec![recorder]);
    let actual = o.latency.decode().unwrap();
    let intended = o.latency_intended.decode().unwrap();
    // Within the histogram's three digits.
    assert!(actual.max().abs_diff(1_000_000) < 1_000, "{}", actual.max());
    assert!(intended.max().abs_diff(3_000_000) < 3_000);
    // Only good requests have a latency.
    assert_eq!((actual.len(), intended.len()), (2, 2));
    // A closed loop sends no second histogram.
    let closed = crate::setup::tests::setup();
    let nothing = Recorder::outcome(&closed, window, vec![Recorder::new(&closed).unwrap()]);
    assert_eq!(nothing.latency_intended, Histogram::default());
}

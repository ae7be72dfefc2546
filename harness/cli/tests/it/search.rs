//! Searches along an axis, from end to end: how many trials, and the place where theory has the breakpoint.

use yieldpoint_record::{Role, Trial};

use crate::common::{Scratch, rows, stderr};

/// Levels of the axis in the order in which they ran.
fn levels(trials: &[Trial], axis: &str) -> Vec<f64> {
    let cells = trials.iter().filter(|t| t.role == Role::Cell);
    let level = |t: &Trial| t.knobs.0[axis].as_f64();
    cells.filter_map(level).collect()
}

/// The rows of the table `breakpoints`: kind, below, above.
fn breakpoints(run: &std::path::Path) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(run.join("tables/breakpoints.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| names.iter().position(|n| *n == name).unwrap();
    let (kind, below, above) = (at("kind"), at("below"), at("above"));
    lines
        .map(|line| {
            // "fixed" holds no comma here: there is one axis.
            let parts: Vec<&str> = line.split(',').collect();
            let part = |i: usize| parts[i].to_owned();
            (part(kind), part(below), part(above))
        })
        .collect()
}

/// No request of 180 ms or more can be answered within 170 ms: that is where throughput falls to nothing. Below,
/// an open loop is served at its rate whatever the delay: 40 users of 160 ms could do 250/s. The warm-up is longer
/// than any answer takes, so as many end in the window as begin.
#[test]
fn a_cliff_is_found_where_responses_begin_to_take_longer_than_the_timeout() {
    let scratch = Scratch::new();
    let delays: Vec<String> = (1..=20).map(|i| format!("\"{}ms\"", 20 * i)).collect();
    let matrix = scratch.matrix(
        "cliff",
        &format!(
            "[run]\nfind = \"breakpoint\"\nrounds = 3\nceilings = false\n\
             [knobs]\nclient = \"reference\"\nusers_per_thread = 40\nrate = 100\n\
             duration = \"800ms\"\nwarmup = \"400ms\"\nrequest_timeout = \"170ms\"\n\
             target.delay = [{}]",
            delays.join(", ")
        ),
    );
    let done = scratch.output(&["run", &matrix.to_string_lossy()]);
    assert!(done.status.success(), "{}", stderr(&done));
    let (run, trials) = rows(&scratch, &done);
    let asked = levels(&trials, "target.delay");
    // A fifth of 20 values in 3 rounds; ends and middle first; each in a round of its own.
    assert_eq!(asked.len(), 12, "{asked:?}");
    let ms = |n: f64| n * 1e6;
    assert_eq!(asked[..3], [ms(20.0), ms(400.0), ms(200.0)], "{asked:?}");
    let cells = trials.iter().filter(|t| t.role == Role::Cell);
    let rounds: Vec<u32> = cells.map(|t| t.round).collect();
    assert_eq!(rounds, (1..=12).collect::<Vec<_>>());
    let twins = trials.iter().filter(|t| t.role == Role::Control);
    assert_eq!(twins.count(), 3, "as many as in a grid of 3 rounds");

    let found = breakpoints(run.path());
    let cliff = found.iter().find(|(kind, _, _)| kind == "cliff");
    let (_, _, above) = cliff.expect("nothing is left beyond the timeout");
    let above: f64 = above.trim_end_matches("ms").parse().unwrap();
    // A machine that is busy with something else may be some tens of milliseconds late: never early.
    assert!((100.0..=180.0).contains(&above), "{found:?}");
}

#[test]
fn a_grid_too_small_to_search_is_refused_with_the_fix() {
    let scratch = Scratch::new();
    let matrix = scratch.matrix(
        "small",
        "[run]\nfind = \"breakpoint\"\nrounds = 2\n[knobs]\nclient = \"reference\"\nthreads = [1, 2, 4, 8]",
    );
    let done = scratch.output(&["plan", &matrix.to_string_lossy()]);
    assert_eq!(done.status.code(), Some(1));
    let error = stderr(&done);
    assert!(error.contains("search along \"threads\""), "{error}");
    assert!(error.contains("give 5 rounds, or more values"), "{error}");
}

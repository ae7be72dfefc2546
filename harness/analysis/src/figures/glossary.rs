//! What words and columns mean.

use yieldpoint_figures::Fact;
use yieldpoint_record::Manifest;

/// Words, then columns.
pub(crate) const WORDS: &[(&str, &str)] = &[
    (
        "good request",
        "A complete response of the expected status and length. Throughput always means good requests per second.",
    ),
    (
        "window",
        "The measured part of a trial. It has no warm-up unless one is set: that would hide the burst of the ports.",
    ),
    ("cell", "One combination of all knobs."),
    ("trial", "One execution of a cell, in its own lab."),
    (
        "round",
        "One pass over all cells in random order. Ratios are paired by round, so that drift of the machine does not look like a difference.",
    ),
    (
        "auto",
        "rounds = \"auto\": a run ends when each value of one axis was compared with the first and is decided, looked at after 8, 12, 16, 20, 30 and 40 rounds by alpha spending (5 % false alarms a comparison over all looks); the interval is the repeated one.",
    ),
    (
        "find, along",
        "find = \"breakpoint\": a run searches one axis of numbers for knee and cliff in at most a fifth of the grid's trials; a round is then one trial of each combination of the other axes.",
    ),
    (
        "role",
        "cell: of the matrix; control: the twin of a cell, run to know the noise; ceiling: the reference client, run to know the limit of the target.",
    ),
    (
        "status",
        "ok; error: could not be measured; unsupported: the client cannot do the cell. Failed requests leave a trial ok.",
    ),
    ("flags", "Remarks that leave a trial ok, joined by commas."),
    (
        "virtual user",
        "One closed loop of iterations. Users = processes × threads × users_per_thread.",
    ),
    (
        "iteration",
        "requests_per_iteration requests by one virtual user, one after the other.",
    ),
    (
        "TIME_WAIT",
        "The end that closes a connection first keeps its port for 60 s and a little more; it is not free for the same destination until then.",
    ),
    (
        "burst only",
        "The trial ended before a TIME_WAIT cycle (125 s to be safe) did: it lived on ports that were free at its start.",
    ),
    (
        "ran out of ports",
        "At least one request met address_not_available: no local port was free.",
    ),
    (
        "good_per_s",
        "1/s. Good requests in the window ÷ its length.",
    ),
    (
        "attempts, good, errors",
        "Requests that ended in the window; attempts = good + errors.",
    ),
    (
        "connections",
        "Connections the client opened in the window. In the timeline: in the slot (by the client), or accepted in it (by the target).",
    ),
    (
        "requests_total, connections_total",
        "Requests and connections of the client from go to its exit.",
    ),
    (
        "target_requests, target_connections",
        "Requests read and connections accepted by the target from go to exit.",
    ),
    (
        "p50_ns, p90_ns, p99_ns, p999_ns, max_ns",
        "ns. Time from the start of a good request to its last byte, a connect that it needed included.",
    ),
    (
        "connect_p50_ns, connect_p99_ns",
        "ns. Time of connect() of opened connections; missing where the library hides it.",
    ),
    (
        "client_cpu_us_per_good",
        "µs. CPU time of the client, user and system, from the first sample to the last ÷ good requests from go to exit.",
    ),
    (
        "target_cpu_us_per_request",
        "µs. CPU time of the target since go ÷ requests it read.",
    ),
    (
        "client_rss_peak_kib",
        "KiB. Peak resident memory of the client.",
    ),
    (
        "time_wait_start",
        "TIME_WAIT entries of the lab before go; 0 in a private lab.",
    ),
    (
        "time_wait_peak",
        "Most TIME_WAIT entries in any sample, both ends together.",
    ),
    (
        "time_wait_client, time_wait_target",
        "TIME_WAIT entries after the window, by the end that holds them.",
    ),
    (
        "lab_mode",
        "private: fresh namespaces for each trial; host: the machine's own network.",
    ),
    (
        "t_ms, first_ms",
        "ms from go; in the timeline the start of the slot.",
    ),
    (
        "dur_ms",
        "ms. Length of a slot; counts belong to the slot and are not rates.",
    ),
    (
        "series_source",
        "Who saw the slot: target (100 ms) or client (1 s).",
    ),
    (
        "responses, bytes_out",
        "Responses completed and bytes written by the target in the slot.",
    ),
    (
        "active, listen_queue",
        "Open connections and length of the target's accept queue at the end of the slot.",
    ),
    (
        "value_ns, count",
        "ns, number. Slots of the histograms: the greatest time that falls into the slot, and how many did.",
    ),
    (
        "verdict",
        "What bound the trial: ports_exhausted, port_search, client_cpu, client_memory, target_cpu, target_latency, accept_queue, fd_limit, bandwidth, target_errors, keepalive_limit, pacing, noisy_machine or unexplained; two joined by a comma where two stand side by side. Never more than the evidence allows.",
    ),
    (
        "evidence, remedy",
        "What the verdict rests on, in figures, and what would help; the gain is a bound from other cells, not a promise.",
    ),
    (
        "ceiling_per_s, ceiling_kind, ceiling_from",
        "1/s. The least upper bound of throughput that is known, the resource that sets it, and how it was computed: from laws of the kernel, from what was asked and from other cells, never from the trial itself.",
    ),
    (
        "early_per_s",
        "1/s. Responses in the first 10 s of the window, or in its first phase where that is shorter.",
    ),
    (
        "sustained_per_s",
        "1/s. What lasts: over whole cycles of the ports, burst start to burst start; missing where the ports were burned and no whole cycle was seen.",
    ),
    (
        "unexplained_time",
        "Share. 1 − throughput × mean response time ÷ users (Little's law): the users' time that is not response time. Missing where requests failed, and in an open loop.",
    ),
    (
        "phase",
        "burst: ports are free; search: over half of them are in TIME_WAIT and connect() looks for one; exhausted: none is free; recovery: they come back, or a level that fell is reached again; decay: a level fell by a quarter; steady: none of these.",
    ),
    ("start_ms, end_ms", "ms from go."),
    (
        "axis, fixed",
        "The numeric axis along which throughput breaks, and the other coordinates, which are held.",
    ),
    (
        "below, above",
        "The last value of the axis before the breakpoint and the first after it; verdict_below and verdict_above are theirs.",
    ),
    (
        "verdict_below, verdict_above",
        "What bound most rounds of the cells on both sides of a breakpoint.",
    ),
    (
        "knobs",
        "The change whose effect it is (\"threads=1→3\"), or two, whose effect on each other it is: 1 means none.",
    ),
    (
        "ratio, ratio_low, ratio_high",
        "Throughput after ÷ before, geometric mean paired by round (in a search, trial by trial), with its 95 % t interval from eight pairs on. In controls: that of the control ÷ that of its cell in one round.",
    ),
    (
        "reached_per_s, reached_low, reached_high",
        "1/s. What the reference client reached on the target with many users: geometric mean over rounds, with its 95 % t interval from eight rounds on, below that the least and the greatest. Before its ports ran out, where they did (early).",
    ),
    (
        "interval",
        "What the interval of an effect allows for. fixed: the number of rounds was given; repeated: rounds = \"auto\" stopped on this comparison, and the interval holds at all its looks together; ignores_stopping: rounds = \"auto\" stopped on another comparison, of which the interval knows nothing. Missing where there is no interval.",
    ),
    (
        "rounds, early",
        "Rounds that count; in ceilings also whether the rate is that of the time before the ports ran out.",
    ),
    (
        "target_cpu, client_cpu",
        "Share of its CPU set that the target, or the reference client, used, 0–1: CPU time, or the busy time of the set where that is more.",
    ),
    (
        "saturated",
        "Whose CPU was at its limit (80 % and more): only then the rate bounds anything. Missing: neither was, and the rate is that of so many users.",
    ),
    (
        "injected, trials",
        "Of a run that proves verdicts by fault injection: the causes that were injected, and how many trials of them had this verdict. Right: exactly the injected causes; incomplete: some of them and no other; wrong: a cause that was not injected; decided: not unexplained.",
    ),
    (
        "within_noise",
        "Whether the ratio is no further from 1 than a cell is from its own A/A control: then it may be noise. Missing where no noise floor was measured.",
    ),
    (
        "noise floor",
        "How much the same cell, run twice in a round, differs from itself: the root mean square of the log ratios of all such pairs, as a percentage. A difference below it may be noise.",
    ),
    (
        "starved",
        "The users or the rate that were asked for were not reached. Such a trial is marked and never wins or loses a comparison.",
    ),
    (
        "order, started",
        "Place of the trial in the run from 0, and when it began (UTC).",
    ),
];

/// Words, columns, knobs that vary or always have a column, and metrics.
pub(super) fn glossary(manifest: &Manifest) -> Vec<Fact> {
    let fact = |name: &str, value: &str| Fact {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let words = WORDS.iter().map(|(name, value)| fact(name, value));
    let mut names: Vec<&str> = crate::trials::ALWAYS.to_vec();
    for axis in &manifest.axes {
        if !names.contains(&axis.name.as_str()) {
            names.push(&axis.name);
        }
    }
    for name in &manifest.set {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let knobs = names
        .into_iter()
        .map(|name| fact(name, &of_knob(manifest, name)));
    let metrics = manifest.metrics.iter().map(|m| {
        let unit = if m.unit.is_empty() {
            String::new()
        } else {
            format!("{}. ", m.unit)
        };
        let total = if m.counter { " A running total." } else { "" };
        fact(
            &m.name,
            &format!("{unit}{}{total} Source: {}", m.doc, m.source),
        )
    });
    words.chain(knobs).chain(metrics).collect()
}

/// What a knob or axis means, in the words of its owner.
pub(super) fn of_knob(manifest: &Manifest, name: &str) -> String {
    let declared = manifest.knobs.iter().find(|k| k.answers_to(name));
    match declared {
        Some(knob) => knob.doc.to_string(),
        None if name == "client" => "The load client.".to_owned(),
        None => "A bundle of the matrix: a named set of knobs.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bulk, synthetic, tables};

    #[test]
    fn every_column_of_every_table_is_explained() {
        let axis = [yieldpoint_terms::Value::Text("wide".into())];
        let manifest = synthetic::manifest(&[("kernel", &axis)]);
        let known: Vec<String> = glossary(&manifest)
            .iter()
            .flat_map(|f| f.name.split(", ").map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let made = tables(&manifest, &[]).unwrap();
        // Their names say it.
        let plain = ["error", "kind", "example", "histogram"];
        let grow = bulk::ALL.map(|table| (table.rows)(&manifest, &[]).unwrap());
        let whole = [
            &made.trials,
            &made.errors,
            &made.phases,
            &made.breakpoints,
            &made.effects,
            &made.controls,
            &made.ceilings,
            &made.confusion,
        ];
        for table in whole.into_iter().chain(&grow) {
            for name in synthetic::names(table) {
                assert!(
                    plain.contains(&name) || known.iter().any(|k| k == name),
                    "\"{name}\""
                );
            }
        }
    }
}

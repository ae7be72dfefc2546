//! What a reader must know before believing a number.

use yieldpoint_record::{Manifest, Role, Status, Trial, flag};

use crate::controls::Floor;
use crate::grid::has_flag;
use crate::repeated::Rule;
use crate::stats::ROUNDS_FOR_AN_INTERVAL;
use crate::{histograms, text};

/// One sentence a trouble, worst first. `floor` is how much a cell differs from itself.
pub(super) fn warnings(
    manifest: &Manifest,
    trials: &[Trial],
    floor: Option<&Floor>,
) -> Vec<String> {
    let mut out = Vec::new();
    if trials.is_empty() {
        out.push("The journal is empty: nothing was measured.".to_owned());
    } else if manifest.along.is_none() && trials.len() < manifest.trials as usize {
        // (A search may be done before it has used up its trials.)
        out.push(format!(
            "{} of {} planned trials are in the journal: the run did not complete.",
            text::count(trials.len() as u64),
            text::count(u64::from(manifest.trials))
        ));
    }
    out.extend(not_ok(trials, Status::Error, "could not be measured"));
    out.extend(not_ok(
        trials,
        Status::Unsupported,
        "asked of a client what it cannot do",
    ));
    out.extend(unreadable(trials));
    out.extend(floor.and_then(Floor::warning));
    out.extend(
        FLAGS
            .iter()
            .filter_map(|(flag, what)| flagged(trials, flag, what)),
    );
    let host = trials
        .iter()
        .filter(|t| t.lab_mode.as_deref() == Some("host"))
        .count();
    if host > 0 {
        let why = manifest
            .lab
            .why
            .as_ref()
            .map_or_else(String::new, |why| format!(" ({why})"));
        out.push(format!(
            "{} ran in the host's own network{why}: TIME_WAIT entries and ports left by earlier trials and by other programs may take part.",
            text::plural(host, "trial")
        ));
    }
    if let Some(rule) = Rule::of(manifest) {
        out.push(format!(
            "rounds = \"auto\": the run ended when \"{}\" was decided. Its intervals are valid for the repeated looks; all other intervals ignore the stopping and are somewhat too narrow.",
            rule.axis
        ));
    }
    let rounds = rounds(trials);
    if (1..ROUNDS_FOR_AN_INTERVAL).contains(&rounds) {
        out.push(format!(
            "{}: ratios below carry no interval; at least {ROUNDS_FOR_AN_INTERVAL} rounds are needed for a verdict.",
            text::plural(rounds, "round")
        ));
    }
    out.extend(manifest.notes.iter().map(|note| format!("Plan: {note}")));
    out
}

/// What a flag means for the reader. Others are shown by their name.
const FLAGS: [(&str, &str); 7] = [
    (
        flag::STARVED,
        "did not reach the users or the rate that were asked for; they are marked, and left out of every comparison.",
    ),
    (
        flag::THROTTLED,
        "were held back by a CPU quota: what they lack is not the client's.",
    ),
    (
        flag::BURST_ONLY,
        "saw the port burst only; their throughput is not sustained. It needs duration ≥ 125 s to see a whole TIME_WAIT cycle, or a smaller port range.",
    ),
    (
        flag::NOISY,
        "ran while the machine was busy with something else (steal, other programs, a CPU quota or gaps in the samples).",
    ),
    (
        flag::SHARED_CPUS,
        "had client and target on the same core: each takes time from the other.",
    ),
    (
        flag::ONE_ENDED,
        "have the client's word alone: the target does not testify.",
    ),
    (
        flag::TIME_WAIT_OVERFLOW,
        "had TIME_WAIT entries dropped at tcp_max_tw_buckets, which frees their ports early.",
    ),
];

/// The greatest number of trials that count of any cell.
fn rounds(trials: &[Trial]) -> usize {
    let mut of_cell = std::collections::HashMap::<&str, usize>::new();
    for trial in trials
        .iter()
        .filter(|t| t.role == Role::Cell && t.status == Status::Ok)
    {
        *of_cell.entry(&trial.cell).or_default() += 1;
    }
    of_cell.into_values().max().unwrap_or(0)
}

fn not_ok(trials: &[Trial], status: Status, what: &str) -> Option<String> {
    let mut such = trials.iter().filter(|t| t.status == status);
    let first = such.next()?;
    let why = first.error.as_deref().unwrap_or("no reason recorded");
    Some(format!(
        "{} of {} {what}. The first: {}, round {}: {why}",
        text::count(1 + such.count() as u64),
        text::plural(trials.len(), "trial"),
        first.cell,
        first.round
    ))
}

fn unreadable(trials: &[Trial]) -> Option<String> {
    let broken = |t: &Trial| Some((t.cell.clone(), histograms::broken(t.outcome.as_ref()?)?));
    let mut such = trials.iter().filter_map(broken);
    let (cell, (name, why)) = such.next()?;
    Some(format!(
        "{} sent a histogram that cannot be read; its percentiles are missing. The first: {cell}, \"{name}\": {why}",
        text::plural(1 + such.count(), "trial")
    ))
}

fn flagged(trials: &[Trial], flag: &str, what: &str) -> Option<String> {
    let n = trials.iter().filter(|t| has_flag(t, flag)).count();
    (n > 0).then(|| {
        format!(
            "{} of {} {what}",
            text::count(n as u64),
            text::plural(trials.len(), "trial")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn has(warnings: &[String], words: &[&str]) -> bool {
        warnings
            .iter()
            .any(|w| words.iter().all(|word| w.contains(word)))
    }

    #[test]
    fn every_trouble_is_said_with_its_number() {
        let mut manifest = synthetic::manifest(&[]);
        manifest.trials = 9;
        manifest.lab.why = Some("refused".into());
        manifest.notes = vec!["4 cells excluded".into()];
        let mut host = synthetic::ran_out(synthetic::trial("ureq", 1), 2_000);
        host.lab_mode = Some("host".into());
        host.flags
            .extend(["noisy", "one_ended", "shared_cpus"].map(str::to_owned));
        let mut unreadable = synthetic::trial("ureq", 2);
        unreadable.outcome.as_mut().unwrap().connect = yieldpoint_protocol::Histogram("no".into());
        let error = synthetic::failed(synthetic::trial("ureq", 3), Status::Error, "hung for 9 s");
        let cannot = synthetic::failed(
            synthetic::trial("hyper", 1),
            Status::Unsupported,
            "no threads",
        );
        let warnings = warnings(&manifest, &[host, unreadable, error, cannot], None);
        for words in [
            &["4 of 9 planned"][..],
            &[
                "1 of 4 trials could not be measured",
                "m/client=ureq, round 3: hung for 9 s",
            ],
            &["1 of 4 trials asked", "no threads"],
            &["1 trial sent a histogram", "\"connect\""],
            &["1 of 4 trials saw the port burst only", "duration ≥ 125 s"],
            &["busy"],
            &["same core"],
            &["client's word alone"],
            &["1 trial ran in the host's own network (refused)"],
            &["2 rounds", "at least 8 rounds"],
            &["4 cells excluded"],
        ] {
            assert!(has(&warnings, words), "{words:?} in {warnings:#?}");
        }
    }

    #[test]
    fn a_sound_run_has_no_warning() {
        let mut manifest = synthetic::manifest(&[]);
        manifest.trials = 8;
        let trials: Vec<_> = (1..=8)
            .map(|round| synthetic::trial("ureq", round))
            .collect();
        assert_eq!(warnings(&manifest, &trials, None), [""; 0]);
    }
}

//! Clients that ended for lack of memory. Their trials were not measured, and why is what they were to tell.

use yieldpoint_record::{Status, Trial};
use yieldpoint_terms::Value;

use super::verdict::Cause;
use crate::text;

/// What the system and the standard libraries say where memory is refused.
const REFUSED: [&str; 4] = [
    "memory allocation of ",
    "cannot allocate memory",
    "out of memory",
    "(os error 12)",
];
/// What they say of a thread whose stack was refused: the same error as for too many threads, so it tells
/// something only where memory was limited.
const NO_THREAD: [&str; 2] = ["resource temporarily unavailable", "(os error 11)"];

pub(super) fn client_memory(trial: &Trial) -> Option<Cause> {
    let error = trial
        .error
        .as_deref()
        .filter(|_| trial.status == Status::Error)?;
    let lower = error.to_lowercase();
    if !lower.starts_with("client ") {
        return None;
    }
    let limit = match trial.knobs.get("lab.memory") {
        Some(Value::Int(mib)) => Some(*mib),
        _ => None,
    };
    let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let no_thread = limit.is_some() && lower.contains("thread") && says(&NO_THREAD);
    if !says(&REFUSED) && !no_thread {
        return None;
    }
    let of = limit.map_or_else(String::new, |mib| format!(" of {mib} MiB (lab.memory)"));
    let peak = trial.samples.as_ref().and_then(|s| {
        let column = s.columns.get("client_rss_peak_kib")?;
        column.iter().flatten().max().copied()
    });
    let peak = peak.map_or_else(String::new, |kib| {
        // KiB of a process, far below 2^53.
        format!(
            "; {} MiB were resident at most",
            text::significant(kib as f64 / 1_024.0)
        )
    });
    Some(Cause {
        kind: "client_memory",
        evidence: format!("the client ended for lack of memory{of}{peak}: {error}"),
        remedy:
            "Use fewer users or threads, a client that keeps less for each, or allow more memory."
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn an_end_for_lack_of_memory_is_told_from_any_other() {
        // error, lab.memory, verdict?
        let table = [
            // The standard library ends a program whose allocation fails.
            (
                "client \"ureq\": was killed by signal 6 (SIGABRT) where \"end\" was expected; its log ends: memory allocation of 65536 bytes failed",
                None,
                true,
            ),
            (
                "client \"isahc\": Cannot allocate memory (os error 12)",
                None,
                true,
            ),
            // No stack for a thread, under a limit of memory.
            (
                "client \"hyper\": thread 40: Resource temporarily unavailable (os error 11)",
                Some(32),
                true,
            ),
            // The same without one: it may be a limit of threads.
            (
                "client \"hyper\": thread 40: Resource temporarily unavailable (os error 11)",
                None,
                false,
            ),
            // Not the client's.
            (
                "target \"static\": Cannot allocate memory (os error 12)",
                None,
                false,
            ),
            // Limited, and ended by something else.
            (
                "client \"ureq\": was killed by signal 11 (SIGSEGV)",
                Some(32),
                false,
            ),
        ];
        for (error, limit, want) in table {
            let mut trial = synthetic::failed(synthetic::trial("ureq", 1), Status::Error, error);
            if let Some(mib) = limit {
                trial.knobs.set("lab.memory", Value::Int(mib));
            }
            assert_eq!(client_memory(&trial).is_some(), want, "{error} {limit:?}");
        }
        // A trial that was measured speaks by its evidence.
        let mut measured = synthetic::trial("ureq", 1);
        measured.error = Some("client \"ureq\": out of memory".into());
        assert_eq!(client_memory(&measured), None);
    }
}

//! What a client takes from a job, and what it refuses before anything is measured.

use yieldpoint_protocol::{Hello, Job};
use yieldpoint_terms::{Kind, Knob, Knobs, Nanos, Value, nearest};

use crate::{KNOBS, Setup};

/// Why a job is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This client cannot do it, and says so: one sentence.
    Unsupported(String),
    /// It should be able to, and something is wrong: one sentence.
    Failed(String),
}

/// Reads a job as the client `hello` does it: options complete and checked, limits kept.
pub fn setup(hello: &Hello, job: &Job) -> Result<Setup, Refusal> {
    let failed = |e: &dyn std::fmt::Display| Refusal::Failed(e.to_string());
    let mut setup = Setup::from_job(job).map_err(|e| failed(&e))?;
    let known = KNOBS.iter().map(|k| k.name.as_ref());
    for name in job.knobs.0.keys().filter(|n| !n.starts_with("options.")) {
        if !known.clone().any(|k| k == name) {
            return Err(unknown("knob", name, known));
        }
    }
    for (knob, value) in KNOBS
        .iter()
        .filter_map(|k| Some((k, job.knobs.get(&k.name)?)))
    {
        let honoured = hello.honours.iter().any(|h| *h == knob.name);
        if !honoured && Some(typed(knob, value)) != knob.default_value() {
            return Err(Refusal::Unsupported(format!(
                "\"{}\" has no knob \"{}\" and cannot set it to \"{value}\"",
                hello.name, knob.name
            )));
        }
    }
    for (name, limit) in &hello.limits {
        if let Some(Value::Int(asked)) = job.knobs.get(name)
            && asked > limit
        {
            return Err(Refusal::Unsupported(format!(
                "\"{name}\": at most {limit} with \"{}\", got {asked}",
                hello.name
            )));
        }
    }
    setup.options = options(&hello.knobs, &setup.options)?;
    Ok(setup)
}

/// The client's own knobs: every given one is known and in range, the others have their defaults.
fn options(knobs: &[Knob], given: &Knobs) -> Result<Knobs, Refusal> {
    for name in given.0.keys() {
        if !knobs.iter().any(|k| k.answers_to(name)) {
            let known = knobs.iter().map(|k| k.name.as_ref());
            return Err(unknown("option", name, known));
        }
    }
    let mut options = Knobs::default();
    for knob in knobs {
        if let Some(default) = knob.default_value() {
            options.set(knob.name.as_ref(), default);
        }
        for (name, value) in given.0.iter().filter(|(n, _)| knob.answers_to(n)) {
            let value = knob
                .accept(name, &typed(knob, value))
                .map_err(|e| Refusal::Failed(format!("option {e}")))?;
            options.set(name, value);
        }
    }
    Ok(options)
}

/// A duration is an integer of nanoseconds on the wire; the other values keep their type.
fn typed(knob: &Knob, value: &Value) -> Value {
    match (&knob.kind, value) {
        (Kind::Duration { .. }, Value::Int(ns)) => match u64::try_from(*ns) {
            Ok(ns) => Value::Duration(Nanos(ns)),
            Err(_) => value.clone(),
        },
        _ => value.clone(),
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Refusal {
    let known: Vec<_> = known.collect();
    let fix = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if known.is_empty() => "this client has none".to_owned(),
        None => format!("known: {}", known.join(", ")),
    };
    Refusal::Failed(format!("unknown {what} \"{name}\"; {fix}"))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::setup::tests::{hello, job};

    #[test]
    fn refusals() {
        const IO: &[Cow<'static, str>] = &[Cow::Borrowed("epoll"), Cow::Borrowed("blocking")];
        let mut hello = hello();
        hello.limits.insert("users_per_thread".into(), 1);
        hello.honours.retain(|k| k != "connect_timeout");
        hello.knobs = vec![
            Knob::choice("io", IO, ""),
            Knob::duration("linger", Nanos(0), Nanos(0), Nanos::from_secs(1), ""),
        ];
        let text = |t: &str| Value::Text(t.to_owned());
        // each row: knob, value, why it is refused
        let table: [(&str, Value, Option<&str>); 9] = [
            ("threads", Value::Int(2), None),
            // beyond the client's limit: a row of its own, no error
            (
                "users_per_thread",
                Value::Int(2),
                Some("unsupported: \"users_per_thread\": at most 1 with \"fake\", got 2"),
            ),
            // a knob that the client does not obey may be set to its default only
            ("connect_timeout", Value::Int(2_000_000_000), None),
            (
                "connect_timeout",
                Value::Int(1_000_000_000),
                Some(
                    "unsupported: \"fake\" has no knob \"connect_timeout\" and cannot set it to \"1000000000\"",
                ),
            ),
            // misspelt knobs would otherwise be ignored in silence
            (
                "keepalive",
                Value::Bool(true),
                Some("failed: unknown knob \"keepalive\"; did you mean \"keep_alive\"?"),
            ),
            (
                "options.oi",
                text("epoll"),
                Some("failed: unknown option \"oi\"; known: io, linger"),
            ),
            ("options.io", text("blocking"), None),
            (
                "options.io",
                text("kqueue"),
                Some(
                    "failed: option \"io\": expected one of \"epoll\", \"blocking\", got \"kqueue\"",
                ),
            ),
            (
                "options.linger",
                Value::Int(2_000_000_000),
                Some("failed: option \"linger\": expected a duration from \"0s\" to \"1s\""),
            ),
        ];
        for (name, value, want) in table {
            let mut job = job();
            job.knobs.set(name, value.clone());
            let got = match setup(&hello, &job) {
                Ok(_) => None,
                Err(Refusal::Unsupported(why)) => Some(format!("unsupported: {why}")),
                Err(Refusal::Failed(why)) => Some(format!("failed: {why}")),
            };
            match (&got, want) {
                (Some(got), Some(want)) => assert!(got.starts_with(want), "{name}: {got}"),
                (got, want) => assert_eq!(got.as_deref(), want, "{name} = {value}"),
            }
        }
    }

    #[test]
    fn options_come_back_complete_and_typed() {
        let mut hello = hello();
        hello.knobs = vec![
            Knob::bool("tcp_nodelay", true, ""),
            Knob::duration("linger", Nanos(5), Nanos(0), Nanos(9), ""),
        ];
        let mut job = job();
        job.knobs.set("options.linger", Value::Int(7));
        let options = setup(&hello, &job).unwrap().options;
        assert_eq!(options.bool("tcp_nodelay"), Ok(true));
        assert_eq!(options.duration("linger"), Ok(Nanos(7)));
    }
}

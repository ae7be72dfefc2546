//! What a client is told, what a target is told, and what a client cannot do.

use yieldpoint_protocol::{Hello, Job, VERSION};
use yieldpoint_terms::{Knob, Knobs, Value};

/// The first reason why a client cannot do a cell.
pub(super) fn unsupported(hello: &Hello, common: &[Knob], k: &Knobs) -> Option<String> {
    // The URL comes from the target, and the processes are the runner's to start.
    let others = ["url", "processes"];
    for knob in common.iter().filter(|k| !others.contains(&&*k.name)) {
        let set = k.get(&knob.name);
        let is_default = set.is_none() || set == knob.default_value().as_ref();
        if !is_default && !hello.honours.iter().any(|h| *h == knob.name) {
            let value = set.map(ToString::to_string).unwrap_or_default();
            return Some(format!(
                "client \"{}\" does not know {} = {value}",
                hello.name, knob.name
            ));
        }
    }
    hello
        .limits
        .iter()
        .find_map(|(knob, most)| match k.get(knob) {
            Some(Value::Int(i)) if i > most => Some(format!(
                "client \"{}\" can do {knob} up to {most}, the cell asks for {i}",
                hello.name
            )),
            _ => None,
        })
}

/// Common knobs by name, the client's own as "options.<name>"; the expected length follows the target's.
pub(super) fn client_knobs(client: &str, common: &[Knob], k: &Knobs) -> Knobs {
    let is_common = |name: &str| common.iter().any(|knob| knob.answers_to(name));
    let mut job = Knobs(
        k.0.iter()
            .filter(|(name, _)| is_common(name))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect(),
    );
    for (name, value) in k.below(&format!("options.{client}.")).0 {
        job.set(format!("options.{name}"), value);
    }
    if job.get("expect.body_bytes").is_none()
        && k.get("target.kind") != Some(&Value::Text("url".into()))
        && let Some(length) = k.get("target.body_bytes")
    {
        job.set("expect.body_bytes", length.clone());
    }
    job
}

/// The knobs that this target knows, by their short names.
pub(super) fn target_job(hello: &Hello, knobs: &Knobs) -> Job {
    let knows = |name: &str| hello.knobs.iter().any(|k| k.answers_to(name));
    let own = knobs
        .0
        .iter()
        .filter(|(name, _)| knows(name))
        .map(|(n, v)| (n.clone(), v.clone()));
    Job {
        protocol: VERSION,
        knobs: Knobs(own.collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(honours: &[&str], limits: &[(&str, i64)]) -> Hello {
        Hello {
            protocol: VERSION,
            role: yieldpoint_protocol::Role::Client,
            name: "mine".into(),
            version: "1".into(),
            library: String::new(),
            about: String::new(),
            honours: honours.iter().map(ToString::to_string).collect(),
            limits: limits.iter().map(|(n, v)| (n.to_string(), *v)).collect(),
            knobs: vec![],
        }
    }

    #[test]
    fn a_cell_is_unsupported_only_where_it_asks_for_more_than_the_client_has() {
        let common = [
            Knob::int("threads", 1, 1, 9, ""),
            Knob::int("users_per_thread", 1, 1, 9, ""),
        ];
        let cell = |threads, users| {
            let mut k = Knobs::default();
            k.set("threads", Value::Int(threads));
            k.set("users_per_thread", Value::Int(users));
            k
        };
        let all = ["threads", "users_per_thread"];
        // honours, limits, threads, users, supported
        let table = [
            (&all[..], &[][..], 4, 4, true),
            (&all[..], &[("users_per_thread", 1)][..], 4, 1, true),
            (&all[..], &[("users_per_thread", 1)][..], 4, 2, false), // beyond its limit
            (&all[..1], &[][..], 4, 1, true), // does not know the knob, which is at its default
            (&all[..1], &[][..], 4, 2, false), // does not know the knob, and it matters
        ];
        for (i, (honours, limits, threads, users, want)) in table.into_iter().enumerate() {
            let why = unsupported(&hello(honours, limits), &common, &cell(threads, users));
            assert_eq!(why.is_none(), want, "row {i}: {why:?}");
        }
    }

    #[test]
    fn a_client_gets_its_own_options_and_nobody_else_s() {
        let mut k = Knobs::default();
        k.set("threads", Value::Int(1));
        k.set("options.mine.nodelay", Value::Bool(true));
        k.set("options.other.nodelay", Value::Bool(true));
        k.set("target.kind", Value::Text("static".into()));
        k.set("target.body_bytes", Value::Int(612));
        let job = client_knobs("mine", &[Knob::int("threads", 1, 1, 9, "")], &k);
        let names: Vec<_> = job.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["expect.body_bytes", "options.nodelay", "threads"]);
    }
}

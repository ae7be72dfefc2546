//! The knobs of the lab.

use std::borrow::Cow;

use yieldpoint_terms::{Kind, Knob, Nanos};

const MODES: &[Cow<'static, str>] = &[
    Cow::Borrowed("auto"),
    Cow::Borrowed("private"),
    Cow::Borrowed("host"),
];

const NETWORKS: &[Cow<'static, str>] = &[Cow::Borrowed("loopback"), Cow::Borrowed("veth")];

/// What a matrix can set about the surroundings of a trial.
pub const KNOBS: &[Knob] = &[
    Knob::choice(
        "lab.mode",
        MODES,
        "Where a trial runs: private (fresh user, network, PID and IPC namespaces), host (no namespaces; sysctls cannot be set), or auto (private where the system allows it).",
    ),
    Knob::choice(
        "lab.network",
        NETWORKS,
        "What lies between client and target: loopback (one network namespace), or veth (two of them, linked by a veth pair: client 10.77.0.1, target 10.77.0.2, MTU 1500; needs a private lab).",
    ),
    Knob::optional(
        "lab.rate",
        Kind::Text,
        "Most that the veth link carries in each direction, headers included, in bits per second (\"100mbit\", \"1.5gbit\"; \"8kbit\" to \"100gbit\"); default: unlimited. The queue before it holds 50 ms, at least 64 KiB.",
    ),
    Knob::optional(
        "lab.delay",
        Kind::Duration {
            min: Nanos(1_000),
            max: Nanos::from_secs(60),
        },
        "How much later a packet arrives over the veth link, one way, in both directions (a round trip takes twice as long); needs a kernel with netem; default: no delay.",
    ),
    Knob::optional(
        "lab.nofile",
        // 3 standard descriptors, the inherited socket and some of the program's own.
        Kind::Int {
            min: 16,
            max: 1 << 30,
        },
        "Soft limit of open descriptors of client and of target, each; default: the hard limit of the caller.",
    ),
    Knob::optional(
        "lab.memory",
        Kind::Int {
            min: 8,
            max: 1 << 20,
        },
        "Most memory of each client process in MiB: what it can write to privately, allocated or mapped, whether touched or not, stacks of threads included (RLIMIT_DATA). For experiments with clients that run out of it; default: unlimited.",
    ),
    Knob::int(
        "lab.disturb",
        0,
        0,
        64,
        "Busy processes on each CPU of client and target, beside them, which end with the trial. For experiments with a noisy machine: the scheduler gives each of k busy programs a k-th of a CPU.",
    ),
    Knob::optional(
        "lab.cpus.client",
        Kind::Text,
        "CPUs of the client (\"0\", \"1-3\", \"0,2\"); default: the first of two, or half of what is left after one for the runner.",
    ),
    Knob::optional(
        "lab.cpus.target",
        Kind::Text,
        "CPUs of the target (\"0\", \"1-3\", \"0,2\"); default: the second of two, or the other half.",
    ),
    Knob::optional(
        "lab.sysctl.*",
        Kind::Any,
        "A sysctl of the trial's own namespaces (lab.sysctl.net.ipv4.tcp_tw_reuse = 0); in host mode it must equal the host's value.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use yieldpoint_terms::{Catalog, Value};

    #[test]
    fn the_catalog_answers_for_the_lab() {
        let mut catalog = Catalog::new();
        catalog.add(KNOBS.iter().cloned());
        let mode = catalog.get("lab.mode").unwrap();
        assert_eq!(mode.default_value(), Some(Value::Text("auto".into())));
        let sysctl = catalog.get("lab.sysctl.net.ipv4.tcp_tw_reuse").unwrap();
        let name = "lab.sysctl.net.ipv4.tcp_tw_reuse";
        assert_eq!(sysctl.accept(name, &Value::Int(0)), Ok(Value::Int(0)));
        assert!(sysctl.accept(name, &Value::Bool(true)).is_err());
    }
}

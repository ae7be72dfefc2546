//! The arrows between our crates, read from `cargo metadata`: who may import whom.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crate → what it may import of ours. Everything may use `terms`.
const ARROWS: &[(&str, &[&str])] = &[
    ("terms", &[]),
    ("protocol", &[]),
    ("matrix", &["protocol"]),
    ("record", &["protocol"]),
    ("lab", &[]),
    ("sample", &[]),
    ("clients-core", &["protocol"]),
    ("clients-core-async", &["clients-core", "protocol"]),
    (
        "client-*",
        &["clients-core", "clients-core-async", "protocol"],
    ),
    ("target-*", &["protocol"]),
    ("statistics", &[]),
    ("mutate", &[]),
    (
        "run",
        &[
            "matrix",
            "lab",
            "sample",
            "record",
            "statistics",
            "protocol",
        ],
    ),
    ("figures", &[]),
    (
        "analysis",
        &["record", "matrix", "figures", "statistics", "protocol"],
    ),
    ("report", &["figures"]),
    ("bench", &["clients-core", "lab", "protocol", "statistics"]),
    ("prove", &["protocol", "record", "statistics"]),
];

/// Crates of others that must not reach ours, directly or not.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("client-*", &["polars", "plotters"]),
    ("target-*", &["polars", "plotters", "tokio"]),
    ("lab", &["polars", "plotters", "tokio"]),
    ("clients-core", &["tokio"]),
    ("client-ureq", &["tokio"]),
    ("client-isahc", &["tokio"]),
    ("client-reference", &["tokio"]),
];

/// The one crate that may import Polars.
const POLARS: &str = "analysis";

struct Graph {
    /// package id → name
    names: BTreeMap<String, String>,
    /// package id → ids of its dependencies, those of tests and build scripts left out
    arrows: BTreeMap<String, BTreeSet<String>>,
    /// our packages: short name → id
    ours: BTreeMap<String, String>,
}

fn text(v: &Value) -> String {
    v.as_str()
        .expect("cargo metadata gives a text here")
        .to_owned()
}

fn list(v: &Value) -> &Vec<Value> {
    v.as_array().expect("cargo metadata gives a list here")
}

/// The platform that this machine builds for: "host: x86_64-unknown-linux-gnu" in rustc's own words.
fn platform() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Command::new(rustc).arg("-vV").output().expect("rustc runs");
    let words = String::from_utf8_lossy(&out.stdout);
    let host = words.lines().find_map(|l| l.strip_prefix("host: "));
    host.expect("rustc -vV names its host").to_owned()
}

fn graph() -> Graph {
    let out = Command::new(env!("CARGO"))
        // Of this platform alone: what only others need was never downloaded, and need not be.
        .args(["metadata", "--format-version=1", "--locked"])
        .args(["--filter-platform", &platform(), "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let all: Value = serde_json::from_slice(&out.stdout).expect("cargo prints JSON");
    let names: BTreeMap<_, _> = list(&all["packages"])
        .iter()
        .map(|p| (text(&p["id"]), text(&p["name"])))
        .collect();
    let normal = |d: &&Value| list(&d["dep_kinds"]).iter().any(|k| k["kind"].is_null());
    let arrows = list(&all["resolve"]["nodes"])
        .iter()
        .map(|n| {
            let to = list(&n["deps"])
                .iter()
                .filter(normal)
                .map(|d| text(&d["pkg"]))
                .collect();
            (text(&n["id"]), to)
        })
        .collect();
    let ours = list(&all["workspace_members"])
        .iter()
        .map(|id| {
            let id = text(id);
            let name = &names[&id];
            (
                name.strip_prefix("yieldpoint-").unwrap_or(name).to_owned(),
                id,
            )
        })
        .collect();
    Graph {
        names,
        arrows,
        ours,
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == name, |prefix| name.starts_with(prefix))
}

#[test]
fn our_crates_import_along_the_arrows_only() {
    let g = graph();
    let short: BTreeMap<&String, &String> = g.ours.iter().map(|(name, id)| (id, name)).collect();
    for (name, id) in &g.ours {
        // The command may use all.
        if name == "yieldpoint" {
            continue;
        }
        let (_, allowed) = ARROWS
            .iter()
            .find(|(pattern, _)| fits(pattern, name))
            .unwrap_or_else(|| panic!("\"{name}\" has no line in ARROWS: say what it may import"));
        for to in g.arrows[id].iter().filter_map(|d| short.get(d)) {
            let fine = *to == "terms" || allowed.contains(&to.as_str());
            assert!(
                fine,
                "\"{name}\" imports \"{to}\"; allowed: terms, {}",
                allowed.join(", ")
            );
        }
    }
}

#[test]
fn nothing_heavy_reaches_what_is_measured() {
    let g = graph();
    for (name, id) in &g.ours {
        let mut reached = BTreeSet::new();
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            if reached.insert(id) {
                next.extend(&g.arrows[id]);
            }
        }
        let reached: BTreeSet<&str> = reached.iter().map(|id| g.names[*id].as_str()).collect();
        for (pattern, forbidden) in FORBIDDEN {
            for crate_name in forbidden.iter().filter(|_| fits(pattern, name)) {
                assert!(
                    !reached.contains(crate_name),
                    "\"{name}\" must not reach {crate_name}"
                );
            }
        }
        let direct = g.arrows[id]
            .iter()
            .any(|d| g.names[d].starts_with("polars"));
        assert!(
            !direct || name == POLARS,
            "\"{name}\" imports Polars; only {POLARS} may"
        );
    }
}

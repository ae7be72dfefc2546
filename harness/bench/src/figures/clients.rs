//! Requests per CPU-second of the client: ours, wrk and others, on our target and on nginx.

use crate::bench::Bench;
use crate::figures::say_round;
use crate::loads::{self, Load};
use crate::nginx::{self, Way};
use crate::row::Row;
use crate::servers::{self, Page, Server};
use crate::surroundings::Surroundings;

/// The page of both servers: as long as nginx's welcome page.
const PAGE: Page = Page {
    body_bytes: 612,
    access_log: false,
};
/// The client that must be at least as good as wrk.
const REFERENCE: &str = "reference";
const WRK: &str = "wrk";

/// Every comparison, on both servers.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for on_nginx in [false, true] {
        let name = if on_nginx { "nginx" } else { "static" };
        let measured = on(bench, name, on_nginx);
        bench.stop().check()?;
        let figure = format!("{REFERENCE} ÷ {WRK} on {name}, requests per client CPU-second");
        rows.extend(measured.unwrap_or_else(|e| vec![Row::unmeasured(&figure, &format!("{e:#}"))]));
    }
    Ok(rows)
}

/// One candidate, and what it did in each round.
struct Candidate {
    load: Load,
    per_cpu_second: Vec<f64>,
    request_bytes: Option<f64>,
}

fn on(bench: &Bench, name: &str, on_nginx: bool) -> anyhow::Result<Vec<Row>> {
    let mut s = Surroundings::up(bench)?;
    let ours = servers::ours(&mut s, bench, PAGE)?;
    let mut server = if on_nginx {
        nginx::start(&mut s, bench, PAGE, Way::Return, &ours.head)?
    } else {
        ours
    };

    let mut rows = Vec::new();
    let mut candidates = Vec::new();
    for client in loads::clients(bench)? {
        let load = loads::client(&mut s, bench, &client);
        admit(load, &client, name, &mut candidates, &mut rows);
    }
    for tool in loads::tools() {
        admit(loads::tool(tool), tool, name, &mut candidates, &mut rows);
    }
    candidates.retain_mut(|c| match warm_up(&mut s, bench, &mut server, c) {
        Ok(()) => true,
        Err(e) => {
            rows.push(unmeasured(&c.load.name, name, &e));
            false
        }
    });
    for round in 0..bench.rounds {
        say_round(&format!("clients on {name}"), round + 1, bench.rounds);
        // Everyone has every place in the order in turn, so that no one always follows the same.
        let n = candidates.len();
        candidates.rotate_left(usize::from(n > 0 && round > 0));
        candidates.retain_mut(|c| match c.load.run(&mut s, bench, &server) {
            Ok(done) => {
                c.per_cpu_second.push(done.per_cpu_second());
                true
            }
            // The others go on.
            Err(e) => {
                rows.push(unmeasured(&c.load.name, name, &e));
                false
            }
        });
        bench.stop().check()?;
    }
    candidates.sort_by_key(|c| (is_tool(&c.load.name), c.load.name.clone()));
    let mut measured = compare(&candidates, name);
    measured.append(&mut rows);
    Ok(measured)
}

fn figure(ours: &str, peer: &str, server: &str) -> String {
    format!("{ours} ÷ {peer} on {server}, requests per client CPU-second")
}

fn is_tool(name: &str) -> bool {
    loads::tools().any(|tool| tool == name)
}

/// The row of a candidate that failed: ours is compared with wrk, a tool with our reference client.
fn unmeasured(name: &str, server: &str, why: &anyhow::Error) -> Row {
    let (ours, peer) = if is_tool(name) {
        (REFERENCE, name)
    } else {
        (name, WRK)
    };
    Row::unmeasured(&figure(ours, peer, server), &format!("{why:#}"))
}

fn admit(
    load: anyhow::Result<Load>,
    name: &str,
    server: &str,
    to: &mut Vec<Candidate>,
    rows: &mut Vec<Row>,
) {
    match load {
        Ok(load) => to.push(Candidate {
            load,
            per_cpu_second: Vec::new(),
            request_bytes: None,
        }),
        Err(e) => rows.push(unmeasured(name, server, &e)),
    }
}

/// One load that does not count; what it sends is measured here, where nobody waits for the answer.
fn warm_up(
    s: &mut Surroundings,
    bench: &Bench,
    server: &mut Server,
    c: &mut Candidate,
) -> anyhow::Result<()> {
    c.load.run(s, bench, server)?;
    c.request_bytes = server.request_bytes()?;
    Ok(())
}

fn compare(candidates: &[Candidate], server: &str) -> Vec<Row> {
    let find = |name: &str| candidates.iter().find(|c| c.load.name == name);
    let pairs = |peer: &Candidate, ours: &Candidate| -> Vec<(f64, f64)> {
        peer.per_cpu_second
            .iter()
            .copied()
            .zip(ours.per_cpu_second.iter().copied())
            .collect()
    };
    let mut rows = Vec::new();
    if let (Some(wrk), Some(reference)) = (find(WRK), find(REFERENCE)) {
        let note = note(reference, wrk);
        rows.push(Row::at_least(
            &figure(REFERENCE, WRK, server),
            &pairs(wrk, reference),
            note,
        ));
    }
    for c in candidates {
        let (peer, ours) = if is_tool(&c.load.name) {
            (Some(c), find(REFERENCE))
        } else {
            (find(WRK), Some(c))
        };
        let (Some(peer), Some(ours)) = (peer, ours) else {
            continue;
        };
        if peer.load.name == WRK && ours.load.name == REFERENCE {
            continue;
        }
        let figure = figure(&ours.load.name, &peer.load.name, server);
        rows.push(Row::information(
            &figure,
            &pairs(peer, ours),
            note(ours, peer),
        ));
    }
    rows
}

fn note(ours: &Candidate, peer: &Candidate) -> String {
    let mut parts = Vec::new();
    if let (Some(a), Some(b)) = (ours.request_bytes, peer.request_bytes) {
        parts.push(format!("request {a:.1} B, {} {b:.1} B", peer.load.name));
    }
    if !ours.load.remark().is_empty() {
        parts.push(ours.load.remark().to_owned());
    }
    parts.join("; ")
}

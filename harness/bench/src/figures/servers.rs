//! Requests per CPU-second of the server: our target and nginx, under the load of wrk.

use crate::bench::Bench;
use crate::figures::say_round;
use crate::loads::{self, Load};
use crate::nginx::{self, Way};
use crate::row::Row;
use crate::servers::{self, Page, Server};
use crate::surroundings::Surroundings;

/// Length of the body, access log, and where nginx has its page: in its configuration, which is its
/// fastest way with a short page; with a long one a file that is kept open is as fast, so both are peers.
const COMPARED: [(usize, bool, Way); 6] = [
    (12, false, Way::Return),
    (12, true, Way::Return),
    (10_000, false, Way::Return),
    (10_000, false, Way::File),
    (10_000, true, Way::Return),
    (10_000, true, Way::File),
];

/// Short and long bodies, with the access log off and on.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (body_bytes, access_log, way) in COMPARED {
        let page = Page {
            body_bytes,
            access_log,
        };
        let log = if access_log { "on" } else { "off" };
        let file = if way == Way::File { " (file)" } else { "" };
        let figure = format!(
            "static ÷ nginx{file}, {body_bytes} B, log {log}, requests per server CPU-second"
        );
        let row = serve(bench, page, way, &figure);
        bench.stop().check()?;
        rows.push(row.unwrap_or_else(|e| Row::unmeasured(&figure, &format!("{e:#}"))));
    }
    Ok(rows)
}

fn serve(bench: &Bench, page: Page, way: Way, figure: &str) -> anyhow::Result<Row> {
    let mut s = Surroundings::up(bench)?;
    let load = loads::tool("wrk")?;
    let ours = servers::ours(&mut s, bench, page)?;
    let nginx = nginx::start(&mut s, bench, page, way, &ours.head)?;
    for server in [&ours, &nginx] {
        // Does not count: caches and frequencies settle.
        under(&load, &mut s, bench, server)?;
    }
    let mut pairs = Vec::new();
    for round in 0..bench.rounds {
        say_round(figure, round + 1, bench.rounds);
        // Each goes first in every other round.
        let (nginx_rate, our_rate) = if round % 2 == 0 {
            let nginx_rate = under(&load, &mut s, bench, &nginx)?;
            (nginx_rate, under(&load, &mut s, bench, &ours)?)
        } else {
            let our_rate = under(&load, &mut s, bench, &ours)?;
            (under(&load, &mut s, bench, &nginx)?, our_rate)
        };
        pairs.push((nginx_rate, our_rate));
    }
    let from = match way {
        Way::Return => "its configuration (`return`)",
        Way::File => "a file in memory (open_file_cache)",
    };
    let note = format!(
        "response head {} B, nginx {} B; nginx answers from {from}",
        ours.head.len(),
        nginx.head.len()
    );
    Ok(Row::at_least(figure, &pairs, note))
}

/// Requests per CPU-second of the server during one load.
fn under(load: &Load, s: &mut Surroundings, bench: &Bench, server: &Server) -> anyhow::Result<f64> {
    let before = server.cpu_ns()?;
    let done = load.run(s, bench, server)?;
    let used = server.cpu_ns()? - before;
    server.empty_log()?;
    Ok(done.requests as f64 / (used as f64 / 1e9))
}

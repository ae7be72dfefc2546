//! Requests per CPU-second of the server: our target and nginx, under the load of wrk.

use crate::bench::Bench;
use crate::figures::say_round;
use crate::loads::{self, Load};
use crate::row::Row;
use crate::servers::{self, Page, Server};
use crate::surroundings::Surroundings;

const PAGES: [Page; 4] = [
    Page {
        body_bytes: 12,
        access_log: false,
    },
    Page {
        body_bytes: 12,
        access_log: true,
    },
    Page {
        body_bytes: 10_000,
        access_log: false,
    },
    Page {
        body_bytes: 10_000,
        access_log: true,
    },
];

/// Short and long bodies, with the access log off and on.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for page in PAGES {
        let log = if page.access_log { "on" } else { "off" };
        let figure = format!(
            "static ÷ nginx, {} B, log {log}, requests per server CPU-second",
            page.body_bytes
        );
        let row = serve(bench, page, &figure);
        bench.stop().check()?;
        rows.push(row.unwrap_or_else(|e| Row::unmeasured(&figure, &format!("{e:#}"))));
    }
    Ok(rows)
}

fn serve(bench: &Bench, page: Page, figure: &str) -> anyhow::Result<Row> {
    let mut s = Surroundings::up(bench)?;
    let load = loads::tool("wrk")?;
    let ours = servers::ours(&mut s, bench, page)?;
    let nginx = servers::nginx(&mut s, bench, page, &ours.head)?;
    for server in [&ours, &nginx] {
        // Does not count: caches and frequencies settle.
        under(&load, &mut s, bench, server)?;
    }
    let mut pairs = Vec::new();
    for round in 0..bench.rounds {
        say_round(figure, round + 1, bench.rounds);
        let nginx_first = round % 2 == 0;
        let first = under(
            &load,
            &mut s,
            bench,
            if nginx_first { &nginx } else { &ours },
        )?;
        let second = under(
            &load,
            &mut s,
            bench,
            if nginx_first { &ours } else { &nginx },
        )?;
        pairs.push(if nginx_first {
            (first, second)
        } else {
            (second, first)
        });
    }
    let note = format!(
        "response head {} B, nginx {} B; nginx answers with `return`, from memory",
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

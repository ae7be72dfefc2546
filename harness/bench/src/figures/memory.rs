//! Bytes of memory that the reference client keeps per request: the difference of its peaks after few and
//! after many requests.

use anyhow::{Context, bail};
use yieldpoint_terms::{Nanos, Value};

use crate::bench::Bench;
use crate::figures::say_round;
use crate::loads::CONNECTIONS;
use crate::row::Row;
use crate::servers::{self, Page, Server};
use crate::surroundings::Surroundings;
use crate::talk::{Answer, client_job};

const PAGE: Page = Page {
    body_bytes: 12,
    access_log: false,
};
/// Less than a byte a request.
const LIMIT: f64 = 1.0;
const FEW: i64 = 200_000;
const MANY: i64 = 2_200_000;
/// Six give a 95 % interval of their median.
const ROUNDS: usize = 6;
/// The many requests take half a minute; this only bounds a hang.
const PATIENCE_S: u64 = 600;

/// The slope.
pub fn rows(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    // A quick run shows that it can be measured, with a tenth.
    let (few, many) = if bench.quick {
        (FEW / 10, MANY / 10)
    } else {
        (FEW, MANY)
    };
    let mut s = Surroundings::up(bench)?;
    let server = servers::ours(&mut s, bench, PAGE)?;
    let rounds = bench.at_most_rounds(ROUNDS);
    let mut slopes = Vec::new();
    let mut peaks = Vec::new();
    for round in 0..rounds {
        say_round("memory", round + 1, rounds);
        let small = peak_bytes(&mut s, bench, &server, few)?;
        let large = peak_bytes(&mut s, bench, &server, many)?;
        slopes.push((large - small) / (many - few) as f64);
        peaks.push(large);
    }
    let most = peaks.iter().fold(0.0_f64, |a, b| a.max(*b)) / 1024.0;
    let note = format!("VmHWM after {few} and after {many} requests; at most {most:.0} KiB");
    Ok(vec![Row::at_most(
        "reference: memory slope, B per request",
        slopes,
        LIMIT,
        note,
    )])
}

/// Peak resident memory of a client that makes so many requests, bytes.
fn peak_bytes(
    s: &mut Surroundings,
    bench: &Bench,
    server: &Server,
    requests: i64,
) -> anyhow::Result<f64> {
    let program = bench.program("yieldpoint-client-reference")?;
    let argv = [program.to_string_lossy().into_owned()];
    let mut talker = s.start_talker(&argv, &bench.client_cpus, false)?;
    let hello = talker.talk.hello()?;
    let set = [
        ("url", Value::Text(format!("http://{}/", server.address))),
        ("users_per_thread", Value::Int(CONNECTIONS)),
        ("iterations", Value::Int(requests / CONNECTIONS)),
        ("duration", Value::Duration(Nanos::from_secs(PATIENCE_S))),
    ];
    if let Answer::Unsupported(reason) = talker.talk.job(client_job(&hello, &set))? {
        bail!("{reason}");
    }
    let outcome = talker.talk.go(PATIENCE_S)?;
    let wanted = u64::try_from(requests)?;
    if outcome.total.good != wanted {
        bail!(
            "expected {wanted} good requests, got {}",
            outcome.total.good
        );
    }
    // It lives until it is told `bye`.
    let status = std::fs::read_to_string(format!("/proc/{}/status", talker.pid))?;
    let kib = status
        .lines()
        .find_map(|l| {
            l.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u32>()
                .ok()
        })
        .context("no VmHWM in /proc/<pid>/status")?;
    s.finish(talker)?;
    Ok(f64::from(kib) * 1024.0)
}

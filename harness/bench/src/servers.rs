//! A server under the load, and ours: one worker on the server's CPU, a page in memory. The other is in
//! `nginx.rs`.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use yieldpoint_terms::{Knobs, Value};

use crate::bench::Bench;
use crate::inside;
use crate::surroundings::{Surroundings, Talker, cpu_of, own};
use crate::talk::Answer;

/// More requests on one connection than any figure makes.
pub const ENDLESS: i64 = 1_000_000_000;

/// What is served.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// length of the body
    pub body_bytes: usize,
    /// one line a request in the combined format, to memory
    pub access_log: bool,
}

/// A server that listens.
pub struct Server {
    /// "address:port"
    pub address: String,
    /// head of its response
    pub head: String,
    /// the process that serves: our target, or nginx's worker
    pid: u32,
    /// a log to be emptied between loads
    log: Option<PathBuf>,
    talker: Option<Talker>,
    seen: (u64, u64),
}

impl Server {
    /// One that does not talk.
    pub fn silent(address: String, head: String, pid: u32, log: Option<PathBuf>) -> Self {
        Self {
            address,
            head,
            pid,
            log,
            talker: None,
            seen: (0, 0),
        }
    }

    /// CPU time so far, ns.
    pub fn cpu_ns(&self) -> anyhow::Result<u64> {
        cpu_of(self.pid)
    }

    /// Forgets the log of the last load, or the memory would fill up.
    pub fn empty_log(&self) -> anyhow::Result<()> {
        if let Some(log) = &self.log {
            // nginx appends, wherever the end is.
            File::create(log).context("emptying the access log")?;
        }
        Ok(())
    }

    /// Mean length of the requests since the last call in bytes, where the server counts them (ours does).
    pub fn request_bytes(&mut self) -> anyhow::Result<Option<f64>> {
        let Some(talker) = &mut self.talker else {
            return Ok(None);
        };
        let now = talker.talk.report()?;
        let (bytes, requests) = (now.bytes_in - self.seen.0, now.requests - self.seen.1);
        self.seen = (now.bytes_in, now.requests);
        Ok((requests > 0).then(|| bytes as f64 / requests as f64))
    }
}

/// Our target.
pub fn ours(s: &mut Surroundings, bench: &Bench, page: Page) -> anyhow::Result<Server> {
    let program = bench.program("yieldpoint-target-static")?;
    let argv = [program.to_string_lossy().into_owned()];
    let mut talker = s.start_talker(&argv, &bench.server_cpus, false)?;
    talker.talk.hello()?;
    let mut knobs = Knobs::default();
    knobs.set("port", Value::Int(0));
    knobs.set("body_bytes", Value::Int(i64::try_from(page.body_bytes)?));
    knobs.set("access_log", Value::Bool(page.access_log));
    knobs.set("keepalive_requests", Value::Int(ENDLESS));
    let address = match talker.talk.job(knobs)? {
        Answer::Ready(listens) => listens,
        Answer::Unsupported(reason) => bail!("our target cannot: {reason}"),
    };
    talker.talk.begin()?;
    let pid = talker.pid;
    let head = fetch(s, bench, &address, page)?;
    Ok(Server {
        talker: Some(talker),
        ..Server::silent(address, head, pid, None)
    })
}

/// One page by a helper in the lab: its head, and whether its length is right.
pub fn fetch(
    s: &mut Surroundings,
    bench: &Bench,
    address: &str,
    page: Page,
) -> anyhow::Result<String> {
    let mut argv = own(inside::FETCH)?;
    argv.push(address.to_owned());
    let got = s.run(
        argv,
        Some(&bench.client_cpus),
        Vec::new(),
        Duration::from_secs(15),
    )?;
    let (head, body_bytes) = inside::page(&got.stdout)?;
    if body_bytes != page.body_bytes || !head.starts_with("HTTP/1.1 200 ") {
        bail!(
            "expected status 200 and {} bytes, got {body_bytes} and {head:?}",
            page.body_bytes
        );
    }
    Ok(head)
}

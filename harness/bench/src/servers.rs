//! The two servers: ours and nginx, each with one worker on the server's CPU, a page in memory.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use yieldpoint_terms::clock::{now_ns, sleep_until};
use yieldpoint_terms::{Knobs, Value};

use crate::bench::Bench;
use crate::inside;
use crate::loads::find_peer;
use crate::surroundings::{Surroundings, Talker, cpu_of, own};
use crate::talk::Answer;

/// More requests on one connection than any figure makes.
const ENDLESS: i64 = 1_000_000_000;
/// How long nginx may take to start its worker; it takes milliseconds.
const START_NS: u64 = 10_000_000_000;
/// nginx reads no longer word from its configuration than 4,096 bytes.
const LITERAL: usize = 2048;
/// So a longer page is this piece, several times.
const PIECE: usize = 1024;

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
    log: Option<PathBuf>,
    talker: Option<Talker>,
    seen: (u64, u64),
}

impl Server {
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
    Ok(Server {
        head: fetch(s, bench, &address, page)?,
        address,
        pid: talker.pid,
        log: None,
        talker: Some(talker),
        seen: (0, 0),
    })
}

/// nginx, whose head is as long as `like`: a longer type of the page costs it nothing else.
pub fn nginx(
    s: &mut Surroundings,
    bench: &Bench,
    page: Page,
    like: &str,
) -> anyhow::Result<Server> {
    let plain = start_nginx(s, bench, page, 0)?;
    let missing = like.len().saturating_sub(plain.head.len());
    if missing == 0 {
        return Ok(plain);
    }
    s.kill(NGINX)?;
    start_nginx(s, bench, page, missing)
}

const NGINX: &str = "nginx";

fn start_nginx(
    s: &mut Surroundings,
    bench: &Bench,
    page: Page,
    pad: usize,
) -> anyhow::Result<Server> {
    let program = find_peer(NGINX)?;
    // A port that is free on the host is free in a lab, too.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let folder = s.file("");
    let log = s.file("access.log");
    let config = config(
        &folder.display().to_string(),
        &address,
        page,
        pad,
        s.is_root(),
    );
    std::fs::write(s.file("nginx.conf"), config)?;
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let (folder, conf) = (
        folder.display().to_string(),
        s.file("nginx.conf").display().to_string(),
    );
    let error = s.file("error.log").display().to_string();
    let argv = words(&[
        &program.display().to_string(),
        "-p",
        &folder,
        "-c",
        &conf,
        "-e",
        &error,
    ]);
    let master = s.start(NGINX, argv, &bench.server_cpus)?;
    let pid = worker(s, master.pid)?;
    Ok(Server {
        head: fetch(s, bench, &address, page)?,
        address,
        pid,
        log: page.access_log.then_some(log),
        talker: None,
        seen: (0, 0),
    })
}

/// The configuration: everything in `folder`, nothing of the distribution's.
fn config(folder: &str, address: &str, page: Page, pad: usize, root: bool) -> String {
    // Root must name whom the worker becomes; nobody else may.
    let user = if root { "user root;\n" } else { "" };
    let log = if page.access_log {
        format!("{folder}/access.log combined")
    } else {
        "off".to_owned()
    };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {folder}/{kind};\n"))
        .concat();
    let kind = format!(
        "text/html{}",
        format!(";{}", "x".repeat(pad)).split_at(pad).0
    );
    let (map, body) = if page.body_bytes <= LITERAL {
        (String::new(), "x".repeat(page.body_bytes))
    } else {
        let piece = "x".repeat(PIECE);
        let map = format!("    map $host $piece {{ default {piece}; }}\n");
        let pieces = "${piece}".repeat(page.body_bytes / PIECE);
        (map, pieces + &"x".repeat(page.body_bytes % PIECE))
    };
    // `return` answers from memory: no open, no stat, no sendfile. On the measured machine it was the
    // fastest of nginx's ways for both lengths (open_file_cache with and without sendfile were tried).
    format!(
        "{user}daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
worker_rlimit_nofile 4096;
events {{ worker_connections 1024; }}
http {{
{temporary}    access_log {log};
    server_tokens off;
    keepalive_requests {ENDLESS};
    keepalive_timeout 1h;
    default_type \"{kind}\";
{map}    server {{
        listen {address};
        location / {{ return 200 \"{body}\"; }}
    }}
}}
"
    )
}

/// nginx' one worker, once the master has started it; its socket listens by then.
fn worker(s: &mut Surroundings, master: u32) -> anyhow::Result<u32> {
    let children = format!("/proc/{master}/task/{master}/children");
    let deadline = now_ns() + START_NS;
    while now_ns() < deadline {
        if let Some(how) = s.has_ended(NGINX)? {
            bail!("nginx {how}");
        }
        let text = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(pid) = text.split_whitespace().next() {
            return pid.parse().context("pid of nginx's worker");
        }
        sleep_until(now_ns() + 5_000_000);
    }
    bail!("nginx has no worker after 10 s; see its log")
}

/// One page by a helper in the lab: its head, and whether its length is right.
fn fetch(s: &mut Surroundings, bench: &Bench, address: &str, page: Page) -> anyhow::Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_gets_a_body_of_the_right_length_in_words_that_it_reads() {
        for body_bytes in [12, 612, 2048, 2049, 10_000] {
            let page = Page {
                body_bytes,
                access_log: false,
            };
            let text = config("/x", "127.0.0.1:1", page, 0, true);
            let body = text
                .split("return 200 \"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            let pieces = body.matches("${piece}").count();
            assert_eq!(
                pieces * PIECE + body.replace("${piece}", "").len(),
                body_bytes
            );
            assert!(text.split_whitespace().all(|word| word.len() < 4096));
        }
    }

    #[test]
    fn the_type_of_the_page_is_as_much_longer_as_asked() {
        let page = Page {
            body_bytes: 12,
            access_log: true,
        };
        let plain = config("/x", "127.0.0.1:1", page, 0, false).len();
        for pad in [1, 2, 80] {
            assert_eq!(
                config("/x", "127.0.0.1:1", page, pad, false).len(),
                plain + pad
            );
        }
    }
}

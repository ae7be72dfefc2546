//! nginx as the peer of our target: one worker, its page in memory, a configuration of ours alone.

use std::net::TcpListener;

use anyhow::{Context, bail};
use yieldpoint_terms::clock::{now_ns, sleep_until};

use crate::bench::Bench;
use crate::loads::find_peer;
use crate::servers::{ENDLESS, Page, Server, fetch};
use crate::surroundings::Surroundings;

const NAME: &str = "nginx";
/// How long it may take to start its worker; it takes milliseconds.
const START_NS: u64 = 10_000_000_000;
/// nginx reads no longer word from its configuration than 4,096 bytes.
const LITERAL: usize = 2048;
/// So a longer page is this piece, several times.
const PIECE: usize = 1024;

/// Where nginx has its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// in its configuration: `return`, which needs no system call but the send
    Return,
    /// in a file in memory, kept open: what its users do
    File,
}

/// Starts nginx with a head as long as `like`: a longer type of the page costs it nothing else.
pub fn start(
    s: &mut Surroundings,
    bench: &Bench,
    page: Page,
    way: Way,
    like: &str,
) -> anyhow::Result<Server> {
    let mut config = Config {
        folder: s.file("").display().to_string(),
        // A port that is free on the host is free in a lab, too.
        address: TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string(),
        page,
        way,
        pad: 0,
        root: s.is_root(),
    };
    let plain = start_as(s, bench, &config)?;
    config.pad = like.len().saturating_sub(plain.head.len());
    if config.pad == 0 {
        return Ok(plain);
    }
    s.kill(NAME)?;
    start_as(s, bench, &config)
}

fn start_as(s: &mut Surroundings, bench: &Bench, config: &Config) -> anyhow::Result<Server> {
    let program = find_peer(NAME)?;
    let path = |name| s.file(name).display().to_string();
    let argv = vec![
        program.display().to_string(),
        "-p".to_owned(),
        path(""),
        "-c".to_owned(),
        path("nginx.conf"),
        "-e".to_owned(),
        path("error.log"),
    ];
    std::fs::write(s.file("nginx.conf"), config.text())?;
    std::fs::write(s.file("index.html"), "x".repeat(config.page.body_bytes))?;
    let master = s.start(NAME, argv, &bench.server_cpus)?;
    let pid = worker(s, master.pid)?;
    let head = fetch(s, bench, &config.address, config.page)?;
    let log = config.page.access_log.then(|| s.file("access.log"));
    Ok(Server::silent(config.address.clone(), head, pid, log))
}

struct Config {
    folder: String,
    address: String,
    page: Page,
    way: Way,
    /// so many bytes longer than it need be is the type of the page
    pad: usize,
    /// whether the worker may be another user, and so must be named one
    root: bool,
}

impl Config {
    /// Everything in the folder, nothing of the distribution's.
    fn text(&self) -> String {
        let Self {
            folder, address, ..
        } = self;
        let user = if self.root { "user root;\n" } else { "" };
        let log = if self.page.access_log {
            format!("{folder}/access.log combined")
        } else {
            "off".to_owned()
        };
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("    {kind}_temp_path {folder}/{kind};\n"))
            .concat();
        let kind = match self.pad {
            0 => "text/html".to_owned(),
            pad => format!("text/html;{}", "x".repeat(pad - 1)),
        };
        let (before, location) = match self.way {
            Way::Return => self.page_in_words(),
            // Neither sendfile nor a copy of threads pays for pages as short as these: they were tried.
            Way::File => (
                "    open_file_cache max=16 inactive=1h;\n    open_file_cache_valid 1h;\n    output_buffers 1 32k;\n"
                    .to_owned(),
                format!("root {folder};"),
            ),
        };
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
{before}    server {{
        listen {address};
        location / {{ {location} }}
    }}
}}
"
        )
    }

    fn page_in_words(&self) -> (String, String) {
        let bytes = self.page.body_bytes;
        if bytes <= LITERAL {
            return (
                String::new(),
                format!("return 200 \"{}\";", "x".repeat(bytes)),
            );
        }
        let piece = "x".repeat(PIECE);
        let body = "${piece}".repeat(bytes / PIECE) + &"x".repeat(bytes % PIECE);
        let map = format!("    map $host $piece {{ default {piece}; }}\n");
        (map, format!("return 200 \"{body}\";"))
    }
}

/// nginx' one worker, once the master has started it; its socket listens by then.
fn worker(s: &mut Surroundings, master: u32) -> anyhow::Result<u32> {
    let children = format!("/proc/{master}/task/{master}/children");
    let deadline = now_ns() + START_NS;
    while now_ns() < deadline {
        if let Some(how) = s.has_ended(NAME)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body_bytes: usize, pad: usize) -> String {
        let config = Config {
            folder: "/x".into(),
            address: "127.0.0.1:1".into(),
            page: Page {
                body_bytes,
                access_log: true,
            },
            way: Way::Return,
            pad,
            root: false,
        };
        config.text()
    }

    #[test]
    fn a_body_of_the_right_length_in_words_that_nginx_reads() {
        for body_bytes in [0, 12, 612, 2048, 2049, 10_000] {
            let text = text(body_bytes, 0);
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
        for pad in [1, 2, 80] {
            assert_eq!(text(12, pad).len(), text(12, 0).len() + pad);
        }
    }
}

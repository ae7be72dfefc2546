//! This program's own helpers, which run in the lab: what only a process inside can do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

/// The word before a helper's name; not for users.
pub const WORD: &str = "inside";
/// Runs a program and writes the CPU time of its whole life.
pub const MEASURE: &str = "measure";
/// Fetches one page and prints its head and length.
pub const FETCH: &str = "fetch";

/// How long a server may take for one page. It takes microseconds; this only bounds a hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nothing that is fetched is longer.
const MAX_RESPONSE: u64 = 1 << 20;

/// Does a helper's work, if the command line asks for one.
pub fn helper() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != WORD {
        return None;
    }
    let args: Vec<String> = args.collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        [MEASURE, file, ref argv @ ..] => measure(Path::new(file), argv),
        [FETCH, address] => fetch(address),
        _ => Err(anyhow::anyhow!("a helper of the benchmark, not for users")),
    };
    Some(done.unwrap_or_else(|e| {
        eprintln!("{e:#}");
        ExitCode::FAILURE
    }))
}

/// The program inherits the standard descriptors, so that one can talk with it as if this were not here.
fn measure(file: &Path, argv: &[&str]) -> anyhow::Result<ExitCode> {
    let (program, args) = argv.split_first().context("a program is missing")?;
    let status = Command::new(program)
        .args(args)
        .status()
        .with_context(|| format!("\"{program}\" cannot be started"))?;
    // This process has had one child: its whole life, start and end included, for ours and the peers alike.
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    let ns = |t: nix::sys::time::TimeVal| t.tv_sec() * 1_000_000_000 + t.tv_usec() * 1_000;
    let line = json!({ "cpu_ns": ns(used.user_time()) + ns(used.system_time()) });
    std::fs::write(file, line.to_string())
        .with_context(|| format!("\"{}\" cannot be written", file.display()))?;
    // A death by a signal is a failure like any other here.
    let code = status
        .code()
        .and_then(|c| u8::try_from(c).ok())
        .unwrap_or(1);
    Ok(ExitCode::from(code))
}

fn fetch(address: &str) -> anyhow::Result<ExitCode> {
    let mut server =
        TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    server.set_read_timeout(Some(PATIENCE))?;
    // As every client here asks; the connection is kept, so that the head is that of a kept connection.
    write!(server, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut got = Vec::new();
    let mut piece = [0; 16 * 1024];
    let mut server = server.take(MAX_RESPONSE);
    loop {
        if let Some((head, body_bytes)) = parse(&got)? {
            println!("{}", json!({ "head": head, "body_bytes": body_bytes }));
            return Ok(ExitCode::SUCCESS);
        }
        let n = server.read(&mut piece).context("reading the page")?;
        if n == 0 {
            bail!("the page ended after {} bytes", got.len());
        }
        got.extend_from_slice(&piece[..n]);
    }
}

/// Head and body length of a complete response; `None`: more must come.
fn parse(got: &[u8]) -> anyhow::Result<Option<(String, usize)>> {
    let Some(end) = got.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&got[..end + 4]).into_owned();
    let length = head
        .lines()
        .find_map(|l| {
            l.to_ascii_lowercase()
                .strip_prefix("content-length:")
                .map(str::to_owned)
        })
        .with_context(|| format!("a response without Content-Length: {head:?}"))?;
    let length: usize = length.trim().parse().context("Content-Length")?;
    Ok((got.len() >= end + 4 + length).then_some((head, length)))
}

/// What [`MEASURE`] wrote, ns.
pub fn cpu_ns(text: &str) -> anyhow::Result<u64> {
    let used: Value = serde_json::from_str(text)?;
    used["cpu_ns"].as_u64().context("no \"cpu_ns\"")
}

/// What [`FETCH`] printed.
pub fn page(text: &str) -> anyhow::Result<(String, usize)> {
    let page: Value = serde_json::from_str(text)?;
    let head = page["head"].as_str().context("no \"head\"")?.to_owned();
    let bytes = page["body_bytes"].as_u64().context("no \"body_bytes\"")?;
    Ok((head, usize::try_from(bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_complete_with_its_last_byte() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]).unwrap(), None, "cut at {cut}");
        }
        let (head, length) = parse(whole).unwrap().unwrap();
        assert_eq!((head.len(), length), (whole.len() - 3, 3));
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "no length");
    }
}

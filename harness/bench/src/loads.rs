//! What makes load: our clients, and the tools they are compared with. Ten connections that are kept, one
//! thread where the client can.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use yieldpoint_terms::{Nanos, Value};

use crate::bench::Bench;
use crate::servers::Server;
use crate::surroundings::Surroundings;
use crate::talk::{Answer, client_job};

/// Connections of every load.
pub const CONNECTIONS: i64 = 10;
/// Beyond its own length, a load may take this long to start and to end.
const PATIENCE_S: u32 = 30;

/// A tool of others.
struct Tool {
    name: &'static str,
    /// arguments for a URL and a number of seconds
    args: fn(&str, u32) -> Vec<String>,
    /// completed requests, from what it prints; an error where one failed
    requests: fn(&str) -> anyhow::Result<u64>,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "wrk",
        args: |url, s| words(&format!("-t1 -c{CONNECTIONS} -d{s}s {url}/")),
        requests: wrk_requests,
    },
    Tool {
        name: "ab",
        // `-t` alone stops at 50,000 requests; `-n` must follow it.
        args: |url, s| {
            words(&format!(
                "-k -q -c {CONNECTIONS} -t {s} -n 100000000 {url}/"
            ))
        },
        requests: ab_requests,
    },
    Tool {
        name: "h2load",
        args: |url, s| words(&format!("--h1 -t1 -c{CONNECTIONS} -D{s} {url}/")),
        requests: h2load_requests,
    },
];

/// Something that makes load.
pub struct Load {
    /// "wrk", "reference"
    pub name: String,
    kind: Kind,
}

enum Kind {
    Tool(PathBuf, &'static Tool),
    /// a client of ours, with its threads and users a thread
    Client(PathBuf, i64, i64),
}

/// What a load did.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// good requests
    pub requests: u64,
    /// CPU time of the client's whole life, ns
    pub cpu_ns: u64,
}

impl Done {
    /// Requests per CPU-second of the client.
    pub fn per_cpu_second(self) -> f64 {
        self.requests as f64 / (self.cpu_ns as f64 / 1e9)
    }
}

/// Names of the tools of others, wrk first.
pub fn tools() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|t| t.name)
}

/// A tool of others, if it is installed.
pub fn tool(name: &str) -> anyhow::Result<Load> {
    let tool = TOOLS
        .iter()
        .find(|t| t.name == name)
        .context("a tool of the list")?;
    Ok(Load {
        name: name.to_owned(),
        kind: Kind::Tool(find_peer(name)?, tool),
    })
}

/// A program of others in PATH, or where root's programs lie.
pub fn find_peer(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("{name} is missing: scripts/peers"))
}

/// Names of our clients, "reference" first.
pub fn clients(bench: &Bench) -> anyhow::Result<Vec<String>> {
    let entries = std::fs::read_dir(&bench.programs)
        .with_context(|| format!("folder \"{}\"", bench.programs.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| {
            e.file_name()
                .to_str()?
                .strip_prefix("yieldpoint-client-")
                .map(str::to_owned)
        })
        .collect();
    names.sort_by_key(|name| (name != "reference", name.clone()));
    Ok(names)
}

/// A client of ours: ten users on one thread, or else on ten threads.
pub fn client(s: &mut Surroundings, bench: &Bench, name: &str) -> anyhow::Result<Load> {
    let program = bench.program(&format!("yieldpoint-client-{name}"))?;
    let mut why = String::new();
    for (threads, users) in [(1, CONNECTIONS), (CONNECTIONS, 1)] {
        let argv = [program.to_string_lossy().into_owned()];
        let mut talker = s.start_talker(&argv, &bench.client_cpus, false)?;
        let hello = talker.talk.hello()?;
        let set = [
            ("url", Value::Text("http://127.0.0.1:1/".to_owned())),
            ("threads", Value::Int(threads)),
            ("users_per_thread", Value::Int(users)),
        ];
        let limit =
            |knob: &str, asked: i64| hello.limits.get(knob).is_some_and(|most| asked > *most);
        if limit("threads", threads) || limit("users_per_thread", users) {
            why = format!("{name}: not {threads} threads with {users} users");
            s.finish(talker)?;
            continue;
        }
        let answer = talker.talk.job(client_job(&hello, &set))?;
        s.finish(talker)?;
        match answer {
            Answer::Ready(_) => {
                return Ok(Load {
                    name: name.to_owned(),
                    kind: Kind::Client(program, threads, users),
                });
            }
            Answer::Unsupported(reason) => why = reason,
        }
    }
    bail!("{name}: {why}")
}

impl Load {
    /// What a reader should know of it.
    pub fn remark(&self) -> &'static str {
        match self.kind {
            Kind::Client(_, threads, _) if threads > 1 => "ten threads with one connection each",
            _ => "",
        }
    }

    /// Makes load.
    pub fn run(
        &self,
        s: &mut Surroundings,
        bench: &Bench,
        server: &Server,
    ) -> anyhow::Result<Done> {
        let done = match &self.kind {
            Kind::Tool(program, tool) => {
                let mut argv = vec![program.to_string_lossy().into_owned()];
                argv.extend((tool.args)(
                    &format!("http://{}", server.address),
                    bench.seconds,
                ));
                let patience = Duration::from_secs((bench.seconds + PATIENCE_S).into());
                let ended = s.measure(&argv, &bench.client_cpus, patience)?;
                let requests = (tool.requests)(&ended.stdout)
                    .with_context(|| format!("{} printed {:?}", self.name, ended.stdout))?;
                Done {
                    requests,
                    cpu_ns: ended.cpu_ns,
                }
            }
            Kind::Client(program, threads, users) => {
                let set = [
                    ("threads", Value::Int(*threads)),
                    ("users_per_thread", Value::Int(*users)),
                    (
                        "duration",
                        Value::Duration(Nanos::from_secs(bench.seconds.into())),
                    ),
                ];
                run_client(s, bench, program, server, &set)?
            }
        };
        if done.requests == 0 || done.cpu_ns == 0 {
            bail!(
                "{}: {} requests in {} ns of CPU time",
                self.name,
                done.requests,
                done.cpu_ns
            );
        }
        Ok(done)
    }
}

fn run_client(
    s: &mut Surroundings,
    bench: &Bench,
    program: &Path,
    server: &Server,
    set: &[(&str, Value)],
) -> anyhow::Result<Done> {
    let argv = [program.to_string_lossy().into_owned()];
    let mut talker = s.start_talker(&argv, &bench.client_cpus, true)?;
    let hello = talker.talk.hello()?;
    let mut knobs = client_job(&hello, set);
    knobs.set("url", Value::Text(format!("http://{}/", server.address)));
    if let Answer::Unsupported(reason) = talker.talk.job(knobs)? {
        bail!("{reason}");
    }
    let outcome = talker.talk.go((bench.seconds + PATIENCE_S).into())?;
    if let Some(error) = outcome.errors.first() {
        bail!(
            "{} of {} requests failed: {}",
            outcome.total.errors,
            outcome.total.attempts,
            error.example
        );
    }
    let cpu_ns = s.finish(talker)?;
    Ok(Done {
        requests: outcome.total.good,
        cpu_ns,
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The number before or after a piece of text.
fn number_in(line: &str, at: impl Fn(&str) -> Option<&str>) -> anyhow::Result<u64> {
    let text = at(line).with_context(|| format!("no number in {line:?}"))?;
    text.trim()
        .parse()
        .with_context(|| format!("{text:?} is no number"))
}

fn line_with<'a>(text: &'a str, word: &str) -> anyhow::Result<&'a str> {
    text.lines()
        .find(|l| l.contains(word))
        .with_context(|| format!("no line with {word:?}"))
}

fn wrk_requests(text: &str) -> anyhow::Result<u64> {
    for bad in ["Socket errors", "Non-2xx"] {
        if let Ok(line) = line_with(text, bad) {
            bail!("{}", line.trim());
        }
    }
    number_in(line_with(text, " requests in ")?, |l| {
        l.split(" requests in ").next()
    })
}

fn ab_requests(text: &str) -> anyhow::Result<u64> {
    let failed = number_in(line_with(text, "Failed requests:")?, |l| {
        l.split(':').nth(1)
    })?;
    if failed > 0 || text.contains("Non-2xx") {
        bail!("{failed} failed requests");
    }
    let complete = number_in(line_with(text, "Complete requests:")?, |l| {
        l.split(':').nth(1)
    })?;
    let kept = number_in(line_with(text, "Keep-Alive requests:")?, |l| {
        l.split(':').nth(1)
    })?;
    // Ten that were under way at the end may be missing.
    if kept + 10 < complete {
        bail!("only {kept} of {complete} requests were on a kept connection");
    }
    Ok(complete)
}

fn h2load_requests(text: &str) -> anyhow::Result<u64> {
    let line = line_with(text, "requests:")?;
    let before = |word: &'static str| {
        number_in(line, move |l| {
            l.split(word)
                .next()?
                .rsplit([',', ' '])
                .find(|w| !w.is_empty())
        })
    };
    let failed = before(" failed")? + before(" errored")?;
    if failed > 0 {
        bail!("{failed} failed requests");
    }
    before(" succeeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_tools_print() {
        let wrk = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 10 connections\n  Thread Stats   Avg\n  110542 requests in 1.10s, 17.50MB read\nRequests/sec: 100492.00\n";
        assert_eq!(wrk_requests(wrk).unwrap(), 110_542);
        assert!(
            wrk_requests(&format!(
                "{wrk}  Socket errors: connect 0, read 3, write 0, timeout 0\n"
            ))
            .is_err()
        );
        assert!(wrk_requests(&format!("{wrk}  Non-2xx or 3xx responses: 7\n")).is_err());

        let ab = "Concurrency Level:      10\nComplete requests:      91000\nFailed requests:        0\nKeep-Alive requests:    91000\n";
        assert_eq!(ab_requests(ab).unwrap(), 91_000);
        assert!(ab_requests(&ab.replace("requests:        0", "requests:        2")).is_err());
        assert!(
            ab_requests(&ab.replace("requests:    91000", "requests:    0")).is_err(),
            "not kept"
        );

        let h2load = "finished in 1.00s, 93210.00 req/s, 20.00MB/s\nrequests: 93210 total, 93220 started, 93210 done, 93210 succeeded, 0 failed, 0 errored, 0 timeout\n";
        assert_eq!(h2load_requests(h2load).unwrap(), 93_210);
        assert!(h2load_requests(&h2load.replace("0 errored", "4 errored")).is_err());
        assert!(h2load_requests("").is_err());
    }
}

//! One trial, from lab up to lab down.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use yieldpoint_lab::{Lab, Mode, Network};
use yieldpoint_protocol::{FromProgram, Job, Outcome, ToProgram, VERSION};
use yieldpoint_record::{Check, FORMAT, Role, Status, TimeWait, Trial, flag};
use yieldpoint_sample::{Sampler, Subject, TargetNet, time_wait_count, time_wait_split};
use yieldpoint_terms::clock::now_ns;
use yieldpoint_terms::{Knobs, Value};

use crate::checks::Balance;
use crate::flags::{self, AskedLoad, PortUse};
use crate::peer::wait_any;
use crate::plan::PlannedCell;
use crate::steps::{Running, S, Share, Stop, start};
use crate::{checks, runner::Live};

/// Distance of two samples.
pub const PERIOD_NS: u64 = S / 10;
/// `go` is sent this long before the common start, so that everybody has read it by then.
const HEAD_START: u64 = S / 100;
/// What a client may take beyond window and request timeouts to stop its threads.
const STOP: u64 = 10 * S;
/// What it may take to put its result together.
const OUTCOME: u64 = 30 * S;
/// What a target may take for the same; it waits up to 250 ms for connections to end.
const TESTIMONY: u64 = 10 * S;

/// Connections dropped at the accept queue.
const LISTEN_DROPS: &str = "tcp_listen_drops";

/// What a trial needs beside its cell.
pub struct Surroundings<'a> {
    /// the lab program
    pub lab: &'a Path,
    /// folder of logs
    pub logs: PathBuf,
    /// readable once the user wants to stop
    pub cancel: Option<BorrowedFd<'a>>,
    /// told the throughput once a second
    pub live: &'a mut dyn FnMut(Live),
}

/// Which trial it is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// from 1
    pub round: u32,
    /// from 0
    pub order: u32,
    /// why it runs
    pub role: Role,
}

/// Runs one trial. `None`: the user interrupted it, and it leaves no row.
pub fn trial(
    cell: &PlannedCell,
    place: Place,
    mut around: Surroundings,
    started: String,
) -> Option<Trial> {
    let began = now_ns();
    let mut row = Trial {
        format: FORMAT,
        cell: cell.cell.id.clone(),
        round: place.round,
        role: place.role,
        order: place.order,
        coordinates: cell.cell.coordinates.clone(),
        knobs: cell.cell.knobs.clone(),
        status: Status::Ok,
        error: None,
        flags: vec![],
        started,
        start_at_ns: None,
        elapsed_ns: 0,
        lab_mode: None,
        sysctls: [].into(),
        outcome: None,
        testimony: None,
        samples: None,
        time_wait: None,
        checks: vec![],
    };
    match measure(cell, place, &mut around, &mut row) {
        Ok(()) => {
            judge(cell, &mut row);
        }
        Err(Stop::Cancelled) => return None,
        Err(Stop::Error(why)) => {
            row.status = Status::Error;
            row.error = Some(why);
        }
        Err(Stop::Unsupported(why)) => {
            row.status = Status::Unsupported;
            row.error = Some(why);
        }
    }
    row.elapsed_ns = now_ns() - began;
    Some(row)
}

/// Brings the lab up, runs the programs, and takes the lab down whatever happened.
fn measure(
    cell: &PlannedCell,
    place: Place,
    around: &mut Surroundings,
    row: &mut Trial,
) -> Result<(), Stop> {
    let spec = cell.lab(around.lab);
    let mut lab = Lab::up(&spec).map_err(|e| Stop::error(format!("lab: {e}")))?;
    row.lab_mode = Some(lab.mode().to_string());
    row.sysctls = lab.effective().clone();
    let mut logs = Vec::new();
    let result = inside(&mut lab, cell, place, around, row, &mut logs);
    // Logs end when their writers do: first the lab, then the logs.
    let down = lab.down().map_err(|e| Stop::error(format!("lab: {e}")));
    let said: Vec<(&str, String)> = logs
        .into_iter()
        .filter_map(|(role, log)| Some((role, log.finish()?)))
        .collect();
    result
        .map_err(|stop| with_last_words(stop, &said))
        .and(down)
}

/// An error names whoever failed first; what it last wrote to its log often says why.
fn with_last_words(stop: Stop, said: &[(&str, String)]) -> Stop {
    let Stop::Error(why) = stop else {
        return stop;
    };
    let of_it = said.iter().find(|(role, _)| why.starts_with(role));
    match of_it.filter(|(_, line)| !why.contains(line.as_str())) {
        Some((_, line)) => Stop::Error(format!("{why}; its log ends: {line}")),
        None => Stop::Error(why),
    }
}

fn inside(
    lab: &mut Lab,
    cell: &PlannedCell,
    place: Place,
    around: &mut Surroundings,
    row: &mut Trial,
    logs: &mut Vec<(&'static str, crate::logs::Log)>,
) -> Result<(), Stop> {
    let log = |who: &str| around.logs.join(format!("{:04}-{who}.log", place.order));
    let cancel = around.cancel;

    let mut target = None;
    let mut url = cell.cell.knobs.text("url").unwrap_or_default().to_owned();
    if let Some((program, job)) = &cell.target {
        let mut t = start(
            lab,
            "target",
            program,
            Share {
                cpus: &cell.target_cpus,
                nofile: cell.nofile,
                memory_mib: None,
            },
            &log("target"),
            cancel,
        )?;
        let listens = t.prepare(lab, job.clone(), cancel)?;
        url = format!("http://{listens}/");
        target = Some(t);
    }
    let mut knobs: Knobs = cell.client_knobs.clone();
    knobs.set("url", Value::Text(url.clone()));
    let job = Job {
        protocol: VERSION,
        knobs,
    };
    // Every process stands before the first is told to go.
    let mut clients = Vec::new();
    let ready = (1..=cell.processes).try_for_each(|i| {
        let process = if i == 1 {
            "client".to_owned()
        } else {
            format!("client-{i}")
        };
        let log = log(&process);
        let mut client = start(
            lab,
            &process,
            &cell.client,
            Share {
                cpus: &cell.client_cpus,
                nofile: cell.nofile,
                memory_mib: cell.memory_mib,
            },
            &log,
            cancel,
        )?;
        let ready = client.prepare(lab, job.clone(), cancel);
        clients.push(client);
        ready.map(|_| ())
    });

    // Last of all, so that they slow nobody's start.
    let ready = ready.and_then(|()| crate::disturb::start(lab, cell, around.lab));
    let result = ready.and_then(|()| {
        load(
            lab,
            cell,
            around,
            row,
            &mut clients,
            target.as_mut(),
            port_of(&url),
        )
    });
    if result.is_ok() {
        clients.iter_mut().for_each(|c| c.dismiss(lab));
        target.iter_mut().for_each(|t| t.dismiss(lab));
    }
    logs.extend(clients.into_iter().chain(target).map(|p| (p.role, p.log)));
    result
}

/// From `go` to the last counter that is read while everybody still lives.
fn load(
    lab: &mut Lab,
    cell: &PlannedCell,
    around: &mut Surroundings,
    row: &mut Trial,
    clients: &mut [Running],
    mut target: Option<&mut Running>,
    port: Option<u16>,
) -> Result<(), Stop> {
    let sampling = |e: std::io::Error| Stop::error(format!("sampler: {e}"));
    let mut time_wait = TimeWait {
        start: time_wait_count(lab.init_pid()).map_err(sampling)?,
        ..TimeWait::default()
    };
    let start_at_ns = now_ns() + HEAD_START;
    row.start_at_ns = Some(start_at_ns);
    let subject = Subject {
        client_pids: clients.iter().map(|c| c.process.pid).collect(),
        target_pid: target.as_ref().map(|t| t.process.pid),
        net_pid: lab.init_pid(),
        client_cpus: cell.client_cpus.cpus().to_vec(),
        target_cpus: cell.target_cpus.cpus().to_vec(),
        port,
        sock_diag: Some(lab.sock_diag().try_clone_to_owned().map_err(sampling)?),
        target_net: match (lab.network(), &target) {
            (Network::Veth(_), Some(t)) => Some(TargetNet {
                pid: t.process.pid,
                sock_diag: lab
                    .sock_diag_target()
                    .try_clone_to_owned()
                    .map_err(sampling)?,
            }),
            _ => None,
        },
    };
    let sampler = Sampler::start(subject, start_at_ns, PERIOD_NS).map_err(sampling)?;

    let mut heard_at_ns = 0;
    // From here on samples are kept even where the trial fails: they may tell why.
    let result = (|| {
        if let Some(t) = &mut target {
            t.say(lab, &ToProgram::Go { start_at_ns })?;
        }
        for client in clients.iter_mut() {
            client.say(lab, &ToProgram::Go { start_at_ns })?;
        }
        let end = start_at_ns + cell.load.0 + cell.grace.0 + STOP;
        until_end(lab, around, clients, target.as_deref_mut(), end)?;
        let mut sum: Option<Outcome> = None;
        for client in clients.iter_mut() {
            let outcome = outcome_of(lab, client, around.cancel)?;
            sum = Some(match sum {
                None => outcome,
                Some(before) => before
                    .merge(&outcome)
                    .map_err(|e| client.error(&e.to_string()))?,
            });
        }
        row.outcome = sum;
        heard_at_ns = now_ns();
        Ok(())
    })();
    row.samples = Some(sampler.finish());
    result?;

    if let Some(outcome) = &row.outcome {
        row.checks = checks::check_outcome(outcome, start_at_ns, heard_at_ns);
        let little = checks::check_little(outcome, start_at_ns, asked_users(cell));
        row.checks.extend(little);
    }

    if let Some(t) = target {
        t.say(lab, &ToProgram::Report)?;
        let deadline = now_ns() + TESTIMONY;
        row.testimony = loop {
            // A target that never stops to tick gives its testimony too late.
            if now_ns() > deadline {
                return Err(t.error("no testimony in time: it only ticks"));
            }
            match t.hear(lab, "testimony", deadline, around.cancel)? {
                FromProgram::Tick { .. } => {}
                FromProgram::Testimony(testimony) => break Some(*testimony),
                other => return Err(t.unexpected("testimony", &other)),
            }
        };
    }
    // After the testimony: the target has then seen the last connection end.
    if let Some(port) = port {
        let read_from_ns = now_ns();
        let split = time_wait_split(lab.sock_diag(), port).map_err(sampling)?;
        let read_to_ns = now_ns();
        time_wait.client = Some(split.client);
        // In the host's namespace there are connections of others, and of before.
        if lab.mode() == Mode::Private {
            let walk = read_from_ns..read_to_ns;
            let check = balance(row, split.client, walk, lab.network());
            let check = check.map(checks::check_time_wait);
            row.checks.extend(check);
        }
        time_wait.target = Some(match lab.network() {
            Network::Loopback => split.target,
            Network::Veth(_) => {
                let there = time_wait_split(lab.sock_diag_target(), port).map_err(sampling)?;
                there.target
            }
        });
    }
    row.time_wait = Some(time_wait);
    Ok(())
}

/// What the TIME_WAIT entries at the client's end are held against; the walk over them took that time.
fn balance(row: &Trial, entries: u64, walk: Range<u64>, network: Network) -> Option<Balance<'_>> {
    let total = |metric| flags::total(row.samples.as_ref()?, metric);
    Some(Balance {
        entries,
        read_from_ns: walk.start,
        read_to_ns: walk.end,
        outcome: row.outcome.as_ref()?,
        testimony: row.testimony.as_ref()?,
        recycled: total("tcp_time_wait_recycled")?,
        overflow: total("tcp_time_wait_overflow")?,
        resets: total("tcp_out_rsts")?,
        sent_again: total("tcp_retrans_segs")?,
        at_once: match network {
            Network::Loopback => true,
            Network::Veth(link) => link.rate.is_none() && link.delay.0 == 0,
        },
    })
}

/// The result of one process, its histograms readable.
fn outcome_of(
    lab: &mut Lab,
    client: &mut Running,
    cancel: Option<BorrowedFd>,
) -> Result<Outcome, Stop> {
    match client.hear(lab, "outcome", now_ns() + OUTCOME, cancel)? {
        FromProgram::Outcome(outcome) => match outcome.check_histograms() {
            Ok(()) => Ok(*outcome),
            Err((which, e)) => Err(client.error(&format!("its histogram \"{which}\": {e}"))),
        },
        other => Err(client.unexpected("outcome", &other)),
    }
}

/// Waits for the `end` of every client; tells the target's ticks to whoever watches.
fn until_end(
    lab: &mut Lab,
    around: &mut Surroundings,
    clients: &mut [Running],
    mut target: Option<&mut Running>,
    deadline_ns: u64,
) -> Result<(), Stop> {
    let mut ended = vec![false; clients.len()];
    let mut before = 0;
    loop {
        for (client, ended) in clients.iter_mut().zip(&mut ended).filter(|(_, e)| !**e) {
            match client.poll(lab, "end")? {
                Some(FromProgram::End { .. }) => *ended = true,
                Some(FromProgram::Failed { reason }) => return Err(client.error(&reason)),
                Some(other) => return Err(client.unexpected("end", &other)),
                None => {}
            }
        }
        let Some(slow) = ended.iter().position(|e| !e) else {
            return Ok(());
        };
        let mut more = false;
        if let Some(t) = &mut target {
            match t.poll(lab, "tick")? {
                Some(FromProgram::Tick {
                    requests,
                    connections,
                }) => {
                    (around.live)(Live {
                        requests_per_s: requests.saturating_sub(before),
                        connections,
                    });
                    before = requests;
                    more = true;
                }
                Some(FromProgram::Failed { reason }) => return Err(t.error(&reason)),
                Some(other) => return Err(t.unexpected("tick", &other)),
                None => {}
            }
        }
        // Another tick may stand in our buffer already, where no wait would see it; the look at
        // the user's wish and at the time must not be left out for it.
        let until = if more { now_ns() } else { deadline_ns };
        let waited = {
            let waiting = clients.iter().zip(&ended).filter(|(_, e)| !**e);
            let mut fds: Vec<BorrowedFd> = waiting.flat_map(|(c, _)| c.fds()).collect();
            fds.extend(target.iter().flat_map(|t| t.fds()));
            wait_any(&fds, around.cancel, until)
        };
        if let Err(e) = waited {
            return Err(clients[slow].explain(lab, e));
        }
        if now_ns() >= deadline_ns {
            return Err(clients[slow]
                .error("hangs: no \"end\" by the end of window and timeouts; it was killed"));
        }
    }
}

/// Checks a measured trial and sets its status and flags.
fn judge(cell: &PlannedCell, row: &mut Trial) {
    let Some(outcome) = &row.outcome else {
        return;
    };
    let mut found = std::mem::take(&mut row.checks);
    if let Some(testimony) = &row.testimony {
        let drops = row.samples.as_ref().and_then(|s| match cell.mode {
            Mode::Private => flags::total(s, LISTEN_DROPS),
            // The host's counter has those of its whole life.
            Mode::Host => flags::rise(s, LISTEN_DROPS).map(i64::unsigned_abs),
        });
        found.extend(checks::check_ends(outcome, testimony, drops.unwrap_or(0)));
    } else {
        row.flags.push(flag::ONE_ENDED.into());
    }
    if let Some(tw) = row.time_wait
        && matches!(cell.mode, Mode::Private)
    {
        found.push(Check {
            name: "time_wait_start".into(),
            ok: tw.start == 0,
            detail: format!(
                "TIME_WAIT entries before go: {}, expected 0 in a fresh namespace",
                tw.start
            ),
        });
    }
    row.flags
        .extend(all_flags(cell, row, outcome).into_iter().map(str::to_owned));
    let failed: Vec<_> = found
        .iter()
        .filter(|c| !c.ok)
        .map(|c| format!("{}: {}", c.name, c.detail))
        .collect();
    if !failed.is_empty() {
        row.status = Status::Error;
        row.error = Some(format!(
            "client \"{}\": its numbers do not hold: {}",
            cell.client.name,
            failed.join("; ")
        ));
    }
    row.checks = found;
}

fn all_flags(cell: &PlannedCell, row: &Trial, outcome: &Outcome) -> Vec<&'static str> {
    let mut all = row
        .samples
        .as_ref()
        .map(|s| flags::of_samples(s, PERIOD_NS, shared(cell)))
        .unwrap_or_default();
    let sysctl = |name: &str| row.sysctls.get(name).map(String::as_str);
    let reuse = flags::reuse(
        sysctl("net.ipv4.tcp_tw_reuse"),
        sysctl("net.ipv4.tcp_timestamps"),
        cell.network == Network::Loopback,
    );
    let burst = flags::burst_only(PortUse {
        // The times are the client's own word and may be impossible; a check has said so then.
        window_ns: outcome
            .window_end_ns
            .saturating_sub(outcome.window_start_ns),
        ports: sysctl("net.ipv4.ip_local_port_range")
            .and_then(flags::ports_of)
            .unwrap_or(0),
        refused: flags::refused(outcome),
        time_wait_client: row.time_wait.and_then(|t| t.client).unwrap_or(0),
        reuse,
    });
    if burst {
        all.push(flag::BURST_ONLY);
    }
    if row.testimony.is_some() && shared(cell) {
        all.push(flag::SHARED_CPUS);
    }
    if flags::starved(asked_load(cell, row, outcome)) {
        all.push(flag::STARVED);
    }
    all
}

/// Users of all processes together.
fn asked_users(cell: &PlannedCell) -> u64 {
    // The catalog has checked both; a cell without them is of one user.
    let knob = |name: &str| cell.cell.knobs.uint(name).unwrap_or(1);
    let of_process = knob("threads").saturating_mul(knob("users_per_thread"));
    cell.processes.saturating_mul(of_process)
}

fn asked_load(cell: &PlannedCell, row: &Trial, o: &Outcome) -> AskedLoad {
    let knobs = &cell.cell.knobs;
    let rate = knobs.get("rate").and_then(Value::as_f64);
    AskedLoad {
        users: asked_users(cell),
        ran: o.users,
        // Each process has the whole job.
        rate: rate.map(|rate| rate * cell.processes as f64),
        random: knobs.text("arrival").is_ok_and(|a| a == "poisson"),
        load_ns: o
            .window_end_ns
            .saturating_sub(row.start_at_ns.unwrap_or(o.window_start_ns)),
        started: o.total.attempts,
    }
}

/// Whether client and target may run on the same CPU.
fn shared(cell: &PlannedCell) -> bool {
    let target = cell.target_cpus.cpus();
    cell.client_cpus.cpus().iter().any(|c| target.contains(c))
}

fn port_of(url: &str) -> Option<u16> {
    let host = url.strip_prefix("http://")?.split('/').next()?;
    host.rsplit_once(':')
        .map_or(Some(80), |(_, port)| port.parse().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_port_of_an_url() {
        assert_eq!(super::port_of("http://127.0.0.1:8080/a:1"), Some(8080));
        assert_eq!(super::port_of("http://127.0.0.1/"), Some(80));
        assert_eq!(super::port_of("ftp://x"), None);
    }
}

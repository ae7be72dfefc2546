//! `yieldpoint doctor`: tries each thing it judges.

use std::path::Path;
use std::process::ExitCode;

use console::style;
use yieldpoint_lab::{Mode, check_sysctls, probe};
use yieldpoint_matrix::{Changes, Matrix};
use yieldpoint_record::{Asked, Status, read_journal};
use yieldpoint_run::{
    Event, Observer, Programs, Refusals, Run, catalog, machine, online_cpus, plan, run,
};
use yieldpoint_terms::clock::now_ns;

use crate::installation::{lab, programs};

/// Sysctls of the shipped matrices; a lab that refuses one cannot run them.
const SYSCTLS: [(&str, &str); 2] = [
    ("net.ipv4.ip_local_port_range", "32768 34767"),
    ("net.ipv4.tcp_tw_reuse", "0"),
];

/// How bad a finding is.
enum Finding {
    /// it works; with what was seen
    Fine(String),
    /// results will say less, or of another machine state
    Limited(String),
    /// no trial can run
    Broken(String),
}
use Finding::{Broken, Fine, Limited};

/// Tries everything and prints a line each; exits with 1 if a trial cannot run here.
pub fn doctor() -> anyhow::Result<ExitCode> {
    let programs = programs()?;
    let mut broken = false;
    let mut tell = |what: &str, finding: Finding| {
        let (mark, text) = match finding {
            Fine(text) => (style("ok").green(), text),
            Limited(text) => (style("limited").yellow(), text),
            Broken(text) => {
                broken = true;
                (style("broken").red().bold(), text)
            }
        };
        println!("{mark:<8} {:<18} {text}", style(what).bold());
    };
    let m = machine();
    tell(
        "machine",
        Fine(format!("{}, {} CPUs, Linux {}", m.cpu, m.cpus, m.kernel)),
    );
    tell("programs", asked(&programs));
    tell("private lab", private(&programs));
    tell("sysctl write", sysctls(&programs));
    tell("CPUs", cpus());
    tell("descriptors", descriptors());
    tell("clock", clock());
    tell("results folder", writable(Path::new(".")));
    tell("a real trial", real_trial(&programs));
    Ok(if broken {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn asked(programs: &Programs) -> Finding {
    let names = |list: &[yieldpoint_run::Program]| {
        list.iter()
            .map(|p| p.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if let Some(first) = programs.broken.first() {
        return Limited(first.to_string());
    }
    if programs.targets.is_empty() {
        return Broken("no target; build it with scripts/build".into());
    }
    Fine(format!(
        "clients {}; targets {}",
        names(&programs.clients),
        names(&programs.targets)
    ))
}

fn private(programs: &Programs) -> Finding {
    let report = probe(&programs.lab);
    match report.refusal {
        None => Fine(report.to_string()),
        Some(_) => Limited(format!("{report}; trials run on the host itself")),
    }
}

fn sysctls(programs: &Programs) -> Finding {
    let wanted: Vec<_> = SYSCTLS
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    match check_sysctls(&programs.lab, Mode::Private, &wanted) {
        Ok(refused) => match refused.first() {
            None => {
                Fine("written and read back inside the lab; the host's stay as they are".into())
            }
            Some(first) => Limited(first.to_string()),
        },
        Err(e) => Limited(e.to_string()),
    }
}

fn cpus() -> Finding {
    match online_cpus().len() {
        1 => Limited(
            "one CPU: client, target and runner share it, which trials are flagged with".into(),
        ),
        2 => Fine("client and target have a core each; the runner shares them".into()),
        n => Fine(format!(
            "{n}: client, target and runner have cores of their own"
        )),
    }
}

fn descriptors() -> Finding {
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    match hard {
        Some(n) if n < 4096 => Limited(format!(
            "a process may open {n}: about as many virtual users; raise it with `ulimit -Hn`"
        )),
        Some(n) => Fine(format!("a process may open {n}")),
        None => Fine("a process may open as many as it likes".into()),
    }
}

fn clock() -> Finding {
    const READS: u64 = 10_000;
    let began = now_ns();
    let backwards = (0..READS).map(|_| now_ns()).collect::<Vec<_>>().is_sorted();
    let each = (now_ns() - began) / READS;
    let source = machine().clock_source.unwrap_or_else(|| "unknown".into());
    if !backwards {
        Broken("CLOCK_MONOTONIC runs backwards".into())
    } else if each > 1_000 {
        Limited(format!(
            "{each} ns a read (clock source {source}): short latencies are inflated"
        ))
    } else {
        Fine(format!("{each} ns a read (clock source {source})"))
    }
}

fn writable(folder: &Path) -> Finding {
    match tempfile::tempdir_in(folder) {
        Ok(_) => Fine("can be made in the current folder".into()),
        Err(e) => Limited(format!(
            "cannot be made in the current folder: {e}; use --out"
        )),
    }
}

/// A fifth of a second of the first client against the first target, with all checks.
fn real_trial(programs: &Programs) -> Finding {
    match try_trial(programs) {
        Ok(text) => Fine(text),
        Err(e) => Broken(format!("{e:#}")),
    }
}

fn try_trial(programs: &Programs) -> anyhow::Result<String> {
    struct Quiet;
    impl Observer for Quiet {
        fn event(&mut self, _: Event) {}
    }
    let name = ["reference", "ureq"]
        .into_iter()
        .find(|n| programs.client(n).is_some());
    let client = name.or(programs.clients.first().map(|c| c.name.as_str()));
    let client =
        client.ok_or_else(|| anyhow::anyhow!("no client; build one with scripts/build"))?;
    let text = format!(
        "format = 1\nquestion = \"does a trial work here?\"\n[run]\nrounds = 1\n[knobs]\nclient = \"{client}\"\nduration = \"200ms\"\n"
    );
    let all = catalog(yieldpoint_clients_core::KNOBS, programs);
    let matrix = Matrix::parse(
        "doctor",
        "doctor",
        &text,
        &all,
        &programs.client_names(),
        &Changes::default(),
    )
    .map_err(|e| anyhow::anyhow!("{}", e.render(false)))?;
    let plan = plan(
        matrix,
        yieldpoint_clients_core::KNOBS,
        programs,
        lab(programs),
        &Refusals::default(),
    )?;
    let folder = tempfile::tempdir()?;
    let summary = run(
        &Run {
            plan: &plan,
            programs,
            catalog: &all,
            command: vec![],
            asked: Asked::default(),
            cancel: None,
        },
        folder.path(),
        &mut Quiet,
    )?;
    let (trials, _) = read_journal(&summary.folder.journal())?;
    let row = trials
        .first()
        .ok_or_else(|| anyhow::anyhow!("the trial left no row"))?;
    anyhow::ensure!(
        row.status == Status::Ok,
        "{}",
        row.error.as_deref().unwrap_or("no reason")
    );
    let good = row.outcome.as_ref().map_or(0, |o| o.window.good);
    Ok(format!(
        "{client}: {good} good requests in 200 ms; {} checks hold; {:.0} ms in all",
        row.checks.len(),
        row.elapsed_ns as f64 / 1e6
    ))
}

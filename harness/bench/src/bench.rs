//! What every figure needs to know: rounds, CPUs, where programs are, and whether to stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use yieldpoint_lab::{CpuSet, Mode, probe};

use crate::args::Args;

/// Names the folder of programs where they are not beside this one, as for `yieldpoint`.
const FOLDER: &str = "YIELDPOINT_PROGRAMS";

/// The settings of this run of the benchmark.
pub struct Bench {
    /// paired rounds
    pub rounds: usize,
    /// length of one load, s
    pub seconds: u32,
    /// three rounds, no verdicts
    pub quick: bool,
    /// where the load runs
    pub client_cpus: CpuSet,
    /// where the server runs
    pub server_cpus: CpuSet,
    /// folder of clients, target, lab program and command
    pub programs: PathBuf,
    /// private where the machine allows it
    pub mode: Mode,
    stop: Stop,
}

impl Bench {
    /// Reads arguments and machine.
    pub fn new(args: &Args) -> anyhow::Result<Self> {
        let (client, server) = (args.client_cpu, args.server_cpu);
        if client == server {
            bail!("--client-cpu and --server-cpu: expected two CPUs, got {client} twice");
        }
        let client_cpus = CpuSet::new([client])?;
        let server_cpus = CpuSet::new([server])?;
        let here = CpuSet::of_this_process().context("CPUs of this process")?;
        for set in [&client_cpus, &server_cpus] {
            if let [cpu, ..] = set.missing_from(&here)[..] {
                bail!(
                    "CPU {cpu} is not there: client and server need one each, see --client-cpu and --server-cpu"
                );
            }
        }
        let programs = folder()?;
        let lab = programs.join("yieldpoint-lab");
        if !lab.is_file() {
            bail!(
                "no lab program in \"{}\"; build it with scripts/build",
                programs.display()
            );
        }
        Ok(Self {
            rounds: if args.quick { 3 } else { args.rounds as usize },
            seconds: args.seconds,
            quick: args.quick,
            client_cpus,
            server_cpus,
            mode: probe(&lab).mode(),
            programs,
            stop: catch_signals()?,
        })
    }

    /// A program of ours that must be there.
    pub fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.programs.join(name);
        if !path.is_file() {
            bail!(
                "\"{name}\" is not in \"{}\": scripts/bench builds it",
                self.programs.display()
            );
        }
        Ok(path)
    }

    /// A figure that runs long, or whose spread is small, takes fewer rounds than asked: `most`.
    pub fn at_most_rounds(&self, most: usize) -> usize {
        self.rounds.min(most)
    }

    /// The wish to stop, for whoever waits.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }
}

/// The user wants to stop; see [`Stop`].
#[derive(Clone, Copy, Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Whether the user wants to stop; then everything unwinds, so that nothing is left behind.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// An error as soon as the user wants to stop.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        Ok(())
    }
}

fn folder() -> anyhow::Result<PathBuf> {
    let folder: PathBuf = match std::env::var_os(FOLDER) {
        Some(folder) => folder.into(),
        None => {
            let own = std::env::current_exe().context("where this program lies")?;
            own.parent().map(Path::to_owned).unwrap_or_default()
        }
    };
    std::path::absolute(folder).context("the folder of programs")
}

/// The flag is set by the first SIGINT or SIGTERM; a second one ends the process at once, whose labs see
/// the end of their control sockets and leave nothing behind either.
fn catch_signals() -> anyhow::Result<Stop> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Order matters: the second signal must find the flag that the first one set.
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(Stop(stop))
}

//! A lab in which everything runs that is measured: it dies with this program, however that ends.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::time::ClockId;
use nix::unistd::Pid;
use tempfile::TempDir;
use yieldpoint_lab::{CpuSet, Lab, LabSpec, Mode, Process, Spawn};
use yieldpoint_terms::clock::now_ns;

use crate::bench::Bench;
use crate::inside;
use crate::talk::{Talk, pair};

/// How often a wait looks whether the user wants to stop.
const LOOK_NS: u64 = 200_000_000;
/// How long a program may take to end after `bye`.
const GOODBYE: Duration = Duration::from_secs(30);
/// Longest text of a failed program that an error shows, bytes.
const SHOWN: usize = 400;

/// A lab and a folder in memory.
pub struct Surroundings<'a> {
    bench: &'a Bench,
    // Before the folder: whatever still writes into it ends first.
    lab: Lab,
    folder: TempDir,
    started: u32,
}

/// A program that has ended well.
#[derive(Debug)]
pub struct Ended {
    /// what it printed
    pub stdout: String,
    /// CPU time of its whole life, user and system, ns; 0 where it was not asked for
    pub cpu_ns: u64,
}

/// A program of ours that talks the protocol.
pub struct Talker {
    /// the conversation
    pub talk: Talk,
    /// valid in /proc
    pub pid: u32,
    name: String,
    stderr: PathBuf,
    usage: Option<PathBuf>,
}

impl<'a> Surroundings<'a> {
    /// A lab as private as this machine allows.
    pub fn up(bench: &'a Bench) -> anyhow::Result<Self> {
        Self::up_as(bench, bench.mode)
    }

    /// A lab in the namespaces of the host, for programs that make labs of their own.
    pub fn up_on_host(bench: &'a Bench) -> anyhow::Result<Self> {
        Self::up_as(bench, Mode::Host)
    }

    fn up_as(bench: &'a Bench, mode: Mode) -> anyhow::Result<Self> {
        let lab = Lab::up(&LabSpec::new(mode, bench.program("yieldpoint-lab")?))?;
        // Logs and pages in memory, where there is memory with names.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let folder = tempfile::Builder::new()
            .prefix("yieldpoint-bench-")
            .tempdir_in(place)
            .context("a temporary folder")?;
        Ok(Self {
            bench,
            lab,
            folder,
            started: 0,
        })
    }

    /// A file in the temporary folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether root in here may change users: it is root of the lab or of the machine.
    pub fn is_root(&self) -> bool {
        self.lab.mode() == Mode::Private || nix::unistd::geteuid().is_root()
    }

    /// Starts a program that runs until the lab goes down; its output goes to `<name>.log`.
    pub fn start(
        &mut self,
        name: &str,
        argv: Vec<String>,
        cpus: &CpuSet,
    ) -> anyhow::Result<Process> {
        let log = File::create(self.file(&format!("{name}.log")))?;
        let out = log.try_clone()?;
        self.spawn(
            name,
            argv,
            Some(cpus),
            Vec::new(),
            File::open("/dev/null")?.into(),
            out.into(),
            log.into(),
        )
    }

    /// Whether a program of this name has ended; what it said then.
    pub fn has_ended(&mut self, name: &str) -> anyhow::Result<Option<String>> {
        let exit = self.lab.wait(name, 0)?;
        Ok(exit.map(|exit| format!("{exit}: {}", tail(&self.file(&format!("{name}.log"))))))
    }

    /// Ends a program and its process group.
    pub fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.lab.kill(name)?;
        let deadline = now_ns() + 5_000_000_000;
        self.lab.wait(name, deadline)?;
        Ok(())
    }

    /// Runs a program to its end and measures its CPU time; one that fails is an error.
    pub fn measure(
        &mut self,
        argv: &[String],
        cpus: &CpuSet,
        patience: Duration,
    ) -> anyhow::Result<Ended> {
        let usage = self.file(&format!("{}.usage", self.started));
        let mut ended = self.run(launcher(&usage, argv)?, Some(cpus), Vec::new(), patience)?;
        ended.cpu_ns = read_usage(&usage)?;
        Ok(ended)
    }

    /// Runs a program to its end; one that fails is an error. `cpus`: `None`, all of them.
    pub fn run(
        &mut self,
        argv: Vec<String>,
        cpus: Option<&CpuSet>,
        env: Vec<(String, String)>,
        patience: Duration,
    ) -> anyhow::Result<Ended> {
        let what = argv.join(" ");
        let name = format!("program {}", self.started);
        let (out_path, err_path) = (
            self.file(&format!("{}.out", self.started)),
            self.file(&format!("{}.err", self.started)),
        );
        let (out, err) = (File::create(&out_path)?, File::create(&err_path)?);
        self.spawn(
            &name,
            argv,
            cpus,
            env,
            File::open("/dev/null")?.into(),
            out.into(),
            err.into(),
        )?;
        self.wait(&name, &what, patience, &err_path)?;
        let stdout =
            std::fs::read_to_string(&out_path).with_context(|| format!("output of {what}"))?;
        // The next hundred programs must not fill the memory with what these said.
        std::fs::remove_file(&out_path)?;
        std::fs::remove_file(&err_path)?;
        Ok(Ended { stdout, cpu_ns: 0 })
    }

    fn wait(
        &mut self,
        name: &str,
        what: &str,
        patience: Duration,
        err_path: &Path,
    ) -> anyhow::Result<()> {
        // Patience is minutes: far within 64 bits of nanoseconds.
        let deadline = now_ns() + patience.as_nanos() as u64;
        loop {
            let look = deadline.min(now_ns() + LOOK_NS);
            if let Some(exit) = self.lab.wait(name, look)? {
                if exit.success() {
                    return Ok(());
                }
                bail!("{what}: {exit}: {}", tail(err_path));
            }
            self.bench.stop().check()?;
            if now_ns() >= deadline {
                self.lab.kill(name)?;
                bail!("{what}: not ended after {} s", patience.as_secs());
            }
        }
    }

    /// Starts a program that talks the protocol. `measured`: [`Self::finish`] gives its CPU time, and the
    /// pid is that of a launcher.
    pub fn start_talker(
        &mut self,
        argv: &[String],
        cpus: &CpuSet,
        measured: bool,
    ) -> anyhow::Result<Talker> {
        let name = format!("program {}", self.started);
        let usage = measured.then(|| self.file(&format!("{}.usage", self.started)));
        let argv = match &usage {
            Some(usage) => launcher(usage, argv)?,
            None => argv.to_vec(),
        };
        let stderr = self.file(&format!("{}.err", self.started));
        let err = File::create(&stderr)?;
        let (talk, stdin, stdout) = pair(self.bench)?;
        let process = self.spawn(
            &name,
            argv,
            Some(cpus),
            Vec::new(),
            stdin,
            stdout,
            err.into(),
        )?;
        Ok(Talker {
            talk,
            pid: process.pid,
            name,
            stderr,
            usage,
        })
    }

    /// Says bye, waits for the end, and gives the CPU time of the program's whole life (0: not measured).
    pub fn finish(&mut self, mut talker: Talker) -> anyhow::Result<u64> {
        talker.talk.bye()?;
        self.wait(&talker.name, &talker.name, GOODBYE, &talker.stderr)?;
        talker.usage.map_or(Ok(0), |usage| read_usage(&usage))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "three of them are the standard descriptors"
    )]
    fn spawn(
        &mut self,
        name: &str,
        argv: Vec<String>,
        cpus: Option<&CpuSet>,
        env: Vec<(String, String)>,
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    ) -> anyhow::Result<Process> {
        self.bench.stop().check()?;
        self.started += 1;
        let spawn = Spawn {
            cpus: cpus.cloned(),
            env,
            ..Spawn::new(name, argv)
        };
        Ok(self.lab.spawn(&spawn, stdin, stdout, stderr)?)
    }
}

fn launcher(usage: &Path, argv: &[String]) -> anyhow::Result<Vec<String>> {
    let mut all = own(inside::MEASURE)?;
    all.push(usage.to_string_lossy().into_owned());
    all.extend_from_slice(argv);
    Ok(all)
}

/// The command of one of this program's helpers.
pub fn own(helper: &str) -> anyhow::Result<Vec<String>> {
    let own = std::env::current_exe().context("where this program lies")?;
    let own = own
        .to_str()
        .context("the path of this program is not UTF-8")?
        .to_owned();
    Ok(vec![own, inside::WORD.to_owned(), helper.to_owned()])
}

fn read_usage(path: &Path) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(path).context("CPU time of a program that has ended")?;
    std::fs::remove_file(path)?;
    inside::cpu_ns(&text)
}

fn tail(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let text = text.trim();
    let from = text
        .char_indices()
        .rev()
        .take(SHOWN)
        .last()
        .map_or(0, |(at, _)| at);
    text[from..].to_owned()
}

/// CPU time of a living process of ours, user and system, all its threads, ns.
pub fn cpu_of(pid: u32) -> anyhow::Result<u64> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid)?))
        .with_context(|| format!("the CPU clock of process {pid}"))?;
    let t = clock
        .now()
        .with_context(|| format!("the CPU clock of process {pid}"))?;
    // CPU time is never negative.
    Ok(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

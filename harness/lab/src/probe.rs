//! Whether private labs work here (the whole sequence, since some systems let its first steps
//! pass and deny a later one), and whether sysctls can be had.

use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use yieldpoint_terms::{Nanos, clock::now_ns};

use crate::{Lab, LabError, LabSpec, Mode, Refusal, Spawn, Step, SysctlError};

/// What the probe's own program is given to exchange a few bytes with itself.
const TRAFFIC_PATIENCE: Nanos = Nanos::from_secs(10);

/// Whether private labs work here.
#[derive(Clone, Debug)]
pub struct ProbeReport {
    /// the step that failed; `None`: all of them work
    pub refusal: Option<Refusal>,
    /// how long the lab took to come up; 0 where it did not
    pub up: Nanos,
    /// how long it took to go down; 0 where it was not up
    pub down: Nanos,
}

impl ProbeReport {
    /// What `auto` stands for here.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.refusal {
            None => Mode::Private,
            Some(_) => Mode::Host,
        }
    }
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refusal {
            None => {
                let ms = |n: Nanos| n.as_secs_f64() * 1e3;
                let (up, down) = (ms(self.up), ms(self.down));
                write!(f, "private labs work (up {up:.1} ms, down {down:.1} ms)")
            }
            Some(refusal) => write!(f, "private labs are refused: {refusal}"),
        }
    }
}

/// Brings a private lab up with a sysctl written, has a program exchange bytes over its loopback,
/// and takes it down.
#[must_use]
pub fn probe(program: &Path) -> ProbeReport {
    let mut report = ProbeReport {
        refusal: None,
        up: Nanos(0),
        down: Nanos(0),
    };
    report.refusal = try_all(program, &mut report).err();
    report
}

fn try_all(program: &Path, report: &mut ProbeReport) -> Result<(), Refusal> {
    let range = ("net.ipv4.ip_local_port_range", "32768 60998");
    let spec = LabSpec {
        sysctls: vec![(range.0.to_owned(), range.1.to_owned())],
        ..LabSpec::new(Mode::Private, program)
    };
    let start = now_ns();
    let mut lab = Lab::up(&spec).map_err(|e| as_refusal(Step::Start, e))?;
    report.up = Nanos(now_ns() - start);
    let null = || -> Result<OwnedFd, Refusal> {
        let file = File::options().read(true).write(true).open("/dev/null");
        file.map(Into::into)
            .map_err(|e| Refusal::of_words(Step::Spawn, format!("\"/dev/null\": {e}")))
    };
    let path = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    let cmd = Spawn::new(
        "traffic",
        [path.to_string_lossy().into_owned(), "traffic".to_owned()],
    );
    lab.spawn(&cmd, null()?, null()?, null()?)
        .map_err(|e| as_refusal(Step::Spawn, e))?;
    let exit = lab
        .wait(&cmd.name, now_ns() + TRAFFIC_PATIENCE.0)
        .map_err(|e| as_refusal(Step::Traffic, e))?;
    match exit {
        Some(exit) if exit.success() => {}
        Some(exit) => {
            let what = format!("the program that tried it {exit}");
            return Err(Refusal::of_words(Step::Traffic, what));
        }
        None => {
            let what = format!("nothing arrived within {TRAFFIC_PATIENCE}");
            return Err(Refusal::of_words(Step::Traffic, what));
        }
    }
    let start = now_ns();
    lab.down().map_err(|e| as_refusal(Step::Start, e))?;
    report.down = Nanos(now_ns() - start);
    Ok(())
}

/// The step an error belongs to, where it does not name one itself.
fn as_refusal(step: Step, error: LabError) -> Refusal {
    match error {
        LabError::Refused { refusal, .. } => refusal,
        LabError::Sysctls(errors) => {
            let errno = errors.iter().find_map(|e| match e {
                SysctlError::Refused { errno, .. } => Some(*errno),
                _ => None,
            });
            let what = LabError::Sysctls(errors).to_string();
            match errno {
                Some(errno) => Refusal {
                    what,
                    ..Refusal::of_errno(Step::Sysctl, errno)
                },
                None => Refusal::of_words(Step::Sysctl, what),
            }
        }
        other => Refusal::of_words(step, other.to_string()),
    }
}

/// Tries sysctls for the plan: brings a lab up, writes each (in host mode: compares), and returns
/// those that cannot be had, in the order given. A name may stand there with several values.
///
/// Errors: the lab itself does not come up.
pub fn check_sysctls(
    program: &Path,
    mode: Mode,
    sysctls: &[(String, String)],
) -> Result<Vec<SysctlError>, LabError> {
    try_up(&LabSpec {
        sysctls: sysctls.to_vec(),
        ..LabSpec::new(mode, program)
    })
}

/// Tries a lab for the plan, with its network, and returns the sysctls that cannot be had.
///
/// Errors: the lab does not come up for another reason, such as a kernel that cannot delay packets.
pub fn try_up(spec: &LabSpec) -> Result<Vec<SysctlError>, LabError> {
    match Lab::up(spec) {
        Ok(lab) => lab.down().map(|()| Vec::new()),
        Err(LabError::Sysctls(errors)) => Ok(errors),
        Err(e) => Err(e),
    }
}

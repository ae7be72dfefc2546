//! The lab: the private surroundings of one trial (see README.md).
//!
//! ```no_run
//! # use yieldpoint_lab::{Lab, LabSpec, Mode, Spawn};
//! # fn run(stdin: std::os::fd::OwnedFd, stdout: std::os::fd::OwnedFd, stderr: std::os::fd::OwnedFd)
//! # -> Result<(), yieldpoint_lab::LabError> {
//! let mut lab = Lab::up(&LabSpec {
//!     sysctls: vec![("net.ipv4.tcp_tw_reuse".into(), "0".into())],
//!     ..LabSpec::new(Mode::Private, "target/bin/yieldpoint-lab")
//! })?;
//! let client = Spawn::new("client", ["yieldpoint-client-ureq"]);
//! let process = lab.spawn(&client, stdin, stdout, stderr)?;
//! println!("{} is {}", process.name, process.pid);
//! lab.down()
//! # }
//! ```

mod cpus;
mod errors;
mod exit;
mod knobs;
mod lab;
mod limits;
mod mode;
mod network;
mod probe;
mod refusal;
pub mod sysctl;
pub mod wire;

pub use cpus::{CpuSet, CpuSetError, default_split};
pub use errors::LabError;
pub use exit::Exit;
pub use knobs::KNOBS;
pub use lab::{Lab, LabSpec, Process, Spawn};
pub use limits::hard_nofile;
pub use mode::Mode;
pub use network::{Link, Network, NetworkError, Rate, RateError, Side};
pub use probe::{ProbeReport, check_sysctls, probe, try_up};
pub use refusal::{Refusal, Step};
pub use sysctl::SysctlError;

//! By hand, without a runner: serves until Ctrl-C or SIGTERM, finishes what has begun, then says
//! what it saw.

use std::io::{Write, stdout};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use yieldpoint_protocol::TargetSeries;
use yieldpoint_terms::clock::now_ns;

use crate::counters::Totals;
use crate::course::{Course, SLOT_NS};
use crate::settings::{Settings, SettingsError};
use crate::signals;
use crate::target::{LogReader, StartError, Target};

/// Why it did not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("cannot wait for signals: {0}")]
    Signals(#[from] Errno),
    #[error("cannot catch signals or write the testimony: {0}")]
    Write(#[from] std::io::Error),
}

/// Serves with the knobs of the command line ("port=8080").
pub fn run(words: &[String]) -> Result<(), ServeError> {
    let settings = Settings::from_words(words)?;
    let signals = signals::catch(&[Signal::SIGINT, Signal::SIGTERM])?;
    let mut target = Target::start(&settings, LogReader::Person)?;
    eprintln!("serving http://{}/ (Ctrl-C ends it)", target.listens);
    // No slots: by hand it may run for weeks.
    let start_ns = now_ns();
    target.begin(start_ns);
    let mut course = Course::new(start_ns, Totals::default());
    let slot = Timespec {
        tv_sec: 0,
        tv_nsec: SLOT_NS as _,
    };
    loop {
        let mut fds = [PollFd::new(&signals, PollFlags::IN)];
        match poll(&mut fds, Some(&slot)) {
            Ok(0) | Err(Errno::INTR) => target.look(None),
            Ok(_) => break,
            Err(e) => return Err(e.into()),
        }
    }
    target.stop();
    let mut testimony = target.testimony(&mut course, 0);
    testimony.series = TargetSeries::default();
    let mut text = serde_json::to_vec_pretty(&testimony).map_err(std::io::Error::from)?;
    text.push(b'\n');
    Ok(stdout().write_all(&text)?)
}

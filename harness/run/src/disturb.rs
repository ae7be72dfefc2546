//! Busy processes beside client and target, where a cell asks for them (`lab.disturb`).

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use yieldpoint_lab::{CpuSet, Lab, Spawn};

use crate::plan::PlannedCell;
use crate::steps::{S, Stop};

/// They end by themselves so long after the load, should the lab not end them before, s.
const SPARE_S: u64 = 60;

/// Starts them; they end with the lab. `program`: the lab program, which plays them.
pub fn start(lab: &mut Lab, cell: &PlannedCell, program: &Path) -> Result<(), Stop> {
    let seconds = (cell.load.0 + cell.grace.0) / S + SPARE_S;
    let sets = [&cell.client_cpus, &cell.target_cpus];
    let cpus: BTreeSet<usize> = sets.iter().flat_map(|s| s.cpus()).copied().collect();
    for cpu in cpus {
        for n in 1..=cell.disturb {
            let spawn = Spawn {
                cpus: Some(CpuSet::new([cpu]).map_err(Stop::error)?),
                ..Spawn::new(
                    &format!("disturb-{cpu}-{n}"),
                    [
                        program.to_string_lossy().into_owned(),
                        "spin".to_owned(),
                        seconds.to_string(),
                    ],
                )
            };
            let null = || -> Result<OwnedFd, Stop> {
                let both = File::options().read(true).write(true).open("/dev/null");
                both.map(Into::into)
                    .map_err(|e| Stop::error(format!("/dev/null: {e}")))
            };
            lab.spawn(&spawn, null()?, null()?, null()?)
                .map_err(|e| Stop::error(format!("lab.disturb: {e}")))?;
        }
    }
    Ok(())
}

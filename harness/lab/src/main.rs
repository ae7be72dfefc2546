//! `yieldpoint-lab`: the private surroundings of one trial. Started by `yieldpoint`.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main()
}

//! The program: guard (outer process) and init (inner process, PID 1 of a private lab).
//!
//! It has one thread, always: unshare(2) of a user namespace refuses a second, PDEATHSIG follows
//! the thread that forked, and after fork the child may then do as it likes.

mod guard;
mod init;
mod namespaces;
mod netlink;
mod orphans;
mod os;
mod spawner;
mod spin;
mod traffic;
mod veth;

use std::process::ExitCode;

use yieldpoint_lab::Mode;

const USAGE: &str = "yieldpoint-lab: the private surroundings of one trial; started by `yieldpoint`, which talks to it over its standard input";

pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let order = match args.as_slice() {
        ["traffic"] => return traffic::exchange(),
        ["spin", seconds] => return spin::spin(seconds),
        ["--version"] => {
            println!("yieldpoint-lab {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        [mode, runner] => Mode::from_word(mode).zip(runner.parse::<i32>().ok()),
        _ => None,
    };
    match order {
        Some((mode, runner)) => guard::run(mode, runner),
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

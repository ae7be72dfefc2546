//! What this executable does when a test starts it again.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use yieldpoint_lab::{Lab, Mode, Spawn, probe};

use crate::tools::{self, PROGRAM, Talk, namespace};

/// Which role.
pub const ROLE: &str = "YIELDPOINT_LAB_TEST_ROLE";
/// Mode of the lab, and the marker of its processes.
pub const MODE: &str = "YIELDPOINT_LAB_TEST_MODE";
pub const MARKER: &str = "YIELDPOINT_LAB_TEST_MARKER";

pub fn play(role: &str) {
    match role {
        "listen" => listen(),
        "runner" => runner(),
        "probe" => println!("{}", probe(&tools::program())),
        other => panic!("no role {other:?}"),
    }
}

/// This executable in a role, inside a lab.
pub fn spawn_as(role: &str, name: &str) -> Spawn {
    let exe = std::env::current_exe().unwrap();
    let program = tools::program();
    Spawn {
        env: tools::owned(&[(ROLE, role), (PROGRAM, program.to_str().unwrap())]),
        ..Spawn::new(name, [exe.to_str().unwrap()])
    }
}

/// The port that both of two labs want.
pub const PORT: u16 = 8080;

fn listen() {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)) {
        Ok(_listener) => {
            println!("listening");
            until_closed();
        }
        Err(e) => println!("refused: {e}"),
    }
}

fn until_closed() {
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
}

/// Brings a lab up with stubborn processes, prints the pids of guard and init and the network
/// namespace, and takes it down at the end of its input.
fn runner() {
    let var = |name| std::env::var(name).unwrap();
    let mode = Mode::from_word(&var(MODE)).unwrap();
    let mut lab: Lab = tools::up(mode);
    let mut stubborn = Talk::sh(&mut lab, "stubborn", &tools::stubborn(&var(MARKER)));
    stubborn.hear(&["child\n", "grandchild\n"]);
    let net = namespace(lab.init_pid(), "net").unwrap();
    println!("{} {} {net}", lab.guard_pid(), lab.init_pid());
    std::io::stdout().flush().unwrap();
    until_closed();
    lab.down().unwrap();
}

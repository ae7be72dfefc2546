//! The built-in target: an HTTP/1.1 server like nginx with everything in memory, that testifies.
//! See README.md for the map.

mod access_log;
mod behaviour;
mod conn;
mod control;
mod counters;
mod course;
mod date;
mod dialogue;
mod files;
mod http;
mod knobs;
mod listen;
mod media;
mod outgoing;
mod pages;
mod phase;
mod reply;
mod select;
mod serve;
mod settings;
mod signals;
mod site;
mod slab;
mod status;
mod target;
mod template;
mod timers;
mod wire;
mod worker;

use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;

use yieldpoint_protocol::{FromProgram, send};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("--describe") => describe(),
        Some("--help" | "-h") => {
            print!("{}", help());
            Ok(())
        }
        Some("--serve") => serve::run(&words[1..]).map_err(|e| e.to_string()),
        Some(other) => Err(format!("unknown argument \"{other}\"\n\n{}", help())),
        None if stdin().is_terminal() => Err(help()),
        None => control::run().map_err(|e| e.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{}", reason.trim_end());
            ExitCode::FAILURE
        }
    }
}

fn describe() -> Result<(), String> {
    send(&mut stdout(), &FromProgram::Hello(control::hello())).map_err(|e| e.to_string())
}

fn help() -> String {
    let mut text = "yieldpoint-target-static: an HTTP/1.1 server like nginx with everything in memory, that testifies\n\n  \
         --serve [name=value …]   serve without a runner; Ctrl-C prints what it saw\n  \
         --describe               print who it is and its knobs as one line of JSON\n  \
         (none)                   speak the protocol of yieldpoint on stdin and stdout\n\n\
         knobs (in a matrix: target.<name>):\n"
        .to_owned();
    for knob in knobs::KNOBS {
        let default = knob
            .default_value()
            .map_or("unset".to_owned(), |v| v.to_string());
        text += &format!(
            "  {} ({}; {default})\n      {}\n",
            knob.name, knob.kind, knob.doc
        );
    }
    text
}

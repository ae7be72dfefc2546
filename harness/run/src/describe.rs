//! Asks a program who it is: `program --describe` prints one line and exits.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use yieldpoint_protocol::{FromProgram, Hello, Role, VERSION};

use crate::peer::wait_readable;

/// How long a program may take to print one line.
const PATIENCE: Duration = Duration::from_secs(10);
/// A description is a few kB; a program that prints more is not describing itself.
const MAX: usize = 1 << 20;

/// Runs `command --describe` and reads its [`Hello`]. The error is one sentence: expected, got, fix.
pub fn describe(command: &[String], role: Role) -> Result<Hello, String> {
    let (program, arguments) = command
        .split_first()
        .ok_or("the command is empty; expected a program and its arguments")?;
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--describe")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("cannot be started: {e}; build it, or mend its command"))?;
    let mut text = Vec::new();
    let mut answered = false;
    if let Some(mut out) = child.stdout.take() {
        let deadline = yieldpoint_terms::clock::now_ns() + PATIENCE.as_nanos() as u64;
        let mut chunk = [0; 8192];
        while text.len() < MAX && wait_readable(&out, None, deadline).is_ok_and(|r| r) {
            match out.read(&mut chunk) {
                Ok(0) | Err(_) => {
                    answered = true;
                    break;
                }
                Ok(n) => text.extend_from_slice(&chunk[..n]),
            }
            // One line is the whole answer: a program that then lingers is not waited for.
            if text.contains(&b'\n') {
                answered = true;
                break;
            }
        }
    }
    // Its whole group, so that a script's children end too; a program that has exited is not there any more.
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
    if !answered {
        return Err(format!(
            "no description within {} s of being started with --describe; expected one line of JSON",
            PATIENCE.as_secs()
        ));
    }
    read(&text, role)
}

/// One line of JSON → who it is. Pure.
fn read(text: &[u8], role: Role) -> Result<Hello, String> {
    let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
    let shown = || {
        String::from_utf8_lossy(line)
            .chars()
            .take(120)
            .collect::<String>()
    };
    // The version first: another version may have other fields, and that is the better message.
    #[derive(serde::Deserialize)]
    struct Version {
        protocol: u32,
    }
    if let Ok(Version { protocol }) = serde_json::from_slice(line)
        && protocol != VERSION
    {
        return Err(format!(
            "speaks protocol version {protocol}, expected {VERSION}; build it from the revision of this yieldpoint"
        ));
    }
    let wrong = |why: String| {
        format!(
            "expected its \"hello\" message, one line of JSON, after --describe, got \"{}\": {why}",
            shown()
        )
    };
    let hello = match serde_json::from_slice(line) {
        Ok(FromProgram::Hello(hello)) => hello,
        Ok(_) => return Err(wrong("another message".into())),
        Err(e) => return Err(wrong(e.to_string())),
    };
    if hello.role != role {
        return Err(
            format!("expected a {role:?}, it says it is a {:?}", hello.role).to_lowercase(),
        );
    }
    Ok(hello)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_answer_has_its_sentence() {
        let hello = r#"{"type":"hello","protocol":1,"role":"client","name":"a","version":"1"}"#;
        // what it prints, what the error says (None: fine)
        let table = [
            (hello.to_owned(), None),
            (format!("{hello}\nnoise after the line"), None),
            (
                hello.replace(":1,", ":9,"),
                Some("protocol version 9, expected 1"),
            ),
            (hello.replace("client", "target"), Some("expected a client")),
            (hello[..20].to_owned(), Some("one line of JSON")), // half a line
            (String::new(), Some("got \"\"")),                  // nothing at all
        ];
        for (text, want) in table {
            let got = read(text.as_bytes(), Role::Client);
            match want {
                None => assert!(got.is_ok(), "{text}: {got:?}"),
                Some(part) => assert!(got.clone().unwrap_err().contains(part), "{text}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_program_that_is_silent_or_missing_is_an_error_not_a_hang() {
        let missing = describe(&["/nonexistent/program".into()], Role::Client).unwrap_err();
        assert!(missing.contains("cannot be started"), "{missing}");
        let exits = describe(&["/bin/true".into()], Role::Client).unwrap_err();
        assert!(exits.contains("one line of JSON"), "{exits}");
    }
}

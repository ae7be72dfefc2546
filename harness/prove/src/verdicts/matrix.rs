//! The matrix of all injections: one bundle each.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::scenarios::Injection;

/// What all trials share, unless an injection says otherwise: nothing in it is short of anything for 2 s.
const HEAD: &str = r#"
analysis = """
The axis injected names what was put in: one verdict or two, and the number of the draw. The verdict of a trial should
be just that; the table confusion counts how often it was.
"""

[run]
rounds   = 1
controls = false
ceilings = false
"#;
const KNOBS: &str = r#"
duration                  = "2s"
request_timeout           = "1s"
connect_timeout           = "1900ms"
target.keepalive_requests = 1000000
lab.mode                  = "private"
lab.sysctl.net.ipv4.tcp_tw_reuse        = 0
lab.sysctl.net.ipv4.ip_local_port_range = "1025 65535"
"#;

/// The file.
pub fn text(injections: &[Injection], seed: u64) -> String {
    let clients: BTreeSet<&str> = injections
        .iter()
        .flat_map(|i| i.clients.iter().map(String::as_str))
        .collect();
    let list: Vec<String> = clients.iter().map(|c| format!("\"{c}\"")).collect();
    let mut out = format!(
        "format   = 1\nquestion = \"Do the verdicts name what was injected (seed {seed})?\"{HEAD}seed     = {}\n",
        // A seed of a matrix is a signed number.
        seed & (u64::MAX >> 1)
    );
    // Writing to a text cannot fail.
    let _ = writeln!(out, "\n[knobs]\nclient = [{}]{KNOBS}", list.join(", "));
    for i in injections {
        let _ = writeln!(out, "# {}\n[axis.injected.\"{}\"]", i.why, i.label);
        for (knob, value) in &i.knobs {
            let _ = writeln!(out, "{knob} = {value}");
        }
        out.push('\n');
    }
    for i in injections {
        for client in clients
            .iter()
            .filter(|c| !i.clients.iter().any(|k| k == *c))
        {
            let _ = writeln!(
                out,
                "[[exclude]]\ninjected = \"{}\"\nclient   = \"{client}\"\n",
                i.label
            );
        }
    }
    out
}

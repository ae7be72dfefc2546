//! A private network namespace with few local ports: what this project is about.

use std::io::Write;
use std::process::Command;

use yieldpoint_protocol::ErrorKind;
use yieldpoint_terms::Value;

use super::client::{Knob, run};
use super::server::{Manner, Server};
use super::{is_consistent, with};

/// Local ports of the namespace.
const PORTS: u64 = 300;
/// Iterations beyond them.
const MORE: u64 = 7;
/// Outside the local ports.
const SERVER: u16 = 20_000;
const INSIDE: &str = "YIELDPOINT_TEST_IN_A_NAMESPACE";

/// A user that forgets its connection gets exactly as many as there are ports, and then the error
/// that says so. `test` is the calling test: it is run again inside the namespace. Where a
/// namespace is refused it says so and tests nothing.
pub fn ports_run_out(test: &str, program: &str, options: &[Knob<'_>]) {
    if std::env::var_os(INSIDE).is_none() {
        return again_inside(test);
    }
    let server = Server::start_on(SERVER, Manner::Good);
    let knobs = with(
        options,
        &[
            ("same_user", Value::Bool(false)),
            // 300 + 7 fits.
            ("iterations", Value::Int((PORTS + MORE) as i64)),
            ("expect.body_bytes", Value::Int(5)),
        ],
    );
    let o = run(program, &format!("http://{}/", server.address), &knobs);
    is_consistent(&o);
    let got = (o.total.good, o.total.connections, o.total.connect_failures);
    assert_eq!(got, (PORTS, PORTS, MORE), "{o:?}");
    assert_eq!(server.counts(), (PORTS, PORTS));
    let errors: Vec<_> = o.errors.iter().map(|e| (e.kind, e.count)).collect();
    assert_eq!(errors, [(ErrorKind::AddressNotAvailable, MORE)], "{o:?}");
}

fn again_inside(test: &str) {
    let script = format!(
        "ip link set lo up && echo '32768 {}' > /proc/sys/net/ipv4/ip_local_port_range \
         && echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && exec \"$@\"",
        32_767 + PORTS
    );
    let namespace = || {
        let mut command = Command::new("unshare");
        command.args(["-Urn", "sh", "-c", &script, "sh"]);
        command
    };
    let probe = namespace().arg("true").output();
    if !probe.as_ref().is_ok_and(|o| o.status.success()) {
        // The harness swallows what print macros say in a test that passes.
        let line = format!("{test} tests nothing: a private namespace is refused: {probe:?}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    let inside = namespace()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inside.stdout);
    let wrong = String::from_utf8_lossy(&inside.stderr);
    assert!(inside.status.success(), "{said}{wrong}");
    assert!(
        said.contains("1 passed"),
        "no test is called \"{test}\": {said}"
    );
}

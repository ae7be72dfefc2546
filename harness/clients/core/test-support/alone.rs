//! A test in a process of its own, so that nothing else counts there; where it is asked for, in a
//! private network namespace with few local ports.

use std::ffi::OsStr;
use std::io::Write;
use std::process::Command;

/// Set in the process of a test's own.
const MARK: &str = "YIELDPOINT_TEST_ALONE";

fn inside() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs `body` in a process of its own: the test of that name, started again (behind `prefix`).
pub fn in_child(test: &str, prefix: &[&str], body: impl FnOnce()) {
    if inside() {
        return body();
    }
    let program = std::env::current_exe().unwrap();
    let mut words = prefix.iter().map(OsStr::new).chain([
        program.as_os_str(),
        OsStr::new("--exact"),
        OsStr::new(test),
        OsStr::new("--nocapture"),
    ]);
    let output = Command::new(words.next().unwrap())
        .args(words)
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success(),
        "{test} in its own process:\n{text}"
    );
    assert!(
        text.contains("1 passed"),
        "no test is named \"{test}\":\n{text}"
    );
}

/// The same in a network namespace with `ports` local ports from 32,768 on. Where namespaces are
/// refused it says so and tests nothing.
pub fn with_ports(test: &str, ports: u64, body: impl FnOnce()) {
    let script = format!(
        "ip link set lo up && echo '32768 {}' > /proc/sys/net/ipv4/ip_local_port_range \
         && echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && exec \"$@\"",
        32_767 + ports
    );
    let namespace = ["unshare", "-Urn", "sh", "-c", &script, "sh"];
    if !inside() {
        let [program, arguments @ ..] = &namespace;
        let probe = Command::new(program).args(arguments).arg("true").output();
        if !probe.as_ref().is_ok_and(|o| o.status.success()) {
            // The harness swallows what print macros say in a test that passes.
            let line = format!("{test} tests nothing: a private namespace is refused: {probe:?}\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return;
        }
    }
    in_child(test, &namespace, body);
}

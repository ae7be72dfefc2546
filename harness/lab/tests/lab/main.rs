//! The lab with real processes, in both modes; as root once more as an unprivileged user.
//!
//! This executable also plays the runner that gets killed, the program that listens and the
//! program that probes (see `roles.rs`), which is why it has a main of its own.

mod errors;
mod kill;
mod roles;
mod spawn;
mod surroundings;
mod tools;

use libtest_mimic::{Arguments, Failed, Trial};
use yieldpoint_lab::Mode;

use crate::tools::Tests;

/// Set in the run as an unprivileged user, so that it does not start another.
const UNPRIVILEGED: &str = "YIELDPOINT_LAB_TEST_UNPRIVILEGED";

fn main() {
    if let Ok(role) = std::env::var(roles::ROLE) {
        return roles::play(&role);
    }
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    let suites: [Tests<fn(Mode)>; 4] = [
        spawn::TESTS,
        kill::TESTS,
        surroundings::TESTS,
        errors::TESTS,
    ];
    for (name, test) in suites.into_iter().flatten() {
        for mode in [Mode::Private, Mode::Host] {
            trials.push(trial(format!("{mode}::{name}"), move || test(mode)));
        }
    }
    let once = [surroundings::ONCE, errors::ONCE];
    for (name, test) in once.into_iter().flatten() {
        trials.push(trial((*name).to_owned(), *test));
    }
    let root = rustix::process::geteuid().is_root();
    if root && std::env::var_os(UNPRIVILEGED).is_none() {
        trials.push(trial("unprivileged_user".to_owned(), unprivileged));
    }
    libtest_mimic::run(&args, trials).exit();
}

fn trial(name: String, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}

/// Everything again as nobody, for whom namespaces are harder to get. The program and this
/// executable are copied, since the folder they were built in may be closed to others.
fn unprivileged() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(folder.path());
    let copy = |from: &std::path::Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        open(&to);
        to
    };
    let program = copy(&tools::program(), "yieldpoint-lab");
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let out = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(tests)
        .env(UNPRIVILEGED, "1")
        .env(tools::PROGRAM, program)
        .current_dir("/")
        .output()
        .expect("setpriv of util-linux");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr),
    );
    print!("{stdout}");
    assert!(out.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("test result: ok"), "{stdout}");
}

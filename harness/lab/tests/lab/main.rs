//! The lab with real processes, in both modes; as root once more as an unprivileged user.
//!
//! This executable also plays the runner that gets killed, the program that listens and the
//! program that probes (see `roles.rs`), which is why it has a main of its own.

mod errors;
mod kill;
mod link;
mod roles;
mod spawn;
mod surroundings;
mod tools;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
    let once = [surroundings::ONCE, errors::ONCE, kill::ONCE, link::ONCE];
    for (name, test) in once.into_iter().flatten() {
        trials.push(trial((*name).to_owned(), *test));
    }
    let root = rustix::process::geteuid().is_root();
    if root && std::env::var_os(UNPRIVILEGED).is_none() {
        let copies = copies();
        trials.push(trial("unprivileged_user".to_owned(), move || {
            unprivileged(&copies);
        }));
    }
    libtest_mimic::run(&args, trials).exit();
}

fn trial(name: String, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}

/// The lab program and this executable where everyone can read them.
struct Copies {
    program: PathBuf,
    tests: PathBuf,
    _folder: tempfile::TempDir,
}

/// Copies both, since the folder they were built in may be closed to others. Called before there
/// are threads: a process forked by another test while a copy is open for writing would make its
/// start fail with "text file busy".
fn copies() -> Copies {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    };
    open(folder.path());
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        open(&to);
        to
    };
    Copies {
        program: copy(&tools::program(), "yieldpoint-lab"),
        tests: copy(&std::env::current_exe().unwrap(), "tests"),
        _folder: folder,
    }
}

/// Everything again as nobody, for whom namespaces are harder to get.
fn unprivileged(copies: &Copies) {
    let out = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copies.tests)
        .env(UNPRIVILEGED, "1")
        .env(tools::PROGRAM, &copies.program)
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

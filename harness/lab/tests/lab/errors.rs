//! What cannot be had is named, with a remedy.

use std::path::Path;

use yieldpoint_lab::{
    Lab, LabError, LabSpec, Mode, Spawn, Step, SysctlError, check_sysctls, probe,
};

use crate::roles::spawn_as;
use crate::tools::{Talk, Tests, null, owned, program, run, sh, spec, up, wait};

pub const TESTS: Tests<fn(Mode)> = &[
    ("programs_that_do_not_start", programs_that_do_not_start),
    ("an_unknown_sysctl_is_named", an_unknown_sysctl_is_named),
    ("no_lab_program", no_lab_program),
    ("the_lab_is_gone", the_lab_is_gone),
];

pub const ONCE: Tests<fn()> = &[
    ("every_sysctl_error_at_once", every_sysctl_error_at_once),
    ("host_sysctls_must_be_equal", host_sysctls_must_be_equal),
    ("a_refused_step_is_named", a_refused_step_is_named),
];

fn programs_that_do_not_start(mode: Mode) {
    let mut lab = up(mode);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    // Not written by this process, or a fork of another test could hold it open ("text file busy").
    let path = script.display();
    let write = format!("echo '#!/no/such/interpreter' > {path} && chmod 755 {path}");
    assert!(run(&mut lab, &sh("write", &write)).1.success());
    let in_folder = |cwd: &str| Spawn {
        cwd: Some(cwd.into()),
        ..Spawn::new("x", ["/bin/true"])
    };
    // each row: what to spawn, what the error must hold
    let table = [
        (
            Spawn::new("x", ["/no/such/program"]),
            ["\"/no/such/program\"", "os error 2"],
        ),
        (
            Spawn::new("x", ["no-such-program"]),
            ["in PATH", "os error 2"],
        ),
        (
            Spawn::new("x", ["/proc/self/status"]),
            ["/proc/self/status", "os error 13"],
        ),
        // the file is there, what runs it is not
        (
            Spawn::new("x", [script.to_str().unwrap()]),
            ["interpreter", "os error 2"],
        ),
        (
            Spawn::new("x", [""; 0]),
            ["no program", "at least one word"],
        ),
        (
            in_folder("/no/such/folder"),
            ["working directory", "os error 2"],
        ),
        (
            in_folder("/proc/self/status"),
            ["working directory", "os error 20"],
        ),
    ];
    for (cmd, words) in table {
        let error = lab.spawn(&cmd, null(), null(), null()).unwrap_err();
        assert!(matches!(error, LabError::Spawn { .. }), "{error:?}");
        let text = error.to_string();
        assert!(words.iter().all(|w| text.contains(w)), "{words:?}: {text}");
    }
    // The lab stands, and the name was never taken.
    assert!(run(&mut lab, &sh("x", "true")).1.success());
    // A message that no socket carries is an error of the lab's own, not an end.
    let long = Spawn::new("long", ["/bin/true".to_owned(), "x".repeat(300_000)]);
    let text = lab
        .spawn(&long, null(), null(), null())
        .unwrap_err()
        .to_string();
    assert!(text.contains("shorten the arguments"), "{text}");
    assert!(run(&mut lab, &sh("y", "true")).1.success());
    lab.down().unwrap();
}

fn an_unknown_sysctl_is_named(mode: Mode) {
    let asked = [("net.ipv4.tcp_tw_reuze", "0")];
    let error = Lab::up(&spec(mode, &asked)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("\"net.ipv4.tcp_tw_reuze\" does not exist"),
        "{text}"
    );
    assert!(
        text.contains("did you mean \"net.ipv4.tcp_tw_reuse\"?"),
        "{text}"
    );
}

fn no_lab_program(mode: Mode) {
    let up_with = |program: &str| Lab::up(&LabSpec::new(mode, program));
    let error = up_with("/no/such/yieldpoint-lab").unwrap_err();
    let LabError::Refused { refusal, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((refusal.step, refusal.errno), (Step::Start, Some(2)));
    assert!(error.to_string().contains("scripts/build"), "{error}");
    // A program, but another one.
    let error = up_with("/bin/true").unwrap_err();
    assert!(matches!(error, LabError::Gone { .. }), "{error}");
    assert_eq!(probe(Path::new("/bin/true")).mode(), Mode::Host);
}

fn the_lab_is_gone(mode: Mode) {
    use rustix::process::{Pid, Signal, kill_process};
    let mut lab = up(mode);
    let talk = Talk::sh(&mut lab, "x", "cat");
    let init = Pid::from_raw(lab.init_pid() as i32).unwrap();
    kill_process(init, Signal::KILL).unwrap();
    let error = lab.wait("x", u64::MAX).unwrap_err();
    assert!(matches!(error, LabError::Gone { .. }), "{error}");
    let error = lab.spawn(&sh("y", "true"), null(), null(), null());
    assert!(matches!(error, Err(LabError::Gone { .. })), "{error:?}");
    assert_eq!(talk.finish(), "", "it is gone as well");
    lab.down().unwrap();
}

fn every_sysctl_error_at_once() {
    let asked = owned(&[
        ("net.ipv4.tcp_tw_reuse", "0"), // can be had
        ("net.ipv4.tcp_tw_reuse", "1"), // another value of the same
        ("net.ipv4.no_such_knob_at_all_here", "1"),
        ("vm.swappiness", "60"),
        ("not a name", "1"),
        ("net.ipv4.tcp_fin_timeout", "soon"),
        ("net.ipv4.tcp_fin_timeout", "061"), // read back as 61
        ("net.ipv4.ip_local_port_range", "60000 50000"), // backwards
    ]);
    let swappiness = || std::fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    let before = swappiness();
    let errors = check_sysctls(&program(), Mode::Private, &asked).unwrap();
    assert_eq!(swappiness(), before);
    let kinds: Vec<(&str, &str)> = errors
        .iter()
        .map(|e| {
            let kind = match e {
                SysctlError::BadName { .. } => "bad name",
                SysctlError::Unknown { .. } => "unknown",
                SysctlError::MachineWide { .. } => "machine",
                SysctlError::Refused { .. } => "refused",
                SysctlError::Changed { .. } => "changed",
                SysctlError::HostDiffers { .. } => "host",
            };
            (e.name(), kind)
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("net.ipv4.no_such_knob_at_all_here", "unknown"),
            ("vm.swappiness", "machine"),
            ("not a name", "bad name"),
            ("net.ipv4.tcp_fin_timeout", "refused"),
            ("net.ipv4.tcp_fin_timeout", "changed"),
            ("net.ipv4.ip_local_port_range", "refused"),
        ]
    );
    assert_eq!(
        check_sysctls(&program(), Mode::Private, &asked[..2]).unwrap(),
        []
    );
}

fn host_sysctls_must_be_equal() {
    let lab = up(Mode::Host);
    let name = "net.ipv4.tcp_fin_timeout";
    let now = lab.effective()[name].clone();
    lab.down().unwrap();
    let other = (now.parse::<u32>().unwrap() + 1).to_string();
    let check = |value: &str| {
        let asked = owned(&[(name, value)]);
        check_sysctls(&program(), Mode::Host, &asked).unwrap()
    };
    assert_eq!(check(&now), []);
    let errors = check(&other);
    assert!(matches!(&errors[..], [SysctlError::HostDiffers { got, .. }] if *got == now));
    assert!(errors[0].to_string().contains("lab.mode = \"private\""));
}

/// A system that refuses, made of a lab whose own user namespace allows no network namespaces.
fn a_refused_step_is_named() {
    let mut lab = up(Mode::Private);
    let allowed = Talk::spawn(&mut lab, &spawn_as("probe", "nested")).unwrap();
    let text = allowed.finish();
    assert!(text.starts_with("private labs work"), "{text}");
    assert!(wait(&mut lab, "nested").success());
    let forbid = "echo 0 > /proc/sys/user/max_net_namespaces";
    assert!(run(&mut lab, &sh("forbid", forbid)).1.success());
    let refused = Talk::spawn(&mut lab, &spawn_as("probe", "refused")).unwrap();
    let text = refused.finish();
    assert!(
        text.starts_with("private labs are refused: could not unshare"),
        "{text}"
    );
    assert!(
        text.contains("sysctl -w user.max_net_namespaces="),
        "{text}"
    );
    assert!(text.contains("lab.mode = \"host\""), "{text}");
    lab.down().unwrap();
}

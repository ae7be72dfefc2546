//! Spawning, exits, limits, descriptors.

use std::fs;

use yieldpoint_lab::{Exit, Mode, Spawn};

use crate::tools::{
    Talk, Tests, has_ended, marker, namespace, null, run, sh, spec, stat, until, up, wait,
    with_argument,
};

pub const TESTS: Tests<fn(Mode)> = &[
    ("streams_and_exit", streams_and_exit),
    ("killed_by_a_signal", killed_by_a_signal),
    ("pids_are_the_runners", pids_are_the_runners),
    ("names", names),
    ("environment_and_folder", environment_and_folder),
    ("descriptors_and_signals", descriptors_and_signals),
    ("cpus", cpus),
    ("nofile", nofile),
    ("memory", memory),
    ("orphans_are_reaped", orphans_are_reaped),
    ("kill_reaches_the_group", kill_reaches_the_group),
    ("own_sessions", own_sessions),
];

fn streams_and_exit(mode: Mode) {
    let mut lab = up(mode);
    let mut talk = Talk::sh(&mut lab, "x", "echo out; cat; echo err >&2; exit 3");
    talk.hear(&["out\n"]);
    assert_eq!(lab.wait("x", 0).unwrap(), None, "it waits for its input");
    assert!(!has_ended(&talk.process.pidfd));
    talk.say("in\n");
    let pidfd = talk.process.pidfd.try_clone().unwrap();
    assert_eq!(talk.finish(), "out\nin\nerr\n");
    let exit = wait(&mut lab, "x");
    assert_eq!(exit.to_string(), "exited with code 3");
    assert!(has_ended(pidfd));
    assert_eq!(lab.wait("x", 0).unwrap(), Some(exit), "asked again");
    lab.down().unwrap();
}

fn killed_by_a_signal(mode: Mode) {
    let mut lab = up(mode);
    let (_, exit) = run(&mut lab, &sh("x", "kill -9 $$"));
    assert_eq!(exit.to_string(), "was killed by signal 9 (SIGKILL)");
    lab.down().unwrap();
}

fn pids_are_the_runners(mode: Mode) {
    let mut lab = up(mode);
    let marker = marker();
    let talk = Talk::sh(&mut lab, "x", &format!("exec sleep {marker}"));
    let pid = talk.process.pid;
    // The shell and the sleep it becomes hold the marker; in between there are no arguments.
    until("its pid is found", || with_argument(&marker) == [pid]);
    assert_eq!(
        namespace(pid, "net").unwrap(),
        namespace(lab.init_pid(), "net").unwrap()
    );
    // A process that ends at once still has its pid told.
    for round in 0..50 {
        let cmd = Spawn::new(&format!("true {round}"), ["/bin/true"]);
        let process = lab.spawn(&cmd, null(), null(), null()).unwrap();
        assert!(process.pid > 0);
        assert!(wait(&mut lab, &cmd.name).success());
    }
    lab.down().unwrap();
}

fn names(mode: Mode) {
    let mut lab = up(mode);
    let talk = Talk::sh(&mut lab, "x", "cat");
    let error = lab
        .spawn(&sh("x", "true"), null(), null(), null())
        .unwrap_err();
    assert!(error.to_string().contains("still runs"), "{error}");
    talk.finish();
    wait(&mut lab, "x");
    let (_, exit) = run(&mut lab, &sh("x", "exit 7"));
    assert_eq!(exit.code, Some(7), "the second process of that name");
    let error = lab.wait("y", 0).unwrap_err().to_string();
    assert_eq!(
        error,
        "no process \"y\" in this lab: expected one of [\"x\"]"
    );
    assert!(lab.kill("y").is_err());
    assert!(lab.kill("x").is_ok(), "one that has ended is left as it is");
    lab.down().unwrap();
}

fn environment_and_folder(mode: Mode) {
    let mut lab = up(mode);
    let mut cmd = Spawn::new("env", ["/usr/bin/env"]);
    cmd.env = vec![("A".into(), "b c".into())];
    let (text, _) = run(&mut lab, &cmd);
    assert_eq!(text, "A=b c\n", "nothing is inherited");
    let mut cmd = sh("pwd", "pwd -P");
    cmd.cwd = Some("/proc/sys".into());
    assert_eq!(run(&mut lab, &cmd).0, "/proc/sys\n");
    lab.down().unwrap();
}

fn descriptors_and_signals(mode: Mode) {
    // A descriptor that the runner got from its own parent and that everything would inherit.
    let inheritable = rustix::io::dup(null()).unwrap();
    let mut lab = up(mode);
    let script = "ls -l /proc/self/fd | grep -c -v total; grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let (text, _) = run(&mut lab, &sh("x", script));
    drop(inheritable);
    // Standard input, output, error, and the folder that ls reads.
    let open = text.lines().next().unwrap();
    assert_eq!(open, "4", "{text}");
    assert!(text.contains("SigBlk:\t0000000000000000"), "{text}");
    // The Rust runtime of the lab ignores SIGPIPE; a shell started by a shell would not.
    let ignored = text.split("SigIgn:\t").nth(1).unwrap().trim();
    let sigpipe = 1 << (13 - 1);
    assert_eq!(
        u64::from_str_radix(ignored, 16).unwrap() & sigpipe,
        0,
        "{text}"
    );
    lab.down().unwrap();
}

fn cpus(mode: Mode) {
    let mut lab = up(mode);
    let here = yieldpoint_lab::CpuSet::of_this_process().unwrap();
    let script = "grep Cpus_allowed_list /proc/self/status";
    for cpu in here.cpus() {
        let mut cmd = sh(&format!("on {cpu}"), script);
        cmd.cpus = Some(cpu.to_string().parse().unwrap());
        assert_eq!(
            run(&mut lab, &cmd).0,
            format!("Cpus_allowed_list:\t{cpu}\n")
        );
    }
    let (text, _) = run(&mut lab, &sh("all", script));
    assert_eq!(text, format!("Cpus_allowed_list:\t{here}\n"));
    let mut cmd = sh("beyond", script);
    // The kernel alone would cut this down to the CPUs there are and say nothing.
    cmd.cpus = Some("0-1023".parse().unwrap());
    let error = lab.spawn(&cmd, null(), null(), null()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("1023\" not available; expected some of"),
        "{text}"
    );
    lab.down().unwrap();
}

fn memory(mode: Mode) {
    let mut lab = up(mode);
    let script = "ulimit -Sd; ulimit -Hd";
    let mut cmd = sh("some", script);
    cmd.memory_mib = Some(64);
    assert_eq!(run(&mut lab, &cmd).0, "65536\n65536\n", "KiB");
    lab.down().unwrap();
}

fn nofile(mode: Mode) {
    let mut lab = up(mode);
    let script = "ulimit -Sn; ulimit -Hn";
    let (text, _) = run(&mut lab, &sh("default", script));
    let [soft, hard] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    assert_eq!(soft, hard, "the default is all there is");
    let mut cmd = sh("some", script);
    cmd.nofile = Some(64);
    assert_eq!(run(&mut lab, &cmd).0, format!("64\n{hard}\n"));
    if let Ok(hard) = hard.parse::<u64>() {
        let mut cmd = sh("more", script);
        cmd.nofile = Some(hard + 1);
        let error = lab.spawn(&cmd, null(), null(), null()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("expected at most {hard}")), "{text}");
    }
    lab.down().unwrap();
}

fn orphans_are_reaped(mode: Mode) {
    let mut lab = up(mode);
    let init = lab.init_pid().to_string();
    // Each orphan outlives its parent by a moment, and nobody but init can reap it.
    let (_, exit) = run(
        &mut lab,
        &sh("x", "for i in 1 2 3 4 5; do (sleep 0.05 & echo $!); done"),
    );
    assert_eq!(
        exit,
        Exit {
            code: Some(0),
            signal: None
        }
    );
    let children = || {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
            .filter(|pid| stat(*pid, 1).as_ref() == Some(&init))
            .count()
    };
    until("no child of init, ended or not", || children() == 0);
    lab.down().unwrap();
}

fn kill_reaches_the_group(mode: Mode) {
    let mut lab = up(mode);
    let marker = marker();
    // As a shell script that starts a virtual machine does.
    let script = format!("trap '' TERM; sleep {marker} & echo up; sleep {marker}; true");
    let mut talk = Talk::sh(&mut lab, "x", &script);
    talk.hear(&["up\n"]);
    lab.kill("x").unwrap();
    assert_eq!(wait(&mut lab, "x").signal, Some(9));
    until("nothing left of the group", || {
        with_argument(&marker).is_empty()
    });
    // The lab itself stands.
    assert!(run(&mut lab, &sh("y", "true")).1.success());
    lab.down().unwrap();
}

fn own_sessions(mode: Mode) {
    let mut lab = up(mode);
    let talk = Talk::sh(&mut lab, "x", "cat");
    let session = |pid| stat(pid, 3).unwrap();
    let ours = session(std::process::id());
    for pid in [lab.guard_pid(), lab.init_pid(), talk.process.pid] {
        assert_ne!(session(pid), ours, "Ctrl-C would reach it");
    }
    let pid = talk.process.pid;
    assert_eq!(session(pid), pid.to_string());
    drop(talk);
    lab.down().unwrap();
    // A spec of the same kind comes up again afterwards.
    drop(yieldpoint_lab::Lab::up(&spec(mode, &[])).unwrap());
}

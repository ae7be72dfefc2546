//! Journals and manifests with slips: rows or an error with its line, never a panic, never a hang.
//!
//! `cargo run --release -p yieldpoint-record --example mutate-record -- N SEED` does the same with more inputs.

use std::path::Path;

use tempfile::TempDir;
use yieldpoint_mutate::{Mutator, Report, drive};
use yieldpoint_record::{Journal, RecordError, RunFolder, file, read_journal};

/// Three lines: a trial that was measured, one that failed, one that its client cannot do.
const JOURNAL: &str = concat!(
    r#"{"format":1,"cell":"m/client=ureq,threads=2","round":1,"role":"cell","order":0,"coordinates":[["client","ureq"],["threads",2]],"knobs":{"client":"ureq","duration":50000000,"keep_alive":true,"rate":1.5},"status":"ok","error":null,"flags":["burst_only"],"started":"2026-12-01T00:00:00Z","start_at_ns":1000,"elapsed_ns":90000000,"lab_mode":"private","sysctls":{"net.ipv4.tcp_tw_reuse":"0"},"outcome":{"window_start_ns":1000,"window_end_ns":50001000,"window":{"attempts":9,"good":7,"errors":2,"iterations":3,"connections":2,"connect_failures":1,"body_bytes":84},"total":{"attempts":9,"good":7,"errors":2,"iterations":3,"connections":2,"connect_failures":1,"body_bytes":84},"errors":[{"kind":"reset","count":2,"first_ns":5000,"example":"reset \"by\" peer"}],"series":[{"attempts":9,"good":7,"errors":2,"connections":2,"p50_ns":3,"p90_ns":null,"p99_ns":null,"max_ns":9}],"latency":"","latency_intended":"","connect":"","iteration":"","saturated":0,"users":2},"testimony":{"connections":2,"requests":9,"responses":{"200":7,"404":2},"bytes_in":369,"bytes_out":2000,"closed_by_client":2,"closed_by_target":0,"reset":0,"active":0,"listen_queue_peak":1,"cpu_ns":100000,"series":{"start_ns":1000,"slot_ns":100000000,"responses":[9],"connections":[2],"bytes_out":[2000],"active":[0],"listen_queue":[0]}},"samples":{"t_ns":[1000,100001000],"columns":{"client_rss_kib":[3000,null],"sockets_time_wait":[0,2]}},"time_wait":{"start":0,"client":2,"target":0},"checks":[{"name":"requests","ok":true,"detail":"9 = 9"}]}"#,
    "\n",
    r#"{"format":1,"cell":"m/client=ureq,threads=3","round":1,"role":"control","order":1,"coordinates":[["client","ureq"]],"knobs":{"client":"ureq"},"status":"error","error":"no","flags":[],"started":"2026-12-01T00:00:01Z","start_at_ns":null,"elapsed_ns":1,"lab_mode":null,"sysctls":{},"outcome":null,"testimony":null,"samples":null,"time_wait":null,"checks":[]}"#,
    "\n",
    r#"{"format":1,"cell":"m/client=isahc","round":2,"role":"ceiling","order":2,"coordinates":[],"knobs":{},"status":"unsupported","error":"\u00fc","flags":[],"started":"2026-12-01T00:00:02Z","start_at_ns":null,"elapsed_ns":0,"lab_mode":null,"sysctls":{},"outcome":null,"testimony":null,"samples":null,"time_wait":null,"checks":[]}"#,
    "\n",
);

const MANIFEST: &str = r#"{
  "format": 1, "yieldpoint": "0.1.0", "run": "2026-12-01.1-m", "matrix": "m", "question": "Why?", "source": null,
  "analysis": null, "started": "2026-12-01T00:00:00Z", "command": ["yieldpoint", "run", "m.toml"], "seed": 1,
  "rounds": 3, "trials": 6, "axes": [{"name": "threads", "values": [1, 2.5, "x", true]}], "set": ["duration"],
  "knobs": [
    {"name": "threads", "kind": {"type": "int", "min": 1, "max": 9}, "default": 1, "doc": "d"},
    {"name": "io", "kind": {"type": "choice", "of": ["a", "b"]}, "default": null, "doc": "d"},
    {"name": "duration", "kind": {"type": "duration", "min": 1, "max": 9}, "default": 5, "doc": "d"}
  ],
  "metrics": [{"name": "rss_kib", "unit": "KiB", "counter": false, "source": "/proc", "doc": "d"}],
  "machine": {"kernel": "6.18", "os": "", "architecture": "", "cpu": "", "cpus": 2, "memory_kib": 1, "governor": null,
    "virtualization": null, "clock_source": "tsc"},
  "programs": [{"role": "client", "name": "ureq", "version": "1", "library": "", "command": ["x"], "sha256": null}],
  "lab": {"mode": "private", "why": null, "client_cpus": "0", "target_cpus": "1"}, "notes": []
}"#;

const WORDS: [&str; 20] = [
    "null",
    "true",
    "{}",
    "[]",
    "\"format\":2",
    "\"status\":\"ok\"",
    "\"error\"",
    "\"ceiling\"",
    "\"cell\"",
    "\"knobs\"",
    "\"outcome\":null",
    "\"samples\":{}",
    "\"reset\"",
    "\n",
    "\n\n",
    "\r\n",
    "1.5",
    "\\ud800",
    "\"type\"",
    "\"duration\"",
];

/// One in so many journals is mended, too: that makes files.
const MENDED: u64 = 16;

/// In memory, where there is memory with names: millions of small files are hard on a disk.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::tempdir_in(place).expect("a temporary folder")
}

/// Reads so many mutated journals.
pub fn journals(inputs: u64, seed: u64) -> Report {
    let folder = folder();
    let path = folder.path().join(file::JOURNAL);
    let mutator = Mutator::new(seed, &[JOURNAL.as_bytes()], &WORDS);
    let mut n = 0;
    drive("journal", &mutator, inputs, |bytes| {
        n += 1;
        std::fs::write(&path, bytes).expect("a file in the temporary folder");
        let lines = bytes.split_inclusive(|b| *b == b'\n').count();
        let read = read_journal(&path);
        match &read {
            Ok((trials, cut)) => {
                assert_eq!(*cut, bytes.last().is_some_and(|b| *b != b'\n'));
                assert_eq!(
                    trials.len() + usize::from(*cut),
                    lines,
                    "every line is a trial, or cut"
                );
            }
            Err(RecordError::Content {
                line: Some(line), ..
            }) => assert!((1..=lines).contains(line)),
            Err(other) => panic!("an error without its line: {other}"),
        }
        if n % MENDED == 0 {
            mend(folder.path(), bytes);
        }
        read.is_ok()
    })
}

/// What mending takes away is kept, and nothing else changes.
fn mend(folder: &Path, bytes: &[u8]) {
    let path = folder.join(file::JOURNAL);
    let kept = Journal::open(&path)
        .and_then(|mut j| j.mend())
        .expect("a journal that can be mended");
    let mut whole = std::fs::read(&path).expect("the journal");
    assert!(whole.last().is_none_or(|b| *b == b'\n'));
    if let Some(name) = kept {
        let kept = folder.join(name);
        whole.extend(std::fs::read(&kept).expect("the cut line"));
        std::fs::remove_file(&kept).expect("the cut line");
    }
    assert_eq!(whole, bytes);
}

/// Reads so many mutated manifests.
pub fn manifests(inputs: u64, seed: u64) -> Report {
    let folder = folder();
    let path = folder.path().join(file::MANIFEST);
    let mutator = Mutator::new(seed, &[MANIFEST.as_bytes()], &WORDS);
    drive("manifest", &mutator, inputs, |bytes| {
        std::fs::write(&path, bytes).expect("a file in the temporary folder");
        let run = RunFolder::open(folder.path()).expect("a folder with a manifest is a run");
        run.manifest().is_ok()
    })
}

#[test]
fn the_sound_ones_are_sound() {
    let folder = folder();
    let path = folder.path().join(file::JOURNAL);
    std::fs::write(&path, JOURNAL).unwrap();
    let (trials, cut) = read_journal(&path).unwrap();
    assert_eq!((trials.len(), cut), (3, false));
    std::fs::write(folder.path().join(file::MANIFEST), MANIFEST).unwrap();
    assert_eq!(
        RunFolder::open(folder.path())
            .unwrap()
            .manifest()
            .unwrap()
            .trials,
        6
    );
}

#[test]
fn no_slip_makes_the_reader_of_journals_panic_or_hang() {
    let report = journals(20_000, 1);
    // A mutator that breaks everything, or nothing, tests nothing.
    assert!(
        report.accepted > 200 && report.accepted < 19_800,
        "{report}"
    );
}

#[test]
fn no_slip_makes_the_reader_of_manifests_panic_or_hang() {
    let report = manifests(20_000, 1);
    assert!(
        report.accepted > 200 && report.accepted < 19_800,
        "{report}"
    );
}

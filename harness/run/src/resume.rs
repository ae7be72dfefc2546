//! Whether a run can go on: the same matrix, programs, machine and order as when it began. Pure.

use yieldpoint_record::{Machine, Manifest, ProgramFact, Role, Trial};

use crate::plan::Plan;
use crate::schedule::{Schedule, good_per_s};

/// Every difference that would make later rows another experiment than the earlier ones;
/// `matrix` is the text of the copy in the run's folder. `now` is the manifest of a run that would
/// begin now. Empty: the run may go on.
#[must_use]
pub fn differences(then: &Manifest, now: &Manifest, matrix: &str) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(line) = first_changed_line(&then.asked.matrix_text, matrix) {
        all.push(line);
    }
    let mut same = |what: &str, then: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
        let (then, now) = (then.to_string(), now.to_string());
        if then != now {
            all.push(format!("{what}: expected \"{then}\", got \"{now}\""));
        }
    };
    same("version of yieldpoint", &then.yieldpoint, &now.yieldpoint);
    same("seed", &then.seed, &now.seed);
    same("rounds", &then.rounds, &now.rounds);
    same("trials", &then.trials, &now.trials);
    same("lab mode", &then.lab.mode, &now.lab.mode);
    same(
        "CPUs of the client",
        &then.lab.client_cpus,
        &now.lab.client_cpus,
    );
    same(
        "CPUs of the target",
        &then.lab.target_cpus,
        &now.lab.target_cpus,
    );
    machines(&then.machine, &now.machine, &mut same);
    all.extend(programs(&then.programs, &now.programs));
    all
}

type Same<'a> = dyn FnMut(&str, &dyn std::fmt::Display, &dyn std::fmt::Display) + 'a;

fn machines(then: &Machine, now: &Machine, same: &mut Same) {
    let word = |w: &Option<String>| w.clone().unwrap_or_else(|| "none".into());
    same("kernel", &then.kernel, &now.kernel);
    same("distribution", &then.os, &now.os);
    same("architecture", &then.architecture, &now.architecture);
    same("CPU model", &then.cpu, &now.cpu);
    same("CPUs online", &then.cpus, &now.cpus);
    same(
        "frequency governor",
        &word(&then.governor),
        &word(&now.governor),
    );
    same(
        "machine type",
        &word(&then.virtualization),
        &word(&now.virtualization),
    );
    same(
        "clock source",
        &word(&then.clock_source),
        &word(&now.clock_source),
    );
    // What the kernel keeps for itself at boot varies by some pages.
    if then.memory_kib.abs_diff(now.memory_kib) > then.memory_kib / 100 {
        same("memory in KiB", &then.memory_kib, &now.memory_kib);
    }
}

/// Programs are the same if their bytes are, wherever they lie.
fn programs(then: &[ProgramFact], now: &[ProgramFact]) -> Vec<String> {
    let of = |list: &[ProgramFact], p: &ProgramFact| {
        list.iter()
            .find(|q| q.role == p.role && q.name == p.name)
            .cloned()
    };
    let hash = |p: &ProgramFact| p.sha256.clone().unwrap_or_else(|| "unknown".into());
    let mut all = Vec::new();
    for p in then {
        match of(now, p) {
            None => all.push(format!("{} \"{}\" takes no part any more", p.role, p.name)),
            Some(q) if q.sha256.is_some() && q.sha256 == p.sha256 => {}
            Some(q) => all.push(format!(
                "{} \"{}\" was rebuilt: expected SHA-256 {} (version {}), got {} (version {})",
                p.role,
                p.name,
                hash(p),
                p.version,
                hash(&q),
                q.version,
            )),
        }
    }
    let new = now.iter().filter(|p| of(then, p).is_none());
    all.extend(new.map(|p| format!("{} \"{}\" is new", p.role, p.name)));
    all
}

/// The first line in which a copy differs, with both texts.
fn first_changed_line(then: &str, now: &str) -> Option<String> {
    if then == now {
        return None;
    }
    let (mut a, mut b) = (then.lines(), now.lines());
    let quoted = |line: Option<&str>| line.map_or("the end".into(), |l| format!("\"{l}\""));
    for number in 1.. {
        match (a.next(), b.next()) {
            // Line ends differ, and nothing else.
            (None, None) => break,
            (x, y) if x == y => {}
            (x, y) => {
                return Some(format!(
                    "matrix.toml line {number}: expected {}, got {}",
                    quoted(x),
                    quoted(y)
                ));
            }
        }
    }
    Some("matrix.toml: its line ends were changed".into())
}

/// Takes a schedule to where a run was interrupted. Finished rows must be the begin of its order, trial by trial.
///
/// # Errors
/// The first row that is not where the plan has it.
pub fn replay(schedule: &mut Schedule, plan: &Plan, finished: &[Trial]) -> Result<(), String> {
    let named = |round: u32, role: Role, cell: &str| match role {
        Role::Cell => format!("round {round} of \"{cell}\""),
        Role::Control | Role::Ceiling => format!("round {round} of {} \"{cell}\"", role.name()),
    };
    for (i, row) in finished.iter().enumerate() {
        let planned = schedule.next().map(|slot| (slot, &plan.cell(slot).cell));
        let same = planned.is_some_and(|(slot, cell)| {
            // A trial as it came back from disk has lost the type of a duration: compare the form on disk.
            let on_disk = serde_json::to_value(&cell.knobs).ok();
            row.cell == cell.id
                && row.round == slot.round
                && row.role == slot.role
                && usize::try_from(row.order) == Ok(i)
                && serde_json::to_value(&row.knobs).ok() == on_disk
        });
        if !same {
            let expected = planned.map_or_else(
                || "the end".to_owned(),
                |(slot, cell)| {
                    let slot = named(slot.round, slot.role, &cell.id);
                    format!("{slot} as planned now")
                },
            );
            return Err(format!(
                "journal.jsonl line {}: expected {expected}, got {} as it ran",
                i + 1,
                named(row.round, row.role, &row.cell)
            ));
        }
        schedule.done(good_per_s(row));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(name: &str, sha256: &str) -> ProgramFact {
        ProgramFact {
            role: "client".into(),
            name: name.into(),
            version: "1".into(),
            library: String::new(),
            command: vec![format!("/any/where/{name}")],
            sha256: Some(sha256.into()),
        }
    }

    #[test]
    fn a_program_is_the_same_if_its_bytes_are() {
        let then = [fact("a", "11"), fact("b", "22")];
        let mut moved = fact("a", "11");
        moved.command = vec!["/else/where".into()];
        let unknown = ProgramFact {
            sha256: None,
            ..fact("b", "")
        };
        // programs now, what is said (nothing: the same)
        let table: [(Vec<ProgramFact>, &[&str]); 4] = [
            (vec![moved, fact("b", "22")], &[]),
            (
                vec![fact("a", "11"), fact("b", "33")],
                &["client \"b\" was rebuilt: expected SHA-256 22"],
            ),
            // unreadable then or now: nobody knows that it is the same
            (vec![fact("a", "11"), unknown], &["got unknown"]),
            (
                vec![fact("a", "11"), fact("c", "22")],
                &["\"b\" takes no part", "\"c\" is new"],
            ),
        ];
        for (now, want) in table {
            let got = programs(&then, &now);
            assert_eq!(got.len(), want.len(), "{got:?}");
            for (got, want) in got.iter().zip(want) {
                assert!(got.contains(want), "{got}");
            }
        }
    }

    #[test]
    fn an_edited_matrix_is_named_by_its_first_changed_line() {
        // then, now, what is said
        let table = [
            ("a\nb\n", "a\nb\n", None),
            (
                "a\nb\n",
                "a\nc\n",
                Some("line 2: expected \"b\", got \"c\""),
            ),
            ("a\n", "a\nb\n", Some("line 2: expected the end, got \"b\"")),
            ("a\nb\n", "a\n", Some("line 2: expected \"b\", got the end")),
            ("a\n", "a\r\n", Some("line ends")),
            ("a", "a\n", Some("line ends")),
        ];
        for (then, now, want) in table {
            let got = first_changed_line(then, now);
            match want {
                None => assert_eq!(got, None),
                Some(part) => assert!(got.clone().unwrap().contains(part), "{got:?}"),
            }
        }
    }

    #[test]
    fn another_machine_is_named_field_by_field() {
        let then = Machine {
            kernel: "6.1".into(),
            memory_kib: 1_000_000,
            ..Machine::default()
        };
        let said = |now: &Machine| {
            let mut all = Vec::new();
            machines(&then, now, &mut |what, a, b| {
                if a.to_string() != b.to_string() {
                    all.push(what.to_owned());
                }
            });
            all
        };
        assert!(said(&then).is_empty());
        let mut now = then.clone();
        now.memory_kib += 9_000; // within 1 %: the same memory after another boot
        assert!(said(&now).is_empty());
        now.memory_kib += 9_000;
        now.kernel = "6.2".into();
        assert_eq!(said(&now), ["kernel", "memory in KiB"]);
    }

    /// A row as the runner leaves it: `good` requests in a second.
    fn row(plan: &Plan, slot: crate::Slot, order: usize, good: u64) -> Trial {
        let text = r#"{"format":1,"cell":"","round":1,"role":"cell","order":0,"coordinates":[],"knobs":{},"status":"ok","error":null,"flags":[],"started":"","start_at_ns":0,"elapsed_ns":1,"lab_mode":null,"sysctls":{},"outcome":{"window_start_ns":0,"window_end_ns":1000000000,"window":{"attempts":0,"good":0,"errors":0,"iterations":0,"connections":0,"connect_failures":0,"body_bytes":0},"total":{"attempts":0,"good":0,"errors":0,"iterations":0,"connections":0,"connect_failures":0,"body_bytes":0},"errors":[],"series":[],"latency":"","latency_intended":"","connect":"","iteration":"","saturated":0,"users":1},"testimony":null,"samples":null,"time_wait":null,"checks":[]}"#;
        let mut row: Trial = serde_json::from_str(text).unwrap();
        row.cell = plan.cell(slot).cell.id.clone();
        row.round = slot.round;
        row.role = slot.role;
        row.order = u32::try_from(order).unwrap();
        row.outcome.as_mut().unwrap().window.good = good;
        row
    }

    #[test]
    fn a_schedule_is_taken_to_where_its_rows_end_and_no_further() {
        let settings = yieldpoint_matrix::RunSettings {
            rounds: yieldpoint_terms::Rounds::Auto,
            compare: Some("a".into()),
            ..Default::default()
        };
        let plan = crate::plan::fake::plan(crate::plan::fake::matrix(2, settings), &[]);
        // A whole run of two cells of which one does twice as much.
        let mut schedule = Schedule::new(&plan);
        let (mut slots, mut rows) = (Vec::new(), Vec::new());
        while let Some(slot) = schedule.next() {
            let cell = u64::try_from(slot.cell).unwrap();
            let row = row(
                &plan,
                slot,
                rows.len(),
                (1_000 + u64::from(slot.round)) * (1 + cell),
            );
            schedule.done(good_per_s(&row));
            slots.push(slot);
            rows.push(row);
        }
        assert_eq!(
            slots.last().map(|s| s.round),
            Some(8),
            "decided at the first look"
        );
        for kept in [0, 1, 5, rows.len() - 1, rows.len()] {
            let mut again = Schedule::new(&plan);
            replay(&mut again, &plan, &rows[..kept]).unwrap();
            assert_eq!(again.next(), slots.get(kept).copied(), "{kept}");
        }
        // what became of the rows, what is said
        type Change = fn(&mut Vec<Trial>);
        let table: [(Change, &str); 5] = [
            (|r| r.swap(0, 1), "line 1: expected round 1 of"),
            (
                |r| r.iter_mut().for_each(|row| row.role = Role::Ceiling),
                "got round 1 of ceiling",
            ),
            (|r| r[2].round = 2, "as planned now, got round 2 of"),
            (
                |r| r[2].knobs.set("x", yieldpoint_terms::Value::Int(1)),
                "line 3: ",
            ),
            (|r| r.push(r[0].clone()), "line 33: expected the end"),
        ];
        for (change, want) in table {
            let mut rows = rows.clone();
            change(&mut rows);
            let said = replay(&mut Schedule::new(&plan), &plan, &rows).unwrap_err();
            assert!(said.contains(want), "expected \"{want}\" in \"{said}\"");
        }
    }
}

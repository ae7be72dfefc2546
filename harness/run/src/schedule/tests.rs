use yieldpoint_matrix::RunSettings;

use super::*;
use crate::plan::fake::{matrix, plan};

fn fixed(rounds: u32) -> RunSettings {
    RunSettings {
        rounds: Rounds::Fixed(rounds),
        ..RunSettings::default()
    }
}

fn auto() -> RunSettings {
    RunSettings {
        rounds: Rounds::Auto,
        compare: Some("a".into()),
        ..RunSettings::default()
    }
}

/// Runs all of it; `rates`: what a cell gives in a round.
fn slots(plan: &Plan, rates: impl Fn(Slot) -> Option<f64>) -> Vec<Slot> {
    let mut schedule = Schedule::new(plan);
    let mut slots = Vec::new();
    while let Some(slot) = schedule.next() {
        assert_eq!(schedule.next(), Some(slot), "the same until it is done");
        slots.push(slot);
        schedule.done(rates(slot));
        assert!(slots.len() < 10_000, "without end");
    }
    let extent = schedule.extent();
    assert_eq!(
        extent.rounds.start(),
        extent.rounds.end(),
        "now it is known"
    );
    slots
}

#[test]
fn a_round_is_every_cell_its_controls_and_ceilings_each_once() {
    let p = plan(matrix(9, fixed(3)), &[4]);
    let all = slots(&p, |_| None);
    // 8 cells that can be run and one that cannot, a control, a ceiling.
    assert_eq!(all.len(), 3 * (9 + 1 + 1));
    assert_eq!(p.extent().trials, 30..=30, "what cannot be run is no trial");
    let mut orders = Vec::new();
    for (round, slots) in (1..).zip(all.chunks(11)) {
        assert!(slots.iter().all(|s| s.round == round));
        assert_eq!(
            (slots[0].role, slots[0].cell),
            (Role::Cell, 4),
            "first of all"
        );
        let of = |role: Role| {
            let cells = slots.iter().filter(|s| s.role == role).map(|s| s.cell);
            let mut cells: Vec<usize> = cells.collect();
            cells.sort_unstable();
            cells
        };
        assert_eq!(of(Role::Cell), (0..9).collect::<Vec<_>>());
        assert_eq!(of(Role::Control), p.controls);
        assert_eq!(of(Role::Ceiling), [0]);
        orders.push(slots.iter().map(|s| (s.role, s.cell)).collect::<Vec<_>>());
    }
    assert!(orders[0] != orders[1] && orders[1] != orders[2], "shuffled");
    assert_eq!(all, slots(&p, |_| Some(1.0)), "whatever the cells gave");
}

#[test]
fn more_rounds_change_no_earlier_one_and_the_seed_decides() {
    let few = slots(&plan(matrix(6, fixed(2)), &[]), |_| None);
    let many = slots(&plan(matrix(6, fixed(5)), &[]), |_| None);
    assert_eq!(many[..few.len()], few);
    let other = RunSettings {
        seed: 2,
        ..fixed(2)
    };
    assert_ne!(slots(&plan(matrix(6, other), &[]), |_| None), few);
}

#[test]
fn auto_ends_with_the_round_that_decides() {
    let p = plan(matrix(2, auto()), &[]);
    assert_eq!(p.extent().rounds, 8..=40);
    assert_eq!(p.extent().trials, 32..=160);
    // A little noise, and twice as much.
    let clear = |s: Slot| Some(f64::from(s.round % 2) * 0.01 + 1.0 + s.cell as f64);
    assert_eq!(slots(&p, clear).last().map(|s| s.round), Some(8));
    // A twin or a ceiling is no cell, whatever it gives.
    let others = |s: Slot| match s.role {
        Role::Cell => clear(s),
        Role::Control | Role::Ceiling => Some(1e9 * f64::from(s.round)),
    };
    assert_eq!(slots(&p, others), slots(&p, clear));
    // The noise of both alone.
    let same = |s: Slot| Some(1.0 + 0.01 * ((s.round as usize + s.cell) % 2) as f64);
    assert_eq!(slots(&p, same).last().map(|s| s.round), Some(40));
    // A side that always fails is known at the first look.
    let fails = |s: Slot| (s.cell != 1).then_some(1.0);
    assert_eq!(slots(&p, fails).last().map(|s| s.round), Some(8));
}

#[test]
fn an_undecided_run_counts_to_its_next_look() {
    let p = plan(matrix(2, auto()), &[]);
    let mut schedule = Schedule::new(&p);
    let mut seen = vec![schedule.extent().rounds];
    while let Some(slot) = schedule.next() {
        let noise = (slot.round as usize + slot.cell) % 2;
        schedule.done(Some(1.0 + 0.01 * noise as f64));
        let now = schedule.extent().rounds;
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    let looks = LOOKS.map(|look| look..=40);
    assert_eq!(seen, looks, "the last is 40 to 40, decided or not");
}

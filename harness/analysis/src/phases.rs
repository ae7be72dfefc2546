//! The table `phases`: the stretches of every trial.

use polars::prelude::{Column, DataFrame};
use yieldpoint_record::Trial;

use crate::keys::Keys;
use crate::values::int;
use crate::why::Why;

/// One row a trial and phase; `whys` are those of the same trials.
pub(crate) fn table(trials: &[Trial], whys: &[Why]) -> anyhow::Result<DataFrame> {
    let mut keys = Keys::new(trials)?;
    for (index, why) in whys.iter().enumerate() {
        keys.push(index, why.phases.len())?;
    }
    let phases = || whys.iter().flat_map(|w| &w.phases);
    let names: Vec<&str> = phases().map(|p| p.name).collect();
    let starts: Vec<_> = phases().map(|p| int(p.start_ms)).collect();
    let ends: Vec<_> = phases().map(|p| int(p.end_ms)).collect();
    let rates: Vec<f64> = phases().map(|p| p.good_per_s).collect();
    Ok(keys.table(&[
        Column::new("phase".into(), names),
        Column::new("start_ms".into(), starts),
        Column::new("end_ms".into(), ends),
        Column::new("good_per_s".into(), rates),
    ])?)
}

#[cfg(test)]
mod tests {
    use crate::{synthetic, tables};

    #[test]
    fn one_row_a_trial_and_phase() {
        let steady = synthetic::trial("ureq", 1);
        let mut falls = synthetic::trial("ureq", 2);
        let series = &mut falls.testimony.as_mut().unwrap().series.responses;
        *series = [vec![100; 12], vec![10; 8]].concat();
        let made = tables(&synthetic::manifest(&[]), &[steady, falls]).unwrap();
        let table = &made.phases;
        assert_eq!(
            synthetic::names(table),
            [
                "cell",
                "round",
                "role",
                "phase",
                "start_ms",
                "end_ms",
                "good_per_s"
            ]
        );
        let ints = |name: &str| table.column(name).unwrap().i64().unwrap().to_vec();
        assert_eq!(ints("round"), [Some(1), Some(2), Some(2)]);
        assert_eq!(ints("start_ms"), [Some(0), Some(0), Some(1_200)]);
        assert_eq!(ints("end_ms"), [Some(2_000), Some(1_200), Some(2_000)]);
        let rates = table.column("good_per_s").unwrap().f64().unwrap().to_vec();
        assert_eq!(rates, [Some(1_000.0), Some(1_000.0), Some(100.0)]);
    }
}

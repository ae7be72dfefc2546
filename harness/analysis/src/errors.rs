//! The table `errors`: failed requests by kind.

use polars::prelude::{Column, DataFrame};
use yieldpoint_record::Trial;

use crate::keys::Keys;
use crate::timeline::{since_ms, zero};
use crate::values::int;

/// One row a trial and kind, from `go` to the last close.
pub(crate) fn table(trials: &[Trial]) -> anyhow::Result<DataFrame> {
    let mut keys = Keys::new(trials)?;
    let (mut kinds, mut counts, mut firsts, mut examples) = (vec![], vec![], vec![], vec![]);
    for (index, trial) in trials.iter().enumerate() {
        let Some(outcome) = &trial.outcome else {
            continue;
        };
        for error in &outcome.errors {
            kinds.push(error.kind.name());
            counts.push(int(error.count));
            firsts.push(zero(trial).map(|zero| since_ms(zero, error.first_ns)));
            examples.push(error.example.as_str());
        }
        keys.push(index, outcome.errors.len())?;
    }
    Ok(keys.table(&[
        Column::new("kind".into(), kinds),
        Column::new("count".into(), counts),
        Column::new("first_ms".into(), firsts),
        Column::new("example".into(), examples),
    ])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn one_row_a_trial_and_kind() {
        let quiet = synthetic::trial("hyper", 1);
        let ran_out = synthetic::ran_out(synthetic::trial("ureq", 2), 2_000);
        let table = table(&[quiet, ran_out]).unwrap();
        assert_eq!(
            synthetic::names(&table),
            [
                "cell", "round", "role", "kind", "count", "first_ms", "example"
            ]
        );
        assert_eq!(table.height(), 1);
        let text = |name: &str| {
            table
                .column(name)
                .unwrap()
                .str()
                .unwrap()
                .get(0)
                .map(str::to_owned)
        };
        assert_eq!(text("kind").as_deref(), Some("address_not_available"));
        assert_eq!(text("cell").as_deref(), Some("m/client=ureq"));
        assert_eq!(
            table.column("first_ms").unwrap().i64().unwrap().get(0),
            Some(300)
        );
    }
}

//! The table of effects: what each knob does to throughput, and each two together.

use polars::prelude::DataFrame;
use yieldpoint_figures::{Column, Row, Table};

use crate::controls::WITHIN;
use crate::text;

/// More rows are not read; the table `effects` has them all.
const ROWS: usize = 100;

/// (name, unit, is a number, meaning)
const COLUMNS: [(&str, &str, bool, &str); 4] = [
    (
        "change",
        "",
        false,
        "One knob from its first value to another, or two, whose effect on each other it is.",
    ),
    (
        "ratio",
        "after ÷ before",
        true,
        "Throughput after ÷ before, all other knobs equal: geometric mean over their combinations, paired by round.",
    ),
    (
        "interval",
        "95 %",
        true,
        "t interval over rounds; from eight rounds on.",
    ),
    ("note", "", false, "What to know before believing the row."),
];

/// Makes the table from that of the same name.
pub(super) fn table(effects: &DataFrame) -> anyhow::Result<Table> {
    let number = |name: &str| -> anyhow::Result<_> { Ok(effects.column(name)?.f64()?.clone()) };
    let knobs = effects.column("knobs")?.str()?.clone();
    let (ratio, low, high) = (
        number("ratio")?,
        number("ratio_low")?,
        number("ratio_high")?,
    );
    let within = effects.column("within_noise")?.bool()?.clone();
    let row = |i: usize| {
        let interval = low.get(i).zip(high.get(i));
        let note = within.get(i).filter(|within| *within);
        Row {
            cells: vec![
                knobs.get(i).unwrap_or_default().to_owned(),
                ratio.get(i).map(text::times).unwrap_or_default(),
                interval.map_or_else(String::new, |(low, high)| {
                    text::range(low, high, text::times)
                }),
                note.map_or_else(String::new, |_| WITHIN.to_owned()),
            ],
            keys: vec![None, ratio.get(i), low.get(i), None],
            mark: None,
        }
    };
    let shown = effects.height().min(ROWS);
    let mut caption = "Ratios of throughput. Of two knobs the ratio of ratios: 1.00× means that each does what it \
                       does whatever the other is. Combinations that gave nothing, and starved cells, are left out."
        .to_owned();
    if effects.height() > ROWS {
        caption.push_str(&format!(
            " The first {ROWS} of {}; the rest is in the table \"effects\" of the run.",
            text::plural(effects.height(), "effect")
        ));
    }
    let column = |(name, unit, number, doc): &(&str, &str, bool, &str)| Column {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        number: *number,
        doc: (*doc).to_owned(),
    };
    Ok(Table {
        caption,
        columns: COLUMNS.iter().map(column).collect(),
        rows: (0..shown).map(row).collect(),
        sorted_by: None,
    })
}

#[cfg(test)]
mod tests {
    use crate::{report, synthetic, tables};
    use yieldpoint_record::{Status, Trial};
    use yieldpoint_terms::Value;

    fn rows(trials: &[Trial]) -> Vec<String> {
        let threads = [1, 2, 3].map(Value::Int);
        let manifest = synthetic::manifest(&[("threads", &threads)]);
        let made = tables(&manifest, trials).unwrap();
        let table = report(&manifest, trials, &made).unwrap().effects;
        table.rows.iter().map(|r| r.cells.join("|")).collect()
    }

    fn at(threads: i64, round: u32, good: u64) -> Trial {
        let trial = synthetic::trial("a", round);
        synthetic::good(synthetic::at(trial, "threads", Value::Int(threads)), good)
    }

    #[test]
    fn a_ratio_below_the_noise_floor_says_so() {
        // Made up: a cell differs from itself by 5 %, the second value from the first by 3 %, the third by 50 %.
        let mut trials = vec![at(1, 1, 1_000), at(2, 1, 1_030), at(3, 1, 1_500)];
        assert_eq!(
            rows(&trials),
            ["threads=1→2|1.03×||", "threads=1→3|1.50×||"],
            "no floor was measured"
        );
        trials.push(synthetic::control(at(1, 1, 1_050)));
        assert_eq!(
            rows(&trials),
            [
                "threads=1→2|1.03×||within the noise floor",
                "threads=1→3|1.50×||"
            ]
        );
    }

    #[test]
    fn what_was_not_reached_is_left_out() {
        let mut starved = at(2, 1, 5_000);
        starved.flags.push("starved".into());
        let failed = synthetic::failed(at(3, 1, 1), Status::Error, "no");
        assert_eq!(rows(&[at(1, 1, 1_000), starved, failed]), [""; 0]);
    }
}

//! The table of effects: what each knob does to throughput, and each two together.

use polars::prelude::DataFrame;
use yieldpoint_figures::{Column, Row, Table};

use crate::controls::WITHIN;
use crate::effects::{IGNORES_STOPPING, REPEATED};
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
        "t interval over rounds, from eight rounds on; of what a stop rule compared, the one that holds at all its looks.",
    ),
    ("note", "", false, "What to know before believing the row."),
];

/// A row of the table `effects`.
struct Effect {
    knobs: String,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    /// what the interval allows for
    kind: Option<String>,
    rounds: Option<i64>,
    within_noise: bool,
}

impl Effect {
    fn all(effects: &DataFrame) -> anyhow::Result<Vec<Self>> {
        let number = |name: &str| -> anyhow::Result<_> { Ok(effects.column(name)?.f64()?.clone()) };
        let text = |name: &str| -> anyhow::Result<_> { Ok(effects.column(name)?.str()?.clone()) };
        let (knobs, kinds) = (text("knobs")?, text("interval")?);
        let ratio = number("ratio")?;
        let (low, high) = (number("ratio_low")?, number("ratio_high")?);
        let rounds = effects.column("rounds")?.i64()?.clone();
        let within = effects.column("within_noise")?.bool()?.clone();
        let row = |i: usize| Self {
            knobs: knobs.get(i).unwrap_or_default().to_owned(),
            ratio: ratio.get(i),
            interval: low.get(i).zip(high.get(i)),
            kind: kinds.get(i).map(str::to_owned),
            rounds: rounds.get(i),
            within_noise: within.get(i) == Some(true),
        };
        Ok((0..effects.height()).map(row).collect())
    }

    fn is_repeated(&self) -> bool {
        self.kind.as_deref() == Some(REPEATED)
    }

    fn interval(&self) -> String {
        self.interval.map_or_else(String::new, |(low, high)| {
            text::range(low, high, text::times)
        })
    }

    fn note(&self) -> String {
        let mut notes = Vec::new();
        if self.is_repeated() {
            notes.push(format!(
                "stopped by rule after {} rounds; interval valid for the repeated looks",
                self.rounds.unwrap_or_default()
            ));
        } else if self.kind.as_deref() == Some(IGNORES_STOPPING) {
            notes.push("the interval ignores the stopping".to_owned());
        }
        if self.within_noise {
            notes.push(WITHIN.to_owned());
        }
        notes.join("; ")
    }

    fn row(&self) -> Row {
        let low = self.interval.map(|(low, _)| low);
        Row {
            cells: vec![
                self.knobs.clone(),
                self.ratio.map(text::times).unwrap_or_default(),
                self.interval(),
                self.note(),
            ],
            keys: vec![None, self.ratio, low, None],
            mark: None,
        }
    }
}

/// One sentence a comparison that the stop rule decided.
pub(super) fn stopped(effects: &DataFrame) -> anyhow::Result<Vec<String>> {
    let sentence = |e: &Effect| {
        let (low, high) = e.interval?;
        let found = if low > 1.0 || high < 1.0 {
            ""
        } else {
            "no difference found, "
        };
        Some(format!(
            "{}: {found}throughput {} (95 % interval {}): {}.",
            e.knobs,
            text::times(e.ratio?),
            e.interval(),
            e.note()
        ))
    };
    let all = Effect::all(effects)?;
    Ok(all
        .iter()
        .filter(|e| e.is_repeated())
        .filter_map(sentence)
        .collect())
}

/// Makes the table from that of the same name.
pub(super) fn table(effects: &DataFrame) -> anyhow::Result<Table> {
    let all = Effect::all(effects)?;
    let mut caption = "Ratios of throughput. Of two knobs the ratio of ratios: 1.00× means that each does what it \
                       does whatever the other is. Combinations that gave nothing, and starved cells, are left out."
        .to_owned();
    if all.len() > ROWS {
        caption.push_str(&format!(
            " The first {ROWS} of {}; the rest is in the table \"effects\" of the run.",
            text::plural(all.len(), "effect")
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
        rows: all.iter().take(ROWS).map(Effect::row).collect(),
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

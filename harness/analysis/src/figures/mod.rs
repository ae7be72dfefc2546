//! What a report shows, made from trials and their tables. One file a kind of figure.

mod axes;
mod bars;
mod cells;
mod errors;
mod facts;
mod findings;
mod glossary;
mod maps;
mod timelines;
mod warnings;
mod why;

use yieldpoint_figures::Report;
use yieldpoint_record::{Manifest, Trial};

use crate::Tables;
use crate::grid::Grid;
use crate::text;

pub(crate) use cells::{GOOD, NOTE, SHORT};
pub(crate) use glossary::WORDS;

/// Makes the figures of a report. `tables` are those of the same trials.
pub fn report(manifest: &Manifest, trials: &[Trial], tables: &Tables) -> anyhow::Result<Report> {
    anyhow::ensure!(
        tables.trials.height() == trials.len(),
        "tables and trials do not belong together: expected {} rows of \"trials\", got {}",
        trials.len(),
        tables.trials.height()
    );
    let grid = Grid::new(manifest, trials, tables)?;
    Ok(Report {
        title: manifest.run.clone(),
        question: manifest.question.clone(),
        source: manifest.source.clone(),
        findings: findings::findings(&grid),
        warnings: warnings::warnings(manifest, trials),
        maps: maps::charts(&grid),
        axes: axes::charts(&grid),
        timelines: timelines::charts(&grid),
        bars: bars::charts(&grid),
        cells: cells::table(&grid),
        errors: errors::table(&grid),
        facts: facts::facts(manifest, trials),
        command: text::shell(&manifest.command),
        glossary: glossary::glossary(manifest),
    })
}

/// "median of 3 rounds, from the least to the greatest", for captions.
fn rounds_text(grid: &Grid) -> String {
    match grid.cells.iter().map(|c| c.ok().count()).max().unwrap_or(0) {
        0 | 1 => "One round: no spread is known.".to_owned(),
        n => format!("Median of {n} rounds, with the least and the greatest."),
    }
}

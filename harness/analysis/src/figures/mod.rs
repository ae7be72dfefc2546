//! What a report shows, made from trials and their tables. One file a kind of figure.

mod axes;
mod bars;
mod ceilings;
mod cells;
mod comparisons;
mod confusion;
mod effects;
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
use crate::controls::{Floor, NO_FLOOR};
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
    let found = findings::findings(&grid);
    let mut answer = effects::stopped(&tables.effects)?;
    answer.extend(found.answer);
    Ok(Report {
        title: manifest.run.clone(),
        question: manifest.question.clone(),
        source: manifest.source.clone(),
        findings: answer,
        evidence: found.evidence,
        noise: grid
            .floor
            .as_ref()
            .map_or_else(|| NO_FLOOR.to_owned(), Floor::sentence),
        warnings: warnings::warnings(manifest, trials, grid.floor.as_ref()),
        maps: maps::charts(&grid),
        axes: axes::charts(&grid),
        timelines: timelines::charts(&grid),
        bars: bars::charts(&grid),
        effects: effects::table(&tables.effects)?,
        ceilings: ceilings::table(&tables.ceilings)?,
        confusion: confusion::confusion(&tables.confusion)?,
        cells: cells::table(&grid),
        errors: errors::table(&grid),
        facts: facts::facts(manifest, trials),
        command: text::shell(&manifest.command),
        glossary: glossary::glossary(manifest),
    })
}

/// Follows "not sustained" where a mark says "starved".
const NOT_THE_LOAD: &str = ", or not the load that was asked for";

/// "median of 3 rounds, from the least to the greatest", for captions.
fn rounds_text(grid: &Grid) -> String {
    match grid.cells.iter().map(|c| c.ok().count()).max().unwrap_or(0) {
        0 | 1 => "One round: no spread is known.".to_owned(),
        n => format!("Median of {n} rounds, with the least and the greatest."),
    }
}

//! The text of a matrix file and a catalog of knobs become cells, and cells become rounds.
//!
//! A matrix is an experiment as data: a question, the settings that all trials share, the axes
//! they differ in. `matrices/README.md` describes the format; [`Matrix::parse`] reads it and
//! returns every error at once, each with its line and column.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use yieldpoint_terms::{Catalog, Knobs, Value};

mod arguments;
mod document;
mod expand;
mod find;
mod keys;
mod plan;
mod problem;
mod reader;
mod schema;
mod selections;
mod settings;
mod shuffle;
mod values;
mod wire;

pub use arguments::{ArgumentError, Changes, parse_only, parse_set};
pub use expand::cell_id;
pub use problem::{MatrixErrors, Place, Problem};
pub use schema::schema;
pub use settings::RunSettings;
pub use shuffle::Shuffled;

/// An experiment: what is asked, and every cell that answers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// stem of the file's name; cell ids begin with it
    pub name: String,
    /// what the run is to answer, in plain words
    pub question: String,
    /// where the experiment comes from
    pub source: Option<String>,
    /// what the results mean, for whoever reads the report
    pub analysis: Option<String>,
    /// rounds and seed, with the command line applied
    pub run: RunSettings,
    /// every axis of the file in its order, even if it was narrowed to one value
    pub axes: Vec<Axis>,
    /// every cell, the last axis turning fastest
    pub cells: Vec<Cell>,
    /// published ratios to compare with
    pub claims: Vec<Claim>,
    /// the file's own clients
    pub clients: BTreeMap<String, ClientCommand>,
    /// knobs that `--set` changed, in the order typed: each is a column, axis or not
    pub set_names: Vec<String>,
    /// the text that was read
    pub text: String,
    /// what a reader of the plan should know ("4 cells excluded")
    pub notes: Vec<String>,
}

/// What the cells differ in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// a knob, or the name of a bundle axis
    pub name: String,
    /// the values of this run in the order of the file; labels for a bundle axis
    pub values: Vec<Value>,
    /// whether its values are named sets of knobs
    pub bundle: bool,
    /// the knobs that it sets, by name: itself, or all of its bundles
    pub knobs: Vec<String>,
}

/// One combination of all knobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// stable path: matrix, then axis=value in the order of the file
    pub id: String,
    /// Axis and value in the order of the file. One for each axis, but for an axis that is an
    /// option of another client than this cell's: such a knob does not exist here.
    pub coordinates: Vec<(String, Value)>,
    /// complete: defaults filled in, `client` included
    pub knobs: Knobs,
}

/// A published ratio between two sets of cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// unique in its matrix
    pub id: String,
    /// axis = value of the cells that are compared with; an axis that is not named is free
    pub base: Vec<(String, Value)>,
    /// axis = value of the changed cells
    pub changed: Vec<(String, Value)>,
    /// throughput of changed ÷ throughput of base, above 0
    pub published_ratio: f64,
    /// a remark for the report
    pub note: Option<String>,
    /// where it was published, if not where the whole matrix was
    pub source: Option<String>,
}

/// How to start a client of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCommand {
    /// program and arguments; not empty
    pub command: Vec<String>,
}

/// Reads `[clients.*]` alone: the programs must be asked for their knobs before there is a
/// catalog to read the rest with. Errors elsewhere in the file are left to [`Matrix::parse`].
pub fn describe_clients(
    text: &str,
    path_shown: &str,
) -> Result<BTreeMap<String, ClientCommand>, MatrixErrors> {
    let fail = |problems| MatrixErrors::new(path_shown, text, problems);
    let (wire, _) = wire::read(text).map_err(fail)?;
    let mut clients = wire.clients;
    // A client without a sound command is reported by `Matrix::parse`, with all the rest.
    clients.retain(|_, client| !client.command.is_empty());
    Ok(clients)
}

impl Matrix {
    /// Reads a matrix.
    ///
    /// `name` is the stem of the file's name, `path_shown` how errors name the file,
    /// `known_clients` the clients that are installed (those of the file are added).
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    pub fn parse(
        name: &str,
        path_shown: &str,
        text: &str,
        catalog: &Catalog,
        known_clients: &[String],
        changes: &Changes,
    ) -> Result<Self, MatrixErrors> {
        let fail = |problems| MatrixErrors::new(path_shown, text, problems);
        let (wire, mut problems) = wire::read(text).map_err(fail)?;
        let mut clients: BTreeSet<String> = known_clients.iter().cloned().collect();
        clients.extend(wire.clients.keys().cloned());
        let names = values::Names::new(catalog, clients);

        let plan = plan::plan(&wire, &names, changes, &mut problems);
        let run = settings::settings(&wire.run, changes, &plan.axes, &mut problems);
        let excludes = selections::excludes(&wire, &plan.axes, &names, &mut problems);
        let claims = selections::claims(&wire, &plan.axes, &names, &mut problems);
        if !problems.is_empty() {
            return Err(fail(problems));
        }
        let (cells, notes) = expand::expand(name, &plan, &excludes, &claims, catalog)
            .map_err(|problem| fail(vec![*problem]))?;
        let axes = plan.axes.into_iter().map(|axis| Axis {
            knobs: axis.knobs(),
            name: axis.name,
            values: axis.choices.into_iter().map(|c| c.value).collect(),
            bundle: axis.bundle,
        });
        Ok(Self {
            name: name.to_owned(),
            // A file without a question did not come this far.
            question: wire.question.unwrap_or_default(),
            source: wire.source,
            analysis: wire.analysis,
            run,
            axes: axes.collect(),
            cells,
            claims,
            clients: wire.clients,
            set_names: changes.set.iter().map(|(name, _)| name.clone()).collect(),
            text: text.to_owned(),
            notes,
        })
    }
}

//! What is installed, and a matrix read against it: the common first steps of `run` and `plan`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use yieldpoint_lab::probe;
use yieldpoint_matrix::{Changes, Matrix, describe_clients, parse_only, parse_set};
use yieldpoint_protocol::Role;
use yieldpoint_record::{Asked, Manifest, RunFolder};
use yieldpoint_run::{LabChoice, Plan, Programs, Refusals, catalog, plan};
use yieldpoint_terms::Catalog;

use crate::args::SelectionArgs;

/// Names the folder of clients, target and lab program where they are not beside `yieldpoint`
/// (tests run the command from another folder).
const FOLDER: &str = "YIELDPOINT_PROGRAMS";

/// The folder of the programs.
pub fn folder() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Ok(folder.into());
    }
    let own = std::env::current_exe().context("where `yieldpoint` itself lies")?;
    Ok(own.parent().map(Path::to_owned).unwrap_or_default())
}

/// The programs beside `yieldpoint`.
pub fn programs() -> anyhow::Result<Programs> {
    let folder = folder()?;
    let found = Programs::find(&folder);
    if found.clients.is_empty() && found.broken.is_empty() || !found.lab.is_file() {
        bail!(
            "no client or lab program in \"{}\"; build them with scripts/build and use target/bin/yieldpoint",
            folder.display()
        );
    }
    Ok(found)
}

/// A matrix with everything it needs to be run.
pub struct Prepared {
    pub programs: Programs,
    pub catalog: Catalog,
    pub plan: Plan,
}

/// A matrix and what was typed with it.
pub struct Wanted {
    /// stem of the file's name
    name: String,
    /// how errors name the file
    shown: String,
    /// what was typed; the text of the matrix among it
    pub asked: Asked,
}

impl Wanted {
    /// A file and selections as they were typed.
    pub fn typed(path: &Path, selection: &SelectionArgs) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        let matrix_text = std::fs::read_to_string(path).with_context(|| {
            format!("matrix \"{shown}\": cannot be read; see matrices/ for examples")
        })?;
        let name = path
            .file_stem()
            .map(|s| s.to_string_lossy().into_owned())
            .unwrap_or_default();
        Ok(Self {
            name,
            shown,
            asked: Asked {
                matrix_text,
                set: selection.set.clone(),
                only: selection.only.clone(),
                rounds: selection.rounds,
                seed: selection.seed,
                compare: selection.compare.clone(),
                find: selection.find.clone(),
                along: selection.along.clone(),
                no_controls: selection.no_controls,
                no_ceilings: selection.no_ceilings,
                allow_address: selection.allow_address.clone(),
            },
        })
    }

    /// What a run began with.
    pub fn recorded(manifest: Manifest, folder: &RunFolder) -> Self {
        Self {
            name: manifest.matrix,
            shown: folder.matrix().display().to_string(),
            asked: manifest.asked,
        }
    }
}

/// Reads, checks and plans a matrix. The error is complete: every slip of the file at once.
pub fn prepare(wanted: &Wanted) -> anyhow::Result<Prepared> {
    let Wanted { name, shown, asked } = wanted;
    let color = console::colors_enabled_stderr();
    let refused = |e: yieldpoint_matrix::MatrixErrors| {
        anyhow::anyhow!("{}", e.render(color).trim_end().to_owned())
    };

    let mut programs = programs()?;
    for (client, how) in describe_clients(&asked.matrix_text, shown).map_err(refused)? {
        programs.ask(Role::Client, &client, how.command);
    }
    let catalog = catalog(yieldpoint_clients_core::KNOBS, &programs);
    let changes = Changes {
        set: asked
            .set
            .iter()
            .map(|t| parse_set(t))
            .collect::<Result<_, _>>()?,
        only: asked
            .only
            .iter()
            .map(|t| parse_only(t))
            .collect::<Result<_, _>>()?,
        rounds: asked.rounds,
        seed: asked.seed,
        compare: asked.compare.clone(),
        find: asked.find.clone(),
        along: asked.along.clone(),
        no_controls: asked.no_controls,
        no_ceilings: asked.no_ceilings,
    };
    let matrix = Matrix::parse(
        name,
        shown,
        &asked.matrix_text,
        &catalog,
        &programs.client_names(),
        &changes,
    )
    .map_err(refused)?;
    let refusals = Refusals {
        allow: asked.allow_address.clone(),
    };
    let plan = plan(
        matrix,
        yieldpoint_clients_core::KNOBS,
        &programs,
        lab(&programs),
        &refusals,
    )
    .with_context(|| format!("matrix \"{shown}\" cannot be run as it is"))?;
    Ok(Prepared {
        programs,
        catalog,
        plan,
    })
}

/// What "auto" means here: private, if the whole sequence works.
pub fn lab(programs: &Programs) -> LabChoice {
    let report = probe(&programs.lab);
    LabChoice {
        mode: report.mode(),
        why: report.refusal.map(|r| r.to_string()),
    }
}

//! `yieldpoint schema`: the JSON Schema of a matrix file, from the knobs of everything installed.

use std::process::ExitCode;

use crate::installation::programs;

/// Prints it.
pub fn schema() -> anyhow::Result<ExitCode> {
    let found = programs()?;
    let catalog = yieldpoint_run::catalog(yieldpoint_clients_core::KNOBS, &found);
    let schema = yieldpoint_matrix::schema(&catalog, &found.client_names());
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(ExitCode::SUCCESS)
}

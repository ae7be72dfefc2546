//! One file a verb.

pub mod clients;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod plan;
pub mod report;
pub mod run;
pub mod schema;

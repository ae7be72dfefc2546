//! The command as its users meet it, with real programs.

mod common;
mod faults;
mod lifecycle;
mod link;
mod resume;
mod search;

//! The format as a whole: what is read, what is refused and in which words, and that nothing panics.

mod catalog;
mod cells;
mod changes;
mod errors;
mod readme;
mod robust;
mod schema;
mod settings;

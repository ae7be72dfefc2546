//! The real program over a real socket pair, and raw sockets against it.

mod client;
mod closing;
mod files;
mod mischief;
mod patience;
mod program;
mod protocol;
mod requests;

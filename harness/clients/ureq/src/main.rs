//! (see README.md)
fn main() {}

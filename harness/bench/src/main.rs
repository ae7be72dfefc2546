//! Measures the instrument itself (see README.md).
fn main() {}

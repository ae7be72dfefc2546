//! Tells the program which version of hyper it was built with.

include!("../core/build-support/library_version.rs");

fn main() {
    library_version("hyper");
}

//! Tells the program which version of its one library, a parser of heads, it was built with.

include!("../core/build-support/library_version.rs");

fn main() {
    library_version("httparse");
}

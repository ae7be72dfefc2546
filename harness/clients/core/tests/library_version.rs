//! The build script's reading of Cargo.lock.

#[allow(dead_code)]
mod support {
    include!("../build-support/library_version.rs");

    #[test]
    fn the_version_is_the_one_that_the_client_uses() {
        let lock = r#"
version = 4

[[package]]
name = "http"
version = "0.2.0"

[[package]]
name = "http"
version = "1.3.0"

[[package]]
name = "hyper"
version = "1.12.0"
dependencies = [
 "http 1.3.0",
]

[[package]]
name = "client"
version = "0.1.0"
dependencies = [
 "http 1.3.0",
 "hyper",
]
"#;
        // each row: package, library, version
        let table = [
            ("client", "hyper", Some("1.12.0")),
            ("client", "http", Some("1.3.0")), // the one of two that it depends on
            ("hyper", "hyper", None),          // not a dependency of itself
            ("nobody", "hyper", None),
        ];
        for (own, library, want) in table {
            let got = locked_version(lock, own, library);
            assert_eq!(got.as_deref(), want, "{library} of {own}");
        }
    }
}

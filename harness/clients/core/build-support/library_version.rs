// Included by the build.rs of a client:
//
//     include!("../core/build-support/library_version.rs");
//     fn main() { library_version("hyper"); }
//
// Sets YIELDPOINT_LIBRARY for env!(): "hyper 1.12.0", the version that Cargo.lock has chosen.

/// The nearest Cargo.lock above a client's folder names the version of its library.
fn library_version(library: &str) {
    let own = std::env::var("CARGO_PKG_NAME").expect("cargo sets CARGO_PKG_NAME");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let lock = std::path::Path::new(&folder)
        .ancestors()
        .map(|folder| folder.join("Cargo.lock"))
        .find(|file| file.is_file())
        .expect("a workspace that builds has its Cargo.lock");
    let text = std::fs::read_to_string(&lock).expect("Cargo.lock is readable");
    let version = locked_version(&text, &own, library)
        .unwrap_or_else(|| panic!("\"{library}\" is no dependency of \"{own}\" in {}", lock.display()));
    println!("cargo::rerun-if-changed={}", lock.display());
    println!("cargo::rustc-env=YIELDPOINT_LIBRARY={library} {version}");
}

/// The version of `library` that the package `own` depends on.
fn locked_version(lock: &str, own: &str, library: &str) -> Option<String> {
    let packages = || lock.split("[[package]]").skip(1);
    let field = |package: &str, name: &str| {
        let rest = package.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(" = \""))?;
        Some(rest.trim_end_matches('"').to_owned())
    };
    let named = |name: &str| packages().filter(move |p| field(p, "name").as_deref() == Some(name)).collect::<Vec<_>>();
    // A dependency is ` "hyper",`, or ` "hyper 1.12.0",` where several versions are locked.
    let mut dependencies = named(own).first()?.lines().map(|l| l.trim().trim_matches([',', '"']));
    let dependency = dependencies.find(|d| d.split(' ').next() == Some(library))?;
    match dependency.split(' ').nth(1) {
        Some(version) => Some(version.to_owned()),
        None => field(named(library).first()?, "version"),
    }
}

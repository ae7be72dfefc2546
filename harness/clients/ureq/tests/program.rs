//! The built program at the limit that this project is about.

#[path = "../src/conformance/mod.rs"]
mod conformance;

#[test]
fn runs_out_of_ports() {
    conformance::the_program_runs_out_of_ports(
        "runs_out_of_ports",
        env!("CARGO_BIN_EXE_yieldpoint-client-ureq"),
    );
}

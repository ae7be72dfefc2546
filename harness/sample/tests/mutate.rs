//! Damaged input, the short form; the long one is `examples/mutate.rs`.

mod mutator;

use yieldpoint_sample::fuzz::PARSERS;

#[test]
fn captured_input_is_understood() {
    for (name, parser) in PARSERS {
        // A datagram is in the byte order of the machine that it was captured on.
        if *name != "sock-diag" || cfg!(target_endian = "little") {
            assert!(parser(&mutator::captured(name)) > 0, "{name}");
        }
    }
}

#[test]
fn damaged_input_does_no_harm() {
    let summaries = mutator::run(1, 50_000).unwrap();
    for s in summaries {
        assert!(s.inputs >= 3_000, "{}: {s:?}", s.parser);
        // Some inputs are damaged where it matters, and some are not: the mutator does its work.
        let some = 1..s.inputs;
        assert!(
            cfg!(target_endian = "big") || some.contains(&s.understood),
            "{s:?}"
        );
    }
}

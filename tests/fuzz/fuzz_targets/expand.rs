//! Assembles and auto-fixes arbitrary text. Checks that nothing panics, that the language's checker
//! and the WebAssembly validator accept the same inputs, and that auto-fixing terminates and leaves
//! a valid program unchanged.
#![no_main]

#[path = "../../../rt/lang/tests/lang/common.rs"]
mod common;

use std::sync::LazyLock;

use wattle_rt::{Signatures, assemble, check, explain, fix, locate};

static HOST: LazyLock<Signatures> = LazyLock::new(common::host);

libfuzzer_sys::fuzz_target!(|source: &str| {
    let fault = explain(source, &HOST);
    let fixed = fix(source, &HOST);
    assert_eq!(fault.is_none(), fixed.applied.is_empty() && fixed.rest.is_none());
    assert_eq!(fixed.source == source, fixed.applied.is_empty());
    assert_eq!(fixed.rest.is_none(), explain(&fixed.source, &HOST).is_none());
    assert_eq!(check(source, &HOST, 4).is_empty(), fault.is_none());
    let program = match assemble(source, &HOST) {
        Ok(program) => program,
        Err(diagnostic) => {
            assert_eq!(Some(diagnostic), fault);
            return;
        }
    };
    let binary = program.encode();
    let valid = binary
        .as_ref()
        .is_ok_and(|binary| wasmparser::Validator::new().validate_all(binary).is_ok());
    // A valid program may be too expensive to compile.
    let costs_too_much = fault.as_ref().is_some_and(|fault| fault.code == "too-large");
    assert_eq!(valid, fault.is_none() || costs_too_much, "{fault:?}");
    for part in 1..4 {
        let _ = locate(source, &HOST, binary.as_ref().map_or(0, Vec::len) * part / 4);
    }
});

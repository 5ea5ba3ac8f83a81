//! Passes any text through all stages. Nothing panics, and the walk and the validator agree on
//! whether the text is a valid program. Fixing terminates, and leaves a valid program unchanged.
#![no_main]

#[path = "../../../rt/lang/tests/common/mod.rs"]
mod common;

use std::sync::LazyLock;

use wattle_rt::{Signatures, assemble, check, explain, fix, locate};

static HOST: LazyLock<Signatures> = LazyLock::new(common::host);

libfuzzer_sys::fuzz_target!(|source: &str| {
    let said = explain(source, &HOST);
    let mended = fix(source, &HOST);
    assert_eq!(said.is_none(), mended.applied.is_empty() && mended.rest.is_none());
    assert_eq!(mended.source == source, mended.applied.is_empty());
    assert_eq!(mended.rest.is_none(), explain(&mended.source, &HOST).is_none());
    assert_eq!(check(source, &HOST, 4).is_empty(), said.is_none());
    let program = match assemble(source, &HOST) {
        Ok(program) => program,
        Err(diagnostic) => {
            assert_eq!(Some(diagnostic), said);
            return;
        }
    };
    let binary = program.encode();
    let valid = binary
        .as_ref()
        .is_ok_and(|binary| wasmparser::Validator::new().validate_all(binary).is_ok());
    // What is valid may cost too much to compile.
    let costs_too_much = said.as_ref().is_some_and(|said| said.code == "too-large");
    assert_eq!(valid, said.is_none() || costs_too_much, "{said:?}");
    for part in 1..4 {
        let _ = locate(source, &HOST, binary.as_ref().map_or(0, Vec::len) * part / 4);
    }
});

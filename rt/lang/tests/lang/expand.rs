//! Tests that programs are translated to the expected modules. The expected module of each
//! `tests/expand/*.wat` is in the `.out` file next to it. `UPDATE=1` rewrites these files.

use std::fmt::Write;

use crate::common;

#[test]
fn every_program_expands_to_its_module() {
    let host = common::host();
    let mut comparison = wattle_cases::Comparison::new();
    for path in wattle_cases::files("tests/expand", "wat") {
        let source = wattle_cases::read(&path);
        let found = match wattle_lang::assemble(&source, &host) {
            Ok(program) => {
                let mut text = program.module.clone();
                program.warnings.iter().for_each(|warning| write!(text, "\n{warning}").unwrap());
                let binary =
                    program.encode().unwrap_or_else(|e| panic!("{}: {e}\n{text}", path.display()));
                if let Err(e) = wasmparser::Validator::new().validate_all(&binary) {
                    panic!("{}: {e}\n{text}", path.display());
                }
                text
            }
            Err(diagnostic) => panic!("{}: {diagnostic}", path.display()),
        };
        comparison.add(path.with_extension("out"), &found);
    }
    comparison.finish();
}

//! Programs and the modules they become. Each `tests/expand/*.wat` has its module beside it in a `.out` file;
//! `UPDATE=1` writes those anew.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write;
use std::path::Path;

#[test]
fn programs_become_their_modules() {
    let host = common::host();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expand");
    let mut sources: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.retain(|path| path.extension().is_some_and(|e| e == "wat"));
    sources.sort();
    assert!(!sources.is_empty());
    let mut failed = String::new();
    for path in sources {
        let source = std::fs::read_to_string(&path).unwrap();
        let found = match wattle_lang::assemble(&source, &host) {
            Ok(program) => {
                let mut text = program.module.clone();
                program.warnings.iter().for_each(|warning| write!(text, "\n{warning}").unwrap());
                let binary = program.encode().unwrap_or_else(|e| panic!("{}: {e}\n{text}", path.display()));
                if let Err(e) = wasmparser::Validator::new().validate_all(&binary) {
                    panic!("{}: {e}\n{text}", path.display());
                }
                text
            }
            Err(diagnostic) => panic!("{}: {diagnostic}", path.display()),
        };
        let out = path.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&out, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&out).unwrap_or_default();
        if found != expected {
            let diff = similar::TextDiff::from_lines(&expected, &found);
            write!(failed, "{}\n{}\n", path.display(), diff.unified_diff()).unwrap();
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

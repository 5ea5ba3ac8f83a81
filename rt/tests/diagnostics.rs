//! Broken programs and what is said about each. `tests/diagnostics/*.txt` hold cases of the form
//!
//! ```text
//! === what is broken
//! program
//! ---
//! diagnostic
//! ```
//!
//! `UPDATE=1` writes the diagnostics anew.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write;
use std::path::Path;

use wattle_rt::{Signatures, assemble, explain};

#[test]
fn every_broken_program_gets_its_diagnostic() {
    let host = common::host();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut cases, mut failed) = (0, String::new());
    for path in files {
        let expected = std::fs::read_to_string(&path).unwrap();
        let mut found = String::new();
        for case in expected.split("=== ").skip(1) {
            let (title, rest) = case.split_once('\n').unwrap();
            let source = rest.split("\n---\n").next().unwrap();
            let Some(said) = tell(source, &host) else {
                write!(failed, "{}: nothing is wrong with: {title}\n{source}\n\n", path.display()).unwrap();
                continue;
            };
            write!(found, "=== {title}\n{source}\n---\n{said}\n").unwrap();
            cases += 1;
        }
        let found = format!("{}\n", found.trim_end());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &found).unwrap();
        } else if found != expected {
            let diff = similar::TextDiff::from_lines(&expected, &found);
            write!(failed, "{}\n{}\n", path.display(), diff.unified_diff()).unwrap();
        }
    }
    assert!(failed.is_empty(), "{failed}");
    assert!(cases >= 80, "{cases} cases");
}

/// What is said about a program; `None` for a good one without warnings.
fn tell(source: &str, host: &Signatures) -> Option<String> {
    let said = explain(source, host);
    match assemble(source, host) {
        Err(diagnostic) => {
            assert_eq!(Some(&diagnostic), said.as_ref());
            Some(diagnostic.to_string())
        }
        Ok(program) => {
            let valid = program
                .encode()
                .map_err(|e| e.to_string())
                .and_then(|binary| wasmparser::Validator::new().validate_all(&binary).map_err(|e| e.to_string()));
            match (&valid, said) {
                (Err(_), Some(diagnostic)) => Some(diagnostic.to_string()),
                (Err(e), None) => panic!("nothing said of: {e}\n{source}"),
                (Ok(_), Some(diagnostic)) => panic!("the module is valid, but: {diagnostic}"),
                (Ok(_), None) => {
                    let warnings: Vec<String> = program.warnings.iter().map(ToString::to_string).collect();
                    (!warnings.is_empty()).then(|| warnings.join("\n"))
                }
            }
        }
    }
}

/// The one format, in JSON.
#[test]
fn diagnostics_have_a_json_form() {
    let diagnostic = assemble("(argv 0 $u)\n(call $http.fetch (local.get $u))", &common::host()).unwrap_err();
    assert_eq!(
        diagnostic.to_json().to_string(),
        r#"{"severity":"error","code":"unknown-function","line":2,"column":7,"message":"no host function `$http.fetch`","hint":"nearest: `$http.get (url) → (ptr, err)`"}"#
    );
}

//! What programs can touch, read off their modules. `tests/data/authority/*.txt` hold cases of the form
//!
//! ```text
//! === what it is about
//! program
//! ---
//! line: function target argument, one for each call that reaches outside
//! ```
//!
//! `UPDATE=1` writes what was found anew.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::Path;

use wattle_capability::ALL;
use wattle_rt::{Limits, Program, Reach, Runtime, Touch};

#[tokio::test]
async fn programs_touch_what_is_said() {
    let runtime = Runtime::new(ALL, Limits::default()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/authority");
    let mut failed = String::new();
    for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let expected = std::fs::read_to_string(&path).unwrap();
        let mut found = String::new();
        for case in expected.split("=== ").skip(1) {
            let (title, rest) = case.split_once('\n').unwrap();
            let source = rest.split("\n---\n").next().unwrap();
            let program = runtime.prepare(source).await.unwrap_or_else(|why| panic!("{title}: {why}"));
            write!(found, "=== {title}\n{source}\n---\n{}\n", touched(&runtime, &program).await).unwrap();
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
}

async fn touched(runtime: &Runtime, program: &Program) -> String {
    let mut out = String::new();
    for (one, place) in program.authority().uses().iter().zip(runtime.use_positions(program).await) {
        let place = place.map_or("anywhere".to_owned(), |place| place.line.to_string());
        let name = format!("{}.{}", one.function.module, one.function.name);
        for reach in one.reaches() {
            match reach {
                Reach::Named(target, argument) => writeln!(out, "{place}: {name} {target:?} {argument}").unwrap(),
                Reach::Any(targets) => {
                    targets.iter().for_each(|target| writeln!(out, "{place}: {name} {target:?} {{?}}").unwrap());
                }
                Reach::Always(Touch { target, text }) => writeln!(out, "{place}: {name} {target:?} {text:?}").unwrap(),
            }
        }
    }
    out
}

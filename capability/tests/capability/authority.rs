//! Tests the authority of programs, which is computed from their modules. The files
//! `tests/data/authority/*.txt` contain cases in this form:
//!
//! ```text
//! === title
//! program
//! ---
//! line: function target argument, for each call that reaches outside
//! ```
//!
//! `UPDATE=1` updates the results.

use std::fmt::Write;

use wattle_capability::ALL;
use wattle_rt::{Limits, Program, Reach, Runtime, Touch};

#[tokio::test]
async fn authority_lists_what_programs_touch() {
    let runtime = Runtime::new(ALL, Limits::default()).unwrap();
    let mut comparison = wattle_cases::Comparison::new();
    for path in wattle_cases::files("tests/data/authority", "txt") {
        let text = wattle_cases::read(&path);
        let mut found = String::new();
        for wattle_cases::Case { title, input, .. } in wattle_cases::split(&text).1 {
            let source = input.trim_end_matches('\n');
            let program =
                runtime.prepare(source).await.unwrap_or_else(|why| panic!("{title}: {why}"));
            write!(found, "=== {title}\n{source}\n---\n{}\n", touched(&runtime, &program).await)
                .unwrap();
        }
        comparison.add(&path, &format!("{}\n", found.trim_end()));
    }
    comparison.finish();
}

async fn touched(runtime: &Runtime, program: &Program) -> String {
    let mut out = String::new();
    for (one, place) in program.authority().uses().iter().zip(runtime.use_positions(program).await)
    {
        let place = place.map_or("anywhere".to_owned(), |place| place.line.to_string());
        let name = format!("{}.{}", one.function.module, one.function.name);
        for reach in one.reaches() {
            match reach {
                Reach::Named(target, argument) => {
                    writeln!(out, "{place}: {name} {target:?} {argument}").unwrap()
                }
                Reach::Any(targets) => {
                    targets.iter().for_each(|target| {
                        writeln!(out, "{place}: {name} {target:?} {{?}}").unwrap()
                    });
                }
                Reach::Always(Touch { target, text }) => {
                    writeln!(out, "{place}: {name} {target:?} {text:?}").unwrap()
                }
            }
        }
    }
    out
}

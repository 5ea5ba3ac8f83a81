//! Tests of formatting whole files. Each case in `tests/data/layout.txt` consists of `=== TITLE`, a
//! file, `---` and the formatted file. `UPDATE=1` updates the formatted files.

use std::fmt::Write as _;
use std::path::PathBuf;

use wattle_catalog::{Entry, Example, Meta, Origin, format};

fn origin() -> Origin {
    Origin::File(PathBuf::from("x.wat"))
}

/// Returns the front matter of a file. The line numbers of its examples are reset to 0.
fn meta(text: &str) -> Meta {
    let mut meta = Entry::parse(text, origin()).unwrap().meta().clone();
    meta.examples =
        meta.examples.into_iter().map(|example| Example { line: 0, ..example }).collect();
    meta
}

/// Formats a file. Checks that formatting the result again changes nothing, and that the front
/// matter keeps its meaning. Returns the formatted file or the error message.
fn checked(text: &str) -> String {
    let formatted = match format(text, origin()) {
        Ok(formatted) => formatted,
        Err(error) => return error.to_string(),
    };
    assert_eq!(
        format(&formatted, origin()).unwrap(),
        formatted,
        "formatting twice differs for\n{text}"
    );
    if text.trim_start_matches('\u{feff}').trim_start().starts_with(";;") {
        assert_eq!(meta(text), meta(&formatted), "{formatted}");
    }
    formatted
}

#[test]
fn files_are_formatted() {
    let path = "tests/data/layout.txt";
    let text = wattle_cases::read(path);
    let mut found = String::new();
    for case in wattle_cases::split(&text).1 {
        writeln!(found, "=== {}\n{}---\n{}", case.title, case.input, checked(case.input)).unwrap();
    }
    wattle_cases::compare(path, &(found.trim_end().to_owned() + "\n"));
}

#[test]
fn built_in_programs_are_formatted() {
    let mut comparison = wattle_cases::Comparison::new();
    for path in wattle_cases::files("programs", "wat") {
        comparison.add(&path, &checked(&wattle_cases::read(&path)));
    }
    comparison.finish();
}

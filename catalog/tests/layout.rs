//! The layout of whole files. `tests/data/layout.txt` has files behind `=== what it is about`, each followed by its layout behind
//! `---`; `UPDATE=1` writes the layouts anew.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use wattle_catalog::{Entry, Example, Meta, Origin, format};

fn origin() -> Origin {
    Origin::File(PathBuf::from("x.wat"))
}

/// What the front matter says, but for the lines that examples stand in.
fn said(text: &str) -> Meta {
    let mut meta = Entry::parse(text, origin()).unwrap().meta().clone();
    meta.examples = meta.examples.into_iter().map(|example| Example { line: 0, ..example }).collect();
    meta
}

/// Formats a file, and holds the layout against what goes for every one.
fn checked(text: &str) -> String {
    let formatted = match format(text, origin()) {
        Ok(formatted) => formatted,
        Err(error) => return error.to_string(),
    };
    assert_eq!(format(&formatted, origin()).unwrap(), formatted, "formatting twice differs for\n{text}");
    if text.trim_start_matches('\u{feff}').trim_start().starts_with(";;") {
        assert_eq!(said(text), said(&formatted), "{formatted}");
    }
    formatted
}

#[test]
fn files_get_their_layout() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout.txt");
    let expected = std::fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    for case in expected.split("=== ").skip(1) {
        let (about, case) = case.split_once('\n').unwrap();
        let text = case.split_once("---\n").map_or(case, |(text, _)| text);
        writeln!(found, "=== {about}\n{text}---\n{}", checked(text)).unwrap();
    }
    let found = found.trim_end().to_owned() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(found == expected, "the layouts differ; UPDATE=1 writes them anew:\n{found}");
}

#[test]
fn built_in_programs_have_their_layout() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let formatted = checked(&text);
        if formatted != text && std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, formatted).unwrap();
        } else if formatted != text {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "not in their layout; `wattle catalog fmt` or UPDATE=1 mends it: {wrong:?}");
}

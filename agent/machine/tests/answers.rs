//! Reads every answer of the data files and compares with the expected reading; `UPDATE=1` writes what was read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

use std::{fmt::Write as _, fs, path::Path};

use wattle_machine::{Reading, read};

struct Case {
    name: String,
    answer: String,
    expected: String,
}

/// Splits a data file into its preamble and its cases.
fn cases(text: &str) -> (String, Vec<Case>) {
    let mut parts = text.split("\n=== ");
    let preamble = parts.next().unwrap_or_default().to_owned();
    let cases = parts.map(|part| {
        let (name, rest) = part.split_once('\n').expect("a case has a name and a text");
        let at = if rest.starts_with("==> ") { 0 } else { rest.find("\n==> ").expect("a case has a reading") + 1 };
        let answer = rest[..at].strip_suffix('\n').unwrap_or("").to_owned();
        Case { name: name.to_owned(), answer, expected: rest[at..].trim_end().to_owned() }
    });
    (preamble, cases.collect())
}

fn decode(answer: &str) -> String {
    answer.replace("␍\n", "\r\n").replace('␍', "\r").replace('␀', "\0").replace('␠', " ")
}

fn show(reading: &Reading) -> String {
    let mut shown = format!("==> {}", reading.to_json());
    let notes: Vec<String> =
        reading.notes.iter().map(|note| serde_json::to_value(note).unwrap().as_str().unwrap().to_owned()).collect();
    if !notes.is_empty() {
        write!(shown, "\n!!! {}", notes.join(", ")).unwrap();
    }
    shown
}

#[test]
fn every_answer_is_read_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut count, mut failures) = (0, String::new());
    for file in files {
        let (preamble, cases) = cases(&fs::read_to_string(&file).unwrap());
        let mut updated = preamble;
        for case in &cases {
            count += 1;
            let answer = decode(&case.answer);
            let found = show(&read(&answer));
            if found != case.expected {
                let file = file.file_name().unwrap().to_string_lossy();
                writeln!(failures, "{file}: {}\n- {}\n+ {}\n", case.name, case.expected, found).unwrap();
            }
            let gap = if case.answer.is_empty() { "" } else { "\n" };
            write!(updated, "\n=== {}\n{}{gap}{found}\n", case.name, case.answer).unwrap();
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, updated).unwrap();
        }
    }
    assert!(count >= 250, "only {count} cases were found");
    assert!(failures.is_empty() || std::env::var_os("UPDATE").is_some(), "{failures}");
}

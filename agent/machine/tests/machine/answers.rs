//! Tests of the reader: every answer in the data files is read, and the result is compared with the
//! expected reading. `UPDATE=1` updates the expected readings.

use std::fmt::Write as _;

use wattle_machine::{Reading, read};

struct Case {
    name: String,
    answer: String,
}

/// Splits a data file into its preamble and its cases.
fn cases(text: &str) -> (String, Vec<Case>) {
    let mut parts = text.split("\n=== ");
    let preamble = parts.next().unwrap_or_default().to_owned();
    let cases = parts.map(|part| {
        let (name, rest) = part.split_once('\n').expect("a case has a name and a text");
        let at = if rest.starts_with("==> ") {
            0
        } else {
            rest.find("\n==> ").expect("a case has a reading") + 1
        };
        let answer = rest[..at].strip_suffix('\n').unwrap_or("").to_owned();
        Case { name: name.to_owned(), answer }
    });
    (preamble, cases.collect())
}

fn decode(answer: &str) -> String {
    answer.replace("␍\n", "\r\n").replace('␍', "\r").replace('␀', "\0").replace('␠', " ")
}

fn show(reading: &Reading) -> String {
    let mut shown = format!("==> {}", reading.to_json());
    let notes: Vec<String> = reading
        .notes
        .iter()
        .map(|note| serde_json::to_value(note).unwrap().as_str().unwrap().to_owned())
        .collect();
    if !notes.is_empty() {
        write!(shown, "\n!!! {}", notes.join(", ")).unwrap();
    }
    shown
}

#[test]
fn every_answer_has_the_expected_reading() {
    let (mut count, mut comparison) = (0, wattle_cases::Comparison::new());
    for file in wattle_cases::files("tests/answers", "txt") {
        let (mut found, cases) = cases(&wattle_cases::read(&file));
        for Case { name, answer } in &cases {
            let reading = show(&read(&decode(answer)));
            let line_end = if answer.is_empty() { "" } else { "\n" };
            write!(found, "\n=== {name}\n{answer}{line_end}{reading}\n").unwrap();
        }
        comparison.add(&file, &found);
        count += cases.len();
    }
    assert!(count >= 250, "only {count} cases were found");
    comparison.finish();
}

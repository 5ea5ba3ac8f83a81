//! Parses arbitrary text as a model's answer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wattle_machine::{Action, Reading, read};

fn strings(reading: &Reading) -> Vec<&str> {
    let mut all = Vec::from_iter(reading.thought.as_deref());
    all.push(&reading.retained);
    match &reading.action {
        Action::Wat { body: first, args } | Action::Catalog { name: first, args, .. } => {
            all.push(first);
            all.extend(args.iter().map(String::as_str));
        }
        Action::Fix { texts } => {
            all.extend(texts.iter().map(|text| text.text.as_str()));
            all.extend(texts.iter().filter_map(|text| text.alternative.as_deref()));
        }
        Action::Response { text } => all.push(text),
    }
    all
}

fuzz_target!(|text: &str| {
    let reading = read(text);
    for found in strings(&reading) {
        assert!(found.len() <= text.len(), "a string is longer than the answer");
    }
    assert!(
        reading.thought.as_deref().is_none_or(|thought| !thought.trim().is_empty()),
        "an empty thought"
    );
    let total: usize = strings(&reading).iter().map(|found| found.len()).sum();
    assert!(total <= 4 * text.len(), "the reading is too large for its answer");

    // The kind of line break does not change the result.
    let unix = text.replace("\r\n", "\n").replace('\r', "\n");
    assert_eq!(read(&unix), reading);
    assert_eq!(read(&unix.replace('\n', "\r\n")), reading);

    // The retained text of a complete call parses as the same call.
    if reading.notes.is_empty() && !matches!(reading.action, Action::Response { .. }) {
        assert_eq!(
            read(&reading.retained).action,
            reading.action,
            "the retained text is read differently"
        );
    }
});

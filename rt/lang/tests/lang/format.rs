//! Tests of the formatter's output and its properties.
//!
//! In each `tests/format/*.txt`, a program is preceded by a line `=== title` and followed by `---`
//! and the expected layout. `UPDATE=1` rewrites the layouts.

use std::fmt::Write;

use proptest::prelude::*;
use wattle_cases::{Comparison, files};

use crate::common;

/// Returns the programs in `tests/expand`, in the catalog and in the diagnostics tests.
fn corpus() -> Vec<String> {
    let programs =
        files("tests/expand", "wat").into_iter().chain(files("../../catalog/programs", "wat"));
    let mut texts: Vec<String> =
        programs.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for path in files("tests/diagnostics", "txt") {
        let text = wattle_cases::read(path);
        let inputs = wattle_cases::split(&text)
            .1
            .into_iter()
            .map(|case| case.input.trim_end_matches('\n').to_owned());
        texts.extend(inputs);
    }
    texts
}

fn bytes(source: &str) -> Option<Vec<u8>> {
    wattle_lang::assemble(source, &common::host()).ok()?.encode().ok()
}

/// Formats a program and checks the properties that every layout must have. Returns `None` if the
/// program cannot be formatted.
fn checked(source: &str) -> Option<String> {
    let formatted = wattle_lang::format(source).ok()?;
    assert_eq!(
        wattle_lang::format(&formatted).unwrap(),
        formatted,
        "formatting twice differs for\n{source}"
    );
    assert_eq!(
        bytes(source),
        bytes(&formatted),
        "the module differs for\n{source}\n---\n{formatted}"
    );
    let is_ragged = || formatted.lines().any(|line| line != line.trim_end());
    assert!(source.contains(['"', '\r']) || !is_ragged(), "{formatted}");
    Some(formatted)
}

#[test]
fn every_text_is_formatted_as_expected() {
    let mut comparison = Comparison::new();
    for path in files("tests/format", "txt") {
        let text = wattle_cases::read(&path);
        let mut found = String::new();
        for case in wattle_cases::split(&text).1 {
            let source = case.input;
            let layout = checked(source)
                .unwrap_or_else(|| wattle_lang::format(source).unwrap_err().to_string());
            write!(found, "=== {}\n{source}---\n{layout}\n", case.title).unwrap();
        }
        comparison.add(&path, &(found.trim_end().to_owned() + "\n"));
    }
    comparison.finish();
}

#[test]
fn formatting_keeps_the_module_of_every_program() {
    let formatted = corpus().iter().filter_map(|source| checked(source)).count();
    assert!(formatted > 60, "{formatted}");
}

#[test]
fn deep_and_long_texts_are_formatted_quickly() {
    let deep = format!("{}(i32.const 0){}", "(block ".repeat(254), ")".repeat(254));
    checked(&deep).unwrap();
    let wide = format!("(i32.add {})", "\"a\nb\" ".repeat(150_000));
    wattle_lang::format(&wide).unwrap();
    assert!(wattle_lang::format(&"(".repeat(100_000)).is_err());
    assert_eq!(wattle_lang::format(" \n\n").unwrap(), "");
}

/// Generates text that can separate two tokens without changing the program.
fn between() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        " ",
        " ",
        " ",
        "\n",
        "\n",
        "\n\n\n",
        "\t",
        "\r\n",
        "   \n      ",
        " ;; a note\n",
        "\n;; a note of its own\n",
        " (; within ;) ",
        "\n(; over\n   two lines ;)\n",
        " ;;\n",
        "(;;)",
        " ;; closes ) nothing \"\n",
    ])
}

/// Generates a program, and the same program with different whitespace and comments between its
/// tokens.
fn rearranged() -> impl Strategy<Value = (String, String)> {
    let plain = |text: &str| !["\"\"\"", "(;", "```"].iter().any(|mark| text.contains(mark));
    let fits = |text: &String| {
        plain(text)
            && text.len() < 3_000
            && bytes(text).is_some()
            && wattle_lang::format(text).is_ok()
    };
    let texts: Vec<String> = corpus().into_iter().filter(fits).collect();
    (prop::sample::select(texts), prop::collection::vec(between(), 1..40)).prop_map(
        |(text, gaps)| {
            let mut gaps = gaps.into_iter().cycle();
            let tokens = tokens(&text);
            let other = tokens
                .iter()
                .fold(String::new(), |other, token| other + token + gaps.next().unwrap());
            (text, other)
        },
    )
}

/// Returns the tokens of a source that has no `"""` strings, block comments or code fences.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with(';') {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        } else if let Some(raw) = rest.strip_prefix("r\"") {
            3 + raw.find('"').unwrap()
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            2 + end.unwrap()
        } else if matches!(first, '(' | ')' | '[' | ']') {
            1
        } else if first.is_whitespace() || first == '\u{feff}' {
            rest = &rest[first.len_utf8()..];
            continue;
        } else {
            rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | '"' | ';'))
                .unwrap_or(rest.len())
        };
        tokens.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    tokens
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whitespace_and_comments_do_not_change_the_module((text, other) in rearranged()) {
        let formatted = checked(&other)
            .unwrap_or_else(|| panic!("{other}\n{}", wattle_lang::format(&other).unwrap_err()));
        prop_assert_eq!(bytes(&text), bytes(&formatted));
        let notes = |text: &str| {
            ["a note", "within", "over", "closes"].map(|note| text.matches(note).count())
        };
        prop_assert_eq!(notes(&other), notes(&formatted));
    }

    #[test]
    fn any_text_can_be_formatted(text in "[()\";a$\\\\\n` \\[]{0,40}") {
        checked(&text);
    }
}

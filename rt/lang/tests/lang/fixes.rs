//! Tests that a valid program needs no fixes, and that no fix loses a literal or a call.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use wattle_cases::{files, read, split};
use wattle_lang::{Diagnostic, FixResult, Signatures, assemble, explain, fix};

use crate::{common, manual};

/// Returns the programs in this repository that are valid with the functions in `host`.
fn valid_programs(host: &Signatures) -> Vec<String> {
    let accepted = read("tests/accepted.txt");
    let accepted = split(&accepted).1.into_iter().map(|case| case.input.trim_end().to_owned());
    let expanded = files("tests/expand", "wat").into_iter().map(read);
    let page = read("../../docs/language.md");
    let examples: Vec<String> = page
        .split("```wattle")
        .skip(1)
        .map(|rest| rest.split_once('\n').unwrap().1.split("```").next().unwrap().to_owned())
        .collect();
    let catalog = files("../../catalog/programs", "wat").into_iter().map(read);
    let all = accepted.chain(expanded).chain(examples).chain(catalog);
    let valid: Vec<String> = all.filter(|source| explain(source, host).is_none()).collect();
    assert!(valid.len() >= 150, "{} valid programs", valid.len());
    valid
}

fn binary_is_valid(source: &str, host: &Signatures) -> bool {
    let binary = assemble(source, host).ok().and_then(|program| program.encode().ok());
    binary.is_some_and(|binary| wasmparser::Validator::new().validate_all(&binary).is_ok())
}

#[test]
fn a_valid_program_needs_no_fix_and_no_warning() {
    let host = manual::manual();
    for path in files("../../catalog/programs", "wat") {
        let source = read(&path);
        let fault = explain(&source, &host);
        assert!(fault.is_none(), "{}: {}", path.display(), fault.unwrap());
        let warnings = assemble(&source, &host).unwrap().warnings;
        assert!(warnings.is_empty(), "{}: {}", path.display(), warnings[0]);
    }
    for source in valid_programs(&host) {
        let FixResult { source: fixed, applied, rest } = fix(&source, &host);
        assert_eq!((fixed, applied.len(), rest), (source, 0, None));
    }
}

/// The parts of a program that a fix must keep.
#[derive(Debug, Default)]
struct Parts {
    /// The words in strings and the digits of numbers, each with its count.
    literals: BTreeMap<String, usize>,
    /// The first words of lists, each with its count.
    calls: BTreeMap<String, usize>,
}

fn count(words: &mut BTreeMap<String, usize>, word: &str) {
    if !word.is_empty() {
        *words.entry(word.to_owned()).or_default() += 1;
    }
}

/// Splits a source into tokens: strings, parentheses and words. Comments are omitted.
fn tokens(source: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            _ if c.is_whitespace() => {
                rest = &rest[c.len_utf8()..];
                continue;
            }
            ';' => rest.find('\n').unwrap_or(rest.len()),
            '"' if rest.starts_with("\"\"\"") => {
                rest[3..].find("\"\"\"").map_or(rest.len(), |at| at + 6)
            }
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let closes = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    closes
                });
                end.map_or(rest.len(), |at| at + 2)
            }
            '(' | ')' | '[' | ']' | '{' | '}' => 1,
            _ => rest
                .find(|c: char| c.is_whitespace() || "()[]{};\"".contains(c))
                .filter(|at| *at > 0)
                .unwrap_or(if "()[]{};\"".contains(c) { 1 } else { rest.len() }),
        };
        if c != ';' {
            all.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    all
}

/// Returns the words of a string without the format specifications in placeholders.
fn words(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    let mut in_format = false;
    while let Some(c) = rest.next() {
        // `{0}`, `{s}`, `{i}`: only the position of the value matters.
        let mut after = rest.clone();
        let is_short = c == '{'
            && after.next().is_some_and(|c| c.is_alphanumeric())
            && after.next() == Some('}');
        if is_short {
            rest = after;
            continue;
        }
        match c {
            ':' if plain.contains('{') => in_format = true,
            '}' => in_format = false,
            '%' | '~' | '\\' => {
                rest.next();
                plain.push(' ');
                continue;
            }
            _ => {}
        }
        plain.push(if in_format { ' ' } else { c });
    }
    plain
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn parts(source: &str) -> Parts {
    let mut parts = Parts::default();
    let tokens = tokens(source);
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let is_head = before == Some(&"(");
        if token.starts_with('"') {
            words(token).iter().for_each(|word| count(&mut parts.literals, word));
        } else if token.starts_with(|c: char| c.is_ascii_digit()) && !is_head {
            let digits = token.split(|c: char| !c.is_ascii_digit());
            digits.for_each(|digits| count(&mut parts.literals, digits));
        } else if is_head && token.len() > 1 {
            count(&mut parts.calls, token);
        }
    }
    parts
}

/// Counts how often each word occurs anywhere in a source, including strings and comments.
fn all_words(source: &str, separates: impl Fn(char) -> bool) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    source.split(separates).for_each(|word| count(&mut all, word));
    all
}

/// Words that a fix may remove because they are not calls or are calls without side effects.
const REMOVABLE: &[&str] = &[
    "elif",
    "else",
    "check",
    "drop",
    "i32.const",
    "local.get",
    "import",
    "require",
    "use",
    "export",
    "memory",
];

/// Returns a literal or a call that the fixes lost, or `None` if they lost none.
fn lost(before: &str, after: &str, applied: &[Diagnostic]) -> Option<String> {
    let parts = parts(before);
    let literals = all_words(after, |c| !c.is_alphanumeric());
    let mut pieces = literals.clone();
    // Count the words of strings in the same way as in the original.
    let mut strings = BTreeMap::new();
    words(after).iter().for_each(|word| count(&mut strings, word));
    for (word, n) in strings {
        let known = pieces.entry(word).or_default();
        *known = (*known).max(n);
    }
    all_words(after, |c| !c.is_ascii_digit()).iter().for_each(|(digits, n)| {
        let known = pieces.entry(digits.clone()).or_default();
        *known = (*known).max(*n);
    });
    let changes: Vec<&str> = applied
        .iter()
        .filter_map(|fault| fault.fix.as_ref())
        .map(|fix| fix.description.as_str())
        .collect();
    for (word, n) in &parts.literals {
        let exits = changes.iter().any(|change| change.contains("(exit 0)")) && word == "0";
        if pieces.get(word).copied().unwrap_or(0) < *n && !exits {
            return Some(format!("the literal {word}"));
        }
    }
    let calls = all_words(after, |c| c.is_whitespace() || "()[]{}\"".contains(c));
    for (name, n) in &parts.calls {
        // A fix may rename a call, which its description shows with an arrow.
        let is_renamed = changes.iter().any(|change| {
            change.split(" → ").any(|part| part.contains(name.as_str())) && change.contains('→')
        });
        let is_kept = calls.get(name).copied().unwrap_or(0) >= *n;
        if !is_kept && !is_renamed && !REMOVABLE.contains(&name.as_str()) {
            return Some(format!("the call {name}"));
        }
    }
    None
}

/// Checks the properties that fixes must have for every program, whether it is valid or not. The
/// error describes the violated property.
fn check_fixes(source: &str, host: &Signatures) -> Result<(), String> {
    let Some(fault) = explain(source, host) else { return Ok(()) };
    if let Some(fix) = &fault.fix {
        let fixed = fix.apply(source);
        // Outside the edits, the text must stay the same.
        let (mut at, mut to) = (0, 0);
        for edit in &fix.edits {
            let (start, end) = (edit.span.start as usize, edit.span.end as usize);
            assert_eq!(source[at..start], fixed[to..to + start - at], "{source}");
            to += start - at + edit.text.len();
            at = end;
        }
        assert_eq!(source[at..], fixed[to..], "{source}");
        let next = explain(&fixed, host);
        let is_same = next.is_some_and(|next| {
            next.message == fault.message && next.span.start == fault.span.start
        });
        if is_same {
            return Err(format!("the fix does not help:\n{source}\n{fault}\n{fixed}"));
        }
    }
    let FixResult { source: fixed, applied, rest } = fix(source, host);
    if let Some(what) = lost(source, &fixed, &applied) {
        let changes: Vec<_> = applied.iter().filter_map(|fault| fault.fix.as_ref()).collect();
        return Err(format!("{what} is lost:\n{source}\n---\n{fixed}\n{changes:?}"));
    }
    match rest.is_some() || binary_is_valid(&fixed, host) {
        true => Ok(()),
        false => Err(format!("the fixed program is not valid:\n{source}\n---\n{fixed}")),
    }
}

#[test]
fn no_fix_of_the_corpus_loses_anything() {
    let host = common::host();
    let mut broken = Vec::new();
    for path in files("tests/diagnostics", "txt") {
        for case in split(&read(&path)).1 {
            broken.extend(check_fixes(case.input.trim_end_matches('\n'), &host).err());
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// Returns a program with one token removed, duplicated or swapped with the next one, depending on
/// `kind`.
fn damaged(source: &str, at: usize, kind: usize) -> Option<String> {
    let spans: Vec<(usize, usize)> = tokens(source)
        .iter()
        .map(|token| {
            let start = token.as_ptr() as usize - source.as_ptr() as usize;
            (start, start + token.len())
        })
        .collect();
    let at = at % spans.len().max(2).saturating_sub(1);
    let ((start, end), (from, to)) = (*spans.get(at)?, *spans.get(at + 1)?);
    let (token, next) = (&source[start..end], &source[from..to]);
    Some(match kind {
        0 => format!("{}{}", &source[..start], &source[end..]),
        1 => format!("{}{token} {}", &source[..start], &source[start..]),
        _ => format!("{}{next}{}{token}{}", &source[..start], &source[end..from], &source[to..]),
    })
}

#[test]
fn no_fix_of_a_damaged_program_loses_anything() {
    let host = manual::manual();
    let programs: Vec<String> =
        valid_programs(&host).into_iter().filter(|source| source.len() < 1_500).collect();
    let config =
        ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() };
    let damage = (0..programs.len(), 0_usize..400, 0_usize..3);
    TestRunner::new(config)
        .run(&damage, |(program, at, kind)| {
            if let Some(source) = damaged(&programs[program], at, kind) {
                check_fixes(&source, &host).map_err(TestCaseError::fail)?;
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

//! Fixes: changes to parts of a failed program, so that the model need not repeat all of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Message;

/// Maximum number of replacements in one fix.
const MAX_PAIRS: usize = 100;

/// Maximum number of occurrences of an old string that are counted.
const MAX_COUNTED: usize = 1_000;

/// Maximum number of line numbers that an error lists.
const MAX_LINES: usize = 8;

/// Maximum length of a string that an error quotes, in characters.
const MAX_QUOTED: usize = 80;

/// A string of a fix: either a substring of the program or its replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixText {
    /// The form of the string that is tried first. Escapes are left unresolved in a triple-quoted
    /// string, which is code, and are resolved in any other quoted string.
    pub text: String,
    /// The form of the string that is tried second: with escapes resolved if `text` leaves them
    /// unresolved, or the reverse. `None` if the string has only one form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<String>,
}

impl FixText {
    /// Creates a string that has only one form.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), alternative: None }
    }

    /// Creates a string that has two forms, with and without resolved escapes. `text` is the form
    /// that is tried first.
    pub(crate) fn of(text: String, alternative: String) -> Self {
        Self { alternative: (alternative != text).then_some(alternative), text }
    }
}

/// A program that the model wrote, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenProgram {
    pub(crate) body: String,
    pub(crate) args: Vec<String>,
}

/// Applies a fix to a program and returns the fixed program. `texts` alternates between an old
/// string and the new string that replaces it. Each old string must occur in the program exactly
/// once. Otherwise, returns an error with the number of occurrences.
pub(crate) fn apply(body: &str, texts: &[FixText]) -> Result<String, String> {
    let pairs = texts.len() / 2;
    if pairs == 0 || !texts.len().is_multiple_of(2) {
        let count = texts.len();
        return Err(format!(
            "nothing was changed: a fix has pairs of texts, an old one and the new one that \
             replaces it, and this one has {count} {}\nhint: write every old text with its new \
             text; an empty new text removes the old one",
            if count == 1 { "text" } else { "texts" }
        ));
    }
    if pairs > MAX_PAIRS {
        return Err(format!(
            "nothing was changed: a fix has at most {MAX_PAIRS} pairs of texts, and this one has \
             {pairs}\nhint: write the whole program"
        ));
    }
    let mut fixed = body.to_owned();
    for (pair, number) in texts.chunks_exact(2).zip(1_usize..) {
        if let [old, new] = pair {
            fixed = replace(&fixed, old, new).map_err(|why| why.report(old, number))?;
        }
    }
    if fixed == body {
        return Err("nothing was changed: the new texts are the same as the old ones\nhint: read \
                    the reason of the failure and change something"
            .to_owned());
    }
    Ok(fixed)
}

/// The reason why a string cannot be replaced.
enum Unfit {
    Empty,
    Missing,
    /// The string occurs several times. Contains the numbers of the lines on which it occurs.
    Ambiguous(Vec<usize>),
}

impl Unfit {
    fn report(self, old: &FixText, number: usize) -> String {
        let quoted = match old.text.char_indices().nth(MAX_QUOTED) {
            Some((end, _)) => format!("{:?}…", old.text.get(..end).unwrap_or_default()),
            None => format!("{:?}", old.text),
        };
        let (found, hint) = match self {
            Self::Empty => {
                ("is empty".to_owned(), "give a text that occurs in the program exactly once")
            }
            Self::Missing => (
                "occurs 0 times in the program, and must occur exactly once".to_owned(),
                "copy it from the program with its spaces and line breaks, without line numbers",
            ),
            Self::Ambiguous(lines) => {
                let more = if lines.len() > MAX_LINES { ", …" } else { "" };
                let listed: Vec<String> =
                    lines.iter().take(MAX_LINES).map(ToString::to_string).collect();
                let least = if lines.len() == MAX_COUNTED { "at least " } else { "" };
                (
                    format!(
                        "occurs {least}{} times in the program (lines {}{more}), and must occur \
                         exactly once",
                        lines.len(),
                        listed.join(", ")
                    ),
                    "take a longer part of the program, which occurs once",
                )
            }
        };
        format!("nothing was changed: old text {number}, {quoted}, {found}\nhint: {hint}")
    }
}

/// Replaces the only occurrence of `old`. If it does not occur, tries its alternative form, and
/// then both forms without line numbers.
fn replace(program: &str, old: &FixText, new: &FixText) -> Result<String, Unfit> {
    if old.text.is_empty() {
        return Err(Unfit::Empty);
    }
    let mut readings = vec![(old.text.as_str(), new.text.as_str())];
    if let Some(alternative) = old.alternative.as_deref().filter(|text| !text.is_empty()) {
        readings.push((alternative, new.alternative.as_deref().unwrap_or(&new.text)));
    }
    for (old, new) in &readings {
        if let Some(fixed) = replace_once(program, old, new)? {
            return Ok(fixed);
        }
    }
    for (old, new) in &readings {
        let Some(bare) = without_line_numbers(old).filter(|bare| !bare.is_empty()) else {
            continue;
        };
        let new = without_line_numbers(new).unwrap_or_else(|| (*new).to_owned());
        if let Some(fixed) = replace_once(program, &bare, &new)? {
            return Ok(fixed);
        }
    }
    Err(Unfit::Missing)
}

/// Replaces `old` if it occurs exactly once. Returns `None` if it does not occur, and an error if
/// it occurs several times.
fn replace_once(program: &str, old: &str, new: &str) -> Result<Option<String>, Unfit> {
    match occurrences(program, old).as_slice() {
        [] => Ok(None),
        [at] => {
            let (before, after) = (program.get(..*at), program.get(at + old.len()..));
            Ok(Some([before.unwrap_or_default(), new, after.unwrap_or_default()].concat()))
        }
        all => {
            let line =
                |at: &usize| program.get(..*at).unwrap_or_default().matches('\n').count() + 1;
            Err(Unfit::Ambiguous(all.iter().map(line).collect()))
        }
    }
}

/// Returns the offsets at which `text` occurs, including overlapping occurrences, at most
/// [`MAX_COUNTED`].
fn occurrences(program: &str, text: &str) -> Vec<usize> {
    let step = text.chars().next().map_or(1, char::len_utf8);
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(at) = program.get(from..).and_then(|rest| rest.find(text))
        && found.len() < MAX_COUNTED
    {
        found.push(from + at);
        from += at + step;
    }
    found
}

/// Removes the line numbers that a repair request shows before each line of the program. Returns
/// `None` if any line has no number.
fn without_line_numbers(text: &str) -> Option<String> {
    let line = |line: &str| {
        let (number, rest) = line.trim_start().split_once(" |")?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| rest.strip_prefix(' ').unwrap_or(rest).to_owned())
    };
    let lines: Option<Vec<String>> = text.split('\n').map(line).collect();
    lines.map(|lines| lines.join("\n"))
}

/// Names that models use for the field that contains the old string.
const OLD: &[&str] =
    &["old", "old_text", "old_string", "old_str", "from", "find", "search", "before"];
/// Names that models use for the field that contains the new string.
const NEW: &[&str] =
    &["new", "new_text", "new_string", "new_str", "to", "replace", "replacement", "after"];
/// Names that models use for the field that contains the list of changes.
const CHANGES: &[&str] =
    &["changes", "change", "fixes", "edits", "replacements", "pairs", "texts", "args", "arguments"];

/// Returns the strings of a fix that is written as JSON: a list of objects with `old` and `new`, a
/// list of pairs, or a list of strings. Returns `None` if the JSON has any other form.
pub(crate) fn texts_of_json(value: Value) -> Option<Vec<FixText>> {
    match value {
        Value::String(text) => Some(vec![FixText::plain(text.replace("\r\n", "\n"))]),
        Value::Array(items) => {
            let texts: Option<Vec<_>> = items.into_iter().map(texts_of_json).collect();
            texts.map(|texts| texts.into_iter().flatten().collect())
        }
        Value::Object(mut fields) => {
            let mut take = |names: &[&str]| names.iter().find_map(|name| fields.remove(*name));
            if let Some(changes) = take(CHANGES) {
                return texts_of_list(changes);
            }
            let mut text = |names| match take(names)? {
                Value::String(text) => Some(FixText::plain(text.replace("\r\n", "\n"))),
                _ => None,
            };
            Some(vec![text(OLD)?, text(NEW)?])
        }
        _ => None,
    }
}

/// Reads a list of changes. Some models write it as JSON within a string.
fn texts_of_list(changes: Value) -> Option<Vec<FixText>> {
    match &changes {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_))) => texts_of_json(inner),
            _ => None,
        },
        _ => texts_of_json(changes),
    }
}

/// A program that did not compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailedProgram {
    /// The answer that contains the program.
    pub(crate) answer: Message,
    pub(crate) body: String,
    pub(crate) args: Vec<String>,
    pub(crate) diagnostic: String,
    /// The reason why the last repair was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    fn fixed(body: &str, texts: &[&str]) -> Result<String, String> {
        let texts: Vec<FixText> = texts.iter().map(|text| FixText::plain(*text)).collect();
        apply(body, &texts)
    }

    #[test]
    fn each_old_text_is_replaced_in_order() {
        assert_eq!(fixed("(a) (b)", &["(b)", "(c)"]).as_deref(), Ok("(a) (c)"));
        // The second pair applies to the result of the first.
        assert_eq!(fixed("(a) (b)", &["(a)", "(b) 1", "1 (b)", "2"]).as_deref(), Ok("(b) 2"));
        assert_eq!(fixed("one\ntwo\nthree", &["two\n", ""]).as_deref(), Ok("one\nthree"));
        assert_eq!(fixed("ä→ö", &["→", "="]).as_deref(), Ok("ä=ö"));
    }

    #[test]
    fn an_old_text_must_occur_exactly_once() {
        for (body, texts, part) in [
            ("(a) (b)", &["(c)", "x"][..], "old text 1, \"(c)\", occurs 0 times"),
            ("(a)\n(b)\n(a)", &["(a)", "x"], "occurs 2 times in the program (lines 1, 3)"),
            ("aaa", &["aa", "x"], "occurs 2 times"),
            ("(a) (b)", &["(a)", "(b)", "(b)", "x"], "old text 2, \"(b)\", occurs 2 times"),
            ("(a)", &["", "x"], "old text 1, \"\", is empty"),
            ("(a)", &["(a)"], "this one has 1 text\n"),
            ("(a)", &["(a)", "x", "y"], "this one has 3 texts\n"),
            ("(a)", &[], "this one has 0 texts\n"),
            ("(a)", &["(a)", "(a)"], "the same as the old ones"),
        ] {
            let why = fixed(body, texts).unwrap_err();
            assert!(why.contains(part) && why.contains("\nhint: "), "{texts:?}: {why}");
        }
        let many = vec!["(a)"; 2 * MAX_PAIRS + 2];
        assert!(fixed("(a)", &many).unwrap_err().contains("at most 100 pairs"));
        let why = fixed(&"a".repeat(100_000), &[&"a".repeat(50_000), ""]).unwrap_err();
        assert!(why.contains("occurs at least 1000 times") && why.len() < 500, "{why}");
    }

    #[test]
    fn line_numbers_are_removed_only_if_the_text_does_not_occur() {
        let body = "(a)\n  (b)\n(c)";
        assert_eq!(fixed(body, &["2 |   (b)", "2 |   (d)"]).as_deref(), Ok("(a)\n  (d)\n(c)"));
        assert_eq!(fixed(body, &["1 | (a)\n2 |   (b)", "(d)"]).as_deref(), Ok("(d)\n(c)"));
        assert_eq!(fixed("x\n7 | y", &["7 | y", "z"]).as_deref(), Ok("x\nz"));
        assert!(fixed(body, &["2 | (x)", "y"]).unwrap_err().contains("occurs 0 times"));
    }

    #[test]
    fn the_other_reading_of_quotes_is_used_if_the_first_does_not_occur() {
        let old = FixText::of("(split \"\n\")".into(), r#"(split "\n")"#.into());
        let new = FixText::of("(split \"\t\")".into(), r#"(split "\t")"#.into());
        let found = apply(r#"(split "\n")"#, &[old.clone(), new.clone()]);
        assert_eq!(found.as_deref(), Ok(r#"(split "\t")"#));
        assert_eq!(apply("(split \"\n\")", &[old, new]).as_deref(), Ok("(split \"\t\")"));
    }

    #[test]
    fn fixes_in_json_are_read_in_every_form() {
        for json in [
            r#"{"changes":[{"old":"a","new":"b"}]}"#,
            r#"{"old":"a","new":"b"}"#,
            r#"{"changes":{"old_string":"a","new_string":"b"}}"#,
            r#"{"changes":[["a","b"]]}"#,
            r#"{"texts":["a","b"]}"#,
            r#"["a","b"]"#,
            r#"{"changes":"[{\"old\":\"a\",\"new\":\"b\"}]"}"#,
        ] {
            let texts = texts_of_json(serde_json::from_str(json).unwrap()).unwrap();
            assert_eq!(texts, [FixText::plain("a"), FixText::plain("b")], "{json}");
        }
        for json in
            [r#"{"old":"a"}"#, r#"{"changes":[{"old":"a"},{"new":"b"}]}"#, "7", r#"{"changes":7}"#]
        {
            assert_eq!(texts_of_json(serde_json::from_str(json).unwrap()), None, "{json}");
        }
    }
}

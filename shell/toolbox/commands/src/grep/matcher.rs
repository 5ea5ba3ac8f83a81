//! The matcher of all patterns of one grep.

use grep_matcher::{Match, Matcher, NoCaptures, NoError};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use crate::options::Line;
use crate::pattern::{self, Notation};
use crate::say::{say, whole, words};

/// The compiled patterns. The second kind supports backreferences and lookaround, and is slower.
pub(crate) enum Pattern {
    Plain(RegexMatcher),
    Backtracking(fancy_regex::Regex),
}

/// Reads the patterns of a command line. Without an option for patterns, the first operand is one.
pub(crate) fn read(name: &str, line: &Line, operands: &mut Vec<String>) -> Result<Pattern, String> {
    let mut given: Option<Vec<String>> = None;
    for found in &line.options {
        let value = found.value.as_deref().unwrap_or_default();
        match line.name(found).as_str() {
            "e" => given.get_or_insert_default().extend(value.split('\n').map(str::to_owned)),
            "f" => {
                let text = whole(value).map_err(|error| format!("{value}: {}", words(&error)))?;
                let text = String::from_utf8_lossy(&text).into_owned();
                given.get_or_insert_default().extend(text.lines().map(str::to_owned));
            }
            _ => {}
        }
    }
    let patterns = match given {
        Some(patterns) => patterns,
        None if operands.is_empty() => {
            return Err("no pattern; usage: grep [OPTION]... PATTERNS [FILE]...".to_owned());
        }
        None => operands.remove(0).split('\n').map(str::to_owned).collect(),
    };
    let kind = line
        .options
        .iter()
        .rev()
        .map(|found| line.name(found))
        .find(|name| ["E", "F", "G", "P"].contains(&name.as_str()));
    let kind = kind.unwrap_or_else(|| match name {
        "egrep" => "E".to_owned(),
        "fgrep" => "F".to_owned(),
        _ => "G".to_owned(),
    });
    let mut backtracking = false;
    let mut texts = Vec::new();
    for pattern in &patterns {
        texts.push(match kind.as_str() {
            "F" => regex::escape(pattern),
            "P" => pattern.clone(),
            _ => {
                let notation = if kind == "E" { Notation::Extended } else { Notation::Basic };
                let made = pattern::translate(pattern, notation)?;
                if let Some(letter) = made.stray {
                    say(
                        name,
                        format_args!(
                            "warning: stray \\ before {letter}; a class such as \\d needs -P"
                        ),
                    );
                }
                backtracking |= made.refers_back;
                made.text
            }
        });
    }
    if kind == "F" {
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.dedup();
    }
    let nothing = texts.is_empty();
    let mut text = match texts.len() {
        1 => texts.concat(),
        _ => texts.iter().map(|text| format!("(?:{text})")).collect::<Vec<_>>().join("|"),
    };
    if nothing {
        text = r"[^\s\S]".to_owned();
    }
    if line.has("x") {
        text = format!("^(?:{text})$");
    } else if line.has("w") {
        text = match backtracking {
            true => format!(r"(?<!\w)(?:{text})(?!\w)"),
            false => format!(r"\b{{start-half}}(?:{text})\b{{end-half}}"),
        };
    }
    let ignore_case = (line.has("i") || line.has("y")) && !line.has("no-ignore-case");
    let end = if line.has("z") { 0 } else { b'\n' };
    if !backtracking {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(ignore_case)
            .multi_line(true)
            .line_terminator(Some(end))
            .size_limit(64 << 20);
        match builder.build(&text) {
            Ok(matcher) => return Ok(Pattern::Plain(matcher)),
            Err(error) if kind != "P" => return Err(reason(&error.to_string())),
            Err(_) => {}
        }
    }
    let text = if ignore_case { format!("(?i){text}") } else { text };
    let text = if line.has("z") { format!("(?m){text}") } else { text };
    fancy_regex::Regex::new(&text)
        .map(Pattern::Backtracking)
        .map_err(|error| reason(&error.to_string()))
}

/// Returns the last line of an engine's error, which has the reason.
fn reason(text: &str) -> String {
    let last = text.lines().last().unwrap_or(text);
    last.trim_start_matches("error: ").to_owned()
}

impl Matcher for &Pattern {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        match self {
            Pattern::Plain(matcher) => matcher.find_at(haystack, at),
            Pattern::Backtracking(matcher) => {
                let Ok(text) = std::str::from_utf8(haystack) else { return Ok(None) };
                let line = text.strip_suffix('\n').unwrap_or(text);
                if !line.is_char_boundary(at) {
                    return Ok(None);
                }
                Ok(matcher
                    .find_from_pos(line, at)
                    .ok()
                    .flatten()
                    .map(|found| Match::new(found.start(), found.end())))
            }
        }
    }

    fn new_captures(&self) -> Result<NoCaptures, NoError> {
        Ok(NoCaptures::new())
    }

    fn non_matching_bytes(&self) -> Option<&grep_matcher::ByteSet> {
        match self {
            Pattern::Plain(matcher) => matcher.non_matching_bytes(),
            Pattern::Backtracking(_) => None,
        }
    }

    fn line_terminator(&self) -> Option<grep_matcher::LineTerminator> {
        match self {
            Pattern::Plain(matcher) => matcher.line_terminator(),
            Pattern::Backtracking(_) => None,
        }
    }

    fn find_candidate_line(
        &self,
        haystack: &[u8],
    ) -> Result<Option<grep_matcher::LineMatchKind>, NoError> {
        match self {
            Pattern::Plain(matcher) => matcher.find_candidate_line(haystack),
            Pattern::Backtracking(_) => Ok(self
                .find_at(haystack, 0)?
                .map(|found| grep_matcher::LineMatchKind::Confirmed(found.start()))),
        }
    }
}

//! The matcher that combines all patterns of a `grep` command.

use std::ops::Range;

use grep_matcher::{Match, Matcher, NoCaptures, NoError};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use crate::options::Line;
use crate::pattern::{self, Notation, Posix, Tool, Translated};
use crate::say::{About as _, Failure, say, whole};

/// The compiled patterns.
pub(crate) struct Pattern {
    engine: Engine,
    /// The matcher that finds the longest match, if the engine may find a shorter one.
    longest: Option<Posix>,
}

/// The engine that finds matches. `Backtracking` supports backreferences and lookaround.
enum Engine {
    Plain(RegexMatcher),
    Backtracking(fancy_regex::Regex),
}

/// Compiles the patterns of a command line: those of `-e` and `-f`, or else the first operand.
pub(crate) fn compile(
    name: &str,
    line: &Line,
    operands: &mut Vec<String>,
) -> Result<Pattern, Failure> {
    let patterns = patterns(line, operands)?;
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
    let made = joined(name, &kind, &patterns)?;
    Ok(compiled(line, &kind, made)?)
}

/// Returns the patterns given by options, or else those in the first operand.
fn patterns(line: &Line, operands: &mut Vec<String>) -> Result<Vec<String>, Failure> {
    let mut given: Option<Vec<String>> = None;
    for found in &line.options {
        let value = found.value.as_deref().unwrap_or_default();
        match line.name(found).as_str() {
            "e" => given.get_or_insert_default().extend(value.split('\n').map(str::to_owned)),
            "f" => {
                let text = whole(value).about(value)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                given.get_or_insert_default().extend(text.lines().map(str::to_owned));
            }
            _ => {}
        }
    }
    match given {
        Some(patterns) => Ok(patterns),
        None if operands.is_empty() => {
            Err("no pattern; usage: grep [OPTION]... PATTERNS [FILE]...".into())
        }
        None => Ok(operands.remove(0).split('\n').map(str::to_owned).collect()),
    }
}

/// Translates and joins patterns. `kind` is the option for their syntax: `E`, `F`, `G` or `P`.
fn joined(name: &str, kind: &str, patterns: &[String]) -> Result<Translated, String> {
    let mut all = Translated { has_choices: patterns.len() > 1, ..Translated::default() };
    let mut texts = Vec::new();
    for pattern in patterns {
        texts.push(match kind {
            "F" => regex::escape(pattern),
            "P" => pattern::perl(pattern),
            _ => {
                let made = pattern::translate(pattern, Notation::new(Tool::Grep, kind == "E"))?;
                if let Some(letter) = made.stray {
                    let why = "a class such as \\d needs -P";
                    say(name, format_args!("warning: stray \\ before {letter}; {why}"));
                }
                all.refers_back |= made.refers_back;
                all.has_choices |= made.has_choices;
                made.text
            }
        });
    }
    all.text = match texts.as_slice() {
        [] => r"[^\s\S]".to_owned(),
        [only] => only.clone(),
        _ => texts.iter().map(|text| format!("(?:{text})")).collect::<Vec<_>>().join("|"),
    };
    Ok(all)
}

/// Compiles the joined patterns.
fn compiled(line: &Line, kind: &str, mut made: Translated) -> Result<Pattern, String> {
    if line.has("x") {
        made.text = format!("^(?:{})$", made.text);
    } else if line.has("w") {
        made.text = if made.refers_back {
            format!(r"(?<!\w)(?:{})(?!\w)", made.text)
        } else {
            format!(r"\b{{start-half}}(?:{})\b{{end-half}}", made.text)
        };
    }
    let ignore_case = (line.has("i") || line.has("y")) && !line.has("no-ignore-case");
    let end = if line.has("z") { 0 } else { b'\n' };
    if !made.refers_back {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(ignore_case)
            .multi_line(true)
            .line_terminator(Some(end))
            .size_limit(64 << 20);
        match builder.build(&made.text) {
            Ok(matcher) => {
                let notation =
                    Notation { ignore_case, lines: true, ..Notation::new(Tool::Grep, true) };
                let longest = (kind != "P" && made.has_choices)
                    .then(|| Posix::from_translated(&made, notation))
                    .transpose()?;
                return Ok(Pattern { engine: Engine::Plain(matcher), longest });
            }
            Err(error) if kind != "P" => return Err(reason(&error.to_string())),
            Err(_) => {}
        }
    }
    let flags = if ignore_case { "(?im)" } else { "(?m)" };
    let engine = fancy_regex::Regex::new(&format!("{flags}{}", made.text))
        .map(Engine::Backtracking)
        .map_err(|error| reason(&error.to_string()))?;
    Ok(Pattern { engine, longest: None })
}

impl Pattern {
    /// Returns the ranges of all nonempty matches in a line.
    pub(crate) fn parts(&self, line: &[u8]) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut at = 0;
        while at < line.len() {
            let found = match &self.longest {
                Some(longest) => longest.find_at(line, at),
                None => {
                    let found = self.find_at(line, at).unwrap_or_default();
                    found.map(|found| found.start()..found.end())
                }
            };
            let Some(found) = found else { break };
            at = if found.is_empty() { found.end + 1 } else { found.end };
            if !found.is_empty() {
                parts.push(found);
            }
        }
        parts
    }
}

/// Returns the last line of an engine's error message, which contains the reason.
fn reason(text: &str) -> String {
    let last = text.lines().last().unwrap_or(text);
    last.trim_start_matches("error: ").to_owned()
}

impl Matcher for Pattern {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        match &self.engine {
            Engine::Plain(matcher) => matcher.find_at(haystack, at),
            Engine::Backtracking(matcher) => {
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
        match &self.engine {
            Engine::Plain(matcher) => matcher.non_matching_bytes(),
            Engine::Backtracking(_) => None,
        }
    }

    fn line_terminator(&self) -> Option<grep_matcher::LineTerminator> {
        match &self.engine {
            Engine::Plain(matcher) => matcher.line_terminator(),
            Engine::Backtracking(_) => None,
        }
    }

    fn find_candidate_line(
        &self,
        haystack: &[u8],
    ) -> Result<Option<grep_matcher::LineMatchKind>, NoError> {
        match &self.engine {
            Engine::Plain(matcher) => matcher.find_candidate_line(haystack),
            Engine::Backtracking(_) => Ok(self
                .find_at(haystack, 0)?
                .map(|found| grep_matcher::LineMatchKind::Confirmed(found.start()))),
        }
    }
}

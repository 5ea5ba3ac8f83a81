//! Marks of a model's own format in an answer: special tokens, names of channels, and calls that no
//! reader understood. They show that the text was not meant for the user.
//!
//! Marks in code (fences, inline code) and in quotes are there on purpose and do not count. The scan
//! takes time linear in the length of the text, and knows nothing about the forms of calls, only their
//! marks: it is the net below the readers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::families::{CALL_FENCES, CHANNEL_WORDS, MarkPlace, format_mark};
use crate::function::{CATALOG, DONE, ProgramFunction, WAT};

/// A mark in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leftover {
    /// The mark as the answer has it.
    pub(crate) text: String,
    /// If true, the mark stands where a model's format has it, and not in a sentence about it: at the
    /// start of a line or directly after a word, with content directly after it.
    pub(crate) is_used: bool,
}

/// Maximum length of a special token, in bytes.
const MAX_TOKEN: usize = 64;

/// Maximum length of a program's name in front of its arguments, in bytes.
const MAX_NAME: usize = 64;

/// Finds the marks in a final answer, and returns the first one, or the first one that is used if
/// there is any. Returns `None` if there are no marks.
pub(crate) fn find(text: &str, programs: &[ProgramFunction]) -> Option<Leftover> {
    let names: BTreeSet<&str> =
        programs.iter().map(|known| known.program.as_str()).chain([WAT, CATALOG, DONE]).collect();
    let code = Code::of(text);
    let mut first = None;
    if let Some(found) = channel(text).or_else(|| code.call_fences.first().cloned()) {
        return Some(Leftover { text: part(text, &found).to_owned(), is_used: true });
    }
    let mut at = 0;
    while at < text.len() {
        if let Some(after) = code.after(at) {
            at = after;
            continue;
        }
        let Some((found, is_used)) = mark_at(text, at, &names) else {
            at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            continue;
        };
        at = found.end;
        if is_quoted(text, &found) {
            continue;
        }
        let mark = Leftover { text: part(text, &found).to_owned(), is_used };
        if is_used {
            return Some(mark);
        }
        first.get_or_insert(mark);
    }
    first
}

fn part<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text.get(range.clone()).unwrap_or_default()
}

fn before(text: &str, at: usize) -> Option<char> {
    text.get(..at)?.chars().next_back()
}

/// Returns the mark that begins at `at`, and true if it is used, and not mentioned.
fn mark_at(text: &str, at: usize, names: &BTreeSet<&str>) -> Option<(Range<usize>, bool)> {
    let rest = text.get(at..)?;
    match rest.as_bytes().first()? {
        b'<' | b'[' | b'a' | b't' | 0xe2 => {
            if let Some((end, place)) = format_mark(text, at) {
                let found = at..end;
                if place == MarkPlace::InFormat && is_in_sentence(text, &found) {
                    return None;
                }
                let is_used = place == MarkPlace::Always || is_used(text, &found);
                return Some((found, is_used));
            }
            let token = token(rest)?;
            let found = at..at + token;
            let is_used = is_used(text, &found);
            Some((found, is_used))
        }
        b'(' => call_before(text, at, names),
        b'{' => call_before(text, at, names).or_else(|| call_object(text, at, names)),
        _ => None,
    }
}

/// Returns the length of the special token with which a text begins: `<|im_start|>`,
/// `<｜tool▁calls▁begin｜>`, `<｜DSML｜`, `</｜DSML｜`, `<|tool_call>`, `<tool_call|>`.
fn token(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?;
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    let (inside, bar) = match inside.chars().next()? {
        bar @ ('|' | '｜') => {
            let inside = inside.strip_prefix(bar)?;
            (inside.strip_prefix('｜').unwrap_or(inside), Some(bar))
        }
        _ => (inside, None),
    };
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '▁' | '-' | '.' | '/' | '"');
    let window = inside.get(..inside.floor_char_boundary(MAX_TOKEN))?;
    let end = window.find(|c| !word(c)).filter(|end| *end > 0)?;
    let rest = inside.get(end..)?;
    let start = text.len() - inside.len() + end;
    match bar {
        Some('｜') => rest
            .strip_prefix('｜')
            .map(|after| start + '｜'.len_utf8() + usize::from(after.starts_with('>'))),
        Some(_) if rest.starts_with("|>") => Some(start + 2),
        Some(_) if rest.starts_with('>') => Some(start + 1),
        None if rest.starts_with("|>") => Some(start + 2),
        _ => None,
    }
}

/// Returns the call of a known program whose arguments begin at `at`, such as
/// `file_read("a.txt")`. A name with a word in parentheses, as in `file_read(path)`, is a mention
/// unless it is all of its line.
fn call_before(text: &str, at: usize, names: &BTreeSet<&str>) -> Option<(Range<usize>, bool)> {
    let head = text.get(..at)?;
    let window = head.get(head.ceil_char_boundary(at.saturating_sub(MAX_NAME))..)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let length = window.chars().rev().take_while(|c| plain(*c)).count();
    let name = window.get(window.len() - length..)?;
    let own = [name, name.rsplit('.').next().unwrap_or(name)];
    let known = own.into_iter().find(|name| names.contains(name))?;
    let start = at - name.len();
    let inside = text.get(at + 1..)?;
    let argument = inside.trim_start();
    let is_object = text.get(at..)?.starts_with('{');
    let is_value = argument.starts_with(['"', '\'', '{', '[', '`'])
        || argument.starts_with(|c: char| c.is_ascii_digit())
        || is_named(argument);
    let starts_line = is_line_start(text, start);
    // Only one call of a line starts it, so that each line is searched once.
    let is_line = || {
        let line = inside.lines().next().unwrap_or_default();
        starts_line && line.trim_end().ends_with(')')
    };
    let is_call = if is_object { argument.starts_with('"') } else { is_value || is_line() };
    let end = at + 1;
    is_call.then_some((at - known.len()..end, starts_line))
}

/// Returns the call of a known program that is a JSON object, which begins at `at`. It may be cut off
/// after its name.
fn call_object(text: &str, at: usize, names: &BTreeSet<&str>) -> Option<(Range<usize>, bool)> {
    const NAMES: &[&str] = &["name", "tool_name", "tool", "function_name"];
    const ARGUMENTS: &[&str] = &["arguments", "parameters", "args", "input"];
    let window = text.get(at + 1..text.floor_char_boundary(at + 1 + 4 * MAX_NAME))?;
    let (key, rest) = string(window)?;
    let (name, after) = string(rest.trim_start().strip_prefix(':')?)?;
    let name = NAMES.contains(&key).then_some(name).filter(|name| names.contains(*name))?;
    let has_arguments = match after.trim_start().strip_prefix(',') {
        Some(more) => string(more).is_some_and(|(key, _)| ARGUMENTS.contains(&key)),
        None => after.trim().is_empty(),
    };
    let end = at + 1 + window.len() - after.len() - '"'.len_utf8();
    // JSON may be what the user asked for.
    (!name.is_empty() && has_arguments).then_some((at..end, false))
}

/// Reads a string in double quotes at the start of a text. Returns its content and the text after it.
fn string(text: &str) -> Option<(&str, &str)> {
    text.trim_start().strip_prefix('"')?.split_once('"')
}

/// Returns true if a text begins with an argument's name, as in `path="a.txt"` and `path: "a.txt"`.
fn is_named(text: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let window = text.get(..text.floor_char_boundary(MAX_NAME)).unwrap_or_default();
    let rest = window.trim_start_matches(name);
    let value = rest.trim_start().strip_prefix(['=', ':']).unwrap_or_default().trim_start();
    rest.len() < window.len() && value.starts_with(['"', '\'', '{', '['])
}

fn is_line_start(text: &str, at: usize) -> bool {
    let window = text.ceil_char_boundary(at.saturating_sub(MAX_NAME));
    let line = text.get(window..at).unwrap_or_default();
    match line.rfind('\n') {
        Some(end) => line.get(end..).unwrap_or_default().trim().is_empty(),
        None => window == 0 && line.trim().is_empty(),
    }
}

/// Returns true if a mark stands where a format has it.
fn is_used(text: &str, found: &Range<usize>) -> bool {
    let rest = text.get(found.end..).unwrap_or_default();
    let after = rest.chars().next();
    let next = |c: char| c.is_alphanumeric() || matches!(c, '{' | '[' | '<' | '"' | '\n' | '_');
    let touches = before(text, found.start)
        .is_some_and(|c| !c.is_whitespace() && !matches!(c, '(' | '/' | '*' | '_'));
    let has_arguments = rest.trim_start_matches(' ').starts_with('{');
    has_arguments || after.is_some_and(next) && (touches || is_line_start(text, found.start))
}

/// Returns true if a mark stands between the words of a sentence.
fn is_in_sentence(text: &str, found: &Range<usize>) -> bool {
    let is_space = |c: Option<char>| c.is_some_and(|c| matches!(c, ' ' | '('));
    let after = text.get(found.end..).unwrap_or_default();
    let next = after.trim_start_matches(' ').chars().next();
    let goes_on = next.is_some_and(|c| !matches!(c, '{' | '[' | '<' | '\n'));
    is_space(before(text, found.start))
        && !is_line_start(text, found.start)
        && !after.starts_with(char::is_alphanumeric)
        && goes_on
}

/// Returns true if quotation marks enclose a mark.
fn is_quoted(text: &str, found: &Range<usize>) -> bool {
    let pairs = [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’'), ('«', '»'), ('„', '“')];
    let after = text.get(found.end..).unwrap_or_default().chars().next();
    pairs
        .into_iter()
        .any(|(open, close)| before(text, found.start) == Some(open) && after == Some(close))
}

/// Returns the channel with which an answer begins, as in `analysisWe need to look`.
fn channel(text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start().len();
    let rest = text.get(start..)?;
    let channel = CHANNEL_WORDS.iter().find(|channel| {
        rest.strip_prefix(*channel).is_some_and(|rest| rest.starts_with(char::is_uppercase))
    })?;
    Some(start..start + channel.len())
}

/// The parts of a text that are code or quoted, in order.
struct Code {
    /// The start of each part, with its end.
    parts: BTreeMap<usize, usize>,
    /// The names of fences around calls.
    call_fences: Vec<Range<usize>>,
}

impl Code {
    /// Returns the end of the part that begins at `at`, if one does.
    fn after(&self, at: usize) -> Option<usize> {
        self.parts.get(&at).copied()
    }

    /// Finds the fences, quoted lines, inline code and quotes of a text.
    fn of(text: &str) -> Code {
        let mut code = Code { parts: BTreeMap::new(), call_fences: Vec::new() };
        let mut fence: Option<(usize, char, usize)> = None;
        let (mut at, mut paragraph) = (0, 0);
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let bare = line.trim();
            let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'));
            let length = mark.map_or(0, |mark| bare.chars().take_while(|c| *c == mark).count());
            let info = bare.get(length..).unwrap_or_default().trim();
            if let Some((open, own, own_length)) = fence {
                if mark == Some(own) && length >= own_length && info.is_empty() {
                    code.parts.insert(open, at);
                    (fence, paragraph) = (None, at);
                }
            } else if let Some(mark) = mark.filter(|_| length >= 3 && !info.contains('`')) {
                code.spans(text, paragraph..start);
                fence = Some((start, mark, length));
                if CALL_FENCES.contains(&info) {
                    let end = start + line.trim_end().len();
                    code.call_fences.push(end - info.len()..end);
                }
            } else if bare.is_empty() || bare.starts_with('>') {
                code.spans(text, paragraph..start);
                if !bare.is_empty() {
                    code.parts.insert(start, at);
                }
                paragraph = at;
            }
        }
        match fence {
            Some((open, ..)) => drop(code.parts.insert(open, text.len())),
            None => code.spans(text, paragraph..text.len()),
        }
        code
    }

    /// Finds the inline code and the quotes of a paragraph. Inline code ends at the next run of as
    /// many backticks, and a quote at the end of its line.
    fn spans(&mut self, text: &str, paragraph: Range<usize>) {
        let content = part(text, &paragraph);
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (at, _) in content.match_indices('`') {
            match runs.last_mut() {
                Some((start, length)) if *start + *length == at => *length += 1,
                _ => runs.push((at, 1)),
            }
        }
        // For each run, the next run of the same length.
        let mut next_of_length: BTreeMap<usize, usize> = BTreeMap::new();
        let mut closers = vec![None; runs.len()];
        for ((start, length), closer) in runs.iter().zip(&mut closers).rev() {
            *closer = next_of_length.insert(*length, *start + *length);
        }
        let mut at = 0;
        for ((start, _), closer) in runs.iter().zip(closers) {
            let Some(end) = closer.filter(|_| *start >= at) else { continue };
            self.quotes(text, paragraph.start + at..paragraph.start + start);
            self.parts.insert(paragraph.start + start, paragraph.start + end);
            at = end;
        }
        self.quotes(text, paragraph.start + at..paragraph.end);
    }

    /// Finds the texts in double quotes within a line.
    fn quotes(&mut self, text: &str, range: Range<usize>) {
        let mut at = range.start;
        for line in part(text, &range).split_inclusive('\n') {
            let mut marks = line.match_indices('"').map(|(offset, _)| at + offset);
            while let (Some(open), Some(close)) = (marks.next(), marks.next()) {
                self.parts.insert(open, close + 1);
            }
            at += line.len();
        }
    }
}

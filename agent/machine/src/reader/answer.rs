//! Reads the final answer in `ToolCall::Response(…)`.
//!
//! A final answer may contain anything: quotes, parentheses, code, even calls. The reader therefore
//! assumes that the call ends at the first closing parenthesis that ends its line and is outside
//! all brackets, quotes and fences opened in the answer. If there is no such parenthesis, the call
//! ends at the last closing parenthesis that could belong to it before a new turn begins.

use super::{
    Note,
    arguments::{self, after_key},
    header,
    quote::{self, Quote},
    text::{
        after_blanks, after_parenthesis, after_space, byte, char_at, ends_line, fence, line_end,
        run, slice, trim_blank_lines,
    },
    value::without_tail,
};

/// The content of an answer, and the end offset of its call.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) end: usize,
    pub(super) note: Option<Note>,
}

/// Reads the answer that begins at `at`.
pub(super) fn read(text: &str, at: usize) -> Answer {
    let start = after_space(text, at);
    let start = after_key(text, start).unwrap_or(start);
    if let Some((mark, length)) = fence(text, start) {
        fenced(text, start, mark, length)
    } else if let Some(quote) = quote::at_offset(text, start) {
        if quote.is_triple { triple(text, quote) } else { quoted(text, quote) }
    } else if matches!(byte(text, start), b'{' | b'[')
        && let Some(answer) = json(text, start)
    {
        answer
    } else {
        unquoted(text, start)
    }
}

/// A possible end of the answer.
#[derive(Clone, Copy)]
struct Candidate {
    /// End offset of the answer.
    end: usize,
    /// End offset of the call.
    after: usize,
    /// If true, the call's closing parenthesis is present.
    closed: bool,
}

impl Candidate {
    /// Creates a candidate from the closing quote or fence at `end..after`. Returns `None` unless
    /// the closing parenthesis, a new turn or the end of the text follows.
    fn at(text: &str, end: usize, after: usize) -> Option<Self> {
        let mut next = after_space(text, after);
        if let Some(comma @ (',' | '，')) = char_at(text, next) {
            next = after_space(text, next + comma.len_utf8());
        }
        match after_parenthesis(text, next) {
            Some(after) => Some(Self { end, after, closed: true }),
            None if header::is_over(text, after) => Some(Self { end, after, closed: false }),
            None => (next >= text.len()).then_some(Self { end, after, closed: false }),
        }
    }

    fn into_answer(self, text: &str, inside: usize, meant: impl FnOnce(&str) -> String) -> Answer {
        let note = (!self.closed).then_some(Note::UnclosedCall);
        Answer { text: trimmed(&meant(slice(text, inside, self.end))), end: self.after, note }
    }
}

fn trimmed(text: &str) -> String {
    trim_blank_lines(text).to_owned()
}

/// Returns true if a call or a new turn begins at `at`, so that the answer must end before `at`.
fn is_next_turn(text: &str, at: usize) -> bool {
    match byte(text, at) {
        b'\n' => header::is_boundary(text, at + 1),
        b't' | b'T' => header::at_offset(text, at).is_some(),
        _ => false,
    }
}

fn triple(text: &str, quote: Quote) -> Answer {
    let meant = |raw: &str| quote::content(raw, quote);
    // `inner` is true inside triple quotes that the text itself opened.
    let (mut inner, mut last, mut lone, mut from) = (false, None::<Candidate>, None, quote.inside);
    for (end, after) in quote::triple_runs(text, quote) {
        if last.is_some() && (from..end).any(|at| is_next_turn(text, at)) {
            break;
        }
        from = after;
        match Candidate::at(text, end, after) {
            Some(found) if !inner && header::ends_line_decorated(text, found.after) => {
                return found.into_answer(text, quote.inside, meant);
            }
            Some(found) if found.closed => {
                last = Some(found);
                inner = false;
            }
            _ => {
                lone = Some((end, after));
                inner = !inner;
            }
        }
    }
    match (last, lone) {
        (Some(found), _) => found.into_answer(text, quote.inside, meant),
        (None, Some((end, after))) => {
            Candidate { end, after, closed: false }.into_answer(text, quote.inside, meant)
        }
        (None, None) => unclosed(text, quote, Note::UnclosedString),
    }
}

fn quoted(text: &str, quote: Quote) -> Answer {
    let meant = |raw: &str| {
        // If the string has one quote at its start and three at its end, the two surplus quotes are
        // not part of the text.
        let doubled = quote.mark == '"' && raw.ends_with("\"\"") && !raw.ends_with("\\\"\"");
        quote::content(if doubled { raw.trim_end_matches('"') } else { raw }, quote)
    };
    let closers = quote::lenient_closers(quote.mark);
    let (mut depth, mut last_of_line, mut last, mut lone) =
        (0_i64, None::<Candidate>, None::<Candidate>, None);
    let mut chars = slice(text, quote.inside, text.len()).char_indices();
    while let Some((offset, found)) = chars.next() {
        let end = quote.inside + offset;
        if last.is_some() && is_next_turn(text, end) {
            break;
        }
        match found {
            '\\' if !quote.is_raw => {
                chars.next();
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            found if closers.contains(&found) => {
                let after = end + found.len_utf8();
                match Candidate::at(text, end, after) {
                    Some(found) if header::ends_line_decorated(text, found.after) => {
                        if depth <= 0 {
                            return found.into_answer(text, quote.inside, meant);
                        }
                        last_of_line = Some(found);
                        last = Some(found);
                    }
                    Some(found) => last = Some(found),
                    None if lone.is_none() && ends_line(text, after) => lone = Some((end, after)),
                    None => {}
                }
            }
            _ => {}
        }
    }
    let lone = lone.or_else(|| quote::close(text, quote));
    match (last_of_line.or(last), lone) {
        (Some(found), _) => found.into_answer(text, quote.inside, meant),
        (None, Some((end, after))) => {
            Candidate { end, after, closed: false }.into_answer(text, quote.inside, meant)
        }
        (None, None) => unclosed(text, quote, Note::UnclosedString),
    }
}

/// Reads an unclosed string up to the end of the text. Removes trailing quotes and a trailing
/// parenthesis.
fn unclosed(text: &str, quote: Quote, note: Note) -> Answer {
    let raw = without_tail(slice(text, quote.inside, text.len()));
    let raw = raw.trim_end_matches(quote.mark);
    Answer { text: trimmed(&quote::content(raw, quote)), end: text.len(), note: Some(note) }
}

fn fenced(text: &str, start: usize, mark: u8, length: usize) -> Answer {
    let first = line_end(text, start);
    let info = slice(text, start + length, first);
    // If the fence is on a single line, the text follows the opening marks directly.
    let inside = if info.contains("```") { start + length } else { (first + 1).min(text.len()) };
    let (mut last, mut at) = (None, inside);
    while at < text.len() {
        let marks = if byte(text, at) == mark { run(text, at, mark) } else { 0 };
        let after = at + marks;
        if marks >= length {
            let end = if slice(text, 0, at).ends_with('\n') {
                at.saturating_sub(1).max(inside)
            } else {
                at
            };
            if let Some(found) = Candidate::at(text, end, after) {
                return found.into_answer(text, inside, str::to_owned);
            }
            if !char_at(text, after).is_some_and(char::is_alphanumeric) {
                last = Some(Candidate { end, after, closed: false });
            }
        } else if last.is_some() && is_next_turn(text, at) {
            break;
        }
        at = after.max(at + 1);
    }
    match last {
        Some(found) => found.into_answer(text, inside, str::to_owned),
        None => {
            let raw = without_tail(slice(text, inside, text.len()));
            Answer { text: trimmed(raw), end: text.len(), note: Some(Note::UnclosedFence) }
        }
    }
}

/// Reads an answer that is a JSON value. Returns `None` for any other answer.
fn json(text: &str, start: usize) -> Option<Answer> {
    let found = arguments::read(text, start);
    found.only().map(|value| Answer { text: trimmed(value), end: found.end, note: None })
}

/// Reads an answer without quotes, up to the closing parenthesis of the call.
fn unquoted(text: &str, start: usize) -> Answer {
    let (mut depth, mut last) = (0_i64, None::<Candidate>);
    for (offset, found) in slice(text, start, text.len()).char_indices() {
        let end = start + offset;
        if last.is_some() && is_next_turn(text, end) {
            break;
        }
        match found {
            '(' | '（' => depth += 1,
            ')' | '）' => {
                depth -= 1;
                let after = end + found.len_utf8();
                if depth < 0 {
                    let candidate = Candidate { end, after, closed: true };
                    if header::ends_line_decorated(text, after) {
                        return candidate.into_answer(text, start, |raw| raw.trim().to_owned());
                    }
                    last = last.or(Some(candidate));
                }
            }
            _ => {}
        }
    }
    let unclosed = Candidate { end: text.len(), after: text.len(), closed: false };
    last.unwrap_or(unclosed).into_answer(text, start, |raw| raw.trim().to_owned())
}

/// Reads an answer that follows `ToolCall::Response` without parentheses, after a colon or a line
/// break. The answer extends to the end of the text. Returns `None` if there is no such answer.
pub(super) fn without_parentheses(text: &str, at: usize) -> Option<String> {
    let next = after_blanks(text, at);
    let inside = match byte(text, next) {
        b':' => next + 1,
        b'\n' => next,
        _ => return None,
    };
    let found = slice(text, inside, text.len()).trim();
    (!found.is_empty()).then(|| found.to_owned())
}

//! Slips below the level of forms: characters, comments and quotes of other languages.

use crate::fix::Change;
use crate::messages::{self, Fault, Message};

/// What to say of a lone `;`.
pub(super) fn semicolon(source: &str, at: usize) -> Message {
    let message = messages::one_semicolon();
    match line_from(source, at + 1).trim() {
        // The end of a statement in other languages.
        "" => message.safe(Change::Replace(" ".to_owned())),
        // What follows may be code as well as a comment.
        rest if rest.starts_with('(') => message.likely(Change::Replace(" ".to_owned())),
        _ => message.safe(Change::Replace(";;".to_owned())),
    }
}

/// What to say of a character that is part of no token.
pub(super) fn character(source: &str, at: usize, c: char) -> Message {
    let message = messages::bad_character(c);
    let written = match c {
        ',' => " ",
        '{' if block_end(source, at).is_some() => {
            let end = block_end(source, at).unwrap_or(at);
            return message.safe(Change::Edits(vec![(at..at + 1, "(do".to_owned()), (end..end + 1, ")".to_owned())]));
        }
        '（' => "(",
        '）' => ")",
        '−' | '–' => "-",
        '×' => "*",
        '÷' => "/",
        '≤' => "<=",
        '≥' => ">=",
        '≠' => "!=",
        _ => return message.maybe_safe(typographic(source, at, c)),
    };
    message.safe(Change::Replace(written.to_owned()))
}

/// The `}` of a block of statements that a `{` begins, as other languages write it.
fn block_end(source: &str, at: usize) -> Option<usize> {
    let rest = source.get(at + 1..)?;
    let (mut depth, mut quoted) = (0_i32, false);
    if !rest.trim_start().starts_with('(') {
        return None;
    }
    for (offset, c) in rest.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' => return None,
            '(' => depth += 1,
            ')' => depth -= 1,
            '}' => return (depth == 0).then_some(at + 1 + offset),
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// Plain quotes for a text between typographic ones on one line.
fn typographic(source: &str, at: usize, opening: char) -> Option<Change> {
    let closing: &[char] = match opening {
        '“' | '„' | '‟' | '”' => &['”', '“', '"'],
        '‘' | '’' => &['’', '‘', '\''],
        '«' => &['»'],
        _ => return None,
    };
    let inner = at + opening.len_utf8();
    let (length, close) = line_from(source, inner).char_indices().find(|(_, c)| closing.contains(c))?;
    let end = inner + length + close.len_utf8();
    Some(Change::Edits(vec![(at..end, quoted(source.get(inner..inner + length)?))]))
}

/// What is wrong with an atom as such: a comment of another language, or a text in other quotes.
pub(super) fn atom(source: &str, start: usize, end: usize) -> Option<Box<Fault>> {
    let atom = source.get(start..end)?;
    let message = match atom.chars().next()? {
        '\'' | '`' => {
            let message = messages::other_quotes(atom);
            let rest = line_from(source, start + 1);
            let quote = atom.get(..1)?;
            let closes = |at: &usize| !rest.get(at + 1..).is_some_and(|after| after.starts_with(inside_atom));
            let length = rest.match_indices(quote).map(|(at, _)| at).find(closes);
            let inner = length.and_then(|length| rest.get(..length));
            match inner {
                Some(inner) if inner.contains("${") => message,
                Some(inner) => {
                    let change = Change::Edits(vec![(start..start + inner.len() + 2, quoted(inner))]);
                    if inner.contains(quote) { message.likely(change) } else { message.safe(change) }
                }
                None => message,
            }
        }
        '/' if atom.starts_with("/*") => {
            let message = messages::other_comment("/*");
            match source.get(start + 2..)?.find("*/") {
                Some(length) => {
                    let close = start + 2 + length;
                    let edits = vec![(start..start + 2, "(;".to_owned()), (close..close + 2, ";)".to_owned())];
                    message.safe(Change::Edits(edits))
                }
                None => message,
            }
        }
        '/' | '#' | '-' if !matches!(atom, "#t" | "#f" | "#true" | "#false") => {
            let mark = ["//", "--", "#"].into_iter().find(|mark| atom.starts_with(mark))?;
            if mark == "--" && atom.get(2..)?.starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            let change = Change::Edits(vec![(start..start + mark.len(), ";;".to_owned())]);
            let before = source.get(..start)?.trim_end_matches([' ', '\t']);
            // Between operands the same signs are operators elsewhere.
            let apart = before.is_empty() || before.ends_with(['\n', ')']);
            let message = messages::other_comment(mark);
            if apart { message.safe(change) } else { message.likely(change) }
        }
        _ => return None,
    };
    Some(Fault::new(start..end, message))
}

fn inside_atom(c: char) -> bool {
    !c.is_whitespace() && c != ')' && c != '('
}

/// Where the closing quote of a text goes that runs to the end of the source or into another one: before the closing
/// parentheses of its line, where those are exactly the ones that the line lacks.
pub(super) fn closing_quote(source: &str, start: usize) -> Option<Change> {
    let rest = line_from(source, start + 1);
    let body = rest.trim_end().trim_end_matches(')').trim_end();
    let closing = rest.get(body.len()..)?.matches(')').count();
    let line_start = source.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let before = source.get(line_start..start)?;
    let plain = !before.contains(['"', ';']) && !body.contains(['(', ')', '"', ';']);
    let open = before.matches('(').count().checked_sub(before.matches(')').count())?;
    // A quote of another kind at its end was meant to close it.
    let body_end = body.trim_end_matches(['”', '“', '’', '\'']);
    let (at, end) = (start + 1 + body_end.len(), start + 1 + body.len());
    (plain && closing > 0 && open == closing).then(|| Change::Edits(vec![(at..end, "\"".to_owned())]))
}

/// The rest of the line from a place on, without its end.
fn line_from(source: &str, at: usize) -> &str {
    source.get(at..).and_then(|rest| rest.lines().next()).unwrap_or("")
}

/// A text in plain quotes. Escapes in it stay; plain quotes in it become ones.
fn quoted(inner: &str) -> String {
    let plain = inner.replace("\\\"", "\"").replace("\\'", "'").replace('"', "\\\"");
    format!("\"{plain}\"")
}

//! Characters, comments and quotes that are not part of the language.

use crate::diagnose::fix::{Change, Edits};
use crate::diagnose::wording::{self, Fault, Message};
use crate::syntax::tree::line_start;

/// Builds the message for a single `;`.
pub(crate) fn semicolon(source: &str, at: usize) -> Message {
    let message = wording::one_semicolon();
    match line_from(source, at + 1).trim() {
        // The `;` ends a statement, as in other languages.
        "" => message.safe(Change::Replace(" ".to_owned())),
        // The rest of the line may be code or a comment.
        rest if rest.starts_with('(') => message.likely(Change::Replace(" ".to_owned())),
        _ => message.safe(Change::Replace(";;".to_owned())),
    }
}

/// Builds the message for a character that cannot start a token.
pub(crate) fn character(source: &str, at: usize, c: char) -> Message {
    let message = wording::bad_character(c);
    let written = match c {
        ',' => " ",
        '{' if let Some(end) = block_end(source, at) => {
            return message.safe(Edits::one(at..at + 1, "(do").replace(end..end + 1, ")"));
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

/// Returns the offset of the `}` that closes the block of statements whose `{` is at the offset
/// `at`. Returns `None` if there is no such block.
fn block_end(source: &str, at: usize) -> Option<usize> {
    let rest = source.get(at + 1..)?;
    let mut depth = 0_i32;
    let mut quoted = false;
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

/// Returns the change that rewrites a template such as `` `hello ${name}` `` as a `fmt` form.
/// Returns `None` if an inserted value is neither a name nor a form.
fn template(source: &str, start: usize, inner: &str) -> Option<Change> {
    let mut text = String::new();
    let mut values = String::new();
    let mut rest = inner;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        let end = after.find('}')?;
        let value = after.get(2..end)?.trim();
        let is_name = value.trim_start_matches('$').bytes();
        let is_name = is_name.clone().count() > 0
            && is_name.into_iter().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let is_form = value.starts_with('(') && value.ends_with(')');
        text.push_str(&before.replace('{', "{{").replace('}', "}}"));
        text.push_str("{}");
        match (is_name, is_form) {
            (true, _) => values.push_str(&format!(" ${}", value.trim_start_matches('$'))),
            (false, true) => values.push_str(&format!(" {value}")),
            (false, false) => return None,
        }
        rest = after.get(end + 1..)?;
    }
    text.push_str(&rest.replace('{', "{{").replace('}', "}}"));
    let end = start + inner.len() + 2;
    source.get(start..end)?;
    Some(Change::edit(start..end, format!("(fmt {}{values})", quoted(&text))))
}

/// Returns the change that replaces typographic quotes around a string with straight ones. Returns
/// `None` unless both quotes are on the same line.
fn typographic(source: &str, at: usize, opening: char) -> Option<Change> {
    let closing: &[char] = match opening {
        '“' | '„' | '‟' | '”' => &['”', '“', '"'],
        '‘' | '’' => &['’', '‘', '\''],
        '«' => &['»'],
        _ => return None,
    };
    let inner = at + opening.len_utf8();
    let (length, close) =
        line_from(source, inner).char_indices().find(|(_, c)| closing.contains(c))?;
    let end = inner + length + close.len_utf8();
    Some(Change::edit(at..end, quoted(source.get(inner..inner + length)?)))
}

/// Returns the fault for an atom that starts a comment in the syntax of another language, such as
/// `//`, or a string in single quotes or backticks. Returns `None` for any other atom.
pub(crate) fn atom(source: &str, start: usize, end: usize) -> Option<Box<Fault>> {
    let atom = source.get(start..end)?;
    let message = match atom.chars().next()? {
        // A quoted list in the syntax of Lisp.
        '\'' if atom == "'" && source.get(end..)?.trim_start_matches(' ').starts_with('(') => {
            return None;
        }
        '\'' | '`' => {
            let message = wording::other_quotes(atom);
            let rest = line_from(source, start + 1);
            let quote = atom.get(..1)?;
            let closes = |at: &usize| {
                !rest.get(at + 1..).is_some_and(|after| after.starts_with(inside_atom))
            };
            let length = rest.match_indices(quote).map(|(at, _)| at).find(closes);
            let inner = length.and_then(|length| rest.get(..length));
            match inner {
                Some(inner) if inner.contains("${") => {
                    wording::template(atom).maybe_safe(template(source, start, inner))
                }
                Some(inner) => {
                    let change = Change::edit(start..start + inner.len() + 2, quoted(inner));
                    if inner.contains(quote) {
                        message.likely(change)
                    } else {
                        message.safe(change)
                    }
                }
                None => message,
            }
        }
        '/' if atom.starts_with("/*") => {
            let message = wording::other_comment("/*");
            match source.get(start + 2..)?.find("*/") {
                Some(length) => {
                    let close = start + 2 + length;
                    let edits = Edits::one(start..start + 2, "(;");
                    message.safe(edits.replace(close..close + 2, ";)"))
                }
                None => message,
            }
        }
        '/' | '#' | '-' if !matches!(atom, "#t" | "#f" | "#true" | "#false") => {
            let mark = ["//", "--", "#"].into_iter().find(|mark| atom.starts_with(mark))?;
            // `(// A B)` is a division in other languages.
            if mark == "//" && source.get(..start)?.ends_with('(') {
                return None;
            }
            if mark == "--" && atom.get(2..)?.starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            let change = Change::edit(start..start + mark.len(), ";;");
            let before = source.get(..start)?.trim_end_matches([' ', '\t']);
            // Between operands, these signs are operators in other languages.
            let apart = before.is_empty() || before.ends_with(['\n', ')']);
            let message = wording::other_comment(mark);
            if apart { message.safe(change) } else { message.likely(change) }
        }
        _ => return None,
    };
    Some(Fault::new(start..end, message))
}

/// Returns the fault for the raw string at `start..end` if it ends with a backslash and a quote and
/// is directly followed by more text. In other languages, the backslash escapes the quote, so the
/// string would continue.
pub(crate) fn raw_quote(source: &str, start: usize, end: usize) -> Option<Box<Fault>> {
    let next = source.get(end..)?.chars().next()?;
    if !source.get(start..end)?.ends_with("\\\"") || next.is_whitespace() || next == ')' {
        return None;
    }
    let inner = source.get(start + 2..)?;
    let mut escaped = false;
    let length = inner.char_indices().find_map(|(at, c)| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes.then_some(at)
    });
    let change = length.and_then(|length| {
        let body = inner.get(..length)?.replace("\\\"", "\"");
        let span = start..start + length + 3;
        (!body.contains("\"\"\"")).then(|| Change::edit(span, format!("r\"\"\"{body}\"\"\"")))
    });
    Some(Fault::new(start..end, wording::raw_quote().maybe_safe(change)))
}

fn inside_atom(c: char) -> bool {
    !c.is_whitespace() && c != ')' && c != '('
}

/// Returns the change that adds the missing closing quote of the string at `start`.
///
/// The quote is added before the closing parentheses at the end of the line. Returns `None` unless
/// these parentheses close exactly the lists that the line opens.
pub(crate) fn closing_quote(source: &str, start: usize) -> Option<Change> {
    let rest = line_from(source, start + 1);
    let body = rest.trim_end().trim_end_matches(')').trim_end();
    let closing = rest.get(body.len()..)?.matches(')').count();
    let before = source.get(line_start(source, start)..start)?;
    let plain = !before.contains(['"', ';']) && !body.contains(['(', ')', '"', ';']);
    let open = before.matches('(').count().checked_sub(before.matches(')').count())?;
    // A different kind of quote at the end of the string was meant to close it.
    let body_end = body.trim_end_matches(['”', '“', '’', '\'']);
    let (at, end) = (start + 1 + body_end.len(), start + 1 + body.len());
    (plain && closing > 0 && open == closing).then(|| Change::edit(at..end, "\""))
}

/// Returns the rest of the line that contains the offset `at`, without its line end.
fn line_from(source: &str, at: usize) -> &str {
    source.get(at..).and_then(|rest| rest.lines().next()).unwrap_or("")
}

/// Puts a string in straight double quotes. Escapes the double quotes inside the string and
/// unescapes the single quotes.
fn quoted(inner: &str) -> String {
    let plain = inner.replace("\\\"", "\"").replace("\\'", "'").replace('"', "\\\"");
    format!("\"{plain}\"")
}

//! Bracket expressions in POSIX patterns.

use std::iter::Peekable;
use std::str::Chars;

use super::{escaped_code, push_literal};

/// The interpretation of a bracket expression.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Set {
    /// A backslash is an ordinary character.
    Plain,
    /// Like `Plain`, but `!` also negates a set, as in file name patterns.
    Names,
    /// Like `Plain`, but a negated set does not match a newline.
    Lines,
    /// A backslash starts an escape sequence, as in awk.
    Escapes,
}

/// The POSIX character classes, as members of a set in the regex engine's syntax.
const CLASSES: [(&str, &str); 12] = [
    ("alnum", r"\p{Alphabetic}\p{Nd}"),
    ("alpha", r"\p{Alphabetic}"),
    ("blank", "[:blank:]"),
    ("cntrl", "[:cntrl:]"),
    ("digit", "[:digit:]"),
    ("graph", r"[:graph:]\p{Alphabetic}\p{N}\p{P}\p{S}"),
    ("lower", r"\p{Lowercase}"),
    ("print", r"[:print:]\p{Alphabetic}\p{N}\p{P}\p{S}"),
    ("punct", r"[:punct:]\p{P}\p{S}"),
    ("space", r"\s"),
    ("upper", r"\p{Uppercase}"),
    ("xdigit", "[:xdigit:]"),
];

/// Parses a bracket expression, starting after its `[`. Returns a set in the engine's syntax.
///
/// # Errors
///
/// If the expression is invalid. The message is the same as GNU grep's.
pub(super) fn bracket(chars: &mut Peekable<Chars<'_>>, set: Set) -> Result<String, String> {
    let mut out = String::from("[");
    if chars.next_if(|next| *next == '^' || (*next == '!' && set == Set::Names)).is_some() {
        out.push('^');
        if set == Set::Lines {
            out.push_str(r"\n");
        }
    }
    let mut first = true;
    loop {
        let letter = chars.next().ok_or_else(unmatched)?;
        match letter {
            ']' if !first => break,
            '[' if matches!(chars.peek(), Some(':' | '.' | '=')) => named(chars, &mut out)?,
            low => {
                let low = member(chars, set, low);
                push_literal(&mut out, low);
                if let Some(high) = range_end(chars, set)? {
                    if high < low {
                        return Err("Invalid range end".to_owned());
                    }
                    out.push('-');
                    push_literal(&mut out, high);
                }
            }
        }
        first = false;
    }
    out.push(']');
    Ok(out)
}

fn unmatched() -> String {
    "Unmatched [, [^, [:, [., or [=".to_owned()
}

/// Parses a class, an equivalence class or a collating symbol, starting after its `[`.
fn named(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), String> {
    let kind = chars.next().unwrap_or(':');
    let mut name = String::new();
    loop {
        let next = chars.next().ok_or_else(unmatched)?;
        if next == kind && chars.next_if_eq(&']').is_some() {
            break;
        }
        name.push(next);
    }
    if kind != ':' {
        name.chars().for_each(|letter| push_literal(out, letter));
        return Ok(());
    }
    let class = CLASSES.iter().find(|(known, _)| *known == name);
    let (_, members) = class.ok_or_else(|| "Invalid character class name".to_owned())?;
    out.push_str(members);
    Ok(())
}

/// Parses a set member whose first character, `letter`, was just read. Decodes awk's escapes.
fn member(chars: &mut Peekable<Chars<'_>>, set: Set, letter: char) -> char {
    if letter != '\\' || set != Set::Escapes {
        return letter;
    }
    let Some(escaped) = chars.next() else { return letter };
    escaped_code(escaped, chars).unwrap_or(escaped)
}

/// Parses the `-` and the last character of a range. Returns `None` if no range follows.
fn range_end(chars: &mut Peekable<Chars<'_>>, set: Set) -> Result<Option<char>, String> {
    let mut ahead = chars.clone();
    if ahead.next() != Some('-') || ahead.peek().is_none_or(|next| *next == ']') {
        return Ok(None);
    }
    chars.next();
    let high = chars.next().ok_or_else(unmatched)?;
    if high != '[' || !matches!(chars.peek(), Some('.' | '=')) {
        return Ok(Some(member(chars, set, high)));
    }
    let kind = chars.next();
    let high = chars.next().ok_or_else(unmatched)?;
    if chars.next() != kind || chars.next() != Some(']') {
        return Err(unmatched());
    }
    Ok(Some(high))
}

//! The lexer for awk programs.

use super::value::prefix;
use crate::pattern::escaped_code;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Number(f64),
    Text(String),
    Regex(String),
    Name(String),
    /// A name directly followed by `(`.
    Call(String),
    Keyword(&'static str),
    /// The name of a built-in function.
    Builtin(&'static str),
    Sign(&'static str),
    Line,
    End,
}

const KEYWORDS: [&str; 25] = [
    "BEGIN",
    "END",
    "function",
    "func",
    "if",
    "else",
    "while",
    "for",
    "do",
    "break",
    "continue",
    "next",
    "nextfile",
    "exit",
    "return",
    "delete",
    "in",
    "getline",
    "print",
    "printf",
    "switch",
    "case",
    "default",
    "BEGINFILE",
    "ENDFILE",
];

pub(crate) const BUILTINS: [&str; 38] = [
    "length", "substr", "index", "split", "sub", "gsub", "gensub", "match", "sprintf", "sin",
    "cos", "atan2", "exp", "log", "sqrt", "int", "rand", "srand", "tolower", "toupper", "system",
    "close", "fflush", "strftime", "systime", "mktime", "asort", "asorti", "and", "or", "xor",
    "lshift", "rshift", "compl", "strtonum", "typeof", "isarray", "patsplit",
];

const SIGNS: [&str; 46] = [
    "**=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**", "==", "<=", ">=",
    "!=", "!~", ">>", "|&", "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^",
    "!", ">", "<", "|", "?", ":", "~", "$", "=", "@", "&", "\\", "`",
];

/// Splits a program into tokens, each with its line number.
pub(crate) fn tokens(program: &str) -> Result<Vec<(Token, usize)>, String> {
    let mut tokens: Vec<(Token, usize)> = Vec::new();
    let mut rest = program;
    let mut line = 1;
    while let Some(letter) = rest.chars().next() {
        let skip = |count: usize| rest.get(count..).unwrap_or_default();
        match letter {
            ' ' | '\t' | '\r' | '\x0c' => rest = skip(1),
            '\n' => {
                tokens.push((Token::Line, line));
                line += 1;
                rest = skip(1);
            }
            '\\' if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") => {
                line += 1;
                rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
            }
            '#' => rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default(),
            '"' => {
                let (text, length) = quoted(rest, '"')
                    .ok_or_else(|| format!("line {line}: a text lacks its closing quote"))?;
                tokens.push((Token::Text(unescape(text)), line));
                line += text.matches('\n').count();
                rest = skip(length);
            }
            '/' if !ends_operand(tokens.last().map(|token| &token.0)) => {
                let (text, length) = regex(rest).ok_or_else(|| {
                    format!("line {line}: a regular expression lacks its closing slash")
                })?;
                tokens.push((Token::Regex(text.to_owned()), line));
                rest = skip(length);
            }
            '0'..='9' | '.' if prefix(rest).is_some() => {
                let (number, length) = number(rest);
                tokens.push((Token::Number(number), line));
                rest = skip(length);
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = rest
                    .bytes()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                    .count();
                let name = rest.get(..length).unwrap_or_default();
                rest = skip(length);
                let token = word(name, rest.starts_with('('));
                tokens.push((token, line));
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign =
                    sign.ok_or_else(|| format!("line {line}: `{letter}` has no meaning here"))?;
                tokens.push((Token::Sign(sign), line));
                rest = skip(sign.len());
            }
        }
    }
    tokens.push((Token::Line, line));
    tokens.push((Token::End, line));
    Ok(tokens)
}

/// Parses the number at the start of a text: decimal, hexadecimal after `0x`, octal after `0`.
/// Returns the number and its length in bytes.
fn number(text: &str) -> (f64, usize) {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = hex.map_or(0, |hex| hex.bytes().take_while(u8::is_ascii_hexdigit).count());
    if let (Some(hex), true) = (hex, digits > 0) {
        let number = u64::from_str_radix(hex.get(..digits).unwrap_or_default(), 16);
        return (number.unwrap_or(u64::MAX) as f64, 2 + digits);
    }
    let (number, length) = prefix(text).unwrap_or_default();
    let octal = text.get(..length).filter(|digits| {
        digits.len() > 1
            && digits.starts_with('0')
            && digits.bytes().all(|byte| (b'0'..b'8').contains(&byte))
    });
    match octal.map(|digits| u64::from_str_radix(digits, 8)) {
        Some(Ok(octal)) => (octal as f64, length),
        _ => (number, length),
    }
}

/// Returns the token for a word. `called` is true if an opening parenthesis follows it.
fn word(name: &str, called: bool) -> Token {
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| **keyword == name) {
        return Token::Keyword(if *keyword == "func" { "function" } else { keyword });
    }
    match BUILTINS.iter().find(|builtin| **builtin == name) {
        Some(builtin) => Token::Builtin(builtin),
        None if called => Token::Call(name.to_owned()),
        None => Token::Name(name.to_owned()),
    }
}

/// Returns true if `last` ends an operand, so that a following slash means division.
fn ends_operand(last: Option<&Token>) -> bool {
    match last {
        Some(
            Token::Number(_)
            | Token::Text(_)
            | Token::Regex(_)
            | Token::Name(_)
            | Token::Builtin(_),
        ) => true,
        Some(Token::Sign(sign)) => matches!(*sign, ")" | "]" | "$" | "++" | "--"),
        _ => false,
    }
}

fn quoted(text: &str, end: char) -> Option<(&str, usize)> {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == end => return Some((text.get(1..at)?, at + 1)),
            _ => {}
        }
    }
    None
}

/// Reads a regular expression up to its closing slash. A slash in brackets does not end it.
fn regex(text: &str) -> Option<(&str, usize)> {
    let mut escaped = false;
    let mut bracket = None;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if bracket.is_none() => bracket = Some(at),
            // A `]` at the start of a set is a member of the set.
            ']' if bracket.is_some_and(|open| {
                text.get(open + 1..at).is_some_and(|set| !set.is_empty() && set != "^")
            }) =>
            {
                bracket = None
            }
            '/' if bracket.is_none() => return Some((text.get(1..at)?, at + 1)),
            _ => {}
        }
    }
    // An unclosed bracket does not start a set, so the first slash ends the expression.
    quoted(text, '/')
}

/// Replaces the escape sequences in a string.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('\n') => {}
            Some('\\') | None => out.push('\\'),
            // Like gawk, drops the backslash of an unknown escape.
            Some(letter) => out.push(escaped_code(letter, &mut letters).unwrap_or(letter)),
        }
    }
    out
}

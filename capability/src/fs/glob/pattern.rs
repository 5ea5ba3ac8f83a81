//! Path patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, and `**` for any number of folders. A
//! backslash escapes the next character.

use wattle_rt::{Code, Failure, quote};

use crate::QUOTED;

/// Maximum length of a pattern, in bytes.
const MAX_LENGTH: usize = 4_096;
/// Maximum number of brace-free patterns that one pattern may expand to.
const MAX_ALTERNATIVES: usize = 256;

/// A parsed pattern without braces.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) segments: Vec<Segment>,
    /// If true, the pattern matches folders. Otherwise, it matches files.
    pub(super) folders: bool,
}

/// The part of a pattern between two slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// A name without wildcards, or a path to a parent folder, such as `../..`.
    Name(String),
    /// A name with wildcards.
    Wildcard(Vec<Token>),
    /// `**`: any number of folders, including none.
    Folders,
}

/// A part of a name with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Char(char),
    /// `?`: one character.
    One,
    /// `*`: any number of characters.
    Any,
    /// `[…]`: one character inside the ranges or, if the flag is true, outside of them.
    Class(Vec<(char, char)>, bool),
}

impl Pattern {
    /// Parses a pattern and expands its braces into patterns without braces.
    ///
    /// # Errors
    /// `EPARSE` if it is empty or too long, or if `..` follows a wildcard; `EBOUND` if it has too
    /// many alternatives.
    pub(super) fn read(text: &str) -> Result<Vec<Pattern>, Failure> {
        let bad = |why: &str| {
            let text = quote(text, QUOTED);
            Failure::new(Code::EPARSE, format!("{text} is not a pattern of paths: {why}"))
        };
        if text.len() > MAX_LENGTH {
            return Err(bad(&format!("it has {} bytes, more than {MAX_LENGTH}", text.len())));
        }
        let mut patterns = Vec::new();
        for path in braces(text)? {
            let segments = segments(&path).ok_or_else(|| bad("`..` follows a wildcard"))?;
            if segments.is_empty() {
                return Err(bad("it names no file; `*` matches all files of a folder"));
            }
            patterns.push(Pattern { segments, folders: path.ends_with('/') });
        }
        Ok(patterns)
    }
}

/// Expands the braces of a pattern.
fn braces(text: &str) -> Result<Vec<String>, Failure> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        match first_brace(&text) {
            None => done.push(text),
            Some((before, choices, behind)) => {
                open.extend(choices.iter().map(|choice| [before, *choice, behind].concat()));
            }
        }
        if open.len() + done.len() > MAX_ALTERNATIVES {
            let why = format!("the braces of the pattern make more than {MAX_ALTERNATIVES} paths");
            return Err(Failure::new(Code::EBOUND, why));
        }
    }
    Ok(done)
}

/// Finds the first pair of matching braces with a comma between them. Returns the text before the
/// braces, the alternatives, and the text after the braces, or `None` if there is no such pair.
fn first_brace(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let mut chars = text.char_indices();
    // The offset of each open brace, with the offsets of its commas.
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '{' => open.push((at, Vec::new())),
            ',' => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            '}' => {
                let Some((start, mut ends)) = open.pop() else { continue };
                if ends.is_empty() {
                    continue;
                }
                ends.push(at);
                let mut from = start + 1;
                let mut choices = Vec::new();
                for end in ends {
                    choices.push(text.get(from..end)?);
                    from = end + 1;
                }
                return Some((text.get(..start)?, choices, text.get(from..)?));
            }
            _ => {}
        }
    }
    None
}

/// Parses a pattern without braces. Returns `None` if `..` follows a wildcard.
fn segments(path: &str) -> Option<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => match segments.pop() {
                None => segments.push(Segment::Name("..".to_owned())),
                // A `..` that leaves the workdir is kept, so that access to it is denied later.
                Some(Segment::Name(up)) if up == ".." || up.ends_with("/..") => {
                    segments.push(Segment::Name(format!("{up}/..")));
                }
                Some(Segment::Name(_)) => {}
                Some(_) => return None,
            },
            "**" if segments.last() == Some(&Segment::Folders) => {}
            "**" => segments.push(Segment::Folders),
            name => segments.push(segment(name)),
        }
    }
    Some(segments)
}

/// Parses a name, with or without wildcards.
fn segment(name: &str) -> Segment {
    let mut tokens = Vec::new();
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '?' => Token::One,
            '*' if tokens.last() == Some(&Token::Any) => continue,
            '*' => Token::Any,
            '\\' => Token::Char(rest.next().unwrap_or('\\')),
            '[' => match class(rest.as_str()) {
                Some((class, behind)) => {
                    rest = behind.chars();
                    class
                }
                None => Token::Char('['),
            },
            c => Token::Char(c),
        });
    }
    let literal: Option<String> = tokens
        .iter()
        .map(|token| if let Token::Char(c) = token { Some(*c) } else { None })
        .collect();
    literal.map_or(Segment::Wildcard(tokens), Segment::Name)
}

/// Parses a character class from the text after `[`. Returns the class and the remaining text, or
/// `None` if the class is not closed.
fn class(inside: &str) -> Option<(Token, &str)> {
    let body = inside.strip_prefix(['!', '^']).unwrap_or(inside);
    let mut ranges = Vec::new();
    let mut rest = body.chars();
    loop {
        let mut from = rest.next()?;
        // A `]` in first position is a literal character.
        if from == ']' && !ranges.is_empty() {
            break;
        }
        if from == '\\' {
            from = rest.next()?;
        }
        let mut ahead = rest.clone();
        let to = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) if to != ']' => {
                rest = ahead;
                to
            }
            _ => from,
        };
        ranges.push((from, to));
    }
    Some((Token::Class(ranges, body.len() < inside.len()), rest.as_str()))
}

impl Segment {
    /// Returns true if the segment matches a name. A wildcard does not match a dot at the start of
    /// a name.
    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Segment::Name(own) => own == name,
            Segment::Folders => !name.starts_with('.'),
            Segment::Wildcard(tokens) => {
                let spells_dot = tokens.first() == Some(&Token::Char('.'));
                (spells_dot || !name.starts_with('.')) && matches(tokens, name)
            }
        }
    }
}

impl Token {
    fn matches(&self, c: char) -> bool {
        match self {
            Token::Char(own) => *own == c,
            Token::One | Token::Any => true,
            Token::Class(ranges, negated) => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

/// Returns true if the tokens match the whole name. After a mismatch, only the last `*` is extended
/// by one character. The time is therefore at most proportional to the product of the lengths of
/// the pattern and the name.
fn matches(tokens: &[Token], name: &str) -> bool {
    let mut at = 0;
    let mut rest = name.chars();
    // The index of the token after the last `*`, and the text that this `*` has not consumed.
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let token = tokens.get(at);
        if token == Some(&Token::Any) {
            at += 1;
            retry = Some((at, rest.clone()));
            continue;
        }
        let mut ahead = rest.clone();
        match (token, ahead.next()) {
            (None, None) => return true,
            (Some(token), Some(c)) if token.matches(c) => {
                at += 1;
                rest = ahead;
            }
            _ => {
                let Some((after, taken)) = &mut retry else { return false };
                if taken.next().is_none() {
                    return false;
                }
                at = *after;
                rest = taken.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a pattern without slashes matches a name.
    fn is_match(pattern: &str, name: &str) -> bool {
        let patterns = Pattern::read(pattern).unwrap();
        patterns.iter().any(|pattern| match pattern.segments.as_slice() {
            [segment] => segment.matches(name),
            _ => false,
        })
    }

    #[test]
    fn names_are_matched() {
        for (pattern, yes, no) in [
            ("*", &["a", "a.b", "ä"][..], &[".a", ".."][..]),
            ("*.txt", &["a.txt", "a.b.txt"], &["a.txt.", ".txt", "txt"]),
            (".*", &[".a"], &["a"]),
            ("a?c", &["abc", "aäc"], &["ac", "abbc"]),
            ("?a", &["ba"], &[".a"]),
            ("a*b*c", &["abc", "axbxc", "abcbc"], &["abcb", "ab"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[!a-c]x", &["dx", "-x"], &["ax"]),
            ("[^a]", &["b"], &["a"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[a", &["[a"], &["a"]),
            ("\\*", &["*"], &["a"]),
            ("[\\]]", &["]"], &["\\"]),
            ("{a,b*}c", &["ac", "bxc"], &["c", "abc"]),
            ("{a,{b,c}}", &["a", "b", "c"], &["{a"]),
            ("{,x}a", &["a", "xa"], &["ya"]),
            ("{a}", &["{a}"], &["a"]),
            ("a,b", &["a,b"], &["a"]),
            ("{a,b", &["{a,b"], &["a"]),
            ("a**b", &["ab", "axb"], &["a"]),
        ] {
            for name in yes {
                assert!(is_match(pattern, name), "{pattern} {name}");
            }
            for name in no {
                assert!(!is_match(pattern, name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn a_name_with_many_stars_is_matched_quickly() {
        assert!(!is_match(&"*a".repeat(1_000), &"a".repeat(255)));
        assert!(is_match(&"*a".repeat(255), &"a".repeat(255)));
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for (pattern, code) in [
            ("", Code::EPARSE),
            ("/", Code::EPARSE),
            ("./", Code::EPARSE),
            ("*/../a", Code::EPARSE),
            (&"a".repeat(5_000), Code::EPARSE),
            (&"{a,b}".repeat(20), Code::EBOUND),
            (&"{a,b".repeat(500), Code::EPARSE),
        ] {
            let found = Pattern::read(pattern).map(drop).map_err(|failure| failure.code);
            // Unclosed braces are literal.
            let expected = if pattern.starts_with("{a,b{") { Ok(()) } else { Err(code) };
            assert_eq!(found, expected, "{pattern}");
        }
    }
}

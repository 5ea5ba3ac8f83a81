//! Brace expansion: `{a,b}` and `{1..9..2}`. It precedes all other expansions.

use crate::language::ast::Part;

/// Maximum nesting depth of braces. More deeply nested braces are plain text.
const MAX_DEPTH: u32 = 20;

/// Number of bytes counted for each word and for each part that is not plain text, in addition to
/// the bytes of the text.
const OVERHEAD: u64 = 64;

/// An unquoted character of a word, or a part that brace expansion leaves unchanged.
#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    Char(char),
    Part(&'a Part),
}

impl Token<'_> {
    fn is(self, c: char) -> bool {
        matches!(self, Token::Char(own) if own == c)
    }
}

/// A part of an expanded word: text, or a part of the original word that brace expansion leaves
/// unchanged.
#[derive(Clone, Debug)]
enum Piece<'a> {
    Text(String),
    Part(&'a Part),
}

/// The limits of an expansion.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Maximum number of words.
    pub(super) words: usize,
    /// Maximum size of all words together, in bytes.
    pub(super) bytes: u64,
}

/// The words of an expansion, and their total size in bytes.
struct Words<'a> {
    list: Vec<Vec<Piece<'a>>>,
    bytes: u64,
}

impl<'a> Words<'a> {
    /// Returns an empty list of words.
    fn none() -> Words<'a> {
        Words { list: Vec::new(), bytes: 0 }
    }

    /// Returns a list that contains one empty word.
    fn one() -> Words<'a> {
        Words { list: vec![Vec::new()], bytes: OVERHEAD }
    }

    fn count(&self) -> u64 {
        self.list.len() as u64
    }

    /// Appends a token to each word. Returns `None` if the words would exceed the limit.
    fn append(&mut self, token: Token<'a>, limit: Limit) -> Option<()> {
        let size = if let Token::Char(c) = token { c.len_utf8() as u64 } else { OVERHEAD };
        self.bytes = self.bytes.saturating_add(size.saturating_mul(self.count()));
        if self.bytes > limit.bytes {
            return None;
        }
        for word in &mut self.list {
            match token {
                Token::Char(c) => append_text(word, c.encode_utf8(&mut [0; 4])),
                Token::Part(part) => word.push(Piece::Part(part)),
            }
        }
        Some(())
    }

    /// Adds words. Returns `None` if the words would exceed the limit.
    fn add(&mut self, more: Words<'a>, limit: Limit) -> Option<()> {
        self.bytes = self.bytes.saturating_add(more.bytes);
        if self.list.len().saturating_add(more.list.len()) > limit.words || self.bytes > limit.bytes
        {
            return None;
        }
        self.list.extend(more.list);
        Some(())
    }

    /// Returns every combination of a word followed by one of `ends`. Returns `None` if the result
    /// would exceed the limit.
    fn followed_by(&self, ends: &Words<'a>, limit: Limit) -> Option<Words<'a>> {
        let starts_bytes = self.bytes.saturating_mul(ends.count());
        let bytes = starts_bytes.saturating_add(ends.bytes.saturating_mul(self.count()));
        if self.list.len().saturating_mul(ends.list.len()) > limit.words || bytes > limit.bytes {
            return None;
        }
        let list =
            self.list.iter().flat_map(|start| ends.list.iter().map(move |end| joined(start, end)));
        Some(Words { list: list.collect(), bytes })
    }
}

/// Appends text to a word.
fn append_text(word: &mut Vec<Piece<'_>>, text: &str) {
    match word.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ => word.push(Piece::Text(text.to_owned())),
    }
}

fn joined<'a>(start: &[Piece<'a>], end: &[Piece<'a>]) -> Vec<Piece<'a>> {
    let mut word = start.to_vec();
    for piece in end {
        match piece {
            Piece::Text(text) => append_text(&mut word, text),
            Piece::Part(part) => word.push(Piece::Part(part)),
        }
    }
    word
}

/// Expands the braces of a word. Returns the parts of each word, or `None` if the result exceeds
/// the limit.
pub(super) fn expand(parts: &[Part], limit: Limit) -> Option<Vec<Vec<Part>>> {
    let mut tokens = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => tokens.extend(text.chars().map(Token::Char)),
            other => tokens.push(Token::Part(other)),
        }
    }
    let part = |piece: Piece<'_>| match piece {
        Piece::Text(text) => Part::Literal(text),
        Piece::Part(part) => part.clone(),
    };
    let words = expand_tokens(&tokens, limit, 0)?.list;
    Some(words.into_iter().map(|word| word.into_iter().map(part).collect()).collect())
}

/// Expands the braces in a sequence of tokens. Returns `None` if the result exceeds the limit.
fn expand_tokens<'a>(tokens: &[Token<'a>], limit: Limit, depth: u32) -> Option<Words<'a>> {
    let mut words = Words::one();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let alternatives =
            if token.is('{') && depth < MAX_DEPTH { alternatives(tokens, at) } else { None };
        match alternatives {
            Some((alternatives, after)) => {
                let mut ends = Words::none();
                for alternative in alternatives {
                    let more = match alternative {
                        Alternative::Tokens(tokens) => expand_tokens(tokens, limit, depth + 1)?,
                        Alternative::Range(range) => range.words(limit)?,
                    };
                    ends.add(more, limit)?;
                }
                words = words.followed_by(&ends, limit)?;
                at = after;
            }
            None => {
                words.append(*token, limit)?;
                at += 1;
            }
        }
    }
    Some(words)
}

/// An alternative of a brace expansion: one of several comma-separated items, or a range.
enum Alternative<'t, 'a> {
    Tokens(&'t [Token<'a>]),
    Range(Range),
}

/// Parses the braces that open at the token index `at`. Returns their alternatives and the index
/// after the closing brace, or `None` if the braces are not a brace expansion.
fn alternatives<'t, 'a>(
    tokens: &'t [Token<'a>],
    at: usize,
) -> Option<(Vec<Alternative<'t, 'a>>, usize)> {
    let mut depth = 0_u32;
    let mut commas = Vec::new();
    let mut end = None;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Char('{') => depth += 1,
            Token::Char('}') => {
                depth -= 1;
                if depth == 0 {
                    end = Some(index);
                    break;
                }
            }
            Token::Char(',') if depth == 1 => commas.push(index),
            _ => {}
        }
    }
    let end = end?;
    if commas.is_empty() {
        let inside: Option<String> = tokens
            .get(at + 1..end)?
            .iter()
            .map(|token| if let Token::Char(c) = token { Some(*c) } else { None })
            .collect();
        return Some((vec![Alternative::Range(Range::parse(&inside?)?)], end + 1));
    }
    let mut list = Vec::new();
    let mut from = at + 1;
    for comma in commas.into_iter().chain([end]) {
        list.push(Alternative::Tokens(tokens.get(from..comma)?));
        from = comma + 1;
    }
    Some((list, end + 1))
}

/// A range of numbers or letters: `{from..to..step}`.
struct Range {
    from: i64,
    to: i64,
    step: u64,
    width: usize,
    letters: bool,
}

impl Range {
    fn parse(text: &str) -> Option<Range> {
        let mut pieces = text.split("..");
        let from = pieces.next()?;
        let to = pieces.next()?;
        let step = pieces.next();
        if pieces.next().is_some() {
            return None;
        }
        let step = match step {
            Some(step) => step.parse::<i64>().ok()?.unsigned_abs().max(1),
            None => 1,
        };
        if let (Ok(first), Ok(last)) = (from.parse::<i64>(), to.parse::<i64>()) {
            let padded = |text: &str| {
                let digits = text.trim_start_matches('-');
                if digits.len() > 1 && digits.starts_with('0') { text.len() } else { 0 }
            };
            let width = if padded(from) + padded(to) > 0 { from.len().max(to.len()) } else { 0 };
            return Some(Range { from: first, to: last, step, width, letters: false });
        }
        let letter = |text: &str| {
            let mut chars = text.chars();
            let first = chars.next().filter(char::is_ascii_alphabetic)?;
            chars.next().is_none().then_some(i64::from(u32::from(first)))
        };
        Some(Range { from: letter(from)?, to: letter(to)?, step, width: 0, letters: true })
    }

    /// Returns the words of the range. Returns `None` if they would exceed the limit.
    fn words<'a>(&self, limit: Limit) -> Option<Words<'a>> {
        let last = self.from.abs_diff(self.to) / self.step;
        let size = (self.width as u64).saturating_add(OVERHEAD);
        if last >= limit.words as u64 || last.saturating_add(1).saturating_mul(size) > limit.bytes {
            return None;
        }
        let mut words = Words::none();
        let mut value = i128::from(self.from);
        let step =
            if self.from <= self.to { i128::from(self.step) } else { -i128::from(self.step) };
        while if step > 0 { value <= i128::from(self.to) } else { value >= i128::from(self.to) } {
            let text = match u8::try_from(value) {
                Ok(letter) if self.letters => char::from(letter).to_string(),
                _ => zero_padded(value, self.width),
            };
            let bytes = OVERHEAD.saturating_add(text.len() as u64);
            words.add(Words { list: vec![vec![Piece::Text(text)]], bytes }, limit)?;
            value += step;
        }
        Some(words)
    }
}

/// Formats a number with leading zeros, at least `width` characters wide. The standard library's
/// formatting is not used because it panics at widths over 65,535, and a script can request any
/// width.
fn zero_padded(value: i128, width: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs().to_string();
    let zeros = width.saturating_sub(sign.len() + digits.len());
    [sign, &"0".repeat(zeros), &digits].concat()
}

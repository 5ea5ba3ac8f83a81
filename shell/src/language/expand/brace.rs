//! Brace expansion: `{a,b}` and `{1..9..2}`. It precedes all other expansions.

use crate::language::ast::Part;

/// Maximum nesting depth of braces. Braces nested deeper are plain text.
const MAX_DEPTH: u32 = 20;

/// An unquoted character of a word, or a part that braces leave unchanged.
#[derive(Clone, Debug)]
enum Token {
    Char(char),
    Part(Part),
}

impl Token {
    fn is(&self, c: char) -> bool {
        matches!(self, Token::Char(own) if *own == c)
    }
}

/// Expands the braces of a word. Returns `None` if the result has more than `max` words.
pub(super) fn expand(parts: &[Part], max: usize) -> Option<Vec<Vec<Part>>> {
    let mut tokens = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => tokens.extend(text.chars().map(Token::Char)),
            other => tokens.push(Token::Part(other.clone())),
        }
    }
    let words = expand_tokens(&tokens, max, 0)?;
    Some(words.into_iter().map(parts_of).collect())
}

/// Expands the braces in a sequence of tokens. Returns `None` if the result has more than `max`
/// words.
fn expand_tokens(tokens: &[Token], max: usize, depth: u32) -> Option<Vec<Vec<Token>>> {
    let mut words = vec![Vec::new()];
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let alternatives =
            if token.is('{') && depth < MAX_DEPTH { alternatives(tokens, at) } else { None };
        match alternatives {
            Some((alternatives, after)) => {
                let mut expanded = Vec::new();
                for alternative in alternatives {
                    match alternative {
                        Alternative::Tokens(tokens) => {
                            expanded.extend(expand_tokens(&tokens, max, depth + 1)?)
                        }
                        Alternative::Range(range) => expanded.extend(range.texts(max)?),
                    }
                }
                if words.len().saturating_mul(expanded.len()) > max {
                    return None;
                }
                words = words
                    .iter()
                    .flat_map(|word: &Vec<Token>| {
                        expanded.iter().map(move |end| [word.as_slice(), end].concat())
                    })
                    .collect();
                at = after;
            }
            None => {
                for word in &mut words {
                    word.push(token.clone());
                }
                at += 1;
            }
        }
    }
    Some(words)
}

/// An alternative of a brace expansion: one of several comma-separated items, or a range.
enum Alternative {
    Tokens(Vec<Token>),
    Range(Range),
}

/// Parses the braces that open at `at`. Returns their alternatives and the index after them, or
/// `None` if they are not a brace expansion.
fn alternatives(tokens: &[Token], at: usize) -> Option<(Vec<Alternative>, usize)> {
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
        return Some((vec![Alternative::Range(Range::read(&inside?)?)], end + 1));
    }
    let mut list = Vec::new();
    let mut from = at + 1;
    for comma in commas.into_iter().chain([end]) {
        list.push(Alternative::Tokens(tokens.get(from..comma)?.to_vec()));
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
    fn read(text: &str) -> Option<Range> {
        let mut pieces = text.split("..");
        let (from, to, step) = (pieces.next()?, pieces.next()?, pieces.next());
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

    fn texts(&self, max: usize) -> Option<Vec<Vec<Token>>> {
        if self.from.abs_diff(self.to) / self.step >= max as u64 {
            return None;
        }
        let mut texts = Vec::new();
        let mut value = i128::from(self.from);
        let step =
            if self.from <= self.to { i128::from(self.step) } else { -i128::from(self.step) };
        while if step > 0 { value <= i128::from(self.to) } else { value >= i128::from(self.to) } {
            let text = match u8::try_from(value) {
                Ok(letter) if self.letters => char::from(letter).to_string(),
                _ => zero_padded(value, self.width),
            };
            texts.push(text.chars().map(Token::Char).collect());
            value += step;
        }
        Some(texts)
    }
}

/// Formats a number with leading zeros, at least `width` characters wide. The standard library's
/// formatting is not used because it panics at widths over 65,535, and a script can request any
/// width.
fn zero_padded(value: i128, width: usize) -> String {
    let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs().to_string());
    let zeros = width.saturating_sub(sign.len() + digits.len());
    [sign, &"0".repeat(zeros), &digits].concat()
}

/// Joins tokens into parts.
fn parts_of(tokens: Vec<Token>) -> Vec<Part> {
    let mut parts = Vec::new();
    for token in tokens {
        match (token, parts.last_mut()) {
            (Token::Char(c), Some(Part::Literal(text))) => text.push(c),
            (Token::Char(c), _) => parts.push(Part::Literal(c.into())),
            (Token::Part(part), _) => parts.push(part),
        }
    }
    parts
}

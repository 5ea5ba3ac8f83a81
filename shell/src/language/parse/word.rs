//! Parses words: literal text, quotes, escapes, tildes, and text that is parsed like double-quoted
//! text (here-documents, arithmetic).

use std::sync::Arc;

use super::cursor::ends_word;
use super::size::{WORD, part_size, shrink};
use super::{ParseResult, Parser};
use crate::language::ast::{Part, Word};
use crate::language::escape;

/// The context of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    /// The right side of an assignment: a tilde is also special after `:`, and braces are not
    /// special.
    Assigned,
    /// The right side of `=~`: parentheses and `|` belong to the word, and backslashes are kept.
    Regex,
}

/// The terminator of an arithmetic expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// `))`
    Parentheses,
    /// `]`
    Bracket,
    /// `;`
    Semicolon,
    /// `:` or `}`
    Colon,
    /// `}`
    Brace,
}

/// The parts of a word under construction.
#[derive(Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
    literal: String,
}

impl Parts {
    pub(super) fn push(&mut self, c: char) {
        self.literal.push(c);
    }

    pub(super) fn part(&mut self, part: Part) {
        self.flush();
        self.parts.push(part);
    }

    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.parts.push(Part::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn done(mut self) -> Vec<Part> {
        self.flush();
        self.parts
    }
}

impl Parser {
    /// Parses a word of a command.
    pub(super) fn word(&mut self) -> ParseResult<Word> {
        self.word_in(Style::Plain)
    }

    pub(super) fn word_in(&mut self, style: Style) -> ParseResult<Word> {
        let mut parts = Parts::default();
        let (mut braces, mut extended) = (false, false);
        let mut parentheses = 0_u32;
        let mut tilde = true;
        while let Some(c) = self.peek() {
            let tilde_here = std::mem::replace(&mut tilde, style == Style::Assigned && c == ':');
            match c {
                '<' | '>' if self.peek_at(1) == Some('(') && style != Style::Regex => {
                    let line = self.line;
                    self.at += 2;
                    let list = self.until_parenthesis(&format!("{c}("), line)?;
                    parts.part(Part::Process { input: c == '<', list: Arc::new(list) });
                }
                '(' if style == Style::Regex => {
                    parentheses += 1;
                    self.literal(&mut parts);
                }
                ')' if style == Style::Regex && parentheses > 0 => {
                    parentheses -= 1;
                    self.literal(&mut parts);
                }
                '|' | '<' | '>' | ';' | '&'
                    if style == Style::Regex
                        && (parentheses > 0 || (c == '|' && self.peek_at(1) != Some('|'))) =>
                {
                    self.literal(&mut parts)
                }
                ' ' | '\t' if style == Style::Regex && parentheses > 0 => self.literal(&mut parts),
                c if ends_word(c) => break,
                '\\' if style == Style::Regex => {
                    self.next();
                    parts.push('\\');
                    self.literal(&mut parts);
                }
                '~' if tilde_here => self.tilde(&mut parts),
                '?' | '*' | '+' | '@' | '!'
                    if self.peek_at(1) == Some('(') && style == Style::Plain =>
                {
                    if self.extended(&mut parts)? {
                        extended = true;
                    } else {
                        break;
                    }
                }
                '{' => {
                    braces |= style == Style::Plain;
                    self.literal(&mut parts);
                }
                _ => self.unquoted(&mut parts)?,
            }
        }
        Ok(Word { parts: self.finish(parts)?, braces, extended })
    }

    /// Returns the finished parts of a word and counts their size.
    pub(super) fn finish(&mut self, parts: Parts) -> ParseResult<Vec<Part>> {
        let mut parts = parts.done();
        shrink(&mut parts);
        self.count(WORD + parts.iter().map(part_size).sum::<usize>())?;
        Ok(parts)
    }

    fn literal(&mut self, parts: &mut Parts) {
        if let Some(c) = self.next() {
            parts.push(c);
        }
    }

    /// Parses an unquoted character, or the quote or expansion that it starts.
    pub(super) fn unquoted(&mut self, parts: &mut Parts) -> ParseResult<()> {
        let line = self.line;
        match self.peek() {
            Some('\\') => {
                self.next();
                match self.next() {
                    Some('\n') => {}
                    Some(c) => parts.part(Part::Quoted(c.into())),
                    None => parts.push('\\'),
                }
            }
            Some('\'') => {
                self.next();
                parts.part(Part::Quoted(self.single_quoted(line)?));
            }
            Some('"') => {
                self.next();
                parts.part(self.double_quoted(line)?);
            }
            Some('$') if matches!(self.peek_at(1), Some('\'')) => {
                self.at += 2;
                parts.part(Part::Quoted(self.ansi_quoted(line)?));
            }
            Some('$') if matches!(self.peek_at(1), Some('"')) => {
                self.at += 2;
                parts.part(self.double_quoted(line)?);
            }
            Some('$') => self.dollar(parts, false)?,
            Some('`') => parts.part(self.backquoted(false)?),
            _ => self.literal(parts),
        }
        Ok(())
    }

    fn single_quoted(&mut self, line: u32) -> ParseResult<String> {
        let from = self.at;
        loop {
            match self.next() {
                Some('\'') => {
                    return Ok(self
                        .chars
                        .get(from..self.at - 1)
                        .unwrap_or_default()
                        .iter()
                        .collect());
                }
                Some(_) => {}
                None => return Err(self.unclosed(line, "the quote `'` is not closed")),
            }
        }
    }

    fn ansi_quoted(&mut self, line: u32) -> ParseResult<String> {
        let mut raw = String::new();
        loop {
            match self.next() {
                Some('\'') => return Ok(escape::ansi(&raw)),
                Some('\\') => {
                    raw.push('\\');
                    raw.extend(self.next());
                }
                Some(c) => raw.push(c),
                None => return Err(self.unclosed(line, "the quote `$'` is not closed")),
            }
        }
    }

    /// Parses the rest of a double-quoted string after its `"`.
    pub(super) fn double_quoted(&mut self, line: u32) -> ParseResult<Part> {
        let parts = self.deeper(|parser| parser.double_parts(Some('"')))?;
        if self.take("\"") {
            Ok(Part::Double(parts))
        } else {
            Err(self.unclosed(line, "the quote `\"` is not closed"))
        }
    }

    /// Parses text by the rules of double quotes, up to `end` or to the end of the script.
    pub(super) fn double_parts(&mut self, end: Option<char>) -> ParseResult<Vec<Part>> {
        let mut parts = Parts::default();
        while let Some(c) = self.peek() {
            match c {
                c if Some(c) == end => break,
                '\\' => {
                    self.next();
                    match self.peek() {
                        Some('\n') => {
                            self.next();
                        }
                        Some(c @ ('$' | '`' | '\\')) => {
                            self.next();
                            parts.push(c);
                        }
                        Some('"') if end.is_some() => {
                            self.next();
                            parts.push('"');
                        }
                        _ => parts.push('\\'),
                    }
                }
                '$' => self.dollar(&mut parts, true)?,
                '`' => parts.part(self.backquoted(end.is_some())?),
                _ => self.literal(&mut parts),
            }
        }
        self.finish(parts)
    }

    /// Parses an arithmetic expression up to its terminator, which it does not consume.
    pub(super) fn arithmetic(&mut self, until: Until) -> ParseResult<Word> {
        let line = self.line;
        let mut parts = Parts::default();
        let (mut round, mut square, mut choices) = (0_u32, 0_u32, 0_u32);
        loop {
            let Some(c) = self.peek() else {
                return Err(self.unclosed(line, "the arithmetic is not closed"));
            };
            let outside = round == 0 && square == 0;
            match c {
                ')' if round == 0 && until == Until::Parentheses => {
                    if self.peek_at(1) == Some(')') {
                        break;
                    }
                    return Err(self.error("unexpected `)` in arithmetic"));
                }
                ';' if outside && until == Until::Semicolon => break,
                ']' if square == 0 && until == Until::Bracket => break,
                ':' if outside && choices == 0 && until == Until::Colon => break,
                '}' if outside && matches!(until, Until::Colon | Until::Brace) => break,
                _ => {}
            }
            match c {
                '(' => round += 1,
                ')' => round = round.saturating_sub(1),
                '[' => square += 1,
                ']' => square = square.saturating_sub(1),
                '?' => choices += 1,
                ':' => choices = choices.saturating_sub(1),
                _ => {}
            }
            match c {
                '\'' | '"' | '\\' | '$' | '`' => self.unquoted(&mut parts)?,
                _ => self.literal(&mut parts),
            }
        }
        Ok(Word { parts: self.finish(parts)?, ..Word::default() })
    }

    fn tilde(&mut self, parts: &mut Parts) {
        let mark = self.mark();
        self.next();
        let from = self.at;
        while self.peek().is_some_and(|c| {
            !ends_word(c) && !matches!(c, '/' | ':' | '\'' | '"' | '\\' | '$' | '`' | '}')
        }) {
            self.next();
        }
        let name = self.text_since(from);
        if self.peek().is_none_or(|c| ends_word(c) || matches!(c, '/' | ':' | '}'))
            && !name.contains(['*', '?', '=', '~'])
        {
            parts.part(Part::Tilde(name));
        } else {
            self.back_to(&mark);
            self.literal(parts);
        }
    }

    /// Parses an extended pattern such as `?( … )` as a part of the word. Returns false if its
    /// parentheses are not closed on this line.
    fn extended(&mut self, parts: &mut Parts) -> ParseResult<bool> {
        let mut depth = 0_u32;
        let closes = self.chars.iter().skip(self.at).take_while(|c| **c != '\n').any(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *c == ')' && depth == 0
        });
        self.literal(parts);
        if !closes {
            return Ok(false);
        }
        let mut depth = 0_u32;
        while let Some(c) = self.peek() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            match c {
                '(' | ')' | '|' | ' ' | '&' | ';' | '<' | '>' => self.literal(parts),
                '\n' => break,
                _ => self.unquoted(parts)?,
            }
            if depth == 0 {
                break;
            }
        }
        Ok(true)
    }
}

//! Parses words: literal text, quotes, escapes, tildes, expansions, and text that is parsed like
//! double-quoted text (here-documents, arithmetic).

use std::sync::Arc;

use super::{
    ParseResult, Parser, SyntaxError, WORD, begins_name, ends_word, in_name, part_size, shrink,
};
use crate::language::ast::{Action, Index, Parameter, Part, ReplaceScope, Word};
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
struct Parts {
    parts: Vec<Part>,
    literal: String,
}

impl Parts {
    fn push(&mut self, c: char) {
        self.literal.push(c);
    }

    fn part(&mut self, part: Part) {
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
        let mut braces = false;
        let mut extended = false;
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
    fn finish(&mut self, parts: Parts) -> ParseResult<Vec<Part>> {
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
    fn unquoted(&mut self, parts: &mut Parts) -> ParseResult<()> {
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
                    let mut text = self.text_since(from);
                    text.pop();
                    return Ok(text);
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
    fn double_quoted(&mut self, line: u32) -> ParseResult<Part> {
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
        let mut round = 0_u32;
        let mut square = 0_u32;
        let mut choices = 0_u32;
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

/// Special parameters, which are one character long.
const SPECIAL: [char; 8] = ['@', '*', '#', '?', '-', '$', '!', '_'];

/// Expansions that start with `$` or a backquote: parameters, substitutions, arithmetic.
impl Parser {
    /// Parses an expansion, whose `$` is the next character.
    fn dollar(&mut self, parts: &mut Parts, quoted: bool) -> ParseResult<()> {
        let line = self.line;
        self.next();
        match self.peek() {
            Some('(') => {
                if self.peek_at(1) == Some('(')
                    && let Some(word) = self.double_parentheses()?
                {
                    parts.part(Part::Arithmetic(Box::new(word)));
                    return Ok(());
                }
                self.next();
                let list = self.until_parenthesis("$(", line)?;
                parts.part(Part::Command(Arc::new(list)));
            }
            Some('[') => {
                let word = self.bracketed()?;
                parts.part(Part::Arithmetic(Box::new(word)));
            }
            Some('{') => {
                self.next();
                let parameter = self.deeper(|parser| parser.braced(quoted, line))?;
                parts.part(Part::Parameter(Box::new(parameter)));
            }
            Some(c) if begins_name(c) => {
                let name = self.name().unwrap_or_default();
                parts.part(Part::Parameter(Box::new(Parameter::named(name))));
            }
            Some(c) if c.is_ascii_digit() || SPECIAL.contains(&c) => {
                self.next();
                parts.part(Part::Parameter(Box::new(Parameter::named(c.into()))));
            }
            _ => parts.push('$'),
        }
        Ok(())
    }

    /// Parses `` `…` ``. The content of the backquotes is a separate script.
    fn backquoted(&mut self, in_quotes: bool) -> ParseResult<Part> {
        let line = self.line;
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c @ ('$' | '`' | '\\')) => text.push(c),
                    Some('"') if in_quotes => text.push('"'),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                Some(c) => text.push(c),
                None => return Err(self.unclosed(line, "the quote `` ` `` is not closed")),
            }
        }
        let mut inner = Parser::new(&text, line, self.depth, &self.trees)?;
        inner.misread = self.misread;
        let list = inner.deeper(Parser::list);
        self.misread = inner.misread;
        let list = list.map_err(|error| SyntaxError { incomplete: false, ..error })?;
        if inner.peek().is_some() {
            let found = inner.found();
            let mut error = inner.error(format!("unexpected {found} between backquotes"));
            error.incomplete = false;
            return Err(error);
        }
        inner.close_documents()?;
        Ok(Part::Command(Arc::new(list)))
    }

    /// Parses the rest of an expansion after `${`.
    fn braced(&mut self, quoted: bool, line: u32) -> ParseResult<Parameter> {
        if self.peek() == Some('#')
            && !matches!(self.peek_at(1), Some('}' | ':' | '-' | '+' | '=' | '%' | '/'))
            && !(self.peek_at(1) == Some('#') && self.peek_at(2) != Some('}'))
        {
            self.next();
            let (name, index) = self.subject()?;
            self.close(line)?;
            return Ok(Parameter { index, action: Action::Length, ..Parameter::named(name) });
        }
        // `${!#}` is the last argument, but `${!#x}` is `$!` without the prefix `x`.
        let indirect = self.peek() == Some('!')
            && match self.peek_at(1) {
                Some('#') => self.peek_at(2) == Some('}'),
                next => !matches!(next, Some('}' | ':' | '-' | '+' | '=' | '%' | '/')),
            };
        if indirect {
            self.next();
        }
        let (name, index) = self.subject()?;
        if indirect
            && index.as_ref().is_some_and(|index| !matches!(index, Index::At(_)))
            && self.peek() == Some('}')
        {
            self.close(line)?;
            return Ok(Parameter { index, action: Action::Keys, ..Parameter::named(name) });
        }
        if indirect && matches!(self.peek(), Some('*' | '@')) && self.peek_at(1) == Some('}') {
            let joined = self.next() == Some('*');
            self.close(line)?;
            return Ok(Parameter { action: Action::Names { joined }, ..Parameter::named(name) });
        }
        let action = self.action(quoted, line)?;
        self.close(line)?;
        Ok(Parameter { name, index, indirect, action })
    }

    fn close(&mut self, line: u32) -> ParseResult<()> {
        if self.take("}") {
            return Ok(());
        }
        Err(self.unexpected(format!("`}}` for the `${{` in line {line}")))
    }

    /// Parses the name and index of a parameter.
    fn subject(&mut self) -> ParseResult<(String, Option<Index>)> {
        let name = match self.peek() {
            Some(c) if begins_name(c) => self.name().unwrap_or_default(),
            Some(c) if c.is_ascii_digit() => {
                let from = self.at;
                while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    self.at += 1;
                }
                return Ok((self.text_since(from), None));
            }
            Some(c) if SPECIAL.contains(&c) && !in_name(c) => {
                self.next();
                return Ok((c.into(), None));
            }
            _ => {
                return Err(self.unexpected("a variable's name after `${`"));
            }
        };
        if self.peek() != Some('[') {
            return Ok((name, None));
        }
        let index = if self.take("[@]") {
            Index::All
        } else if self.take("[*]") {
            Index::Joined
        } else {
            Index::At(self.bracketed()?)
        };
        Ok((name, Some(index)))
    }

    /// Parses the operation of an expansion.
    fn action(&mut self, quoted: bool, line: u32) -> ParseResult<Action> {
        let colon =
            self.peek() == Some(':') && matches!(self.peek_at(1), Some('-' | '=' | '?' | '+'));
        if colon {
            self.next();
        }
        let Some(c) = self.peek() else { return Ok(Action::Value) };
        Ok(match c {
            '-' | '=' | '?' | '+' => {
                self.next();
                let word = self.operand(quoted, quoted, None, line)?;
                match c {
                    '-' => Action::Default { colon, word },
                    '=' => Action::Assign { colon, word },
                    '?' => Action::Fail { colon, word },
                    _ => Action::Alternative { colon, word },
                }
            }
            '#' | '%' => {
                self.next();
                let longest = self.peek() == Some(c);
                if longest {
                    self.next();
                }
                Action::Trim {
                    suffix: c == '%',
                    longest,
                    pattern: self.operand(quoted, false, None, line)?,
                }
            }
            '/' => {
                self.next();
                self.replacement(quoted, line)?
            }
            '^' | ',' => {
                self.next();
                let all = self.peek() == Some(c);
                if all {
                    self.next();
                }
                Action::Case {
                    upper: c == '^',
                    all,
                    pattern: self.operand(quoted, false, None, line)?,
                }
            }
            ':' => {
                self.next();
                let offset = self.arithmetic(Until::Colon)?;
                let length =
                    if self.take(":") { Some(self.arithmetic(Until::Brace)?) } else { None };
                Action::Slice { offset, length }
            }
            '@' => {
                self.next();
                match self.next() {
                    Some(operator) if "QUuLEAaPKk".contains(operator) => {
                        Action::Transform(operator)
                    }
                    _ => return Err(self.error("expected one of `Q U u L E A a P K k` after `@`")),
                }
            }
            _ => Action::Value,
        })
    }

    /// Parses the pattern and the replacement after the `/` of an expansion.
    fn replacement(&mut self, quoted: bool, line: u32) -> ParseResult<Action> {
        let scope = match self.peek() {
            Some('/') => ReplaceScope::All,
            Some('#') => ReplaceScope::Start,
            Some('%') => ReplaceScope::End,
            _ => ReplaceScope::First,
        };
        if scope != ReplaceScope::First {
            self.next();
        }
        // Directly after `//`, a `/` belongs to the pattern.
        let min = usize::from(scope == ReplaceScope::All);
        let pattern = self.operand(quoted, false, Some(min), line)?;
        let with =
            if self.take("/") { self.operand(quoted, false, None, line)? } else { Word::default() };
        Ok(Action::Replace { scope, pattern, with })
    }

    /// Parses the word after an operator. The word ends before a `}`. A word of at least
    /// `min_before_slash` characters also ends before a `/`. If `quoted` is true, the word is inside
    /// double quotes. If `plain` is true, single quotes are plain characters.
    fn operand(
        &mut self,
        quoted: bool,
        plain: bool,
        min_before_slash: Option<usize>,
        line: u32,
    ) -> ParseResult<Word> {
        let mut parts = Parts::default();
        let from = self.at;
        loop {
            let Some(c) = self.peek() else {
                return Err(self.unclosed(line, "the `${` is not closed"));
            };
            match c {
                '}' => break,
                '/' if min_before_slash.is_some_and(|min| self.at >= from + min) => break,
                '\'' if plain => {
                    self.next();
                    parts.push('\'');
                }
                '\\' if plain => {
                    self.next();
                    match self.peek() {
                        Some('\n') => {
                            self.next();
                        }
                        Some(c @ ('$' | '`' | '\\' | '"' | '}')) => {
                            self.next();
                            parts.part(Part::Quoted(c.into()));
                        }
                        _ => parts.push('\\'),
                    }
                }
                '~' if self.at == from && !quoted && matches!(self.peek_at(1), Some('}' | '/')) => {
                    self.next();
                    parts.part(Part::Tilde(String::new()));
                }
                '$' if quoted => {
                    self.dollar(&mut parts, !matches!(self.peek_at(1), Some('\'' | '"')))?
                }
                _ => self.unquoted(&mut parts)?,
            }
        }
        let extended = self.text_since(from).contains('(');
        Ok(Word { parts: self.finish(parts)?, braces: false, extended })
    }
}

impl Parameter {
    /// Creates an expansion that yields the plain value of a parameter.
    fn named(name: String) -> Parameter {
        Parameter { name, index: None, indirect: false, action: Action::Value }
    }
}

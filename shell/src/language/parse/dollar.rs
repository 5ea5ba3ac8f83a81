//! Parses expansions that start with `$` or a backquote: parameters, substitutions, arithmetic.

use std::sync::Arc;

use super::cursor::{begins_name, in_name};
use super::word::{Parts, Until};
use super::{ParseResult, Parser};
use crate::language::ast::{Action, Index, Parameter, Part, ReplaceScope, Word};

/// Special parameters, which are one character long.
const SPECIAL: [char; 8] = ['@', '*', '#', '?', '-', '$', '!', '_'];

impl Parser {
    /// Parses an expansion, whose `$` is the next character.
    pub(super) fn dollar(&mut self, parts: &mut Parts, quoted: bool) -> ParseResult<()> {
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
    pub(super) fn backquoted(&mut self, in_quotes: bool) -> ParseResult<Part> {
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
        let list = list.map_err(|error| super::SyntaxError { incomplete: false, ..error })?;
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
        let found = self.found();
        Err(self.error(format!("unexpected {found}: expected `}}` for the `${{` in line {line}")))
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
                let found = self.found();
                return Err(self
                    .error(format!("unexpected {found}: expected a variable's name after `${{`")));
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
        let pattern = self.operand(quoted, false, Some(('/', min)), line)?;
        let with =
            if self.take("/") { self.operand(quoted, false, None, line)? } else { Word::default() };
        Ok(Action::Replace { scope, pattern, with })
    }

    /// Parses the word after an operator. The word ends before a `}`. If `stop` contains a
    /// character and a minimum length, a word of at least that length also ends before that
    /// character. If `quoted` is true, the word is inside double quotes. If `plain` is true, single
    /// quotes are plain characters.
    fn operand(
        &mut self,
        quoted: bool,
        plain: bool,
        stop: Option<(char, usize)>,
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
                c if stop.is_some_and(|(stop, min)| c == stop && self.at >= from + min) => break,
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
    pub(super) fn named(name: String) -> Parameter {
        Parameter { name, index: None, indirect: false, action: Action::Value }
    }
}

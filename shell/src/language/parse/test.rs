//! Parses the expressions of `[[ ]]`.

use super::cursor::ends_word;
use super::size::TEST;
use super::word::Style;
use super::{ParseResult, Parser};
use crate::language::ast::{Test, Word};

/// The binary operators. Each operator is listed before its prefixes.
const BINARY: [&str; 15] = [
    "=~", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "=", "<", ">",
];

impl Parser {
    /// Parses the rest of a test after `[[`, up to and including the `]]`.
    pub(super) fn double_bracket(&mut self, line: u32) -> ParseResult<Test> {
        let test = self.either()?;
        self.skip_newlines()?;
        if self.keyword_brackets() {
            return Ok(test);
        }
        let found = self.found();
        Err(self.error(format!("unexpected {found}: expected `]]` for the `[[` in line {line}")))
    }

    fn keyword_brackets(&mut self) -> bool {
        self.looking_at("]]") && self.peek_at(2).is_none_or(ends_word) && self.take("]]")
    }

    fn skip_newlines(&mut self) -> ParseResult<()> {
        self.newlines()
    }

    fn either(&mut self) -> ParseResult<Test> {
        let mut left = self.both()?;
        loop {
            self.skip_newlines()?;
            if !self.take("||") {
                return Ok(left);
            }
            left = Test::Or(Box::new(left), Box::new(self.both()?));
        }
    }

    fn both(&mut self) -> ParseResult<Test> {
        let mut left = self.term()?;
        loop {
            self.skip_newlines()?;
            if !self.take("&&") {
                return Ok(left);
            }
            left = Test::And(Box::new(left), Box::new(self.term()?));
        }
    }

    fn term(&mut self) -> ParseResult<Test> {
        self.skip_newlines()?;
        self.count(TEST)?;
        if self.peek() == Some('!') && self.peek_at(1).is_none_or(ends_word) {
            self.next();
            return Ok(Test::Not(Box::new(self.deeper(Parser::term)?)));
        }
        if self.take("(") {
            let test = self.deeper(Parser::either)?;
            self.skip_newlines()?;
            if self.take(")") {
                return Ok(test);
            }
            let found = self.found();
            return Err(self.error(format!("unexpected {found} in `[[ ]]`: expected `)`")));
        }
        if let Some(operator) = self.unary_operator() {
            self.skip_spaces();
            return Ok(Test::Unary(operator, self.test_word()?));
        }
        let left = self.test_word()?;
        self.skip_spaces();
        let Some(operator) = BINARY
            .into_iter()
            .find(|operator| self.looking_at(operator) && self.operator_ends(operator))
        else {
            return Ok(Test::Word(left));
        };
        self.at += operator.len();
        self.skip_spaces();
        let right = match operator {
            "=~" => self.word_in(Style::Regex)?,
            _ => self.test_word()?,
        };
        Ok(Test::Binary(left, operator.into(), right))
    }

    /// Consumes a unary operator such as `-f`, if it is followed by a word that is not an operator.
    fn unary_operator(&mut self) -> Option<String> {
        let letter = self.peek_at(1).filter(char::is_ascii_alphabetic)?;
        if self.peek() != Some('-') || !matches!(self.peek_at(2), Some(' ' | '\t')) {
            return None;
        }
        let mark = self.mark();
        self.at += 2;
        self.skip_spaces();
        let binary = BINARY
            .into_iter()
            .any(|operator| self.looking_at(operator) && self.operator_ends(operator));
        if binary
            || self.peek().is_none_or(|c| matches!(c, ')' | '&' | '|'))
            || (self.looking_at("]]") && self.peek_at(2).is_none_or(ends_word))
        {
            self.back_to(&mark);
            return None;
        }
        Some(format!("-{letter}"))
    }

    fn operator_ends(&self, operator: &str) -> bool {
        matches!(operator, "<" | ">")
            || self.peek_at(operator.len()).is_none_or(|c| matches!(c, ' ' | '\t' | '\n'))
    }

    fn test_word(&mut self) -> ParseResult<Word> {
        if self.peek().is_none_or(ends_word)
            || (self.looking_at("]]") && self.peek_at(2).is_none_or(ends_word))
        {
            let found = self.found();
            return Err(self.error(format!("unexpected {found} in `[[ ]]`: expected a word")));
        }
        self.word()
    }
}

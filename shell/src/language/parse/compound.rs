//! Parses compound commands: groups, conditions, loops, `case`.

use std::sync::Arc;

use super::cursor::ends_word;
use super::size::{ARM, BRANCH, text_size};
use super::word::Until;
use super::{MAX_MISREAD, ParseResult, Parser, SyntaxError};
use crate::language::ast::{Arm, CaseEnd, Kind, List, Word};

impl Parser {
    /// Parses a compound command, if one comes next.
    pub(super) fn compound(&mut self) -> ParseResult<Option<Kind>> {
        let line = self.line;
        if self.peek() == Some('(') {
            if self.peek_at(1) == Some('(')
                && let Some(word) = self.double_parentheses()?
            {
                return Ok(Some(Kind::Arithmetic(word)));
            }
            self.next();
            return Ok(Some(Kind::Subshell(Arc::new(self.until_parenthesis("(", line)?))));
        }
        let Some(word) = self.reserved() else { return Ok(None) };
        let kind = match word {
            "{" => {
                self.at += 1;
                let list = self.body("after `{`")?;
                self.expect("}", ("{", line))?;
                Kind::Group(Arc::new(list))
            }
            "if" => self.condition(line)?,
            "while" | "until" => {
                self.at += 5;
                let test = self.body(&format!("after `{word}`"))?;
                let body = self.do_group(word, line)?;
                Kind::While { until: word == "until", test, body }
            }
            "for" => self.for_loop(line)?,
            "select" => {
                self.at += 6;
                let (name, words) = self.loop_head("select")?;
                Kind::Select { name, words, body: self.do_group("select", line)? }
            }
            "case" => self.case(line)?,
            "[[" => {
                self.at += 2;
                Kind::Test(self.deeper(|parser| parser.double_bracket(line))?)
            }
            "function" => {
                self.at += 8;
                self.skip_spaces();
                let name = self.word()?;
                self.parentheses()?;
                let command = self.function(name.plain().map(str::to_owned), line)?;
                command.kind
            }
            "coproc" => {
                return Err(
                    self.error("`coproc` is not supported: use a pipeline or `&` with a file")
                );
            }
            _ => {
                let found = self.found();
                return Err(self.error(format!("unexpected {found}: expected a command")));
            }
        };
        Ok(Some(kind))
    }

    /// Parses a list and the `)` that closes it.
    pub(super) fn until_parenthesis(&mut self, opened: &str, line: u32) -> ParseResult<List> {
        let outer = std::mem::take(&mut self.documents);
        let list = self.deeper(Parser::list)?;
        if !self.take(")") {
            let found = self.found();
            return Err(self.error(format!(
                "unexpected {found}: expected `)` for the `{opened}` in line {line}"
            )));
        }
        // The body of a pending here-document starts after the line in which the parentheses end.
        let pending = std::mem::replace(&mut self.documents, outer);
        self.documents.extend(pending);
        Ok(list)
    }

    /// Parses `(( … ))`. Returns `None` if the parentheses open subshells.
    pub(super) fn double_parentheses(&mut self) -> ParseResult<Option<Word>> {
        if self.misread >= MAX_MISREAD {
            let message = "too many `((` that do not start arithmetic: put a space between the \
                           parentheses of subshells";
            return Err(SyntaxError { incomplete: false, ..self.error(message) });
        }
        let mark = self.mark();
        self.at += 2;
        match self.deeper(|parser| parser.arithmetic(Until::Parentheses)) {
            Ok(word) if self.take("))") => Ok(Some(word)),
            Ok(_) | Err(_) => {
                self.misread += 1;
                self.back_to(&mark);
                Ok(None)
            }
        }
    }

    fn condition(&mut self, line: u32) -> ParseResult<Kind> {
        self.at += 2;
        let mut arms = Vec::new();
        let mut otherwise = None;
        let mut word = "if";
        loop {
            let test = self.body(&format!("after `{word}`"))?;
            self.expect("then", (word, line))?;
            arms.push((test, self.body("after `then`")?));
            self.count(BRANCH)?;
            if self.keyword("elif") {
                word = "elif";
                continue;
            }
            if self.keyword("else") {
                otherwise = Some(self.body("after `else`")?);
            }
            self.expect("fi", ("if", line))?;
            arms.shrink_to_fit();
            return Ok(Kind::If { arms, otherwise });
        }
    }

    fn do_group(&mut self, of: &str, line: u32) -> ParseResult<List> {
        self.newlines()?;
        if self.keyword("{") {
            let list = self.body("after `{`")?;
            self.expect("}", ("{", line))?;
            return Ok(list);
        }
        self.expect("do", (of, line))?;
        let list = self.body("after `do`")?;
        self.expect("done", (of, line))?;
        Ok(list)
    }

    fn for_loop(&mut self, line: u32) -> ParseResult<Kind> {
        self.at += 3;
        self.skip_spaces();
        if self.take("((") {
            let start = self.arithmetic(Until::Semicolon)?;
            let test = self.take(";").then(|| self.arithmetic(Until::Semicolon)).transpose()?;
            let step = self.take(";").then(|| self.arithmetic(Until::Parentheses)).transpose()?;
            let (Some(test), Some(step), true) = (test, step, self.take("))")) else {
                return Err(self.error("expected `for ((start; test; step))`"));
            };
            self.skip_spaces();
            if self.peek() == Some(';') {
                self.next();
            }
            return Ok(Kind::Count { start, test, step, body: self.do_group("for", line)? });
        }
        let (name, words) = self.loop_head("for")?;
        Ok(Kind::For { name, words, body: self.do_group("for", line)? })
    }

    /// Parses the head of a loop: `name [in words] ;`.
    fn loop_head(&mut self, of: &str) -> ParseResult<(String, Option<Vec<Word>>)> {
        self.skip_spaces();
        let name = self.name().filter(|_| self.peek().is_none_or(ends_word));
        let Some(name) = name else {
            let found = self.found();
            return Err(
                self.error(format!("unexpected {found}: expected a variable's name after `{of}`"))
            );
        };
        self.count(text_size(&name))?;
        self.newlines()?;
        let mut words = None;
        if self.keyword("in") {
            words = Some(self.words()?);
        }
        self.skip_spaces();
        if self.peek() == Some(';') && self.peek_at(1) != Some(';') {
            self.next();
        }
        Ok((name, words))
    }

    /// Parses words up to the end of the command.
    fn words(&mut self) -> ParseResult<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_spaces();
            match self.peek() {
                Some('<' | '>') if self.peek_at(1) == Some('(') => words.push(self.word()?),
                Some(c) if !ends_word(c) => words.push(self.word()?),
                _ => {
                    words.shrink_to_fit();
                    return Ok(words);
                }
            }
        }
    }

    fn case(&mut self, line: u32) -> ParseResult<Kind> {
        self.at += 4;
        self.skip_spaces();
        let word = self.word()?;
        self.newlines()?;
        self.expect("in", ("case", line))?;
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.keyword("esac") {
                arms.shrink_to_fit();
                return Ok(Kind::Case { word, arms });
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_spaces();
                if self.peek().is_none_or(ends_word) {
                    let found = self.found();
                    return Err(self.error(format!(
                        "unexpected {found}: expected a pattern, or `esac` for the `case` in line \
                         {line}"
                    )));
                }
                patterns.push(self.word()?);
                self.skip_spaces();
                if !self.take("|") {
                    break;
                }
            }
            patterns.shrink_to_fit();
            if !self.take(")") {
                let found = self.found();
                return Err(self.error(format!(
                    "unexpected {found}: expected `)` after a pattern of the `case` in line {line}"
                )));
            }
            self.count(ARM)?;
            let body = self.deeper(Parser::list)?;
            let then = if self.take(";;&") {
                CaseEnd::TestNext
            } else if self.take(";&") {
                CaseEnd::FallThrough
            } else if self.take(";;") {
                CaseEnd::Break
            } else {
                arms.push(Arm { patterns, body, then: CaseEnd::Break });
                self.expect("esac", ("case", line))?;
                arms.shrink_to_fit();
                return Ok(Kind::Case { word, arms });
            };
            arms.push(Arm { patterns, body, then });
        }
    }
}

//! Parses redirections and assignments.

use std::sync::{Arc, OnceLock};

use super::cursor::{begins_name, ends_word, in_name};
use super::size::{ASSIGNMENT, ELEMENT, REDIRECT, text_size};
use super::word::{Style, Until};
use super::{Document, ParseResult, Parser};
use crate::language::ast::{
    AssignedValue, Assignment, Descriptor, Element, Part, Redirect, Target, Word,
};

impl Redirect {
    /// Creates the redirection `2>&1`, which `|&` adds to a command.
    pub(super) fn errors_to_output() -> Redirect {
        let word = Word::of(Part::Literal("1".into()));
        Redirect { fd: Descriptor::Number(2), to: Target::Duplicate { word, input: false } }
    }
}

impl Parser {
    /// Parses the redirections after a compound command.
    pub(super) fn redirects(&mut self) -> ParseResult<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.skip_spaces();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    /// Parses a redirection, if one comes next.
    pub(super) fn redirect(&mut self) -> ParseResult<Option<Redirect>> {
        let redirect = self.one_redirect()?;
        if let Some(Redirect { fd, .. }) = &redirect {
            let name = if let Descriptor::Named(name) = fd { text_size(name) } else { 0 };
            self.count(REDIRECT + name)?;
        }
        Ok(redirect)
    }

    fn one_redirect(&mut self) -> ParseResult<Option<Redirect>> {
        let mark = self.mark();
        let fd = self.descriptor();
        match (self.peek(), self.peek_at(1)) {
            (Some('<' | '>'), Some('(')) => {
                self.back_to(&mark);
                return Ok(None);
            }
            (Some('&'), Some('>')) if fd.is_none() => {
                self.at += 2;
                let append = self.take(">");
                let path = self.target("&>")?;
                let to = if append {
                    Target::Append(path)
                } else {
                    Target::Write { path, clobber: false }
                };
                return Ok(Some(Redirect { fd: Descriptor::Both, to }));
            }
            (Some('<' | '>'), _) => {}
            _ => {
                self.back_to(&mark);
                return Ok(None);
            }
        }
        let output = self.peek() == Some('>');
        let to = if self.take("<<<") {
            Target::HereString(self.target("<<<")?)
        } else if self.take("<<-") {
            self.document(true)?
        } else if self.take("<<") {
            self.document(false)?
        } else if self.take("<&") {
            Target::Duplicate { word: self.target("<&")?, input: true }
        } else if self.take(">&") {
            Target::Duplicate { word: self.target(">&")?, input: false }
        } else if self.take("<>") {
            Target::ReadWrite(self.target("<>")?)
        } else if self.take(">>") {
            Target::Append(self.target(">>")?)
        } else if self.take(">|") {
            Target::Write { path: self.target(">|")?, clobber: true }
        } else if self.take(">") {
            Target::Write { path: self.target(">")?, clobber: false }
        } else {
            self.take("<");
            Target::Read(self.target("<")?)
        };
        // `>&word` means `&>word` if the word is not a number, which the interpreter decides.
        Ok(Some(Redirect { fd: fd.unwrap_or(Descriptor::Number(u32::from(output))), to }))
    }

    /// Parses a number or `{name}` directly before `<` or `>`.
    fn descriptor(&mut self) -> Option<Descriptor> {
        let mark = self.mark();
        let from = self.at;
        if self.take("{") {
            if let Some(name) = self.name()
                && self.take("}")
                && matches!(self.peek(), Some('<' | '>'))
            {
                return Some(Descriptor::Named(name));
            }
        } else {
            while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                self.at += 1;
            }
            if matches!(self.peek(), Some('<' | '>'))
                && let Ok(number) = self.text_since(from).parse()
            {
                return Some(Descriptor::Number(number));
            }
        }
        self.back_to(&mark);
        None
    }

    fn target(&mut self, after: &str) -> ParseResult<Word> {
        self.skip_spaces();
        let process = matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(');
        if !process && self.peek().is_none_or(ends_word) {
            let found = self.found();
            return Err(self.error(format!("unexpected {found}: expected a file after `{after}`")));
        }
        self.word()
    }

    fn document(&mut self, strip_tabs: bool) -> ParseResult<Target> {
        self.skip_spaces();
        let line = self.line;
        let from = self.at;
        if self.peek().is_none_or(ends_word) {
            let found = self.found();
            return Err(self.error(format!(
                "unexpected {found}: expected the word that ends the here-document"
            )));
        }
        self.word()?;
        let written = self.text_since(from);
        let mut end = String::new();
        let mut chars = written.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => end.extend(chars.next()),
                '\'' | '"' => {}
                '$' if written.starts_with("$'") => {}
                other => end.push(other),
            }
        }
        let literal = written.contains(['\'', '"', '\\']);
        let body = Arc::new(OnceLock::new());
        self.documents.push(Document { end, strip_tabs, literal, line, body: body.clone() });
        Ok(Target::Here(body))
    }

    /// Parses an assignment, if one comes next.
    pub(super) fn assignment(&mut self) -> ParseResult<Option<Assignment>> {
        if !self.peek().is_some_and(begins_name) || !self.may_assign() {
            return Ok(None);
        }
        let mark = self.mark();
        let Some(name) = self.name() else { return Ok(None) };
        let index = if self.peek() == Some('[') {
            match self.bracketed() {
                Ok(index) => Some(index),
                Err(_) => {
                    self.back_to(&mark);
                    return Ok(None);
                }
            }
        } else {
            None
        };
        let append = self.looking_at("+=");
        if !append && self.peek() != Some('=') {
            self.back_to(&mark);
            return Ok(None);
        }
        self.at += if append { 2 } else { 1 };
        let value = if self.peek() == Some('(') && index.is_none() {
            AssignedValue::Array(self.deeper(Parser::elements)?)
        } else {
            AssignedValue::Text(self.word_in(Style::Assigned)?)
        };
        self.count(ASSIGNMENT + text_size(&name))?;
        Ok(Some(Assignment { name, index, append, value }))
    }

    /// Returns true if the next word can be an assignment.
    fn may_assign(&self) -> bool {
        let after = self.chars.iter().skip(self.at).find(|c| !in_name(**c));
        matches!(after, Some('=' | '+' | '['))
    }

    /// Parses `[…]` and returns the word between the brackets.
    pub(super) fn bracketed(&mut self) -> ParseResult<Word> {
        self.take("[");
        let word = self.deeper(|parser| parser.arithmetic(Until::Bracket))?;
        if self.take("]") { Ok(word) } else { Err(self.error("expected `]`")) }
    }

    fn elements(&mut self) -> ParseResult<Vec<Element>> {
        let line = self.line;
        self.take("(");
        let mut elements = Vec::new();
        loop {
            self.newlines()?;
            if self.take(")") {
                elements.shrink_to_fit();
                return Ok(elements);
            }
            let process = matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(');
            if !process && self.peek().is_none_or(ends_word) {
                let found = self.found();
                return Err(self.error(format!(
                    "unexpected {found}: expected `)` for the array in line {line}"
                )));
            }
            elements.push(self.element()?);
            self.count(ELEMENT)?;
        }
    }

    fn element(&mut self) -> ParseResult<Element> {
        let mark = self.mark();
        if self.peek() == Some('[')
            && let Ok(index) = self.bracketed()
        {
            let append = self.take("+=");
            if append || self.take("=") {
                return Ok(Element {
                    index: Some(index),
                    append,
                    value: self.word_in(Style::Assigned)?,
                });
            }
        }
        self.back_to(&mark);
        Ok(Element { index: None, append: false, value: self.word()? })
    }
}

//! Moves the parser through the script: over characters, spaces, comments, newlines, and the
//! here-documents that follow a newline.

use std::sync::Arc;

use super::size::text_size;
use super::{Document, MAX_NESTING, Mark, ParseResult, Parser, SyntaxError};
use crate::language::ast::{Part, Word};
use crate::ledger::{Charge, Ledger};

/// Returns true if a character ends a word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

/// Returns true if a character can start a name.
pub(super) fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Returns true if a character can be part of a name.
pub(super) fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Parser {
    pub(super) fn new(
        text: &str,
        line: u32,
        depth: u32,
        trees: &Arc<Ledger>,
    ) -> ParseResult<Parser> {
        let mut charge = Charge::new(Arc::clone(trees));
        let fits = charge.grow(size_of::<char>() as u64 * text.len() as u64);
        let mut parser = Parser {
            chars: Vec::new(),
            at: 0,
            line,
            depth,
            misread: 0,
            documents: Vec::new(),
            trees: Arc::clone(trees),
            uncharged: 0,
            _charge: charge,
        };
        if !fits {
            return Err(parser.too_large());
        }
        parser.chars = text.replace("\r\n", "\n").chars().filter(|c| *c != '\0').collect();
        Ok(parser)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at.saturating_add(ahead)).copied()
    }

    /// Consumes the next character and updates the line number.
    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    pub(super) fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek_at(ahead) == Some(c))
    }

    /// Consumes `text` if it comes next. `text` must not contain a newline.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.looking_at(text);
        if found {
            self.at += text.chars().count();
        }
        found
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.at, line: self.line, documents: self.documents.len() }
    }

    pub(super) fn back_to(&mut self, mark: &Mark) {
        self.at = mark.at;
        self.line = mark.line;
        self.documents.truncate(mark.documents);
    }

    pub(super) fn text_since(&self, from: usize) -> String {
        self.chars.get(from..self.at).unwrap_or_default().iter().collect()
    }

    /// Returns an error at the current position.
    pub(super) fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line, message: message.into(), incomplete: self.peek().is_none() }
    }

    /// Returns an error about a construct that begins on `line` and is not closed.
    pub(super) fn unclosed(&self, line: u32, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line, message: message.into(), incomplete: self.peek().is_none() }
    }

    /// Describes the next word or operator, for an error message.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            None => "end of the script".into(),
            Some('\n') => "end of the line".into(),
            Some(c) if ends_word(c) => {
                let run: String = self
                    .chars
                    .iter()
                    .skip(self.at)
                    .take_while(|next| **next == c)
                    .take(2)
                    .collect();
                format!("`{run}`")
            }
            Some(_) => {
                let word: String = self
                    .chars
                    .iter()
                    .skip(self.at)
                    .take_while(|c| !ends_word(**c))
                    .take(40)
                    .collect();
                format!("`{word}`")
            }
        }
    }

    /// Runs the parsing function `inner` one nesting level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Parser) -> ParseResult<T>,
    ) -> ParseResult<T> {
        if self.depth >= MAX_NESTING {
            let mut error = self.error(format!(
                "nested deeper than {MAX_NESTING} levels: write parts of it as functions or in \
                 steps"
            ));
            error.incomplete = false;
            return Err(error);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips spaces, line continuations, and a comment up to the end of its line.
    pub(super) fn skip_spaces(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {
                    self.next();
                }
                Some('\\') if self.peek_at(1) == Some('\n') => {
                    self.next();
                    self.next();
                }
                Some('#')
                    if self.at == 0
                        || self
                            .chars
                            .get(self.at.wrapping_sub(1))
                            .is_none_or(|c| ends_word(*c)) =>
                {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                _ => return,
            }
        }
    }

    /// Skips spaces and newlines, and reads the here-documents that start after a newline.
    pub(super) fn newlines(&mut self) -> ParseResult<()> {
        self.skip_spaces();
        while self.peek() == Some('\n') {
            self.next();
            self.read_documents()?;
            self.skip_spaces();
        }
        Ok(())
    }

    /// Reads the bodies of the pending here-documents. The parser must be at the start of a line.
    pub(super) fn read_documents(&mut self) -> ParseResult<()> {
        for document in std::mem::take(&mut self.documents) {
            self.read_document(&document)?;
        }
        Ok(())
    }

    /// Fails if a here-document has no body when the end of the script is reached.
    pub(super) fn close_documents(&mut self) -> ParseResult<()> {
        match self.documents.first() {
            Some(document) => {
                let message = format!(
                    "the here-document has no body: expected lines up to one that is `{}`",
                    document.end
                );
                Err(self.unclosed(document.line, message))
            }
            None => Ok(()),
        }
    }

    fn read_document(&mut self, document: &Document) -> ParseResult<()> {
        let line = self.line;
        let mut body = String::new();
        loop {
            if self.peek().is_none() {
                let message = format!(
                    "the here-document is not ended: expected a line that is `{}`",
                    document.end
                );
                return Err(self.unclosed(document.line, message));
            }
            let from = self.at;
            while self.peek().is_some_and(|c| c != '\n') {
                self.next();
            }
            let mut text = self.text_since(from);
            let ended = self.next().is_some();
            if document.strip_tabs {
                text = text.trim_start_matches('\t').to_owned();
            }
            if text == document.end {
                break;
            }
            body.push_str(&text);
            if ended {
                body.push('\n');
            }
        }
        body.shrink_to_fit();
        let word = if document.literal {
            self.count(text_size(&body))?;
            Word::of(Part::Quoted(body))
        } else {
            self.document_body(&body, line)?
        };
        // Only this call sets the body, so it succeeds.
        let _ = document.body.set(word);
        Ok(())
    }

    fn document_body(&mut self, text: &str, line: u32) -> ParseResult<Word> {
        let mut parser = Parser::new(text, line, self.depth, &self.trees)?;
        parser.misread = self.misread;
        let parts = parser.deeper(|parser| parser.double_parts(None));
        self.misread = parser.misread;
        self.uncharged = self.uncharged.saturating_add(parser.uncharged);
        Ok(Word::of(Part::Double(parts?)))
    }

    /// Consumes a name, if one comes next.
    pub(super) fn name(&mut self) -> Option<String> {
        if !self.peek().is_some_and(begins_name) {
            return None;
        }
        let from = self.at;
        while self.peek().is_some_and(in_name) {
            self.at += 1;
        }
        Some(self.text_since(from))
    }
}

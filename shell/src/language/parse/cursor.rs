//! Moving over the text: characters, blanks, comments, line ends and the here-documents after them.

use super::{Document, Mark, NESTING, Parsed, Parser, SyntaxError};
use crate::language::ast::{Part, Word};

/// Whether a character ends a word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

/// Whether a character can begin a name.
pub(super) fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether a character can stand in a name.
pub(super) fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Parser {
    pub(super) fn new(text: &str, line: u32, depth: u32) -> Parser {
        let chars = text.replace("\r\n", "\n").chars().filter(|c| *c != '\0').collect();
        Parser { chars, at: 0, line, depth, misread: 0, documents: Vec::new() }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at.saturating_add(ahead)).copied()
    }

    /// The next character; the line is counted.
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

    /// Takes `text` if it comes next. It holds no line end.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let there = self.looking_at(text);
        if there {
            self.at += text.chars().count();
        }
        there
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

    pub(super) fn error(&self, words: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line, words: words.into(), incomplete: self.peek().is_none() }
    }

    /// An error about something that was opened in `line` and never closed.
    pub(super) fn open(&self, line: u32, words: impl Into<String>) -> SyntaxError {
        SyntaxError { line, words: words.into(), incomplete: self.peek().is_none() }
    }

    /// What comes next, for an error.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            None => "end of the script".into(),
            Some('\n') => "end of the line".into(),
            Some(c) if ends_word(c) => {
                let run: String = self.chars.iter().skip(self.at).take_while(|next| **next == c).take(2).collect();
                format!("`{run}`")
            }
            Some(_) => {
                let word: String = self.chars.iter().skip(self.at).take_while(|c| !ends_word(**c)).take(40).collect();
                format!("`{word}`")
            }
        }
    }

    /// Goes one level deeper for `inner`.
    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Parser) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING {
            let mut error =
                self.error(format!("nested deeper than {NESTING} levels: write parts of it as functions or in steps"));
            error.incomplete = false;
            return Err(error);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, joined lines, and a comment up to the line's end.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {
                    self.next();
                }
                Some('\\') if self.peek_at(1) == Some('\n') => {
                    self.next();
                    self.next();
                }
                Some('#') if self.at == 0 || self.chars.get(self.at.wrapping_sub(1)).is_none_or(|c| ends_word(*c)) => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                _ => return,
            }
        }
    }

    /// Skips blanks and line ends, and reads the here-documents that begin after them.
    pub(super) fn newlines(&mut self) -> Parsed<()> {
        self.blanks();
        while self.peek() == Some('\n') {
            self.next();
            self.read_documents()?;
            self.blanks();
        }
        Ok(())
    }

    /// Reads the bodies of the here-documents that wait for them; the parser stands at the beginning of a line.
    pub(super) fn read_documents(&mut self) -> Parsed<()> {
        for document in std::mem::take(&mut self.documents) {
            self.read_document(&document)?;
        }
        Ok(())
    }

    /// At the end of a text: a here-document without a body has an empty one only if the text ends with its line.
    pub(super) fn close_documents(&mut self) -> Parsed<()> {
        match self.documents.first() {
            Some(document) => {
                let words =
                    format!("the here-document has no body: expected lines up to one that is `{}`", document.end);
                Err(self.open(document.line, words))
            }
            None => Ok(()),
        }
    }

    fn read_document(&mut self, document: &Document) -> Parsed<()> {
        let line = self.line;
        let mut body = String::new();
        loop {
            if self.peek().is_none() {
                let words = format!("the here-document is not ended: expected a line that is `{}`", document.end);
                return Err(self.open(document.line, words));
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
        let word = if document.literal { Word::of(Part::Quoted(body)) } else { self.document_body(&body, line)? };
        // The place was made with the redirection and is filled only here.
        let _ = document.body.set(word);
        Ok(())
    }

    fn document_body(&mut self, text: &str, line: u32) -> Parsed<Word> {
        let mut parser = Parser::new(text, line, self.depth);
        parser.misread = self.misread;
        let parts = parser.deeper(|parser| parser.double_parts(None));
        self.misread = parser.misread;
        Ok(Word::of(Part::Double(parts?)))
    }

    /// A name, if one comes next.
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

//! A recursive-descent parser for the grammar of bash.
//!
//! It makes one pass over the characters. The same functions parse substitutions, so a `)` in a
//! `case` inside `$( )` does not end the substitution. The whole script is parsed before any part
//! of it runs. [`MAX_NESTING`] limits the nesting depth, so no script can exhaust the host's stack.

mod command;
mod word;

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::ast::{
    Argument, Arm, Assignment, Chain, Command, Connector, Element, Item, List, Parameter, Part,
    Pipeline, Redirect, Test, Word,
};
use crate::ledger::{Charge, Ledger};

/// Maximum nesting depth of commands, quotes and expansions.
pub(crate) const MAX_NESTING: u32 = 50;

/// Maximum number of times that a `((` turns out not to start arithmetic. The contents of such a
/// `((` are parsed again, which takes exponential time if many of them are nested.
const MAX_MISREAD: u32 = 100;

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: u32,
    pub(crate) message: String,
    /// If true, additional lines could complete the script, because a construct is open at its end.
    pub(crate) incomplete: bool,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "syntax error in line {}: {}", self.line, self.message)
    }
}

/// Parses a whole script. `line` is the number of its first line. The syntax tree is charged to
/// `trees`.
pub(crate) fn parse(text: &str, line: u32, trees: &Arc<Ledger>) -> Result<List, SyntaxError> {
    let mut parser = Parser::new(text, line, 0, trees)?;
    let list = parser.list()?;
    match parser.peek() {
        None => {
            parser.close_documents()?;
            Ok(list)
        }
        Some(_) => {
            let found = parser.found();
            Err(parser.error(format!("unexpected {found}")))
        }
    }
}

type ParseResult<T> = Result<T, SyntaxError>;

/// A here-document whose body has not been parsed yet.
struct Document {
    end: String,
    strip_tabs: bool,
    literal: bool,
    line: u32,
    body: Arc<OnceLock<Word>>,
}

/// The state of the parser.
struct Parser {
    chars: Vec<char>,
    at: usize,
    line: u32,
    depth: u32,
    /// Number of times that `((` turned out to be two subshells and was parsed twice.
    misread: u32,
    documents: Vec<Document>,
    trees: Arc<Ledger>,
    /// Number of bytes counted for nodes but not charged yet.
    uncharged: u64,
    /// The charge for `chars`.
    _charge: Charge,
}

/// A position that the parser can return to.
struct Mark {
    at: usize,
    line: u32,
    documents: usize,
}

/// Returns true if a character ends a word.
fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

/// Returns true if a character can start a name.
fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Returns true if a character can be part of a name.
fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Moves the parser through the script: over characters, spaces, comments, newlines, and the
/// here-documents that follow a newline.
impl Parser {
    fn new(text: &str, line: u32, depth: u32, trees: &Arc<Ledger>) -> ParseResult<Parser> {
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

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at.saturating_add(ahead)).copied()
    }

    /// Consumes the next character and updates the line number.
    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek_at(ahead) == Some(c))
    }

    /// Consumes `text` if it comes next. `text` must not contain a newline.
    fn take(&mut self, text: &str) -> bool {
        let found = self.looking_at(text);
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn mark(&self) -> Mark {
        Mark { at: self.at, line: self.line, documents: self.documents.len() }
    }

    fn back_to(&mut self, mark: &Mark) {
        self.at = mark.at;
        self.line = mark.line;
        self.documents.truncate(mark.documents);
    }

    fn text_since(&self, from: usize) -> String {
        self.chars.iter().take(self.at).skip(from).collect()
    }

    /// Returns an error at the current position.
    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line, message: message.into(), incomplete: self.peek().is_none() }
    }

    /// Returns an error about the next word or operator, where the parser expected something else.
    fn unexpected(&self, expected: impl fmt::Display) -> SyntaxError {
        self.error(format!("unexpected {}: expected {expected}", self.found()))
    }

    /// Returns an error about a construct that begins on `line` and is not closed.
    fn unclosed(&self, line: u32, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line, message: message.into(), incomplete: self.peek().is_none() }
    }

    /// Describes the next word or operator, for an error message.
    fn found(&self) -> String {
        match self.peek() {
            None => "end of the script".into(),
            Some('\n') => "end of the line".into(),
            Some(c) if ends_word(c) => {
                let rest = self.chars.iter().skip(self.at);
                format!("`{}`", rest.take_while(|next| **next == c).take(2).collect::<String>())
            }
            Some(_) => {
                let rest = self.chars.iter().skip(self.at);
                format!("`{}`", rest.take_while(|c| !ends_word(**c)).take(40).collect::<String>())
            }
        }
    }

    /// Runs the parsing function `inner` one nesting level deeper.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Parser) -> ParseResult<T>) -> ParseResult<T> {
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
    fn skip_spaces(&mut self) {
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
    fn newlines(&mut self) -> ParseResult<()> {
        self.skip_spaces();
        while self.peek() == Some('\n') {
            self.next();
            self.read_documents()?;
            self.skip_spaces();
        }
        Ok(())
    }

    /// Reads the bodies of the pending here-documents. The parser must be at the start of a line.
    fn read_documents(&mut self) -> ParseResult<()> {
        for document in std::mem::take(&mut self.documents) {
            self.read_document(&document)?;
        }
        Ok(())
    }

    /// Fails if a here-document has no body when the end of the script is reached.
    fn close_documents(&mut self) -> ParseResult<()> {
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
            Word::of_part(Part::Quoted(body))
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
        Ok(Word::of_part(Part::Double(parts?)))
    }

    /// Consumes a name, if one comes next.
    fn name(&mut self) -> Option<String> {
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

/// Number of bytes that an allocation takes in addition to its content.
const ALLOCATION: usize = 16;

const ITEM: usize = size_of::<Item>() + size_of::<Chain>() + 2 * ALLOCATION;
const CHAINED: usize = size_of::<(Connector, Pipeline)>() + ALLOCATION;
/// Size of a command in bytes, including the allocations of a simple command or of a group's list.
const COMMAND: usize =
    size_of::<Command>() + size_of::<Arc<Command>>() + size_of::<List>() + 4 * ALLOCATION;
const REDIRECT: usize = size_of::<Redirect>() + size_of::<OnceLock<Word>>() + 2 * ALLOCATION;
const ASSIGNMENT: usize = size_of::<Assignment>() + ALLOCATION;
const ELEMENT: usize = size_of::<Element>();
const BRANCH: usize = size_of::<(List, List)>();
const ARM: usize = size_of::<Arm>() + ALLOCATION;
/// Size of a test and of the connector before it, in bytes.
const TEST: usize = 3 * size_of::<Test>() + 4 * ALLOCATION;
const WORD: usize = size_of::<Argument>() + ALLOCATION;

/// Returns the size of a part of a word in bytes, excluding the words and lists that it contains.
fn part_size(part: &Part) -> usize {
    let content = match part {
        Part::Literal(text) | Part::Quoted(text) | Part::Tilde(text) => text_size(text),
        Part::Parameter(parameter) => {
            size_of::<Parameter>() + ALLOCATION + text_size(&parameter.name)
        }
        Part::Double(_) | Part::Command(_) | Part::Arithmetic(_) | Part::Process { .. } => {
            size_of::<List>() + 2 * ALLOCATION
        }
    };
    size_of::<Part>() + content
}

/// Returns the size of a string's content and allocation, in bytes.
fn text_size(text: &str) -> usize {
    text.len() + ALLOCATION
}

/// Releases the unused memory of a word's parts.
fn shrink(parts: &mut Vec<Part>) {
    parts.shrink_to_fit();
    for part in parts {
        if let Part::Literal(text) | Part::Quoted(text) | Part::Tilde(text) = part {
            text.shrink_to_fit();
        }
    }
}

/// Charges the memory of the syntax tree. The vectors and strings of a finished node have no unused
/// capacity, so only the sizes of their contents are counted.
impl Parser {
    /// Adds `bytes` to the size of the nodes that are not charged yet.
    ///
    /// # Errors
    /// If the syntax trees of the session would take too much memory.
    fn count(&mut self, bytes: usize) -> ParseResult<()> {
        self.uncharged = self.uncharged.saturating_add(bytes as u64);
        if self.trees.has_room(self.uncharged) { Ok(()) } else { Err(self.too_large()) }
    }

    /// Returns the error for a script whose syntax tree takes too much memory.
    fn too_large(&self) -> SyntaxError {
        let full = self.trees.full(self.uncharged);
        let message = format!(
            "the running scripts and the functions take {full}: use loops, and put data into files"
        );
        SyntaxError { incomplete: false, ..self.error(message) }
    }

    /// Charges the nodes that were counted since the last call.
    fn charge(&mut self) -> Charge {
        let mut charge = Charge::new(Arc::clone(&self.trees));
        charge.grow(std::mem::take(&mut self.uncharged));
        charge
    }
}

//! Text to tree: the grammar of bash, read by recursive descent.
//!
//! One pass over the characters; what stands in a substitution is read by the same functions, so a `)` in a `case` inside `$( )` ends nothing. The
//! whole text is read before any of it is run. How deep a text may nest is bounded ([`NESTING`]), so no text can exhaust the host's stack.

mod command;
mod compound;
mod cursor;
mod dollar;
mod redirect;
mod test;
mod word;

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::ast::{List, Word};

/// How deep commands, quotes and expansions may stand in one another.
pub(crate) const NESTING: u32 = 50;

/// How often `((` may turn out to be no arithmetic: what stands in it is read again then, and nested ones would be read ever more often.
const MISREAD: u32 = 100;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: u32,
    pub(crate) words: String,
    /// More text could mend it: a quote or a construct is open at the end.
    pub(crate) incomplete: bool,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "syntax error in line {}: {}", self.line, self.words)
    }
}

/// Reads a whole script, whose first line has the number `line`.
pub(crate) fn parse(text: &str, line: u32) -> Result<List, SyntaxError> {
    let mut parser = Parser::new(text, line, 0);
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

type Parsed<T> = Result<T, SyntaxError>;

/// A here-document whose body is still to come.
struct Document {
    end: String,
    strip_tabs: bool,
    literal: bool,
    line: u32,
    body: Arc<OnceLock<Word>>,
}

/// Where the parser stands in the text.
struct Parser {
    chars: Vec<char>,
    at: usize,
    line: u32,
    depth: u32,
    /// How often `((` turned out to be two subshells: each time what stands in it is read twice.
    misread: u32,
    documents: Vec<Document>,
}

/// A place to go back to.
struct Mark {
    at: usize,
    line: u32,
    documents: usize,
}

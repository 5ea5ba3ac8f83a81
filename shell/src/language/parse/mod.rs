//! A recursive-descent parser for the grammar of bash.
//!
//! It makes one pass over the characters. The same functions parse substitutions, so a `)` in a
//! `case` inside `$( )` does not end the substitution. The whole script is parsed before any part
//! of it runs. [`MAX_NESTING`] limits the nesting depth, so no script can exhaust the host's stack.

mod command;
mod compound;
mod cursor;
mod dollar;
mod redirect;
mod size;
mod test;
mod word;

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::ast::{List, Word};
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

//! Charges the memory of the syntax tree. The vectors and strings of a finished node have no unused
//! capacity, so only the sizes of their contents are counted.

use std::sync::{Arc, OnceLock};

use super::{ParseResult, Parser, SyntaxError};
use crate::language::ast::{
    Argument, Arm, Assignment, Chain, Command, Connector, Element, Item, List, Parameter, Part,
    Pipeline, Redirect, Test, Word,
};
use crate::ledger::Charge;

/// Number of bytes that an allocation takes in addition to its content.
const ALLOCATION: usize = 16;

pub(super) const ITEM: usize = size_of::<Item>() + size_of::<Chain>() + 2 * ALLOCATION;
pub(super) const CHAINED: usize = size_of::<(Connector, Pipeline)>() + ALLOCATION;
/// Size of a command in bytes, including the allocations of a simple command or of a group's list.
pub(super) const COMMAND: usize =
    size_of::<Command>() + size_of::<Arc<Command>>() + size_of::<List>() + 4 * ALLOCATION;
pub(super) const REDIRECT: usize =
    size_of::<Redirect>() + size_of::<OnceLock<Word>>() + 2 * ALLOCATION;
pub(super) const ASSIGNMENT: usize = size_of::<Assignment>() + ALLOCATION;
pub(super) const ELEMENT: usize = size_of::<Element>();
pub(super) const BRANCH: usize = size_of::<(List, List)>();
pub(super) const ARM: usize = size_of::<Arm>() + ALLOCATION;
/// Size of a test and of the connector before it, in bytes.
pub(super) const TEST: usize = 3 * size_of::<Test>() + 4 * ALLOCATION;
pub(super) const WORD: usize = size_of::<Argument>() + ALLOCATION;

/// Returns the size of a part of a word in bytes, excluding the words and lists that it contains.
pub(super) fn part_size(part: &Part) -> usize {
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
pub(super) fn text_size(text: &str) -> usize {
    text.len() + ALLOCATION
}

/// Releases the unused memory of a word's parts.
pub(super) fn shrink(parts: &mut Vec<Part>) {
    parts.shrink_to_fit();
    for part in parts {
        if let Part::Literal(text) | Part::Quoted(text) | Part::Tilde(text) = part {
            text.shrink_to_fit();
        }
    }
}

impl Parser {
    /// Adds `bytes` to the size of the nodes that are not charged yet.
    ///
    /// # Errors
    /// If the syntax trees of the session would take too much memory.
    pub(super) fn count(&mut self, bytes: usize) -> ParseResult<()> {
        self.uncharged = self.uncharged.saturating_add(bytes as u64);
        if self.trees.has_room(self.uncharged) { Ok(()) } else { Err(self.too_large()) }
    }

    /// Returns the error for a script whose syntax tree takes too much memory.
    pub(super) fn too_large(&self) -> SyntaxError {
        let full = self.trees.full(self.uncharged);
        let message = format!(
            "the running scripts and the functions take {full}: use loops, and put data into files"
        );
        SyntaxError { incomplete: false, ..self.error(message) }
    }

    /// Charges the nodes that were counted since the last call.
    pub(super) fn charge(&mut self) -> Charge {
        let mut charge = Charge::new(Arc::clone(&self.trees));
        charge.grow(std::mem::take(&mut self.uncharged));
        charge
    }
}

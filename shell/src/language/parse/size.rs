//! Charges the memory of the syntax tree. The sizes are upper estimates, which include the unused
//! part of vectors.

use std::sync::Arc;

use super::{ParseResult, Parser, SyntaxError};
use crate::language::ast::{
    Argument, Arm, Chain, Command, Connector, Item, Parameter, Part, Pipeline, Redirect,
};
use crate::ledger::Charge;

/// Number of bytes that an allocation takes in addition to its content.
const ALLOCATION: usize = 16;

pub(super) const ITEM: usize = 4 * size_of::<Item>() + size_of::<Chain>() + 2 * ALLOCATION;
pub(super) const CHAINED: usize = 4 * size_of::<(Connector, Pipeline)>();
pub(super) const COMMAND: usize =
    2 * size_of::<Command>() + 4 * size_of::<Argument>() + 2 * ALLOCATION;
pub(super) const REDIRECT: usize = 2 * size_of::<Redirect>();
pub(super) const ARM: usize = 2 * size_of::<Arm>();
pub(super) const WORD: usize = size_of::<Argument>() + 4 * size_of::<Part>() + ALLOCATION;

/// Returns the size of a part of a word, without the words and lists in it.
pub(super) fn part_size(part: &Part) -> usize {
    let content = match part {
        Part::Literal(text) | Part::Quoted(text) | Part::Tilde(text) => text_size(text),
        Part::Parameter(parameter) => {
            size_of::<Parameter>() + ALLOCATION + text_size(&parameter.name)
        }
        Part::Double(_) | Part::Command(_) | Part::Arithmetic(_) | Part::Process { .. } => {
            ALLOCATION
        }
    };
    2 * size_of::<Part>() + content
}

/// Returns the size of a string's text.
pub(super) fn text_size(text: &str) -> usize {
    2 * text.len() + ALLOCATION
}

impl Parser {
    /// Counts the bytes of new nodes.
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

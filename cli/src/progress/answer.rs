//! Prints the answer while the model writes it.

use crate::fault::Fault;
use crate::output::{self, markdown, width};

/// An answer that is printed to stdout as it is received.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The text that was received, without whitespace at its start.
    text: String,
    blocks: markdown::Blocks,
    /// If true, part of the answer has been printed.
    begun: bool,
}

impl Answer {
    /// Receives the next part of the answer, and prints the blocks that have become complete.
    pub(super) fn receive(&mut self, part: &str) -> Result<(), Fault> {
        self.text.push_str(if self.text.is_empty() { part.trim_start() } else { part });
        let blocks = self.blocks.take(&self.text).to_owned();
        if blocks.is_empty() { Ok(()) } else { self.print(&blocks) }
    }

    /// Returns the lines of the block that is not complete yet.
    pub(super) fn unfinished(&self) -> Vec<String> {
        let block = self.blocks.rest(&self.text).unwrap_or_default();
        if block.trim().is_empty() {
            return Vec::new();
        }
        markdown::render(block, width::layout()).lines().map(str::to_owned).collect()
    }

    /// Forgets the text that was received: it is no answer.
    pub(super) fn withdraw(&mut self) {
        let begun = self.begun;
        *self = Answer { begun, ..Answer::default() };
    }

    /// Prints the part of the complete answer `text` that has not been printed yet.
    pub(super) fn complete(&mut self, text: &str) -> Result<(), Fault> {
        let text = text.trim_start();
        // An answer that differs from the received one is printed in full.
        let rest = self.blocks.rest(text).unwrap_or(text).to_owned();
        if rest.trim().is_empty() { Ok(()) } else { self.print(&rest) }
    }

    fn print(&mut self, blocks: &str) -> Result<(), Fault> {
        let rendered = markdown::render(blocks, width::layout());
        // It shows the same text, unfinished.
        output::clear_transient();
        let before = if std::mem::replace(&mut self.begun, true) { "\n" } else { "" };
        output::styled(&format!("{before}{rendered}"))
    }
}

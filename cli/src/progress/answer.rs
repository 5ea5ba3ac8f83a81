//! Prints the answer while the model writes it.

use crate::fault::Fault;
use crate::output::{self, markdown, width};

/// An answer that is printed to stdout as it is received.
#[derive(Debug, Default)]
pub(super) struct Answer {
    blocks: markdown::Blocks,
    /// If true, part of the answer has been printed.
    begun: bool,
}

impl Answer {
    /// Prints the blocks of the answer that have become complete. `draft` is all the text that the
    /// model has written so far.
    pub(super) fn receive(&mut self, draft: &str) -> Result<(), Fault> {
        // Without styles, the answer is printed unchanged once it is complete.
        if !output::is_styled() {
            return Ok(());
        }
        let Some(text) = answer_in(draft) else { return Ok(()) };
        let blocks = self.blocks.take(text);
        if blocks.is_empty() { Ok(()) } else { self.print(blocks) }
    }

    /// Prints the part of the complete answer `text` that has not been printed yet.
    pub(super) fn complete(&mut self, text: &str) -> Result<(), Fault> {
        if !output::is_styled() {
            return output::text(&output::visible(text));
        }
        let text = text.trim_start();
        // An answer that differs from the received one is printed in full.
        let rest = self.blocks.rest(text).unwrap_or(text).to_owned();
        if rest.trim().is_empty() { Ok(()) } else { self.print(&rest) }
    }

    fn print(&mut self, blocks: &str) -> Result<(), Fault> {
        let rendered = markdown::render(blocks, width::layout());
        let before = if std::mem::replace(&mut self.begun, true) { "\n" } else { "" };
        output::styled(&format!("{before}{rendered}"))
    }
}

/// Returns the answer in a model's incomplete text, or `None` if there is none yet.
fn answer_in(draft: &str) -> Option<&str> {
    let after_thought = match draft.rfind("</reasoning>") {
        Some(end) => draft.get(end..)?,
        None if draft.contains("<reasoning>") => return None,
        None => draft,
    };
    let (_, call) = after_thought.split_once("ToolCall::Response(")?;
    let text = call.trim_start().strip_prefix("\"\"\"")?;
    Some(text.split("\"\"\"").next().unwrap_or_default().trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_found_in_an_unfinished_text() {
        for (draft, answer) in [
            ("ToolCall::Resp", None),
            ("<reasoning>ToolCall::Response(\"\"\"no", None),
            ("<reasoning>x</reasoning>\nToolCall::Response(\"\"\"\nyes", Some("yes")),
            ("ToolCall::Response(\"\"\"\nyes\n\"\"\")", Some("yes\n")),
            ("ToolCall::Wat(```wat", None),
        ] {
            assert_eq!(answer_in(draft), answer, "{draft}");
        }
    }
}

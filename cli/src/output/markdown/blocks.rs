//! Finds the complete blocks in Markdown that is still being received.

use pulldown_cmark::{Event, Parser};

use super::OPTIONS;

/// A splitter for Markdown that is received incrementally. Complete blocks can be rendered before
/// the rest of the text arrives.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The blocks that have been taken.
    taken: String,
}

impl Blocks {
    /// Takes and returns the blocks of `text` that have become complete since the last call. Text
    /// that is received later does not affect how these blocks are rendered. Takes nothing if
    /// `text` does not begin with the blocks that were taken earlier.
    pub(crate) fn take<'a>(&mut self, text: &'a str) -> &'a str {
        let rest = self.rest(text).unwrap_or("");
        let blocks = rest.split_at(complete(rest)).0;
        self.taken.push_str(blocks);
        blocks
    }

    /// Returns the text after the taken blocks, or `None` if `text` does not begin with them.
    pub(crate) fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.strip_prefix(&self.taken)
    }
}

/// Returns the byte index of the end of the last complete block. A block is complete if another
/// block begins after an empty line.
fn complete(text: &str) -> usize {
    // The first characters of a line do not determine yet which kind of block it begins.
    let last = text.rfind('\n').map_or(0, |end| end + 1);
    let text = if text.len() - last < 4 { text.split_at(last).0 } else { text };
    let mut depth = 0;
    let mut complete = 0;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        let before = text.split_at(range.start).0;
        if depth == 0 && (before.ends_with("\n\n") || before.ends_with("\n\r\n")) {
            complete = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_blocks_are_taken() {
        for (text, complete) in [
            ("one", ""),
            ("one\ntwo\n", ""),
            ("one\n\n", ""),
            ("one\n\ntwo and", "one\n\n"),
            ("one\n\n```\na\n\nb\n", "one\n\n"),
            ("```\na\n\nb\n```\n\nthen", "```\na\n\nb\n```\n\n"),
            ("````\n```\n\na\n````\n\nthen", "````\n```\n\na\n````\n\n"),
            ("# one\n- two\n\nthen", "# one\n- two\n\n"),
            ("- one\n\n- two\n", ""),
            ("- one\n\n  more\n\nthen", "- one\n\n  more\n\n"),
            ("one\n\n-", ""),
        ] {
            assert_eq!(Blocks::default().take(text), complete, "{text:?}");
        }
    }

    #[test]
    fn the_pieces_are_the_text() {
        let text = "# A\n\nb c\n\n- d\n- e\n\n```\nf\n\ng\n```\n\nh\n";
        let (mut blocks, mut taken) = (Blocks::default(), String::new());
        for end in 0..=text.len() {
            taken += blocks.take(&text[..end]);
        }
        assert_eq!(taken.clone() + blocks.rest(text).unwrap(), text);
        assert_eq!(blocks.rest("another text"), None);
        assert!(taken.ends_with("```\n\n"), "{taken:?}");
    }
}

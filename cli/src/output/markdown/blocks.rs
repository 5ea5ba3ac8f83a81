//! Finds the complete blocks in Markdown that is still being received.

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
        let rest = self.rest(text).unwrap_or_default();
        let blocks = rest.get(..complete(rest)).unwrap_or_default();
        self.taken.push_str(blocks);
        blocks
    }

    /// Returns the text after the taken blocks, or `None` if `text` does not begin with them.
    pub(crate) fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.strip_prefix(&self.taken)
    }
}

/// Returns the byte index of the end of the last complete block.
fn complete(text: &str) -> usize {
    let (mut end, mut at, mut fence, mut blank) = (0, 0, None::<&str>, false);
    let mut in_list = false;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if !line.ends_with('\n') && line.len() < 4 {
            // The characters received so far do not determine the kind of the line.
            break;
        }
        let bare = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        // A block is complete if another block begins at the margin after an empty line. The items
        // of a list belong together.
        let begins = blank && !line.starts_with(char::is_whitespace) && fence.is_none();
        let is_item = is_item(bare);
        if begins && !bare.is_empty() && !(in_list && is_item) {
            end = start;
            in_list = false;
        }
        in_list |= is_item && fence.is_none();
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        blank = bare.is_empty();
    }
    end
}

/// Returns true if a line begins a list item.
fn is_item(line: &str) -> bool {
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = after_number.len() < line.len() && after_number.starts_with([')', '.']);
    numbered || ["- ", "* ", "+ "].iter().any(|bullet| line.starts_with(bullet))
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

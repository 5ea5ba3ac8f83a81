//! Text with its quoting.

/// A piece of text that is quoted, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) text: String,
    pub(crate) quoted: bool,
}

/// Returns the characters of fragments, each with true if it is quoted.
pub(super) fn quoted_chars(fragments: &[Fragment]) -> Vec<(char, bool)> {
    fragments
        .iter()
        .flat_map(|fragment| fragment.text.chars().map(|c| (c, fragment.quoted)))
        .collect()
}

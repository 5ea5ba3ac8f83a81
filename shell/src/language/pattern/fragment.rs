//! Text with its quoting.

/// A piece of text, either quoted or unquoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) text: String,
    pub(crate) quoted: bool,
}

/// Returns the characters of fragments, each with a flag that is true if the character is quoted.
pub(super) fn quoted_chars(fragments: &[Fragment]) -> Vec<(char, bool)> {
    fragments
        .iter()
        .flat_map(|fragment| fragment.text.chars().map(|c| (c, fragment.quoted)))
        .collect()
}

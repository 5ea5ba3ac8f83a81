//! Excerpts of a program's text, as messages quote them.

/// Maximum length of an excerpt, in characters.
const MAX_CHARS: usize = 60;

/// Returns a text on one line, without its middle if it is longer than 60 characters.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let count = line.chars().count();
    if count <= MAX_CHARS {
        return line;
    }
    let head: String = line.chars().take(MAX_CHARS / 2).collect();
    let tail: String = line.chars().skip(count - MAX_CHARS / 3).collect();
    format!("{head}…{tail}")
}

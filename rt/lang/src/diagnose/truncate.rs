//! Truncation of strings for messages.

use std::borrow::Cow;

/// Returns a string unchanged if it has at most `max_chars` characters. Otherwise, returns its
/// first `max_chars` characters and `…`.
///
/// ```
/// assert_eq!(wattle_lang::truncate("naïve", 3), "naï…");
/// assert_eq!(wattle_lang::truncate("naïve", 5), "naïve");
/// ```
#[must_use]
pub fn truncate(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Returns a string in quotes, with escapes. If the string is longer than `max_chars` characters,
/// quotes the first `max_chars` and appends `…`.
///
/// ```
/// assert_eq!(wattle_lang::quote("a\nb", 3), r#""a\nb""#);
/// assert_eq!(wattle_lang::quote("abcd", 3), r#""abc"…"#);
/// ```
#[must_use]
pub fn quote(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// Maximum length of an excerpt from a program's source, in characters.
const MAX_EXCERPT: usize = 60;

/// Formats a piece of a program's source for quoting in a message: on one line and truncated.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate(&line, MAX_EXCERPT).into_owned()
}

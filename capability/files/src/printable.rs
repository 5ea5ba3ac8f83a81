//! Formats paths and names for messages.

/// Formats a path or a name for a message. Escapes control characters and truncates long strings.
pub(crate) fn printable(text: impl std::fmt::Display) -> String {
    let text = text.to_string();
    let mut out = String::new();
    for c in wattle_lang::truncate(&text, 120).chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

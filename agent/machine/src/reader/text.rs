//! Functions on strings and byte offsets. They do not panic if an offset is beyond the end of the
//! string or within a character.

/// Returns the byte at `at`, or 0 beyond the end of the string.
pub(super) fn byte(text: &str, at: usize) -> u8 {
    text.as_bytes().get(at).copied().unwrap_or(0)
}

/// Returns the character that begins at `at`, or `None` if there is none.
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    slice(text, at, text.len()).chars().next()
}

/// Returns the slice `from..to`, or an empty string if the range is invalid.
pub(super) fn slice(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

/// Returns true if the text at `at` begins with `prefix`, ignoring ASCII case. `prefix` is ASCII.
pub(super) fn starts(text: &str, at: usize, prefix: &str) -> bool {
    let end = at.saturating_add(prefix.len());
    text.as_bytes().get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Returns the number of consecutive `mark` bytes at `at`.
pub(super) fn run(text: &str, at: usize, mark: u8) -> usize {
    text.as_bytes().iter().skip(at).take_while(|&&found| found == mark).count()
}

/// Returns the offset after the whitespace at `at`, excluding line breaks.
pub(super) fn after_blanks(text: &str, at: usize) -> usize {
    after(text, at, |found| found != '\n' && is_space(found))
}

/// Returns the offset after the whitespace at `at`, including line breaks.
pub(super) fn after_space(text: &str, at: usize) -> usize {
    after(text, at, is_space)
}

fn after(text: &str, at: usize, skipped: impl Fn(char) -> bool) -> usize {
    let rest = slice(text, at, text.len());
    at + (rest.len() - rest.trim_start_matches(skipped).len())
}

/// Returns true for whitespace, and for the zero-width characters that occur in answers.
fn is_space(found: char) -> bool {
    found.is_whitespace() || matches!(found, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Returns the offset of the first line break at or after `at`, or the length of the text if there
/// is none.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    slice(text, at, text.len()).find('\n').map_or(text.len(), |length| at + length)
}

/// Returns the character (a backtick or a tilde) and the length of the code fence at `at`, or
/// `None` if there is no fence there.
pub(super) fn fence(text: &str, at: usize) -> Option<(u8, usize)> {
    let mark = byte(text, at);
    let length = if mark == b'`' || mark == b'~' { run(text, at, mark) } else { 0 };
    (length >= 3).then_some((mark, length))
}

/// Returns true if only whitespace follows `at` on its line.
pub(super) fn ends_line(text: &str, at: usize) -> bool {
    let at = after_blanks(text, at);
    at >= text.len() || byte(text, at) == b'\n'
}

/// Returns the offset after a closing parenthesis at `at`, ASCII or full-width, or `None` if there
/// is none.
pub(super) fn after_parenthesis(text: &str, at: usize) -> Option<usize> {
    match char_at(text, at)? {
        ')' => Some(at + 1),
        wide @ '）' => Some(at + wide.len_utf8()),
        _ => None,
    }
}

/// Removes leading and trailing blank lines and the final line break. Whitespace in other lines is
/// kept.
pub(super) fn trim_blank_lines(text: &str) -> &str {
    let mut text = text;
    while let Some((line, rest)) = text.split_once('\n')
        && line.trim().is_empty()
    {
        text = rest;
    }
    while let Some((rest, line)) = text.rsplit_once('\n')
        && line.trim().is_empty()
    {
        text = rest;
    }
    if text.trim().is_empty() { "" } else { text }
}

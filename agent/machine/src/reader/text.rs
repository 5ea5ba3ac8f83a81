//! Looks at text by byte offsets without ever leaving it: beyond its end there are zeros and empty strings.

/// Gives the byte at `at`, 0 beyond the end.
pub(super) fn byte(text: &str, at: usize) -> u8 {
    text.as_bytes().get(at).copied().unwrap_or(0)
}

/// Gives the character that begins at `at`.
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    cut(text, at, text.len()).chars().next()
}

/// Gives `from..to`, empty where that is no range of whole characters.
pub(super) fn cut(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

/// Tells whether `prefix` (lower-case ASCII) stands at `at`, in whatever case.
pub(super) fn starts(text: &str, at: usize, prefix: &str) -> bool {
    let end = at.saturating_add(prefix.len());
    text.as_bytes().get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Counts how often `mark` stands from `at` on.
pub(super) fn run(text: &str, at: usize, mark: u8) -> usize {
    text.as_bytes().iter().skip(at).take_while(|&&found| found == mark).count()
}

/// Gives the first offset from `at` on that is no blank of the same line.
pub(super) fn after_blanks(text: &str, at: usize) -> usize {
    after(text, at, |found| found != '\n' && is_blank(found))
}

/// Gives the first offset from `at` on that is neither blank nor line break.
pub(super) fn after_space(text: &str, at: usize) -> usize {
    after(text, at, is_blank)
}

fn after(text: &str, at: usize, skipped: impl Fn(char) -> bool) -> usize {
    let rest = cut(text, at, text.len());
    at + (rest.len() - rest.trim_start_matches(skipped).len())
}

/// Tells whether a character shows nothing: blanks of every kind, and the marks of no width that stray into answers.
fn is_blank(found: char) -> bool {
    found.is_whitespace() || matches!(found, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Gives the offset of the line break that ends the line of `at`, or the text's end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    cut(text, at, text.len()).find('\n').map_or(text.len(), |length| at + length)
}

/// Gives the mark and the length of the fence that stands at `at`.
pub(super) fn fence(text: &str, at: usize) -> Option<(u8, usize)> {
    let mark = byte(text, at);
    let length = if mark == b'`' || mark == b'~' { run(text, at, mark) } else { 0 };
    (length >= 3).then_some((mark, length))
}

/// Tells whether `at` is where a line of its own could end: nothing but blanks before the line break.
pub(super) fn ends_line(text: &str, at: usize) -> bool {
    let at = after_blanks(text, at);
    at >= text.len() || byte(text, at) == b'\n'
}

/// Gives the offset after the closing parenthesis that stands at `at`, ASCII or full-width.
pub(super) fn after_parenthesis(text: &str, at: usize) -> Option<usize> {
    match char_at(text, at)? {
        ')' => Some(at + 1),
        wide @ '）' => Some(at + wide.len_utf8()),
        _ => None,
    }
}

/// Takes away the blank lines at both ends, and the last line break; blanks within the lines that stay are kept.
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

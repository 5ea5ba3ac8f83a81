//! The removal of decoration that models put around a value: Markdown, quotes, a code fence.

/// Removes leading whitespace, trailing whitespace and whitespace at line ends, and converts all
/// line endings to `\n`. All rules ignore these differences.
pub(super) fn normalised(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// Returns the text inside the code fence if there is exactly one, or the whole text otherwise.
pub(super) fn unfenced(text: &str) -> &str {
    let mut parts = text.split("```");
    let (Some(_), Some(inside), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return text;
    };
    // The language follows the opening fence.
    match inside.split_once('\n') {
        Some((language, rest)) if !language.trim().contains(char::is_whitespace) => rest,
        _ => inside,
    }
}

/// Removes emphasis, backquotes and double quotes from a text, and replaces typographic spaces,
/// hyphens and apostrophes with ASCII characters.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '`' | '"' | '“' | '”' | '„' | '«' | '»' | '\u{200b}' | '\u{feff}' => {}
            '‘' | '’' | '‚' => plain.push('\''),
            '–' | '—' | '−' | '‐' | '‑' => plain.push('-'),
            '\n' => plain.push('\n'),
            c if c.is_whitespace() => plain.push(' '),
            c => plain.push(c),
        }
    }
    let lines = plain.lines().map(|line| line.split(' ').filter(|w| !w.is_empty()));
    lines.map(|words| words.collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
}

/// Returns a list item without decoration and without punctuation at its ends.
pub(super) fn bare(item: &str) -> String {
    let plain = plain(item);
    let trimmed = plain.trim().trim_end_matches([',', ';']).trim_end();
    let inner = trimmed
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(trimmed)
        .trim();
    // A final full stop is removed, unless the item contains another one, as in `e.g.`.
    match inner.strip_suffix('.') {
        Some(rest) if !rest.contains('.') => rest.to_owned(),
        _ => inner.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_is_removed_and_the_value_stays() {
        for (text, expected) in [
            ("**Barbara**", "Barbara"),
            ("`b.txt`", "b.txt"),
            ("“two  words”", "two words"),
            ("'x'", "x"),
            ("it’s", "it's"),
            ("snake_case", "snake_case"),
            ("About us – Shop", "About us - Shop"),
            ("the end.", "the end"),
            ("e.g.", "e.g."),
            ("a,", "a"),
        ] {
            assert_eq!(bare(text), expected, "{text}");
        }
        assert_eq!(normalised(" a \r\nb  \n\n"), "a\nb");
        assert_eq!(unfenced("Here:\n```json\n[1]\n```\n"), "[1]\n");
        assert_eq!(unfenced("```[1]```"), "[1]");
        assert_eq!(unfenced("```a``` or ```b```"), "```a``` or ```b```");
    }
}

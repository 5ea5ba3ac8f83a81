//! Backslash escapes of `$'…'`, `echo -e` and `printf`, and quoting of strings for the shell.

/// Returns the content of `$'…'` with its escapes replaced.
pub(crate) fn ansi(text: &str) -> String {
    let (bytes, _) = unescape(text, Dialect::Quote);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The syntax of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `$'…'`: octal numbers without a leading zero; `\cX` is a control character.
    Quote,
    /// `echo -e` and `%b`: octal numbers with a leading zero; `\c` ends all output.
    Echo,
    /// A `printf` format: octal numbers without a leading zero.
    Format,
}

/// Returns a string with its escapes replaced, and a flag that is true if `\c` ended the output.
pub(crate) fn unescape(text: &str, dialect: Dialect) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut utf8 = [0; 4];
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
            continue;
        }
        let Some(kind) = rest.next() else {
            out.push(b'\\');
            break;
        };
        let mut number = |radix: u32, max_digits: usize, first: u32| {
            let mut value = first;
            let mut count = 0;
            while count < max_digits
                && let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix))
            {
                value = value * radix + digit;
                rest.next();
                count += 1;
            }
            (value, count)
        };
        match kind {
            'a' => out.push(7),
            'b' => out.push(8),
            'e' | 'E' => out.push(27),
            'f' => out.push(12),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(11),
            '\\' => out.push(b'\\'),
            '\'' | '"' | '?' if dialect != Dialect::Echo => {
                out.extend_from_slice(kind.encode_utf8(&mut utf8).as_bytes())
            }
            'c' if dialect == Dialect::Echo => return (out, true),
            'c' if dialect == Dialect::Quote => {
                out.extend(rest.next().map(|c| (c as u32 & 0x1f) as u8))
            }
            '0' if dialect == Dialect::Echo => out.push((number(8, 3, 0).0 & 0xff) as u8),
            '0'..='7' => out.push((number(8, 2, kind.to_digit(8).unwrap_or(0)).0 & 0xff) as u8),
            'x' => match number(16, 2, 0) {
                (_, 0) => out.extend_from_slice(b"\\x"),
                (value, _) => out.push((value & 0xff) as u8),
            },
            'u' | 'U' => match number(16, if kind == 'u' { 4 } else { 8 }, 0) {
                (_, 0) => out.extend([b'\\', kind as u8]),
                (value, _) => out.extend_from_slice(
                    char::from_u32(value)
                        .unwrap_or(char::REPLACEMENT_CHARACTER)
                        .encode_utf8(&mut utf8)
                        .as_bytes(),
                ),
            },
            other => {
                out.push(b'\\');
                out.extend_from_slice(other.encode_utf8(&mut utf8).as_bytes());
            }
        }
    }
    (out, false)
}

/// Quotes a string as `printf %q` does.
pub(crate) fn backslashed(text: &str) -> String {
    if text.is_empty() {
        return "''".into();
    }
    if text.chars().any(char::is_control) {
        return dollar_quoted(text);
    }
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        let special = " '\"\\|&;()<>!{}*[]?^$`,".contains(c);
        if special || (index == 0 && matches!(c, '#' | '~')) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Quotes a string with single quotes, or as `$'…'` if it contains control characters.
pub(crate) fn quoted(text: &str) -> String {
    if text.chars().any(char::is_control) {
        dollar_quoted(text)
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Quotes a string like [`quoted`], unless it consists only of characters that need no quotes.
pub(crate) fn quoted_if_needed(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_alphanumeric() || "_-./:=,+@%^".contains(c));
    if plain { text.to_owned() } else { quoted(text) }
}

/// Quotes a word for the output of `set -x`.
pub(crate) fn quoted_word(text: &str) -> String {
    if text.is_empty() { quoted(text) } else { quoted_if_needed(text) }
}

/// Quotes a value as `declare -p` does.
pub(crate) fn double_quoted(text: &str) -> String {
    if text.chars().any(char::is_control) {
        return dollar_quoted(text);
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

fn dollar_quoted(text: &str) -> String {
    let mut out = String::from("$'");
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\E"),
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\{:03o}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

//! Backslash escapes: of `$'…'`, of `echo -e`, of `printf`; and the quoting that reads back as the same text.

/// The text of `$'…'`.
pub(crate) fn ansi(text: &str) -> String {
    let (bytes, _) = unescape(text, Dialect::Quote);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whose escapes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `$'…'`: octal without a zero in front, `\c` is a control character.
    Quote,
    /// `echo -e` and `%b`: octal with a zero in front, `\c` ends all output.
    Echo,
    /// A format of `printf`: octal without a zero in front.
    Format,
}

/// Text with its escapes carried out; true where `\c` said that output ends here.
pub(crate) fn unescape(text: &str, dialect: Dialect) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut sign = [0; 4];
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut sign).as_bytes());
            continue;
        }
        let Some(kind) = rest.next() else {
            out.push(b'\\');
            break;
        };
        let mut number = |radix: u32, most: usize, first: u32| {
            let mut value = first;
            let mut count = 0;
            while count < most
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
                out.extend_from_slice(kind.encode_utf8(&mut sign).as_bytes())
            }
            'c' if dialect == Dialect::Echo => return (out, true),
            'c' if dialect == Dialect::Quote => out.extend(rest.next().map(|c| (c as u32 & 0x1f) as u8)),
            '0' if dialect == Dialect::Echo => out.push((number(8, 3, 0).0 & 0xff) as u8),
            '0'..='7' => out.push((number(8, 2, kind.to_digit(8).unwrap_or(0)).0 & 0xff) as u8),
            'x' => match number(16, 2, 0) {
                (_, 0) => out.extend_from_slice(b"\\x"),
                (value, _) => out.push((value & 0xff) as u8),
            },
            'u' | 'U' => match number(16, if kind == 'u' { 4 } else { 8 }, 0) {
                (_, 0) => out.extend([b'\\', kind as u8]),
                (value, _) => out.extend_from_slice(
                    char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut sign).as_bytes(),
                ),
            },
            other => {
                out.push(b'\\');
                out.extend_from_slice(other.encode_utf8(&mut sign).as_bytes());
            }
        }
    }
    (out, false)
}

/// A word that reads back as `text`, as `printf %q` writes it.
pub(crate) fn backslashed(text: &str) -> String {
    if text.is_empty() {
        return "''".into();
    }
    if text.chars().any(char::is_control) {
        return dollar_quoted(text);
    }
    let mut out = String::new();
    for (place, c) in text.chars().enumerate() {
        let special = matches!(
            c,
            ' ' | '\''
                | '"'
                | '\\'
                | '|'
                | '&'
                | ';'
                | '('
                | ')'
                | '<'
                | '>'
                | '!'
                | '{'
                | '}'
                | '*'
                | '['
                | ']'
                | '?'
                | '^'
                | '$'
                | '`'
                | ','
        );
        if special || (place == 0 && matches!(c, '#' | '~')) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A word that reads back as `text`, between single quotes.
pub(crate) fn quoted(text: &str) -> String {
    if text.chars().any(char::is_control) { dollar_quoted(text) } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A value as `declare -p` writes it.
pub(crate) fn double_quoted(text: &str) -> String {
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return dollar_quoted(text);
    }
    if text.contains(['\n', '\t']) {
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

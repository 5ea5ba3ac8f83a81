//! Quoted strings: opening quotes, closing quotes, and escapes.

use super::text::{byte, char_at, run, slice};

/// An opening quote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quote {
    /// Offset of the quoted content.
    pub(super) inside: usize,
    pub(super) mark: char,
    pub(super) is_triple: bool,
    /// If true, the string is raw (`r"…"`): backslashes are not escapes.
    pub(super) is_raw: bool,
}

/// Reads the opening quote at `at`. Prefix letters from other languages may precede it, as in
/// `r"…"` and `f"…"`.
pub(super) fn at_offset(text: &str, at: usize) -> Option<Quote> {
    let letters = text.as_bytes().iter().skip(at).take(2);
    let letters =
        letters.take_while(|b| matches!(b.to_ascii_lowercase(), b'r' | b'f' | b'b' | b'u')).count();
    let is_raw = slice(text, at, at + letters).contains(['r', 'R']);
    let start = at + letters;
    let mark = char_at(text, start)?;
    let is_straight = matches!(mark, '"' | '\'');
    if !is_straight && (letters > 0 || strict_closers(mark).is_empty()) {
        return None;
    }
    let is_triple = is_straight && run(text, start, byte(text, start)) >= 3;
    let inside = start + if is_triple { 3 } else { mark.len_utf8() };
    Some(Quote { inside, mark, is_triple, is_raw })
}

/// Returns the quotes that close a string opened by `mark`.
pub(super) fn strict_closers(mark: char) -> &'static [char] {
    match mark {
        '"' => &['"'],
        '\'' => &['\''],
        '`' => &['`'],
        '“' | '”' => &['”'],
        '„' => &['“', '”'],
        '‘' | '’' => &['’'],
        '‚' => &['‘', '’'],
        '«' => &['»'],
        '»' => &['«'],
        '‹' => &['›'],
        _ => &[],
    }
}

/// Returns the quotes that may close a string opened by `mark` if the author mixed up quotes.
pub(super) fn lenient_closers(mark: char) -> &'static [char] {
    match mark {
        '`' => &['`'],
        '\'' | '‘' | '’' | '‚' | '‹' => &['\'', '‘', '’', '‚', '‹', '›'],
        _ => &['"', '“', '”', '„', '«', '»'],
    }
}

/// Finds the first unescaped quote that strictly matches the opening quote. Returns the end offsets
/// of the content and of the closing quote.
pub(super) fn close(text: &str, quote: Quote) -> Option<(usize, usize)> {
    if quote.is_triple {
        return triple_runs(text, quote).next();
    }
    let closers = strict_closers(quote.mark);
    let mut chars = slice(text, quote.inside, text.len()).char_indices();
    while let Some((offset, found)) = chars.next() {
        if found == '\\' && !quote.is_raw {
            chars.next();
        } else if closers.contains(&found) {
            let end = quote.inside + offset;
            return Some((end, end + found.len_utf8()));
        }
    }
    None
}

/// Returns the unescaped runs of three or more quotes after an opening triple quote, each as two
/// offsets: the end of the content and the end of the run. The last three quotes of a run are the
/// closing quote.
pub(super) fn triple_runs(text: &str, quote: Quote) -> impl Iterator<Item = (usize, usize)> {
    let mark = u8::try_from(quote.mark).unwrap_or(b'"');
    let mut at = quote.inside;
    std::iter::from_fn(move || {
        while at < text.len() {
            let found = byte(text, at);
            if found == b'\\' && byte(text, at + 1) == mark && !quote.is_raw {
                at += 1 + run(text, at + 1, mark);
            } else if found == mark {
                let length = run(text, at, mark);
                at += length;
                if length >= 3 {
                    return Some((at - 3, at));
                }
            } else {
                at += 1;
            }
        }
        None
    })
}

/// Resolves the escapes in a string's content, unless the string is raw. In a multi-line
/// triple-quoted string, resolves only escaped triple quotes, because the content is usually code,
/// paths or formulas.
pub(super) fn content(raw: &str, quote: Quote) -> String {
    if quote.is_raw {
        raw.to_owned()
    } else if quote.is_triple && raw.trim().contains('\n') {
        code(raw, quote.mark)
    } else {
        // Typographic triple quotes leave two quotes at each end of the content.
        let inner = raw
            .strip_prefix("““")
            .and_then(|raw| raw.strip_suffix("””"))
            .filter(|_| quote.mark == '“');
        unescape(inner.unwrap_or(raw))
    }
}

/// Resolves escaped triple quotes in code. All other escapes belong to the code.
pub(super) fn code(raw: &str, mark: char) -> String {
    raw.replace(&format!("\\{mark}\\{mark}\\{mark}"), &format!("{mark}{mark}{mark}"))
        .replace(&format!("\\{mark}{mark}{mark}"), &format!("{mark}{mark}{mark}"))
}

/// Resolves escapes. Unknown escapes are left unchanged.
pub(super) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        match escape(after) {
            Some((meant, length)) => {
                out.push(meant);
                rest = slice(after, length, after.len());
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Parses an escape after its backslash. Returns the character and the length of the parsed text, in
/// bytes, or `None` if the escape is unknown.
pub(super) fn escape(after: &str) -> Option<(char, usize)> {
    match after.chars().next()? {
        'n' => Some(('\n', 1)),
        't' => Some(('\t', 1)),
        'r' => Some(('\r', 1)),
        same @ ('"' | '\'' | '\\' | '/' | '`') => Some((same, 1)),
        'u' => unicode(after),
        _ => None,
    }
}

/// Parses an escape after its backslash: `uXXXX`, a surrogate pair `uXXXX\uXXXX`, or `u{X…}`.
/// Returns the character and the length of the parsed text, in bytes.
fn unicode(after: &str) -> Option<(char, usize)> {
    if byte(after, 1) == b'{' {
        let digits =
            slice(after, 2, after.len()).bytes().take(7).take_while(u8::is_ascii_hexdigit).count();
        let found = char::from_u32(u32::from_str_radix(slice(after, 2, 2 + digits), 16).ok()?)?;
        return (byte(after, 2 + digits) == b'}').then_some((found, 3 + digits));
    }
    let unit = |at: usize| {
        let digits =
            after.get(at..at + 4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(1)?;
    if let Some(found) = char::from_u32(u32::from(first)) {
        return Some((found, 5));
    }
    if slice(after, 5, 7) != "\\u" {
        return None;
    }
    let pair = [first, unit(7)?];
    char::decode_utf16(pair).next()?.ok().map(|found| (found, 11))
}

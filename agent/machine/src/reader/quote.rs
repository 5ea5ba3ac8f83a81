//! Strings: which quotes there are, what closes them, and what their escapes mean.

use super::text::{byte, char_at, cut, run};

/// An opening quote.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    /// Where the content begins.
    pub(super) inside: usize,
    pub(super) mark: char,
    pub(super) is_triple: bool,
    /// Whether the content has no escapes (`r"…"`).
    pub(super) is_raw: bool,
}

/// Reads an opening quote at `at`, with whatever prefix letters other languages put before it.
pub(super) fn at_offset(text: &str, at: usize) -> Option<Quote> {
    let letters = text.as_bytes().iter().skip(at).take(2);
    let letters = letters.take_while(|b| matches!(b.to_ascii_lowercase(), b'r' | b'f' | b'b' | b'u')).count();
    let is_raw = cut(text, at, at + letters).contains(['r', 'R']);
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

/// Gives what closes a string that `mark` opens.
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

/// Gives what may close a string that `mark` opens where the writer mixed quotes up.
pub(super) fn lenient_closers(mark: char) -> &'static [char] {
    match mark {
        '`' => &['`'],
        '\'' | '‘' | '’' | '‚' | '‹' => &['\'', '‘', '’', '‚', '‹', '›'],
        _ => &['"', '“', '”', '„', '«', '»'],
    }
}

/// Finds the first unescaped closing quote by the letter, and gives where the content and the quote end.
pub(super) fn close(text: &str, quote: Quote) -> Option<(usize, usize)> {
    if quote.is_triple {
        return triple_runs(text, quote).next();
    }
    let closers = strict_closers(quote.mark);
    let mut chars = cut(text, quote.inside, text.len()).char_indices();
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

/// Gives each unescaped run of three or more quotes after a triple quote: where the content would end and where the run
/// ends. Of a longer run the last three are the quote.
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

/// Gives what a string's content means. Content in triple quotes that goes over lines is text as it stands, but for
/// escaped quotes: it holds code, paths and formulas more often than escapes.
pub(super) fn content(raw: &str, quote: Quote) -> String {
    if quote.is_raw {
        raw.to_owned()
    } else if quote.is_triple && raw.trim().contains('\n') {
        let mark = quote.mark;
        raw.replace(&format!("\\{mark}\\{mark}\\{mark}"), &format!("{mark}{mark}{mark}"))
            .replace(&format!("\\{mark}{mark}{mark}"), &format!("{mark}{mark}{mark}"))
    } else {
        // Triple quotes that were made typographic.
        let inner = raw.strip_prefix("““").and_then(|raw| raw.strip_suffix("””")).filter(|_| quote.mark == '“');
        unescape(inner.unwrap_or(raw))
    }
}

/// Resolves escapes; those it does not know stay as they are.
pub(super) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let known = match after.chars().next() {
            Some('n') => Some(('\n', 1)),
            Some('t') => Some(('\t', 1)),
            Some('r') => Some(('\r', 1)),
            Some(same @ ('"' | '\'' | '\\' | '/' | '`')) => Some((same, 1)),
            Some('u') => unicode(after),
            _ => None,
        };
        match known {
            Some((meant, length)) => {
                out.push(meant);
                rest = cut(after, length, after.len());
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

/// Reads `uXXXX`, a surrogate pair of such, or `u{X…}`; gives the character and the length.
fn unicode(after: &str) -> Option<(char, usize)> {
    if byte(after, 1) == b'{' {
        let digits = cut(after, 2, after.len()).bytes().take(7).take_while(u8::is_ascii_hexdigit).count();
        let found = char::from_u32(u32::from_str_radix(cut(after, 2, 2 + digits), 16).ok()?)?;
        return (byte(after, 2 + digits) == b'}').then_some((found, 3 + digits));
    }
    let unit = |at: usize| {
        let digits = after.get(at..at + 4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(1)?;
    if let Some(found) = char::from_u32(u32::from(first)) {
        return Some((found, 5));
    }
    if cut(after, 5, 7) != "\\u" {
        return None;
    }
    let pair = [first, unit(7)?];
    char::decode_utf16(pair).next()?.ok().map(|found| (found, 11))
}

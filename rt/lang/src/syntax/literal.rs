//! Literals: numbers, quoted characters, and strings with escapes.

use std::borrow::Cow;

use crate::diagnose::fix::Edits;
use crate::diagnose::wording::{self, Fault};
use crate::types::Val;

/// Decodes the escapes in a literal. `inner` is the text between the quotes, which starts at byte
/// `start` of the source.
///
/// Supports the escapes of WAT (`\n \t \r \" \' \\ \hh \u{…}`) and JSON's `\uXXXX`, including
/// surrogate pairs. In a block (`"""`), a backslash that does not begin an escape is kept.
fn decode(inner: &str, start: usize, block: bool) -> Result<Cow<'_, [u8]>, Box<Fault>> {
    let Some(first) = inner.find('\\') else {
        return Ok(Cow::Borrowed(inner.as_bytes()));
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut at = 0;
    let mut next = Some(first);
    while let Some(escape) = next {
        bytes.extend_from_slice(inner.get(at..escape).unwrap_or("").as_bytes());
        let rest = inner.get(escape + 1..).unwrap_or("");
        match unescape(rest, &mut bytes) {
            Some(used) => at = escape + 1 + used,
            None if block => {
                bytes.push(b'\\');
                at = escape + 1;
            }
            None => {
                let width = 1 + rest.chars().next().map_or(0, char::len_utf8);
                let at = start + escape;
                let found = inner.get(escape..escape + width).unwrap_or("\\");
                let rest = inner.get(escape + width..).unwrap_or("");
                let message = wording::bad_escape(found, rest);
                let by_chance = hex_escapes(inner);
                let is_other = matches!(found, "\\" | "\\u" | "\\x" | "\\/" | "\\`" | "\\0");
                let message = if is_other || by_chance.is_empty() {
                    message
                } else {
                    let backslashes = by_chance.into_iter().map(|offset| start + offset);
                    let double = |edits: Edits, at: usize| edits.insert(at, "\\");
                    message
                        .doubled_with_bytes(backslashes.chain([at]).fold(Edits::default(), double))
                };
                return Err(Fault::new(at..at + width, message));
            }
        }
        next = inner.get(at..).and_then(|rest| rest.find('\\')).map(|found| at + found);
    }
    bytes.extend_from_slice(inner.get(at..).unwrap_or("").as_bytes());
    Ok(Cow::Owned(bytes))
}

/// Returns the offsets of the escapes `\hh` in the text between the quotes of a literal.
pub(crate) fn hex_escapes(inner: &str) -> Vec<usize> {
    let bytes = inner.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = inner.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + offset;
        if is_digit(start + 1) && is_digit(start + 2) {
            found.push(start);
        }
        // Skips the character after the backslash, which may be a backslash itself. A character
        // that is not ASCII is not skipped, because `at` must stay on a character boundary.
        at = start + 1 + usize::from(bytes.get(start + 1).is_some_and(u8::is_ascii));
    }
    found
}

/// Decodes the escape after a backslash and appends the result to `out`. Returns the number of
/// bytes read, or `None` if there is no valid escape.
fn unescape(rest: &str, out: &mut Vec<u8>) -> Option<usize> {
    let mut bytes = rest.bytes();
    let plain = match bytes.next()? {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        quoted @ (b'"' | b'\'' | b'\\') => quoted,
        b'u' => {
            let (scalar, used) = unicode(rest)?;
            out.extend_from_slice(scalar.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(used);
        }
        high => {
            let value = hex(high)? * 16 + hex(bytes.next()?)?;
            out.push(u8::try_from(value).ok()?);
            return Some(2);
        }
    };
    out.push(plain);
    Some(1)
}

/// Decodes `u{…}`, `uXXXX` or a surrogate pair, `uXXXX\uXXXX`. Returns the character and the number
/// of bytes read, or `None` if the escape is invalid.
fn unicode(rest: &str) -> Option<(char, usize)> {
    if let Some(digits) = rest.strip_prefix("u{") {
        let digits = digits.get(..digits.find('}')?)?;
        let plain = digits.replace('_', "");
        if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        return Some((char::from_u32(u32::from_str_radix(&plain, 16).ok()?)?, digits.len() + 3));
    }
    let high = four_digits(rest.get(1..)?)?;
    if let Some(c) = char::from_u32(high) {
        return Some((c, 5));
    }
    let low = four_digits(rest.get(5..)?.strip_prefix("\\u")?)?;
    let pair = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
    Some((char::decode_utf16(pair).next()?.ok()?, 11))
}

/// Parses four hexadecimal digits.
fn four_digits(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    digits.bytes().try_fold(0, |value, digit| Some(value * 16 + hex(digit)?))
}

fn hex(digit: u8) -> Option<u32> {
    char::from(digit).to_digit(16)
}

/// Returns the default type of a number literal, or `None` if `text` is not a number. If a whole
/// number fits in no integer type, returns i64, which [`fits`] then rejects. A float would round
/// the number.
pub(crate) fn number_type(text: &str) -> Option<Val> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let integer = [Val::I32, Val::I64].into_iter().find(|ty| fits(*ty, text));
    let whole = || is_whole(digits).then_some(Val::I64);
    integer.or_else(whole).or_else(|| is_number(Val::F64, text).then_some(Val::F64))
}

/// Returns true if a number without its sign consists only of digits and underscores, after `0x` if
/// it is hexadecimal.
fn is_whole(digits: &str) -> bool {
    match digits.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_'),
        None => digits.bytes().all(|b| b.is_ascii_digit() || b == b'_'),
    }
}

/// Returns true if `text` is a number literal whose value fits in the type `ty` of the language.
/// The integers of the language are signed: 4294967295, which WAT accepts as an i32, does not fit
/// in an int.
pub(crate) fn fits(ty: Val, text: &str) -> bool {
    let signed = match ty {
        Val::I32 => integer(text).is_some_and(|value| i32::try_from(value).is_ok()),
        Val::I64 => integer(text).is_some(),
        _ => true,
    };
    signed && is_number(ty, text)
}

/// Returns true if a string is a number literal of this WAT type. Accepts unusual float notations
/// without checking them, because the WAT parser checks them later.
pub(crate) fn is_number(ty: Val, text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = digits.starts_with(|c: char| c.is_ascii_digit());
    match ty {
        Val::I32 => is_integer(text, 32),
        Val::I64 => is_integer(text, 64),
        _ if digits.starts_with("0x") || digits.starts_with("nan") || digits == "inf" => true,
        _ => number && digits.replace('_', "").parse::<f64>().is_ok(),
    }
}

/// The parts of an integer literal.
struct Magnitude<'t> {
    negative: bool,
    radix: u32,
    digits: &'t str,
}

impl Magnitude<'_> {
    fn of(text: &str) -> Magnitude<'_> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (radix, digits) = match digits.strip_prefix("0x") {
            Some(digits) => (16, digits),
            None => (10, digits),
        };
        Magnitude { negative: text.starts_with('-'), radix, digits }
    }
}

/// Returns true if an atom is a signed or unsigned integer that fits in `bits` bits.
fn is_integer(text: &str, bits: u32) -> bool {
    let Magnitude { negative, radix, digits } = Magnitude::of(text);
    let well_spaced =
        !digits.starts_with(['_', '+']) && !digits.ends_with('_') && !digits.contains("__");
    let limit = if negative { 1 << (bits - 1) } else { u64::MAX >> (64 - bits) };
    well_spaced
        && u64::from_str_radix(&digits.replace('_', ""), radix).is_ok_and(|value| value <= limit)
}

/// Parses an atom as an index, such as the index of a local. Returns `None` if it is not an index.
pub(crate) fn index(text: &str) -> Option<usize> {
    let Magnitude { radix, digits, .. } = Magnitude::of(text);
    if text.starts_with(['-', '+']) || !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    usize::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// Parses an integer literal. Returns `None` if the text is not an integer or its value does not
/// fit in a signed 64-bit integer.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let Magnitude { negative, radix, digits } = Magnitude::of(text);
    let value = i128::from(u64::from_str_radix(&digits.replace('_', ""), radix).ok()?);
    i64::try_from(if negative { -value } else { value }).ok()
}

/// Decodes a string literal, including its quotes, that starts at byte `start` of the source. A
/// string with the prefix `r` contains no escapes.
pub(crate) fn text(text: &str, start: usize, block: bool) -> Result<Cow<'_, [u8]>, Box<Fault>> {
    let raw = text.starts_with('r');
    let open = if block { 3 } else { 1 } + usize::from(raw);
    let close = if block { 3 } else { 1 };
    let inner = text.get(open..text.len().saturating_sub(close)).unwrap_or("");
    if raw { Ok(Cow::Borrowed(inner.as_bytes())) } else { decode(inner, start + open, block) }
}

/// Returns the code point of a quoted character, such as `'#'` or `'\n'`. Returns `None` if `text`
/// is not a quoted character.
pub(crate) fn character(text: &str) -> Option<u32> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let value = decode(inner, 0, false).ok()?;
    let mut chars = std::str::from_utf8(&value).ok()?.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Some(u32::from(only)),
        _ => None,
    }
}

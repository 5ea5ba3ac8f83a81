//! String literals: their escapes and their static data.
//!
//! Each literal is stored in wire format, aligned to 4 bytes. Equal literals are stored once.
//!
//! ```text
//! 0        the null address
//! 1024     u32 length, little-endian │ bytes │ zeros up to a multiple of 4
//! …        the next literal
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use crate::diagnostic::clamp;
use crate::messages::{self, Fault};

/// The first address of static data. It is above all error codes, so that no address can be
/// mistaken for a code. Lower addresses are unused, and 0 is the null pointer.
pub(super) const BASE: u32 = 1_024;

/// The literals of a program.
#[derive(Default)]
pub(super) struct StaticData<'s> {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    known: HashMap<Cow<'s, [u8]>, u32>,
}

impl<'s> StaticData<'s> {
    /// Returns the address of a literal with this value, and stores the literal if it is new.
    pub(super) fn address(&mut self, value: Cow<'s, [u8]>) -> u32 {
        if let Some(address) = self.known.get(&value) {
            return *address;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let address = BASE + clamp(self.bytes.len());
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(&clamp(value.len()).to_le_bytes());
        self.bytes.extend_from_slice(&value);
        self.known.insert(value, address);
        address
    }

    /// Returns the first address after the data, a multiple of 16.
    pub(super) fn end(&self) -> u32 {
        (BASE + clamp(self.bytes.len())).next_multiple_of(16)
    }

    /// Writes the data segment, one literal on each line. Writes nothing if there are no literals.
    pub(super) fn write(&self, out: &mut String) {
        if self.starts.is_empty() {
            return;
        }
        let _ = write!(out, "  (data (i32.const {BASE})");
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes.len()]);
        for (start, end) in self.starts.iter().zip(ends) {
            out.push_str("\n    \"");
            for byte in self.bytes.get(*start..end).unwrap_or(&[]) {
                match byte {
                    b' '..=b'~' if !matches!(byte, b'"' | b'\\') => out.push(char::from(*byte)),
                    _ => {
                        let _ = write!(out, "\\{byte:02x}");
                    }
                }
            }
            out.push('"');
        }
        out.push_str(")\n");
    }
}

/// Decodes a literal. `inner` is the text between its quotes, which begins at byte `start` of the
/// source.
///
/// Supports the escapes of WAT (`\n \t \r \" \' \\ \hh \u{…}`) and JSON's `\uXXXX`, including
/// surrogate pairs. In a block (`"""`), a backslash that begins no escape is kept.
pub(super) fn decode(inner: &str, start: usize, block: bool) -> Result<Cow<'_, [u8]>, Box<Fault>> {
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
                return Err(Fault::new(at..at + width, messages::bad_escape(found, rest)));
            }
        }
        next = inner.get(at..).and_then(|rest| rest.find('\\')).map(|found| at + found);
    }
    bytes.extend_from_slice(inner.get(at..).unwrap_or("").as_bytes());
    Ok(Cow::Owned(bytes))
}

/// Decodes the escape after a backslash. Returns the number of bytes read, or `None` if it is not
/// an escape.
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

/// Decodes `u{…}` or `uXXXX`.
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

#[cfg(test)]
mod tests {
    use crate::Code;

    #[test]
    fn static_data_begins_above_all_error_codes() {
        assert!(Code::ALL.iter().all(|code| code.number().cast_unsigned() < super::BASE));
        assert_eq!(super::BASE % 16, 0);
    }
}

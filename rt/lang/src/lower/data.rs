//! The static data of a module: its string literals.
//!
//! Each literal is stored in wire format, aligned to 4 bytes. Equal literals are stored once.
//!
//! ```text
//! 0        the null address
//! 1024     u32 length, little-endian │ bytes │ zeros up to a multiple of 4
//! …        the next literal
//! ```

use std::borrow::Cow;
use std::fmt::Write;

use crate::NameMap;
use crate::diagnose::diagnostic::clamp;

/// The first address of static data. It is greater than every error code, so that no address can be
/// mistaken for a code. Lower addresses are unused, and 0 is the null pointer.
pub(crate) const BASE: u32 = 1_024;

/// The literals of a program.
#[derive(Default)]
pub(crate) struct StaticData<'s> {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    known: NameMap<Cow<'s, [u8]>, u32>,
}

impl<'s> StaticData<'s> {
    /// Returns the address of a literal with this value, and stores the literal if it is new.
    #[expect(clippy::ptr_arg, reason = "a new literal is kept, and borrowed if it can be")]
    pub(crate) fn address(&mut self, value: &Cow<'s, [u8]>) -> u32 {
        if let Some(address) = self.known.get(value) {
            return *address;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let address = BASE + clamp(self.bytes.len());
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(&clamp(value.len()).to_le_bytes());
        self.bytes.extend_from_slice(value);
        self.known.insert(value.clone(), address);
        address
    }

    /// Returns the address after the data, rounded up to a multiple of 16.
    pub(crate) fn end(&self) -> u32 {
        (BASE + clamp(self.bytes.len())).next_multiple_of(16)
    }

    /// Writes the data segment, one literal on each line. Writes nothing if there are no literals.
    pub(crate) fn write(&self, out: &mut String) {
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
                    _ => out.extend(['\\', hex_digit(byte >> 4), hex_digit(byte & 15)]),
                }
            }
            out.push('"');
        }
        out.push_str(")\n");
    }
}

/// Returns the hexadecimal digit of a number below 16.
fn hex_digit(number: u8) -> char {
    char::from_digit(number.into(), 16).unwrap_or('0')
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

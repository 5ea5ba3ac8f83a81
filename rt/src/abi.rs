//! The layout of values in a program's memory.
//!
//! Strings and bytes are laid out as `[u32 length][bytes]`, little-endian. A pointer is the address
//! of the first byte of the length. Address 0 is null, and no value is at an address below
//! [`MIN_ADDRESS`].
//!
//! Every pointer and length is checked against the bounds of the memory before it is used. If one
//! is invalid, the call fails with the code [`Code::EBOUND`].

use crate::{Code, Failure};

/// Minimum address of a value. A smaller number is not a pointer but an error code, count or index
/// passed by mistake.
pub const MIN_ADDRESS: u32 = 16;

/// Returns the bytes at `pointer`.
///
/// # Errors
/// `EBOUND` if the pointer is null or below [`MIN_ADDRESS`], or if the value is not inside the
/// memory.
pub fn bytes(memory: &[u8], pointer: i32) -> Result<&[u8], Failure> {
    let address = pointer.cast_unsigned();
    if address == 0 {
        return Err(Failure::new(
            Code::EBOUND,
            "pointer 0 is null; did the call that should have returned it fail?",
        ));
    }
    if address < MIN_ADDRESS {
        let hint =
            "is a number, not a pointer; were a value and its err popped in the wrong order?";
        return Err(Failure::new(Code::EBOUND, format!("{address} {hint}")));
    }
    let at = address as usize;
    let outside = || {
        let size = memory.len();
        Failure::new(
            Code::EBOUND,
            format!("pointer {address} is not a value inside the memory of {size} bytes"),
        )
    };
    let body = at.checked_add(4).ok_or_else(outside)?;
    let length = memory
        .get(at..body)
        .and_then(|b| b.try_into().ok())
        .map(u32::from_le_bytes)
        .ok_or_else(outside)?;
    let end = body.checked_add(length as usize).ok_or_else(outside)?;
    memory.get(body..end).ok_or_else(outside)
}

/// Returns the string at `pointer`.
///
/// # Errors
/// The same as for [`bytes()`], and `EPARSE` if the bytes are not UTF-8.
pub fn text(memory: &[u8], pointer: i32) -> Result<&str, Failure> {
    std::str::from_utf8(bytes(memory, pointer)?).map_err(|e| {
        let at = e.valid_up_to();
        Failure::new(
            Code::EPARSE,
            format!("the text at pointer {pointer} is not UTF-8 at byte {at}"),
        )
    })
}

/// Returns the string at `pointer`, or `None` if the pointer is null.
///
/// # Errors
/// The same as for [`text`].
pub fn optional_text(memory: &[u8], pointer: i32) -> Result<Option<&str>, Failure> {
    if pointer == 0 { Ok(None) } else { text(memory, pointer).map(Some) }
}

/// Returns the bytes at `pointer`, or `None` if the pointer is null.
///
/// # Errors
/// The same as for [`bytes()`].
pub fn optional_bytes(memory: &[u8], pointer: i32) -> Result<Option<&[u8]>, Failure> {
    if pointer == 0 { Ok(None) } else { bytes(memory, pointer).map(Some) }
}

/// A 32-bit value whose meaning only the program knows: a number, an error code, a handle or a
/// pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untyped<'a> {
    /// The value itself.
    pub number: i32,
    /// The bytes that `number` points to, if it is a valid pointer.
    pub bytes: Option<&'a [u8]>,
}

impl<'a> Untyped<'a> {
    /// Creates a value from a number. If the number is a valid pointer into `memory`, the value
    /// includes the bytes that it points to.
    #[must_use]
    pub fn of(memory: &'a [u8], number: i32) -> Self {
        Untyped { number, bytes: bytes(memory, number).ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Vec<u8> {
        let mut m = vec![0; 16];
        m.extend_from_slice(&3u32.to_le_bytes());
        m.extend_from_slice(b"abc");
        m
    }

    #[test]
    fn reads_values_inside_the_memory() {
        assert_eq!(text(&memory(), 16), Ok("abc"));
        assert_eq!(optional_text(&memory(), 0), Ok(None));
    }

    #[test]
    fn refuses_every_pointer_outside_the_memory() {
        let m = memory();
        for pointer in [0, 1, 4, 15, 17, 20, 21, 22, 23, 24, i32::MAX, i32::MIN, -1, -4] {
            assert_eq!(
                bytes(&m, pointer).map_err(|f| f.code),
                Err(Code::EBOUND),
                "pointer {pointer}"
            );
        }
        let mut long = m.clone();
        long[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(bytes(&long, 16).map_err(|f| f.code), Err(Code::EBOUND));
        let mut broken = m;
        broken[21] = 0xff;
        assert_eq!(text(&broken, 16).map_err(|f| f.code), Err(Code::EPARSE));
    }
}

//! The encoding of a call's result for storage.

use super::{CallResult, RecordedValue};
use crate::{Code, Failure};

// Values of the first byte of an encoded result. The byte identifies the data that follows.
const UNIT: u8 = 0;
const INT: u8 = 1;
const LONG: u8 = 2;
const FLOAT: u8 = 3;
const BYTES: u8 = 4;
const ITEMS: u8 = 5;
const FAILED: u8 = 255;

/// Encodes the result of a call. The first byte identifies the type of the result. The rest is
/// empty if the call returned no value, and otherwise one of these:
///
/// - a number, little-endian;
/// - the bytes;
/// - each item as `[u32 length][bytes]`;
/// - the code of a failure, little-endian, and its reason.
#[must_use]
pub fn encode(result: &CallResult) -> Vec<u8> {
    let with = |form: u8, bytes: &[u8]| [&[form], bytes].concat();
    match result {
        Ok(RecordedValue::Unit) => vec![UNIT],
        Ok(RecordedValue::Int(number)) => with(INT, &number.to_le_bytes()),
        Ok(RecordedValue::Long(number)) => with(LONG, &number.to_le_bytes()),
        Ok(RecordedValue::Float(number)) => with(FLOAT, &number.to_bits().to_le_bytes()),
        Ok(RecordedValue::Bytes(bytes)) => with(BYTES, bytes),
        Ok(RecordedValue::Items(items)) => {
            let mut all = vec![ITEMS];
            for item in items {
                all.extend_from_slice(&u32::try_from(item.len()).unwrap_or(u32::MAX).to_le_bytes());
                all.extend_from_slice(item);
            }
            all
        }
        Err(failure) => {
            [&[FAILED], &failure.code.number().to_le_bytes()[..], failure.reason.as_bytes()]
                .concat()
        }
    }
}

/// Decodes the output of [`encode`]. Returns `None` if the bytes are invalid.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<CallResult> {
    let (form, rest) = bytes.split_first()?;
    Some(Ok(match *form {
        UNIT if rest.is_empty() => RecordedValue::Unit,
        INT => RecordedValue::Int(i32::from_le_bytes(rest.try_into().ok()?)),
        LONG => RecordedValue::Long(i64::from_le_bytes(rest.try_into().ok()?)),
        FLOAT => RecordedValue::Float(f64::from_bits(u64::from_le_bytes(rest.try_into().ok()?))),
        BYTES => RecordedValue::Bytes(rest.to_vec()),
        ITEMS => {
            let mut items = Vec::new();
            let mut rest = rest;
            while !rest.is_empty() {
                let (head, body) = rest.split_first_chunk::<4>()?;
                let (item, after) = body.split_at_checked(u32::from_le_bytes(*head) as usize)?;
                items.push(item.to_vec());
                rest = after;
            }
            RecordedValue::Items(items)
        }
        FAILED => {
            let (code, reason) = rest.split_first_chunk::<4>()?;
            return Some(Err(Failure::new(
                Code(i32::from_le_bytes(*code)),
                std::str::from_utf8(reason).ok()?,
            )));
        }
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_is_decoded_as_it_was_encoded() {
        for result in [
            Ok(RecordedValue::Unit),
            Ok(RecordedValue::Int(-5)),
            Ok(RecordedValue::Long(i64::MIN)),
            Ok(RecordedValue::Float(-0.0)),
            Ok(RecordedValue::Bytes(vec![0, 255])),
            Ok(RecordedValue::Bytes(Vec::new())),
            Ok(RecordedValue::Items(vec![Vec::new(), b"two".to_vec()])),
            Ok(RecordedValue::Items(Vec::new())),
            Err(Failure::new(Code::ENOENT, "no ü")),
        ] {
            let bytes = encode(&result);
            assert_eq!(decode(&bytes), Some(result.clone()), "{result:?}");
            if bytes.first() != Some(&BYTES) && bytes.len() > 1 {
                assert_ne!(
                    decode(&bytes[..bytes.len() - 1]),
                    Some(result.clone()),
                    "a part of {result:?}"
                );
            }
        }
        for bytes in [
            &b""[..],
            b"\x09",
            b"\x01\x00",
            b"\x05\xff\xff\xff\xffx",
            b"\xff\x00\x00\x00\x00\xff",
            b"\x00x",
        ] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }
}

//! Conversion of strings to and from other encodings.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use sha2::{Digest as _, Sha256};
use wattle_rt::{Code, Failure, Run, quote};

use crate::json::document::{Document, quoted};
use crate::{MAX_TEXT, QUOTED, too_large};

/// All ASCII characters except the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The Base64 codec, which encodes with padding and decodes with or without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn malformed(why: String) -> Failure {
    Failure::new(Code::EPARSE, why)
}

/// Checks that `factor` times the length of a string does not exceed [`MAX_TEXT`].
fn check_growth(s: &[u8], factor: usize) -> Result<(), Failure> {
    if s.len().saturating_mul(factor) > MAX_TEXT { Err(too_large()) } else { Ok(()) }
}

pub(super) fn url_encode(_: &mut Run, s: &[u8]) -> Result<String, Failure> {
    check_growth(s, 3)?;
    Ok(percent_encode(s, RESERVED).to_string())
}

pub(super) fn url_decode(_: &mut Run, s: &str) -> Result<Vec<u8>, Failure> {
    let hex = |at: usize| s.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    if let Some((at, _)) = s.match_indices('%').find(|(at, _)| !(hex(at + 1) && hex(at + 2))) {
        let found = quote(s.get(at..).unwrap_or_default(), QUOTED);
        return Err(malformed(format!(
            "the % at byte {at} needs two hexadecimal digits after it: {found}"
        )));
    }
    Ok(percent_decode_str(s).collect())
}

pub(super) fn html_encode(_: &mut Run, s: &str) -> Result<String, Failure> {
    check_growth(s.as_bytes(), 6)?;
    Ok(htmlize::escape_all_quotes(s).into_owned())
}

pub(super) fn html_decode(_: &mut Run, s: &str) -> Result<String, Failure> {
    Ok(htmlize::unescape(s).into_owned())
}

pub(crate) fn json_encode(_: &mut Run, s: &str) -> Result<String, Failure> {
    check_growth(s.as_bytes(), 6)?;
    Ok(quoted(s))
}

pub(super) fn json_decode(_: &mut Run, s: &str) -> Result<String, Failure> {
    match Document::read(s)? {
        Document::Text(text) => Ok(text),
        other => Err(malformed(format!("the JSON is {}, not a string", other.a_kind()))),
    }
}

pub(super) fn base64_encode(_: &mut Run, s: &[u8]) -> Result<String, Failure> {
    check_growth(s, 2)?;
    Ok(BASE64.encode(s))
}

pub(super) fn base64_decode(_: &mut Run, s: &str) -> Result<Vec<u8>, Failure> {
    let standard = |c: char| match c {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    let digits: String = s.chars().filter(|c| !c.is_ascii_whitespace()).map(standard).collect();
    BASE64.decode(digits).map_err(|e| {
        malformed(format!("{} is not Base64: {}", quote(s, QUOTED), e.to_string().to_lowercase()))
    })
}

pub(super) fn hex_encode(_: &mut Run, s: &[u8]) -> Result<String, Failure> {
    check_growth(s, 2)?;
    Ok(hex(s))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

pub(super) fn hex_decode(_: &mut Run, s: &str) -> Result<Vec<u8>, Failure> {
    let digits: Option<Vec<u8>> = s
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .map(|c| u8::try_from(c.to_digit(16)?).ok())
        .collect();
    let digits = digits.ok_or_else(|| {
        malformed(format!("{} has characters other than hexadecimal digits", quote(s, QUOTED)))
    })?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(malformed(format!(
            "{} has an odd number of hexadecimal digits",
            quote(s, QUOTED)
        )));
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

pub(super) fn hash(_: &mut Run, s: &[u8]) -> Result<String, Failure> {
    Ok(hex(&Sha256::digest(s)))
}

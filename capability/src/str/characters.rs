//! Functions on the characters of strings: code points, words, padding and pieces.

use unicode_segmentation::UnicodeSegmentation as _;
use wattle_rt::{Code, Failure, Run};

use super::is_continuation;
use crate::arr::{Arrays, Handle};
use crate::{MAX_TEXT, too_large};

/// Number of bytes in a block of a string. [`offset`] counts the characters of a whole block at a
/// time.
const BLOCK: usize = 1_024;

pub(super) fn byte(_: &mut Run, s: &[u8], i: i32) -> Result<i32, Failure> {
    let byte = usize::try_from(i).ok().and_then(|i| s.get(i));
    Ok(byte.map_or(-1, |byte| i32::from(*byte)))
}

pub(super) fn code(_: &mut Run, s: &[u8], i: i32) -> Result<i32, Failure> {
    let rest = usize::try_from(i).ok().and_then(|i| s.get(offset(s, i)?..)).unwrap_or_default();
    let character = rest.get(..rest.len().min(4)).unwrap_or_default();
    let first = String::from_utf8_lossy(character).chars().next().map(u32::from);
    Ok(first.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1))
}

/// Returns the byte offset of the character at an index, or `None` if the string has too few
/// characters. Skips whole blocks first, because a processor can count the characters in many bytes
/// at once.
fn offset(s: &[u8], index: usize) -> Option<usize> {
    let starts = |byte: &u8| !is_continuation(Some(byte));
    let mut left = index;
    let mut at = 0;
    for block in s.chunks(BLOCK) {
        let count = block.iter().filter(|byte| starts(byte)).count();
        if left < count {
            let mut inside = block.iter().enumerate().filter(|(_, byte)| starts(byte));
            return inside.nth(left).map(|(offset, _)| at + offset);
        }
        left -= count;
        at += block.len();
    }
    None
}

pub(super) fn from_code(_: &mut Run, n: i32) -> Result<String, Failure> {
    let character = u32::try_from(n).ok().and_then(char::from_u32);
    character.map(String::from).ok_or_else(|| {
        let message = format!(
            "{n} is not the code point of a character, which is 0 to 1114111, without 55296 to \
             57343"
        );
        Failure::new(Code::EBOUND, message)
    })
}

pub(super) fn chars(run: &mut Run, s: &str) -> Result<Handle, Failure> {
    Arrays::make(run, s.split_inclusive(|_: char| true))
}

pub(super) fn words(run: &mut Run, s: &str) -> Result<Handle, Failure> {
    Arrays::make(run, s.split_whitespace())
}

pub(super) fn pad_left(
    _: &mut Run,
    s: &str,
    n: i32,
    fill: Option<&str>,
) -> Result<String, Failure> {
    Ok(padding(s, n, fill)? + s)
}

pub(super) fn pad_right(
    _: &mut Run,
    s: &str,
    n: i32,
    fill: Option<&str>,
) -> Result<String, Failure> {
    Ok(s.to_owned() + &padding(s, n, fill)?)
}

/// Returns the padding that extends a string to `n` characters, or an empty string if it is already
/// that long. Characters are grapheme clusters, so that a combining accent does not count
/// separately.
fn padding(s: &str, n: i32, fill: Option<&str>) -> Result<String, Failure> {
    let n = usize::try_from(n).map_err(|_| {
        Failure::new(Code::EBOUND, format!("cannot pad a string to {n} characters"))
    })?;
    let fill = fill.unwrap_or(" ");
    if fill.is_empty() {
        return Err(Failure::new(Code::EBOUND, "the string to fill with is empty"));
    }
    let missing = n - s.graphemes(true).take(n).count();
    let characters: Vec<&str> = fill.graphemes(true).collect();
    let rest = characters.get(..missing % characters.len()).unwrap_or_default().concat();
    let times = missing / characters.len();
    if times.saturating_mul(fill.len()).saturating_add(rest.len() + s.len()) > MAX_TEXT {
        return Err(too_large());
    }
    Ok(fill.repeat(times) + &rest)
}

/// Checks that a number of characters is at least `min`. Returns the number. `what` is the subject
/// of the error message, such as `a piece`.
fn count(n: i32, min: usize, what: &str) -> Result<usize, Failure> {
    let counted = usize::try_from(n).ok().filter(|n| *n >= min);
    counted.ok_or_else(|| {
        Failure::new(Code::EBOUND, format!("{what} needs at least {min} characters, not {n}"))
    })
}

pub(super) fn chunk(run: &mut Run, s: &str, n: i32) -> Result<Handle, Failure> {
    pieces(run, s, count(n, 1, "a piece")?, 0)
}

pub(super) fn chunk_overlap(
    run: &mut Run,
    s: &str,
    n: i32,
    overlap: i32,
) -> Result<Handle, Failure> {
    let n = count(n, 1, "a piece")?;
    let overlap = count(overlap, 0, "an overlap")?;
    if overlap >= n {
        let message =
            format!("the overlap of {overlap} characters must be smaller than the piece of {n}");
        return Err(Failure::new(Code::EBOUND, message));
    }
    pieces(run, s, n, overlap)
}

/// Splits a string into pieces of `n` grapheme clusters, so that no accent is separated from its
/// letter.
fn pieces(run: &mut Run, s: &str, n: usize, overlap: usize) -> Result<Handle, Failure> {
    // Without an overlap, the pieces are together as long as the string.
    if overlap > 0 && !fits(windows(s, n, overlap), run.remaining_memory()) {
        let why = "the pieces take more than the memory that this run has left; use a smaller \
                   overlap";
        return Err(Failure::new(Code::ENOMEM, why));
    }
    Arrays::make(run, windows(s, n, overlap))
}

/// Returns the pieces of `n` grapheme clusters, in order. Each starts with the last `overlap`
/// clusters of the previous one. A last piece that would contain only the overlap is omitted. The
/// time is linear in the length of the string, whatever the overlap.
fn windows(s: &str, n: usize, overlap: usize) -> impl Iterator<Item = &str> {
    let boundaries = move || s.grapheme_indices(true).map(|(at, _)| at);
    let step = n - overlap;
    let mut ends = boundaries().skip(n).step_by(step);
    let mut at_end = false;
    boundaries().step_by(step).map_while(move |start| {
        if at_end {
            return None;
        }
        let end = ends.next();
        at_end = end.is_none();
        s.get(start..end.unwrap_or(s.len()))
    })
}

/// Returns true if the total length of the pieces is at most `max` bytes.
fn fits<'p>(mut pieces: impl Iterator<Item = &'p str>, max: usize) -> bool {
    pieces.try_fold(max, |left, piece| left.checked_sub(piece.len())).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_characters() {
        let text = "aä€😀".repeat(700);
        let offsets: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for (index, at) in offsets.iter().enumerate() {
            assert_eq!(offset(text.as_bytes(), index), Some(*at), "{index}");
        }
        assert_eq!(offset(text.as_bytes(), offsets.len()), None);
        assert_eq!(offset(b"", 0), None);
        // Continuation bytes without a start byte are not counted.
        assert_eq!(offset(b"\x80\x80a", 0), Some(2));
    }

    #[test]
    fn pieces_with_any_overlap_are_those_of_a_simple_implementation() {
        let text = "ae\u{301}i🇩🇪o\r\nu👩‍👧xy";
        let characters: Vec<&str> = text.graphemes(true).collect();
        for n in 1..characters.len() + 2 {
            for overlap in 0..n {
                let mut expected = Vec::new();
                let mut start = 0;
                while start == 0 || start + overlap < characters.len() {
                    let end = (start + n).min(characters.len());
                    expected.push(characters.get(start..end).unwrap().concat());
                    start += n - overlap;
                }
                let found: Vec<&str> = windows(text, n, overlap).collect();
                assert_eq!(found, expected, "{n} {overlap}");
            }
        }
        assert_eq!(windows("", 3, 1).count(), 0);
    }

    #[test]
    fn pieces_that_take_too_much_are_refused_early() {
        assert!(fits(["ab", "c"].into_iter(), 3) && !fits(["ab", "c"].into_iter(), 2));
        assert!(!fits(std::iter::repeat("abc"), 1_000));
    }
}

//! `str`: strings. Lengths and offsets are in bytes. A range that begins or ends inside a character
//! is extended to include that character.

mod characters;
pub(crate) mod escape;
pub(crate) mod number;
mod pattern;

use memchr::memmem;
use wattle_rt::abi::Untyped;
use wattle_rt::{Appended, Code, Failure, Run, capability};

use crate::arr::{Arrays, Handle};
use crate::{MAX_TEXT, too_large};

capability! {
    /// Strings; lengths and offsets are in bytes; slices keep whole characters.
    pub const STR: "str" 3;

    /// Returns the length in bytes
    #[example = r#"(ret (str.from_int (str.len "abc")))"# => "3"]
    #[prompt(omitted)]
    fn len(s: bytes) -> n: int = len;

    /// Joins two strings
    #[example = r#"(ret (str.cat "a" "b"))"# => "ab"]
    #[prompt(omitted)]
    fn cat(a: str, b: str) -> ptr: str ! ENOMEM = cat;

    /// Returns s with t appended; if in_place is true and an earlier append returned s, s itself is
    /// extended, so nothing else may refer to it
    #[example = r#"(let $s "a") (append $s "{}" "b") (ret $s)"# => "ab"]
    #[prompt(omitted)]
    fn append(s: any, t: str, in_place: bool) -> ptr: str ! EBOUND ENOMEM = append;

    /// Returns the bytes from start to end (exclusive, clamped to the length)
    #[example = r#"(ret (str.slice "abcdef" 1 3))"# => "bc"]
    #[prompt(signature)]
    fn slice(s: bytes, start: int, end: opt_int) -> ptr: str ! EBOUND EPARSE = slice;

    /// Returns the byte at offset i, 0 to 255, or -1 past the end
    #[example = r#"(ret (str.from_int (str.byte "abc" 1)))"# => "98"]
    #[prompt(name)]
    fn byte(s: bytes, i: int) -> n: int = characters::byte;

    /// Returns the code point of the character at index i, counted in characters, or -1 past the
    /// end
    #[example = r#"(ret (str.from_int (str.code "né" 1)))"# => "233"]
    #[prompt(name)]
    fn code(s: bytes, i: int) -> n: int = characters::code;

    /// Returns the character with code point n
    #[example = r#"(ret (str.from_code 233))"# => "é"]
    #[prompt(omitted)]
    fn from_code(n: int) -> ptr: str ! EBOUND = characters::from_code;

    /// Splits into an array of strings of one character (code point) each
    #[example = r#"(ret (str.join (str.chars "née") "-"))"# => "n-é-e"]
    #[prompt(name)]
    fn chars(s: str) -> arr: arr = characters::chars;

    /// Splits into words: the parts between whitespace
    #[example = r#"(ret (str.join (str.words " to  be\n or ") "-"))"# => "to-be-or"]
    #[prompt(name)]
    fn words(s: str) -> arr: arr = characters::words;

    /// Returns the offset of the first needle at or after from, or -1
    #[example = r#"(ret (str.from_int (str.find "hello" "l" 0)))"# => "2"]
    #[prompt(signature)]
    fn find(s: bytes, needle: bytes, from: int) -> n: int = find;

    /// Returns the offset of the last needle, or -1
    #[example = r#"(ret (str.from_int (str.rfind "hello" "l")))"# => "3"]
    #[prompt(name)]
    fn rfind(s: bytes, needle: bytes) -> n: int = rfind;

    /// Returns 1 if s contains needle, else 0
    #[example = r#"(when (str.contains "hello" "ell") (out "yes"))"# => "yes"]
    #[prompt(omitted)]
    fn contains(s: bytes, needle: bytes) -> yes: bool = contains;

    /// Returns 1 if s starts with prefix, else 0
    #[example = r#"(when (str.starts "hello" "he") (out "yes"))"# => "yes"]
    #[prompt(signature)]
    fn starts(s: bytes, prefix: bytes) -> yes: bool = starts;

    /// Returns 1 if s ends with suffix, else 0
    #[example = r#"(when (str.ends "hello" "lo") (out "yes"))"# => "yes"]
    #[prompt(signature)]
    fn ends(s: bytes, suffix: bytes) -> yes: bool = ends;

    /// Returns 1 if a equals b, else 0
    #[example = r#"(when (str.eq "a" "a") (out "yes"))"# => "yes"]
    #[prompt(omitted)]
    fn eq(a: bytes, b: bytes) -> yes: bool = eq;

    /// Returns 1 if a differs from b, else 0
    #[example = r#"(when (str.ne "a" "b") (out "yes"))"# => "yes"]
    #[prompt(omitted)]
    fn ne(a: bytes, b: bytes) -> yes: bool = ne;

    /// Compares by bytes: returns -1 if a is less, 0 if equal, 1 if greater
    #[example = r#"(ret (str.from_int (str.cmp "a" "b")))"# => "-1"]
    #[prompt(name)]
    fn cmp(a: bytes, b: bytes) -> n: int = cmp;

    /// Splits at each sep; without any, returns the whole string as one item
    #[example = r#"(ret (str.join (str.split "a,b,,c" ",") "|"))"# => "a|b||c"]
    #[prompt(signature)]
    fn split(s: str, sep: str) -> arr: arr ! EBOUND ENOMEM = split;

    /// Joins an array's strings with sep between them
    #[example = r#"(ret (str.join (str.split "a b" " ") ", "))"# => "a, b"]
    #[prompt(signature)]
    fn join(arr: arr, sep: str) -> ptr: str ! EBOUND ENOMEM = join;

    /// Splits into lines, without line endings; one at the end of the text adds no empty line
    #[example = r#"(ret (str.join (str.lines "a\nb\n") "|"))"# => "a|b"]
    #[prompt(signature)]
    fn lines(s: str) -> arr: arr ! ENOMEM = lines;

    /// Removes leading and trailing whitespace
    #[example = r#"(ret (str.trim " a \n"))"# => "a"]
    #[prompt(signature)]
    fn trim(s: str) -> ptr: str ! ENOMEM = trim;

    /// Converts to lowercase
    #[example = r#"(ret (str.lower "ABC"))"# => "abc"]
    #[prompt(signature)]
    fn lower(s: str) -> ptr: str ! ENOMEM = lower;

    /// Converts to uppercase
    #[example = r#"(ret (str.upper "abc"))"# => "ABC"]
    #[prompt(name)]
    fn upper(s: str) -> ptr: str ! ENOMEM = upper;

    /// Replaces every occurrence of needle
    #[example = r#"(ret (str.replace "a-b-c" "-" "+"))"# => "a+b+c"]
    #[prompt(signature)]
    fn replace(s: str, needle: str, with: str) -> ptr: str ! EBOUND ENOMEM = replace;

    /// Replaces the first n occurrences of needle
    #[example = r#"(ret (str.replace_count "a-b-c" "-" "+" 1))"# => "a+b-c"]
    #[prompt(omitted)]
    fn replace_count(s: str, needle: str, with: str, n: int) -> ptr: str ! EBOUND ENOMEM = replace_count;

    /// Repeats the string n times
    #[example = r#"(ret (str.repeat "ab" 3))"# => "ababab"]
    #[prompt(name)]
    fn repeat(s: str, n: int) -> ptr: str ! EBOUND ENOMEM = repeat;

    /// Pads a string on the left with fill (default: a space) to n characters
    #[example = r#"(ret (str.pad_left "42" 5 "0"))"# => "00042"]
    #[prompt(name)]
    fn pad_left(s: str, n: int, fill: opt_str) -> ptr: str ! EBOUND ENOMEM = characters::pad_left;

    /// Pads a string on the right with fill (default: a space) to n characters
    #[example = r#"(ret (str.cat (str.pad_right "ab" 4) "|"))"# => "ab  |"]
    #[prompt(omitted)]
    fn pad_right(s: str, n: int, fill: opt_str) -> ptr: str ! EBOUND ENOMEM = characters::pad_right;

    /// Formats an integer
    #[example = r#"(ret (str.from_int 42))"# => "42"]
    #[prompt(omitted)]
    fn from_int(n: int) -> ptr: str = number::from_int;

    /// Formats a 64-bit integer
    #[example = "(ret (str.from_long 5000000000))" => "5000000000"]
    #[prompt(omitted)]
    fn from_long(n: long) -> ptr: str = number::from_long;

    /// Parses an integer; allows a sign and surrounding whitespace
    #[example = r#"(ret (str.from_int (+ (str.to_int " -7 ") 1)))"# => "-6"]
    #[prompt(omitted)]
    fn to_int(s: str) -> n: int ! EPARSE = number::to_int;

    /// Parses a 64-bit integer; `str.to_int` also returns one where a long is expected
    #[example = r#"(let $n long (str.to_int "3000000000")) (ret $n)"# => "3000000000"]
    #[prompt(omitted)]
    fn to_int/i64(s: str) -> n: long ! EPARSE = number::to_long;

    /// Formats a float, rounded to digits decimals (0 to 20); without digits, in the shortest form
    /// that parses to the same float
    #[example = r#"(ret (str.from_float (f64.const 2.5) 2))"# => "2.50"]
    #[prompt(name)]
    fn from_float(x: float, digits: opt_int) -> ptr: str = number::from_float;

    /// Parses a decimal number; allows a sign and surrounding whitespace
    #[example = r#"(ret (str.from_float (str.to_float "2.5e2") 1))"# => "250.0"]
    #[prompt(omitted)]
    fn to_float(s: str) -> x: float ! EPARSE = number::to_float;

    /// Splits into pieces of n characters; the last may be shorter
    #[example = r#"(ret (str.join (str.chunk "abcde" 2) "|"))"# => "ab|cd|e"]
    #[prompt(name)]
    fn chunk(s: str, n: int) -> arr: arr ! EBOUND ENOMEM = characters::chunk;

    /// Splits into pieces of n characters, each starting with the last overlap characters of the
    /// previous one
    #[example = r#"(ret (str.join (str.chunk_overlap "abcdef" 3 1) "|"))"# => "abc|cde|ef"]
    #[prompt(name)]
    fn chunk_overlap(s: str, n: int, overlap: int) -> arr: arr ! EBOUND ENOMEM = characters::chunk_overlap;

    /// Returns the first regex match and its groups as an array, empty if nothing matches; an
    /// unmatched group is ""
    #[example = r#"(ret (arr.get (str.match "on 2026-03-01" "([0-9]+)-([0-9]+)") 1))"# => "2026"]
    #[prompt(name)]
    #[effect(none)]
    #[touches(nothing)]
    async match(s: str, pattern: str) -> arr: arr ! EPARSE ETRFM ETIME ENOMEM = pattern::first;

    /// Returns group n of the first regex match (0: the whole match); "" if nothing matches
    #[example = r#"(ret (str.group "on 2026-03-01" "([0-9]+)-([0-9]+)" 2))"# => "03"]
    #[prompt(name)]
    #[effect(none)]
    #[touches(nothing)]
    async group(s: str, pattern: str, n: int) -> ptr: str ! EPARSE ETRFM ETIME ENOMEM = pattern::first_group;

    /// Returns all regex matches as an array of whole matches
    #[example = r#"(ret (str.join (str.find_all "a1 b22" "[0-9]+") " "))"# => "1 22"]
    #[prompt(signature)]
    #[effect(none)]
    #[touches(nothing)]
    async find_all(s: str, pattern: str) -> arr: arr ! EPARSE ETRFM ETIME ENOMEM = pattern::all;

    /// Returns all regex matches or, if given, one group of each ("" if unmatched)
    #[example = r#"(ret (str.join (str.find_all "a=1 b=22" "(\\w)=" 1) " "))"# => "a b"]
    #[effect(none)]
    #[touches(nothing)]
    async find_all/3(s: str, pattern: str, group: opt_int) -> arr: arr ! EPARSE ETRFM ETIME ENOMEM = pattern::all_of_group;

    /// Replaces every regex match; in with, $1 or ${name} is a group, $0 the whole match, $$ a
    /// dollar
    #[example = r#"(ret (str.replace_re "Ada Byron" "(\\w+) (\\w+)" "$2, $1"))"# => "Byron, Ada"]
    #[effect(none)]
    #[touches(nothing)]
    async replace_re(s: str, pattern: str, with: str) -> ptr: str ! EPARSE ETRFM ETIME ENOMEM = pattern::replace;

    /// Percent-encodes a part of a URL: everything but letters, digits and -._~
    #[example = r#"(ret (str.url_encode "a b&c"))"# => "a%20b%26c"]
    #[prompt(name)]
    fn url_encode(s: bytes) -> ptr: str ! ENOMEM = escape::url_encode;

    /// Decodes each %XX in a part of a URL; + stays +
    #[example = r#"(ret (str.url_decode "a%20b"))"# => "a b"]
    #[prompt(name)]
    fn url_decode(s: str) -> ptr: bytes ! EPARSE ENOMEM = escape::url_decode;

    /// Escapes &, <, >, " and ' for HTML
    #[example = r#"(ret (str.html_encode "a < b"))"# => "a &lt; b"]
    #[prompt(name)]
    fn html_encode(s: str) -> ptr: str ! ENOMEM = escape::html_encode;

    /// Decodes HTML entities, named and numeric; tags stay
    #[example = r#"(ret (str.html_decode "a &lt; &eacute;"))"# => "a < é"]
    #[prompt(name)]
    fn html_decode(s: str) -> ptr: str ! ENOMEM = escape::html_decode;

    /// Encodes as a JSON string, with quotes
    #[example = r#"(ret (str.json_encode "a\nb"))"# => r#""a\nb""#]
    #[prompt(name)]
    fn json_encode(s: str) -> ptr: str ! ENOMEM = escape::json_encode;

    /// Decodes a JSON string, with quotes
    #[example = r#"(ret (str.json_decode "\"a\\tb\""))"# => "a\tb"]
    #[prompt(name)]
    fn json_decode(s: str) -> ptr: str ! EPARSE ENOMEM = escape::json_decode;

    /// Encodes bytes as Base64, with padding
    #[example = r#"(ret (str.base64_encode "hi"))"# => "aGk="]
    #[prompt(name)]
    fn base64_encode(s: bytes) -> ptr: str ! ENOMEM = escape::base64_encode;

    /// Decodes Base64 of either alphabet; allows whitespace and missing padding
    #[example = r#"(ret (str.base64_decode "aGk="))"# => "hi"]
    #[prompt(name)]
    fn base64_decode(s: str) -> ptr: bytes ! EPARSE ENOMEM = escape::base64_decode;

    /// Encodes bytes as hexadecimal digits, two per byte
    #[example = r#"(ret (str.hex_encode "hi"))"# => "6869"]
    #[prompt(name)]
    fn hex_encode(s: bytes) -> ptr: str ! ENOMEM = escape::hex_encode;

    /// Decodes hexadecimal digits, two per byte; allows whitespace
    #[example = r#"(ret (str.hex_decode "6869"))"# => "hi"]
    #[prompt(name)]
    fn hex_decode(s: str) -> ptr: bytes ! EPARSE ENOMEM = escape::hex_decode;

    /// Returns the SHA-256 of the bytes as 64 hexadecimal digits
    #[example = r#"(ret (str.slice (str.hash "abc") 0 8))"# => "ba7816bf"]
    #[prompt(name)]
    fn hash(s: bytes) -> ptr: str = escape::hash;
}

fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn len(_: &mut Run, s: &[u8]) -> Result<i32, Failure> {
    Ok(int(s.len()))
}

fn cat(_: &mut Run, a: &str, b: &str) -> Result<String, Failure> {
    if a.len() + b.len() > MAX_TEXT {
        return Err(too_large());
    }
    Ok([a, b].concat())
}

fn append(_: &mut Run, s: Untyped<'_>, t: &str, in_place: bool) -> Result<Appended, Failure> {
    let Some(bytes) = s.bytes else {
        return Err(Failure::new(
            Code::EBOUND,
            format!("{} is not the address of a string", s.number),
        ));
    };
    if bytes.len() + t.len() > MAX_TEXT {
        return Err(too_large());
    }
    Ok(Appended { address: s.number, text: t.to_owned(), in_place })
}

/// Returns true if a byte is a UTF-8 continuation byte.
fn is_continuation(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte & 0xc0 == 0x80)
}

/// Returns the character boundary at or before an offset. Reads only the bytes near the offset, so
/// that splitting a large string into pieces takes linear time.
fn boundary_before(s: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|at| !is_continuation(s.get(*at))).unwrap_or(at)
}

/// Returns the character boundary at or after an offset.
fn boundary_after(s: &[u8], at: usize) -> usize {
    (at..at.saturating_add(4)).find(|at| !is_continuation(s.get(*at))).unwrap_or(at)
}

fn slice(_: &mut Run, s: &[u8], start: i32, end: Option<i32>) -> Result<String, Failure> {
    let bad = |why: &str| {
        let (length, end) = (s.len(), end.map_or("the end".to_owned(), |end| end.to_string()));
        Failure::new(
            Code::EBOUND,
            format!("cannot slice {start} to {end} of a string of {length} bytes: {why}"),
        )
    };
    let from = usize::try_from(start).map_err(|_| bad("the start is negative"))?;
    let from = if end.is_none() { from.min(s.len()) } else { from };
    let to = end.map_or(Ok(s.len()), usize::try_from).map_err(|_| bad("the end is negative"))?;
    let to = to.min(s.len());
    if from > s.len() {
        return Err(bad("the start is after the string's end"));
    }
    if from > to {
        return Err(bad("the end is before the start"));
    }
    // An empty slice stays empty, even inside a character.
    let to = if from == to { boundary_before(s, from) } else { boundary_after(s, to) };
    let piece = s.get(boundary_before(s, from)..to).unwrap_or_default();
    String::from_utf8(piece.to_vec()).map_err(|e| {
        Failure::new(Code::EPARSE, format!("the slice from {from} to {to} is not UTF-8: {e}"))
    })
}

fn find(_: &mut Run, s: &[u8], needle: &[u8], from: i32) -> Result<i32, Failure> {
    let from = boundary_after(s, usize::try_from(from).unwrap_or(0));
    Ok(s.get(from..).and_then(|rest| memmem::find(rest, needle)).map_or(-1, |at| int(from + at)))
}

fn rfind(_: &mut Run, s: &[u8], needle: &[u8]) -> Result<i32, Failure> {
    Ok(memmem::rfind(s, needle).map_or(-1, int))
}

fn contains(_: &mut Run, s: &[u8], needle: &[u8]) -> Result<bool, Failure> {
    Ok(memmem::find(s, needle).is_some())
}

fn starts(_: &mut Run, s: &[u8], prefix: &[u8]) -> Result<bool, Failure> {
    Ok(s.starts_with(prefix))
}

fn ends(_: &mut Run, s: &[u8], suffix: &[u8]) -> Result<bool, Failure> {
    Ok(s.ends_with(suffix))
}

fn eq(_: &mut Run, a: &[u8], b: &[u8]) -> Result<bool, Failure> {
    Ok(a == b)
}

fn ne(_: &mut Run, a: &[u8], b: &[u8]) -> Result<bool, Failure> {
    Ok(a != b)
}

fn cmp(_: &mut Run, a: &[u8], b: &[u8]) -> Result<i32, Failure> {
    Ok(a.cmp(b) as i32)
}

fn split(run: &mut Run, s: &str, sep: &str) -> Result<Handle, Failure> {
    if sep.is_empty() {
        return Err(Failure::new(
            Code::EBOUND,
            "the separator is empty; for single characters, use `str.chunk` with 1",
        ));
    }
    Arrays::make(run, s.split(sep))
}

fn join(run: &mut Run, arr: i32, sep: &str) -> Result<Vec<u8>, Failure> {
    let items = Arrays::of(run).get(Handle(arr))?;
    let size: usize = items.iter().map(|item| item.len() + sep.len()).sum();
    if size > MAX_TEXT {
        return Err(too_large());
    }
    Ok(items.join(sep.as_bytes()))
}

fn lines(run: &mut Run, s: &str) -> Result<Handle, Failure> {
    Arrays::make(run, s.lines())
}

fn trim(_: &mut Run, s: &str) -> Result<String, Failure> {
    Ok(s.trim().to_owned())
}

fn lower(_: &mut Run, s: &str) -> Result<String, Failure> {
    Ok(s.to_lowercase())
}

fn upper(_: &mut Run, s: &str) -> Result<String, Failure> {
    Ok(s.to_uppercase())
}

fn replace(_: &mut Run, s: &str, needle: &str, with: &str) -> Result<String, Failure> {
    replace_first(s, needle, with, usize::MAX)
}

fn replace_count(
    _: &mut Run,
    s: &str,
    needle: &str,
    with: &str,
    n: i32,
) -> Result<String, Failure> {
    let n = usize::try_from(n)
        .map_err(|_| Failure::new(Code::EBOUND, format!("cannot replace {n} occurrences")))?;
    replace_first(s, needle, with, n)
}

fn replace_first(s: &str, needle: &str, with: &str, n: usize) -> Result<String, Failure> {
    if needle.is_empty() {
        return Err(Failure::new(Code::EBOUND, "the string to replace is empty"));
    }
    let count = s.matches(needle).take(n).count();
    if count.saturating_mul(with.len()).saturating_add(s.len()) > MAX_TEXT {
        return Err(too_large());
    }
    Ok(s.replacen(needle, with, count))
}

fn repeat(_: &mut Run, s: &str, n: i32) -> Result<String, Failure> {
    let n = usize::try_from(n)
        .map_err(|_| Failure::new(Code::EBOUND, format!("cannot repeat a string {n} times")))?;
    if s.len().saturating_mul(n) > MAX_TEXT {
        return Err(too_large());
    }
    Ok(s.repeat(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_those_of_characters() {
        let text = "aäb𝄞c";
        for at in 0..text.len() + 3 {
            assert_eq!(
                boundary_before(text.as_bytes(), at.min(text.len())),
                text.floor_char_boundary(at),
                "{at}"
            );
            assert_eq!(
                boundary_after(text.as_bytes(), at).min(text.len()),
                text.ceil_char_boundary(at),
                "{at}"
            );
        }
    }
}

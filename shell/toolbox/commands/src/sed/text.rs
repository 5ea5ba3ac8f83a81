//! Parsing of the texts in a script: patterns, replacements, character lists, and their escapes.

use super::cursor::Cursor;
use super::syntax::{Case, Part};

/// Parses a pattern up to its delimiter, with sed's escapes replaced by their characters. A
/// delimiter within brackets does not end the pattern.
///
/// # Errors
///
/// If the delimiter is missing (with the message `unterminated`), or the escapes are not UTF-8.
pub(super) fn pattern(
    cursor: &mut Cursor,
    delimiter: char,
    unterminated: &str,
) -> Result<String, String> {
    let mut text = Vec::new();
    let mut bracket = Bracket::default();
    loop {
        let Some(letter) = cursor.next() else { return Err(cursor.error(unterminated)) };
        if letter == delimiter && !bracket.is_open() {
            return String::from_utf8(text)
                .map_err(|_| cursor.error("the escapes of the pattern are not UTF-8"));
        }
        if letter != '\\' {
            bracket.step(letter, cursor.peek());
            push(&mut text, letter);
            continue;
        }
        let Some(escaped) = cursor.peek() else { return Err(cursor.error(unterminated)) };
        if escaped == delimiter && !bracket.is_open() {
            cursor.next();
            push(&mut text, escaped);
        } else if let Some(byte) = code(cursor) {
            bracket.step('x', None);
            text.push(byte);
        } else if bracket.is_open() {
            bracket.step('\\', None);
            text.push(b'\\');
        } else {
            cursor.next();
            text.push(b'\\');
            push(&mut text, escaped);
        }
    }
}

/// A scanner that tracks whether a position in a pattern is inside a bracket expression.
#[derive(Default)]
struct Bracket {
    /// The number of members read so far; `None` outside a bracket expression.
    members: Option<usize>,
    /// The sign of the class that is being read, such as the colon of `[:alpha:]`.
    class: Option<char>,
    previous: Option<char>,
}

impl Bracket {
    fn is_open(&self) -> bool {
        self.members.is_some()
    }

    fn step(&mut self, letter: char, next: Option<char>) {
        match (self.members, self.class) {
            (None, _) if letter == '[' => self.members = Some(0),
            (None, _) => {}
            (Some(_), Some(sign)) => {
                if letter == ']' && self.previous == Some(sign) {
                    self.class = None;
                }
            }
            (Some(0), None) if letter == '^' && self.previous == Some('[') => {}
            (Some(count), None) if letter == ']' && count > 0 => self.members = None,
            (Some(count), None) => {
                if letter == '[' {
                    self.class = next.filter(|next| matches!(next, ':' | '.' | '='));
                }
                self.members = Some(count + 1);
            }
        }
        self.previous = Some(letter);
    }
}

/// Parses a replacement up to its delimiter.
pub(super) fn replacement(cursor: &mut Cursor, delimiter: char) -> Result<Vec<Part>, String> {
    const UNTERMINATED: &str = "unterminated `s' command";
    let mut parts = Vec::new();
    let mut text = Vec::new();
    loop {
        let Some(letter) = cursor.next() else { return Err(cursor.error(UNTERMINATED)) };
        let part = match letter {
            letter if letter == delimiter => break,
            '\n' => return Err(cursor.error(UNTERMINATED)),
            '&' => Part::Group(0),
            '\\' => {
                let Some(escaped) = cursor.peek() else { return Err(cursor.error(UNTERMINATED)) };
                if escaped != delimiter
                    && let Some(byte) = code(cursor)
                {
                    text.push(byte);
                    continue;
                }
                cursor.next();
                match (escaped.to_digit(10), case(escaped)) {
                    (Some(digit), _) if escaped != delimiter => Part::Group(digit as usize),
                    (_, Some(case)) if escaped != delimiter => Part::Case(case),
                    _ => {
                        push(&mut text, escaped);
                        continue;
                    }
                }
            }
            other => {
                push(&mut text, other);
                continue;
            }
        };
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(part);
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

fn case(letter: char) -> Option<Case> {
    Some(match letter {
        'U' => Case::Upper,
        'L' => Case::Lower,
        'E' => Case::End,
        'u' => Case::NextUpper,
        'l' => Case::NextLower,
        _ => return None,
    })
}

/// Parses a character list of `y` up to its delimiter.
pub(super) fn letters(cursor: &mut Cursor, delimiter: char) -> Result<Vec<char>, String> {
    const UNTERMINATED: &str = "unterminated `y' command";
    let mut text = Vec::new();
    loop {
        let Some(letter) = cursor.next() else { return Err(cursor.error(UNTERMINATED)) };
        if letter == delimiter {
            break;
        }
        if letter != '\\' {
            push(&mut text, letter);
            continue;
        }
        match cursor.peek() {
            None => return Err(cursor.error(UNTERMINATED)),
            Some(escaped) if escaped == delimiter || escaped == '\\' => {
                cursor.next();
                push(&mut text, escaped);
            }
            Some(_) => match code(cursor) {
                Some(byte) => text.push(byte),
                None => text.push(b'\\'),
            },
        }
    }
    match String::from_utf8(text) {
        Ok(text) => Ok(text.chars().collect()),
        Err(_) => Err(cursor.error("the escapes of the `y' command are not UTF-8")),
    }
}

/// Parses the text of `a`, `i` or `c`: the rest of the line, or the lines after `a\`.
pub(super) fn lines(cursor: &mut Cursor) -> Result<Vec<u8>, String> {
    cursor.skip_spaces();
    if cursor.peek().is_none() {
        return Err(cursor.error("expected \\ after `a', `c' or `i'"));
    }
    if cursor.take('\\') {
        let start = cursor.position();
        cursor.skip_spaces();
        if cursor.peek().is_none() {
            return Ok(Vec::new());
        }
        // Text on the same line keeps its leading whitespace.
        if !cursor.take('\n') {
            cursor.back_to(start);
        }
    }
    let mut text = Vec::new();
    while let Some(letter) = cursor.next() {
        match letter {
            '\n' => break,
            '\\' => match code(cursor) {
                Some(byte) => text.push(byte),
                None => cursor.next().into_iter().for_each(|letter| push(&mut text, letter)),
            },
            other => push(&mut text, other),
        }
    }
    text.push(b'\n');
    Ok(text)
}

/// Parses an escape that denotes a byte, starting after its backslash. Consumes nothing if the
/// escape has another meaning.
fn code(cursor: &mut Cursor) -> Option<u8> {
    let start = cursor.position();
    let byte = match cursor.next()? {
        'a' => Some(0x07),
        'f' => Some(0x0c),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        't' => Some(b'\t'),
        'v' => Some(0x0b),
        'c' => cursor
            .take_if(|letter| letter.is_ascii())
            .map(|letter| letter.to_ascii_uppercase() as u8 ^ 0x40),
        'd' => digits(cursor, 10, 3),
        'o' => digits(cursor, 8, 3),
        'x' => digits(cursor, 16, 2),
        _ => None,
    };
    if byte.is_none() {
        cursor.back_to(start);
    }
    byte
}

fn digits(cursor: &mut Cursor, radix: u32, most: usize) -> Option<u8> {
    let mut code = None;
    for _ in 0..most {
        let Some(letter) = cursor.take_if(|letter| letter.is_digit(radix)) else { break };
        code = Some(code.unwrap_or(0) * radix + letter.to_digit(radix).unwrap_or_default());
    }
    code.map(|code| code as u8)
}

fn push(text: &mut Vec<u8>, letter: char) {
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

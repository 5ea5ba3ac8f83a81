//! Escape sequences: several characters that represent a single character, such as `%2F`, `&#x2f;`,
//! `\u002f`, or `\2f` in a program.
//!
//! An escape is parsed byte by byte, so it may be split between two pieces of a string.

/// Maximum length of an escape, in bytes. The zeros that an escape ignores do not count. See
/// [`Escape::ignores_zeros`].
pub(super) const MAX_ESCAPE: usize = 160;

/// Maximum length of an entity's name, in bytes.
const MAX_NAME: usize = 20;

/// Number of leading zeros in a numeric escape after which more zeros change nothing. HTML and
/// JavaScript do not limit the number of zeros. No secret has this many zeros in a row.
const MAX_ZEROS: u8 = 32;

/// Named entities whose values are ASCII characters.
const ENTITIES: &[(&str, &str)] = &[
    ("Tab", "\t"),
    ("NewLine", "\n"),
    ("excl", "!"),
    ("quot", "\""),
    ("QUOT", "\""),
    ("num", "#"),
    ("dollar", "$"),
    ("percnt", "%"),
    ("amp", "&"),
    ("AMP", "&"),
    ("apos", "'"),
    ("lpar", "("),
    ("rpar", ")"),
    ("ast", "*"),
    ("midast", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("period", "."),
    ("sol", "/"),
    ("colon", ":"),
    ("semi", ";"),
    ("lt", "<"),
    ("LT", "<"),
    ("equals", "="),
    ("gt", ">"),
    ("GT", ">"),
    ("quest", "?"),
    ("commat", "@"),
    ("lsqb", "["),
    ("lbrack", "["),
    ("bsol", "\\"),
    ("rsqb", "]"),
    ("rbrack", "]"),
    ("Hat", "^"),
    ("lowbar", "_"),
    ("UnderBar", "_"),
    ("grave", "`"),
    ("DiacriticalGrave", "`"),
    ("lcub", "{"),
    ("lbrace", "{"),
    ("verbar", "|"),
    ("vert", "|"),
    ("VerticalLine", "|"),
    ("rcub", "}"),
    ("rbrace", "}"),
    ("fjlig", "fj"),
];

/// Entities that HTML also accepts without a semicolon.
const WITHOUT_SEMICOLON: &[&str] = &["amp", "AMP", "lt", "LT", "gt", "GT", "quot", "QUOT"];

/// The byte or character that an escape represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unescaped {
    /// A byte, which may be part of a character.
    Byte(u8),
    /// A character, in UTF-8.
    Char(char),
    /// The value of a named entity, which may consist of several characters.
    Text(&'static str),
}

impl Unescaped {
    /// Writes the bytes into `buffer` and returns them.
    pub(super) fn bytes(self, buffer: &mut [u8; 4]) -> &[u8] {
        match self {
            Unescaped::Byte(byte) => {
                *buffer = [byte, 0, 0, 0];
                buffer.get(..1).unwrap_or_default()
            }
            Unescaped::Char(char) => char.encode_utf8(buffer).as_bytes(),
            Unescaped::Text(text) => text.as_bytes(),
        }
    }

    /// Returns the value and, if it consists of several ASCII characters, its proper prefixes and
    /// suffixes, because a secret may end or start within the value.
    pub(super) fn parts(self) -> impl Iterator<Item = Unescaped> {
        let text = match self {
            Unescaped::Text(text) => text,
            Unescaped::Byte(_) | Unescaped::Char(_) => "",
        };
        let parts = (1..text.len()).flat_map(move |cut| [text.get(..cut), text.get(cut..)]);
        std::iter::once(self).chain(parts.flatten().map(Unescaped::Text))
    }
}

/// An incomplete escape. Each variant is described by the text that has been read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Escape {
    /// `%`, or `\` and a digit. Contains the first digit if it has been read.
    Percent(Option<u8>),
    /// `\`.
    Backslash,
    /// `\u` or `\x`. Contains the number of missing digits, the value so far, and the first half of
    /// a surrogate pair.
    Hex { missing: u8, value: u32, high: Option<u32> },
    /// `\u{`. Contains the value and the number of digits so far.
    Braced { value: u32, digits: u8 },
    /// The first half of a surrogate pair. The flag is true if the `\` of the second half has been
    /// read.
    High(u32, bool),
    /// `&`.
    Ampersand,
    /// `&#`. Contains the base, and the value and the number of digits so far.
    Number { base: u32, value: u32, digits: u8 },
    /// `&` and the first `length` letters of `name`.
    Name { name: [u8; MAX_NAME], length: usize },
}

/// The effect of the next byte on an escape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// The value of the escape, if it ended before the byte.
    pub(super) before: Option<Unescaped>,
    /// The value of the escape, if the byte can be its last byte.
    pub(super) with: Option<Unescaped>,
    /// The state of the escape, if it may continue after the byte.
    pub(super) next: Option<Escape>,
}

impl Step {
    fn incomplete(next: Escape) -> Step {
        Step { next: Some(next), ..Step::default() }
    }

    fn done(with: Option<Unescaped>) -> Step {
        Step { with, ..Step::default() }
    }
}

impl Escape {
    /// Returns the escape that a byte starts, or `None` if no escape starts with it.
    pub(super) fn start(byte: u8) -> Option<Escape> {
        match byte {
            b'%' => Some(Escape::Percent(None)),
            b'\\' => Some(Escape::Backslash),
            b'&' => Some(Escape::Ampersand),
            _ => None,
        }
    }

    /// Advances the escape by the next byte.
    pub(super) fn step(self, byte: u8) -> Step {
        let digit = char::from(byte).to_digit(16);
        match (self, digit) {
            (Escape::Percent(None), Some(_)) => Step::incomplete(Escape::Percent(Some(byte))),
            (Escape::Percent(Some(first)), Some(low)) => {
                let high = char::from(first).to_digit(16).unwrap_or_default();
                Step::done(u8::try_from(high * 16 + low).ok().map(Unescaped::Byte))
            }
            (Escape::Percent(_), None) => Step::default(),
            (Escape::Backslash, _) => backslash(byte),
            (Escape::Hex { missing, value, high }, Some(digit)) => {
                hex(missing - 1, value * 16 + digit, high)
            }
            (Escape::Hex { missing: 4, value: 0, high: None }, None) if byte == b'{' => {
                Step::incomplete(Escape::Braced { value: 0, digits: 0 })
            }
            (Escape::Hex { .. }, None) => Step::default(),
            // A value that is too large remains too large.
            (Escape::Braced { value, digits }, Some(digit)) => Step::incomplete(Escape::Braced {
                value: (value * 16 + digit).min(0x11_0000),
                digits: digits.saturating_add(1),
            }),
            (Escape::Braced { value, digits: 1.. }, None) if byte == b'}' => {
                Step::done(char::from_u32(value).map(Unescaped::Char))
            }
            (Escape::Braced { .. }, None) => Step::default(),
            (Escape::High(high, false), _) if byte == b'\\' => {
                Step::incomplete(Escape::High(high, true))
            }
            (Escape::High(high, true), _) if byte == b'u' => {
                Step::incomplete(Escape::Hex { missing: 4, value: 0, high: Some(high) })
            }
            (Escape::High(..), _) => Step::default(),
            (Escape::Ampersand, _) if byte == b'#' => {
                Step::incomplete(Escape::Number { base: 10, value: 0, digits: 0 })
            }
            (Escape::Ampersand, _) => name([0; MAX_NAME], 0, byte),
            (Escape::Number { base: 10, value: 0, digits: 0 }, _)
                if matches!(byte, b'x' | b'X') =>
            {
                Step::incomplete(Escape::Number { base: 16, value: 0, digits: 0 })
            }
            (Escape::Number { base, value, digits }, _) => number(base, value, digits, byte),
            (Escape::Name { name: read, length }, _) => name(read, length, byte),
        }
    }

    /// Returns true if a `0` changes nothing, because the escape has many leading zeros already.
    pub(super) fn ignores_zeros(self) -> bool {
        matches!(
            self,
            Escape::Number { value: 0, digits: MAX_ZEROS.., .. }
                | Escape::Braced { value: 0, digits: MAX_ZEROS.. }
        )
    }

    /// Returns the value of the escape at the end of the text, or `None` if the escape is
    /// incomplete.
    pub(super) fn at_end(self) -> Option<Unescaped> {
        // A space ends every escape that can end here.
        self.step(b' ').before
    }
}

fn backslash(byte: u8) -> Step {
    // In a program, `\b` may also start an escape of two hex digits.
    let next = byte.is_ascii_hexdigit().then_some(Escape::Percent(Some(byte)));
    let plain = match byte {
        b'u' => return Step::incomplete(Escape::Hex { missing: 4, value: 0, high: None }),
        b'x' => return Step::incomplete(Escape::Hex { missing: 2, value: 0, high: None }),
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'/' | b'\\' | b'"' | b'\'' => byte,
        _ => return Step { next, ..Step::default() },
    };
    Step { with: Some(Unescaped::Byte(plain)), next, before: None }
}

fn hex(missing: u8, value: u32, high: Option<u32>) -> Step {
    match (missing, high, value) {
        (1.., ..) => Step::incomplete(Escape::Hex { missing, value, high }),
        (0, None, 0xD800..0xDC00) => Step::incomplete(Escape::High(value, false)),
        (0, None, _) => Step::done(char::from_u32(value).map(Unescaped::Char)),
        (0, Some(high), 0xDC00..0xE000) => {
            let value = 0x1_0000 + ((high - 0xD800) << 10) + (value - 0xDC00);
            Step::done(char::from_u32(value).map(Unescaped::Char))
        }
        (0, Some(_), _) => Step::default(),
    }
}

fn number(base: u32, value: u32, digits: u8, byte: u8) -> Step {
    let unescaped = || char::from_u32(value).filter(|_| digits > 0).map(Unescaped::Char);
    match char::from(byte).to_digit(base) {
        // A value that is too large remains too large.
        Some(digit) => Step::incomplete(Escape::Number {
            base,
            value: (value * base + digit).min(0x11_0000),
            digits: digits.saturating_add(1),
        }),
        None if byte == b';' => Step::done(unescaped()),
        None => Step { before: unescaped(), ..Step::default() },
    }
}

fn name(mut read: [u8; MAX_NAME], length: usize, byte: u8) -> Step {
    let known = |text: &[u8]| ENTITIES.iter().find(|(name, _)| name.as_bytes() == text).copied();
    if byte == b';' {
        let entity = read.get(..length).and_then(known);
        return Step::done(entity.map(|(_, text)| Unescaped::Text(text)));
    }
    let Some(slot) = read.get_mut(length).filter(|_| byte.is_ascii_alphabetic()) else {
        return Step::default();
    };
    *slot = byte;
    let length = length + 1;
    let entity =
        read.get(..length).and_then(known).filter(|(name, _)| WITHOUT_SEMICOLON.contains(name));
    let with = entity.map(|(_, text)| Unescaped::Text(text));
    Step { with, next: Some(Escape::Name { name: read, length }), before: None }
}

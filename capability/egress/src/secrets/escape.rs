//! Escapes: one character that a text spells by several, such as `%2F`, `&#x2f;` or `\u002f`.
//!
//! An escape is read byte by byte, so that it may be cut anywhere between two pieces of a text.

/// Maximum length of an escape, in bytes: an entity may have any number of leading zeros.
pub(super) const ESCAPE_LIMIT: usize = 160;

/// Maximum length of the name of an entity.
const NAME: usize = 8;

/// Entities by name, for all that is ASCII and neither a letter nor a digit.
const NAMES: &[(&str, u8)] = &[
    ("Tab", b'\t'),
    ("NewLine", b'\n'),
    ("excl", b'!'),
    ("quot", b'"'),
    ("QUOT", b'"'),
    ("num", b'#'),
    ("dollar", b'$'),
    ("percnt", b'%'),
    ("amp", b'&'),
    ("AMP", b'&'),
    ("apos", b'\''),
    ("lpar", b'('),
    ("rpar", b')'),
    ("ast", b'*'),
    ("midast", b'*'),
    ("plus", b'+'),
    ("comma", b','),
    ("period", b'.'),
    ("sol", b'/'),
    ("colon", b':'),
    ("semi", b';'),
    ("lt", b'<'),
    ("LT", b'<'),
    ("equals", b'='),
    ("gt", b'>'),
    ("GT", b'>'),
    ("quest", b'?'),
    ("commat", b'@'),
    ("lsqb", b'['),
    ("lbrack", b'['),
    ("bsol", b'\\'),
    ("rsqb", b']'),
    ("rbrack", b']'),
    ("Hat", b'^'),
    ("lowbar", b'_'),
    ("UnderBar", b'_'),
    ("grave", b'`'),
    ("lcub", b'{'),
    ("lbrace", b'{'),
    ("verbar", b'|'),
    ("vert", b'|'),
    ("rcub", b'}'),
    ("rbrace", b'}'),
];

/// Entities that HTML reads without a semicolon, too.
const WITHOUT_SEMICOLON: &[&str] = &["amp", "AMP", "lt", "LT", "gt", "GT", "quot", "QUOT"];

/// The bytes that an escape stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelled {
    /// One byte, of whatever character.
    Byte(u8),
    /// A character, in UTF-8.
    Char(char),
}

impl Spelled {
    /// Writes the bytes into `buffer` and returns them.
    pub(super) fn bytes(self, buffer: &mut [u8; 4]) -> &[u8] {
        match self {
            Spelled::Byte(byte) => {
                *buffer = [byte, 0, 0, 0];
                buffer.get(..1).unwrap_or_default()
            }
            Spelled::Char(char) => char.encode_utf8(buffer).as_bytes(),
        }
    }
}

/// An escape of which a beginning was read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Escape {
    /// Behind `%`, with the first digit if it was read.
    Percent(Option<u8>),
    /// Behind `\`.
    Backslash,
    /// Behind `\u` or `\x`: the digits that are missing, the value so far, and the first half of a surrogate pair.
    Hex { missing: u8, value: u32, high: Option<u32> },
    /// Behind the first half of a surrogate pair; the flag says whether the next `\` was read.
    High(u32, bool),
    /// Behind `&`.
    Ampersand,
    /// Behind `&#`: the base, the value so far, whether a digit was read.
    Number { base: u32, value: u32, any: bool },
    /// Behind `&` and these letters.
    Name { name: [u8; NAME], length: usize },
}

/// The effect of one more byte on an escape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fed {
    /// The escape ended before the byte.
    pub(super) before: Option<Spelled>,
    /// The escape may end with the byte.
    pub(super) with: Option<Spelled>,
    /// The escape may go on.
    pub(super) next: Option<Escape>,
}

impl Fed {
    fn more(next: Escape) -> Fed {
        Fed { next: Some(next), ..Fed::default() }
    }

    fn done(with: Option<Spelled>) -> Fed {
        Fed { with, ..Fed::default() }
    }
}

impl Escape {
    /// Returns the escape that a byte begins.
    pub(super) fn begun_by(byte: u8) -> Option<Escape> {
        match byte {
            b'%' => Some(Escape::Percent(None)),
            b'\\' => Some(Escape::Backslash),
            b'&' => Some(Escape::Ampersand),
            _ => None,
        }
    }

    /// Reads one more byte.
    pub(super) fn feed(self, byte: u8) -> Fed {
        let digit = char::from(byte).to_digit(16);
        match (self, digit) {
            (Escape::Percent(None), Some(_)) => Fed::more(Escape::Percent(Some(byte))),
            (Escape::Percent(Some(first)), Some(low)) => {
                let high = char::from(first).to_digit(16).unwrap_or_default();
                Fed::done(u8::try_from(high * 16 + low).ok().map(Spelled::Byte))
            }
            (Escape::Percent(_), None) => Fed::default(),
            (Escape::Backslash, _) => backslash(byte),
            (Escape::Hex { missing, value, high }, Some(digit)) => hex(missing - 1, value * 16 + digit, high),
            (Escape::Hex { .. }, None) => Fed::default(),
            (Escape::High(high, false), _) if byte == b'\\' => Fed::more(Escape::High(high, true)),
            (Escape::High(high, true), _) if byte == b'u' => {
                Fed::more(Escape::Hex { missing: 4, value: 0, high: Some(high) })
            }
            (Escape::High(..), _) => Fed::default(),
            (Escape::Ampersand, _) if byte == b'#' => Fed::more(Escape::Number { base: 10, value: 0, any: false }),
            (Escape::Ampersand, _) => name([0; NAME], 0, byte),
            (Escape::Number { base: 10, value: 0, any: false }, _) if matches!(byte, b'x' | b'X') => {
                Fed::more(Escape::Number { base: 16, value: 0, any: false })
            }
            (Escape::Number { base, value, any }, _) => number(base, value, any, byte),
            (Escape::Name { name: read, length }, _) => name(read, length, byte),
        }
    }

    /// Returns what the escape stands for if the text ends here.
    pub(super) fn at_end(self) -> Option<Spelled> {
        // Any byte that is no part of it does.
        self.feed(b' ').before
    }
}

fn backslash(byte: u8) -> Fed {
    let plain = match byte {
        b'u' => return Fed::more(Escape::Hex { missing: 4, value: 0, high: None }),
        b'x' => return Fed::more(Escape::Hex { missing: 2, value: 0, high: None }),
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'/' | b'\\' | b'"' | b'\'' => byte,
        _ => return Fed::default(),
    };
    Fed::done(Some(Spelled::Byte(plain)))
}

fn hex(missing: u8, value: u32, high: Option<u32>) -> Fed {
    match (missing, high, value) {
        (1.., ..) => Fed::more(Escape::Hex { missing, value, high }),
        (0, None, 0xD800..0xDC00) => Fed::more(Escape::High(value, false)),
        (0, None, _) => Fed::done(char::from_u32(value).map(Spelled::Char)),
        (0, Some(high), 0xDC00..0xE000) => {
            let value = 0x1_0000 + ((high - 0xD800) << 10) + (value - 0xDC00);
            Fed::done(char::from_u32(value).map(Spelled::Char))
        }
        (0, Some(_), _) => Fed::default(),
    }
}

fn number(base: u32, value: u32, any: bool, byte: u8) -> Fed {
    let spelled = || char::from_u32(value).filter(|_| any).map(Spelled::Char);
    match char::from(byte).to_digit(base) {
        // A value that no character has stays one.
        Some(digit) => Fed::more(Escape::Number { base, value: (value * base + digit).min(0x11_0000), any: true }),
        None if byte == b';' => Fed::done(spelled()),
        None => Fed { before: spelled(), ..Fed::default() },
    }
}

fn name(mut read: [u8; NAME], length: usize, byte: u8) -> Fed {
    let known = |text: &[u8]| NAMES.iter().find(|(name, _)| name.as_bytes() == text).copied();
    if byte == b';' {
        let entity = read.get(..length).and_then(known);
        return Fed::done(entity.map(|(_, byte)| Spelled::Byte(byte)));
    }
    let Some(slot) = read.get_mut(length).filter(|_| byte.is_ascii_alphabetic()) else { return Fed::default() };
    *slot = byte;
    let length = length + 1;
    let entity = read.get(..length).and_then(known).filter(|(name, _)| WITHOUT_SEMICOLON.contains(name));
    let with = entity.map(|(_, byte)| Spelled::Byte(byte));
    Fed { with, next: Some(Escape::Name { name: read, length }), before: None }
}

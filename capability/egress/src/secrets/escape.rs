//! Escape sequences: several characters that represent a single character, such as `%2F`, `&#x2f;`,
//! `\u002f`, or `\2f` in a program.
//!
//! An escape is parsed byte by byte, so that it may be split between two pieces of a string.

/// Maximum length of an escape in bytes. HTML does not limit the leading zeros of a numeric entity.
pub(super) const MAX_ESCAPE: usize = 160;

/// Maximum length of an entity's name, in bytes.
const MAX_NAME: usize = 8;

/// Named entities for the ASCII characters that are neither letters nor digits.
const ENTITIES: &[(&str, u8)] = &[
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

/// Entities that HTML also accepts without a semicolon.
const WITHOUT_SEMICOLON: &[&str] = &["amp", "AMP", "lt", "LT", "gt", "GT", "quot", "QUOT"];

/// The byte or character that an escape represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unescaped {
    /// A byte, which may be part of a character.
    Byte(u8),
    /// A character, in UTF-8.
    Char(char),
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
        }
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
    /// `\u{`. Contains the value so far; `any` is true if a digit has been read.
    Braced { value: u32, any: bool },
    /// The first half of a surrogate pair. The flag is true if the `\` of the second half has been
    /// read.
    High(u32, bool),
    /// `&`.
    Ampersand,
    /// `&#`. Contains the base and the value so far; `any` is true if a digit has been read.
    Number { base: u32, value: u32, any: bool },
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
                Step::incomplete(Escape::Braced { value: 0, any: false })
            }
            (Escape::Hex { .. }, None) => Step::default(),
            // A value that is too large remains too large.
            (Escape::Braced { value, .. }, Some(digit)) => Step::incomplete(Escape::Braced {
                value: (value * 16 + digit).min(0x11_0000),
                any: true,
            }),
            (Escape::Braced { value, any: true }, None) if byte == b'}' => {
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
                Step::incomplete(Escape::Number { base: 10, value: 0, any: false })
            }
            (Escape::Ampersand, _) => name([0; MAX_NAME], 0, byte),
            (Escape::Number { base: 10, value: 0, any: false }, _)
                if matches!(byte, b'x' | b'X') =>
            {
                Step::incomplete(Escape::Number { base: 16, value: 0, any: false })
            }
            (Escape::Number { base, value, any }, _) => number(base, value, any, byte),
            (Escape::Name { name: read, length }, _) => name(read, length, byte),
        }
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

fn number(base: u32, value: u32, any: bool, byte: u8) -> Step {
    let unescaped = || char::from_u32(value).filter(|_| any).map(Unescaped::Char);
    match char::from(byte).to_digit(base) {
        // A value that is too large remains too large.
        Some(digit) => Step::incomplete(Escape::Number {
            base,
            value: (value * base + digit).min(0x11_0000),
            any: true,
        }),
        None if byte == b';' => Step::done(unescaped()),
        None => Step { before: unescaped(), ..Step::default() },
    }
}

fn name(mut read: [u8; MAX_NAME], length: usize, byte: u8) -> Step {
    let known = |text: &[u8]| ENTITIES.iter().find(|(name, _)| name.as_bytes() == text).copied();
    if byte == b';' {
        let entity = read.get(..length).and_then(known);
        return Step::done(entity.map(|(_, byte)| Unescaped::Byte(byte)));
    }
    let Some(slot) = read.get_mut(length).filter(|_| byte.is_ascii_alphabetic()) else {
        return Step::default();
    };
    *slot = byte;
    let length = length + 1;
    let entity =
        read.get(..length).and_then(known).filter(|(name, _)| WITHOUT_SEMICOLON.contains(name));
    let with = entity.map(|(_, byte)| Unescaped::Byte(byte));
    Step { with, next: Some(Escape::Name { name: read, length }), before: None }
}

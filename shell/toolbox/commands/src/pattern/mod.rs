//! POSIX patterns (basic, extended, file names), translated into the regex engine's syntax, and
//! their matching.

mod bracket;
mod glob;
mod perl;
mod posix;

use std::iter::Peekable;
use std::str::Chars;

use self::bracket::{Set, bracket};
pub(crate) use self::glob::names;
pub(crate) use self::perl::perl;
pub(crate) use self::posix::{Groups, Posix};

/// The program that a pattern is for. The GNU tools differ in what they accept.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tool {
    Awk,
    /// Also `find`. The text is a buffer of lines, and each line is matched by itself.
    Grep,
    Sed,
}

/// The syntax of a pattern.
#[derive(Clone, Copy)]
pub(crate) struct Notation {
    pub tool: Tool,
    /// If true, parentheses, braces, `+`, `?` and `|` are operators without a backslash.
    pub extended: bool,
    /// If true, `^` and `$` match at line ends within the text, and a line end has to be matched
    /// by name.
    pub lines: bool,
    pub ignore_case: bool,
}

impl Notation {
    pub(crate) const fn new(tool: Tool, extended: bool) -> Notation {
        Notation { tool, extended, lines: false, ignore_case: false }
    }
}

/// A translated pattern.
pub(crate) struct Translated {
    pub text: String,
    /// The number of groups.
    pub groups: usize,
    /// If true, the pattern has backreferences, which only the slower engine supports.
    pub refers_back: bool,
    /// If true, the first alternative that matches may not be the longest match.
    pub has_choices: bool,
    /// An escaped character whose escape has no meaning.
    pub stray: Option<char>,
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    notation: Notation,
    out: String,
    last: Last,
    open: Vec<usize>,
    groups: usize,
    refers_back: bool,
    has_choices: bool,
    stray: Option<char>,
}

/// The element of the pattern that was read last.
#[derive(Clone, Copy)]
enum Last {
    /// The start of the pattern, of a group or of an alternative.
    Start,
    Anchor,
    Atom {
        /// Its offset in the translation.
        at: usize,
        is_group: bool,
        /// If true, it has a repetition already.
        repeated: bool,
    },
}

/// Translates a pattern.
///
/// # Errors
///
/// The syntax error, in grep's words.
pub(crate) fn translate(pattern: &str, notation: Notation) -> Result<Translated, String> {
    let mut reader = Reader {
        chars: pattern.chars().peekable(),
        notation,
        out: String::with_capacity(pattern.len() + 8),
        last: Last::Start,
        open: Vec::new(),
        groups: 0,
        refers_back: false,
        has_choices: false,
        stray: None,
    };
    reader.read()?;
    Ok(Translated {
        text: reader.out,
        groups: reader.groups,
        refers_back: reader.refers_back,
        has_choices: reader.has_choices,
        stray: reader.stray,
    })
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), String> {
        let extended = self.notation.extended;
        while let Some(letter) = self.chars.next() {
            match letter {
                '\\' => self.escaped()?,
                '[' => self.set()?,
                '.' => {
                    let any = self.notation.tool == Tool::Grep || self.notation.lines;
                    self.atom(if any { "." } else { "(?s:.)" });
                }
                '*' => self.repeat('*')?,
                '^' if extended || matches!(self.last, Last::Start) => self.anchor("^"),
                '$' if extended || self.at_end() => self.anchor("$"),
                '(' if extended => self.group(),
                ')' if extended && !self.open.is_empty() => self.close(),
                ')' if extended && self.notation.tool == Tool::Sed => return Err(unmatched(')')),
                '|' if extended => self.alternative(),
                '+' | '?' if extended => self.repeat(letter)?,
                '{' if extended => self.interval()?,
                other => self.literal(other),
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err(unmatched('(')) }
    }

    fn escaped(&mut self) -> Result<(), String> {
        let Some(letter) = self.chars.next() else { return Err("Trailing backslash".to_owned()) };
        let awk = self.notation.tool == Tool::Awk;
        if awk && let Some(code) = escaped_code(letter, &mut self.chars) {
            self.literal(code);
            return Ok(());
        }
        let basic = !self.notation.extended;
        let lines = self.notation.tool == Tool::Grep;
        match letter {
            '(' if basic => self.group(),
            ')' if basic && self.open.is_empty() => return Err(unmatched(')')),
            ')' if basic => self.close(),
            '{' if basic => self.interval()?,
            '|' if basic => self.alternative(),
            '+' | '?' if basic => self.repeat(letter)?,
            '<' => self.anchor(r"\b{start}"),
            '>' => self.anchor(r"\b{end}"),
            'b' if !awk => self.anchor(r"\b"),
            'y' if awk => self.anchor(r"\b"),
            'B' => self.anchor(r"\B"),
            '`' => self.anchor(if lines { "^" } else { r"\A" }),
            '\'' => self.anchor(if lines { "$" } else { r"\z" }),
            'w' => self.atom(r"\w"),
            'W' => self.atom(r"\W"),
            's' => self.atom(r"\s"),
            'S' => self.atom(r"\S"),
            '1'..='9' if !awk => self.reference(letter)?,
            other => {
                if other.is_ascii_alphanumeric() {
                    self.stray = Some(other);
                }
                self.literal(other);
            }
        }
        Ok(())
    }

    fn set(&mut self) -> Result<(), String> {
        let set = match self.notation.tool {
            Tool::Awk => Set::Escapes,
            _ if self.notation.lines => Set::Lines,
            _ => Set::Plain,
        };
        let members = bracket(&mut self.chars, set)?;
        self.atom(&members);
        Ok(())
    }

    fn reference(&mut self, digit: char) -> Result<(), String> {
        if digit.to_digit(10).is_none_or(|digit| digit as usize > self.groups) {
            return Err("Invalid back reference".to_owned());
        }
        self.refers_back = true;
        self.atom(&format!(r"(?:\{digit})"));
        Ok(())
    }

    fn atom(&mut self, text: &str) {
        self.last = Last::Atom { at: self.out.len(), is_group: false, repeated: false };
        self.out.push_str(text);
    }

    fn literal(&mut self, letter: char) {
        self.last = Last::Atom { at: self.out.len(), is_group: false, repeated: false };
        push_literal(&mut self.out, letter);
    }

    fn anchor(&mut self, anchor: &str) {
        self.last = Last::Anchor;
        self.out.push_str(anchor);
    }

    fn group(&mut self) {
        self.groups += 1;
        self.open.push(self.out.len());
        self.out.push('(');
        self.last = Last::Start;
    }

    fn close(&mut self) {
        self.out.push(')');
        let at = self.open.pop().unwrap_or_default();
        self.last = Last::Atom { at, is_group: true, repeated: false };
    }

    fn alternative(&mut self) {
        self.has_choices = true;
        self.out.push('|');
        self.last = Last::Start;
    }

    /// Reads a repetition sign. With nothing to repeat, it is an ordinary character in a basic
    /// pattern and in awk, is ignored in grep, and is an error in sed.
    fn repeat(&mut self, sign: char) -> Result<(), String> {
        if self.repeatable() {
            self.out.push(sign);
            return Ok(());
        }
        match self.notation.tool {
            Tool::Grep if self.notation.extended => {}
            Tool::Sed if self.notation.extended => return Err(nothing_to_repeat()),
            _ => self.literal(sign),
        }
        Ok(())
    }

    /// Wraps the last atom in a group if it has a repetition, so that `a+?` is a repetition of a
    /// repetition, not a lazy one. Returns false if there is no atom.
    fn repeatable(&mut self) -> bool {
        let Last::Atom { at, is_group, repeated } = self.last else { return false };
        if repeated {
            self.out.insert_str(at, "(?:");
            self.out.push(')');
        }
        self.has_choices |= is_group;
        self.last = Last::Atom { at, is_group, repeated: true };
        true
    }

    /// Reads `{n}`, `{n,}`, `{,m}` or `{n,m}`. In an extended pattern of grep and awk, any other
    /// brace is an ordinary character.
    fn interval(&mut self) -> Result<(), String> {
        let strict = !self.notation.extended || self.notation.tool == Tool::Sed;
        let Some((low, high, length)) = self.bounds(strict)? else {
            self.literal('{');
            return Ok(());
        };
        if high.is_some_and(|high| high < low) {
            return Err("Invalid content of \\{\\}".to_owned());
        }
        if low.max(high.unwrap_or(0)) > MOST_REPEATS {
            return Err("Regular expression too big".to_owned());
        }
        if !self.repeatable() {
            if strict {
                return Err(nothing_to_repeat());
            }
            self.literal('{');
            return Ok(());
        }
        self.chars.nth(length - 1);
        let text = match high {
            Some(high) if high == low => format!("{{{low}}}"),
            Some(high) => format!("{{{low},{high}}}"),
            None => format!("{{{low},}}"),
        };
        self.out.push_str(&text);
        Ok(())
    }

    /// Reads the bounds of an interval ahead: the lower, the upper, and the length of the text.
    fn bounds(&self, strict: bool) -> Result<Option<(u32, Option<u32>, usize)>, String> {
        let rest: String = self.chars.clone().take(MOST_DIGITS).collect();
        let end = if self.notation.extended { "}" } else { r"\}" };
        let Some((inside, _)) = rest.split_once(end) else {
            return if strict { Err("Unmatched \\{".to_owned()) } else { Ok(None) };
        };
        let (low, high) = match inside.split_once(',') {
            Some((low, high)) => (low, Some(high)),
            None => (inside, None),
        };
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Some(digits.parse().unwrap_or(u32::MAX)),
            false => None,
        };
        let bounds = match (low, high) {
            ("", None) => None,
            ("", Some("")) => Some((0, None)),
            ("", Some(high)) => number(high).map(|high| (0, Some(high))),
            (low, None) => number(low).map(|low| (low, Some(low))),
            (low, Some("")) => number(low).map(|low| (low, None)),
            (low, Some(high)) => number(low).zip(number(high)).map(|(low, high)| (low, Some(high))),
        };
        let length = inside.chars().count() + end.len();
        match bounds {
            Some((low, high)) => Ok(Some((low, high, length))),
            None if strict => Err("Invalid content of \\{\\}".to_owned()),
            None => Ok(None),
        }
    }

    /// Returns true if a `$` here ends a basic pattern, a group of it or an alternative.
    fn at_end(&self) -> bool {
        let mut ahead = self.chars.clone();
        match ahead.next() {
            None => true,
            Some('\\') => matches!(ahead.next(), Some(')' | '|')),
            _ => false,
        }
    }
}

/// The largest bound of an interval.
const MOST_REPEATS: u32 = 32_767;

/// The longest text that is searched for the end of an interval.
const MOST_DIGITS: usize = 64;

fn unmatched(sign: char) -> String {
    format!("Unmatched {sign} or \\{sign}")
}

fn nothing_to_repeat() -> String {
    "Invalid preceding regular expression".to_owned()
}

/// Returns the character that an escape of awk denotes, if it denotes one.
pub(crate) fn escaped_code(letter: char, chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    Some(match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'f' => '\x0c',
        'v' => '\x0b',
        'a' => '\x07',
        'b' => '\x08',
        '/' | '"' | '&' => letter,
        'x' if chars.peek().is_some_and(char::is_ascii_hexdigit) => digits(chars, 16, 2, 0),
        '0'..='7' => digits(chars, 8, 2, letter.to_digit(8).unwrap_or_default()),
        _ => return None,
    })
}

/// Reads at most `most` digits of a character's code that starts with `code`.
fn digits(chars: &mut Peekable<Chars<'_>>, radix: u32, most: usize, mut code: u32) -> char {
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|next| next.to_digit(radix)) else { break };
        chars.next();
        code = code * radix + digit;
    }
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Adds a character that matches itself. The engine takes `\<` and `\>` as word boundaries.
fn push_literal(out: &mut String, letter: char) {
    if letter.is_ascii_punctuation() && !matches!(letter, '<' | '>') {
        out.push('\\');
    }
    out.push(letter);
}

//! Translation of POSIX basic and extended patterns, Perl patterns and file name patterns into the
//! regex engine's syntax, and matching with the translated patterns.

mod posix;

use std::iter::Peekable;
use std::str::Chars;

pub(crate) use self::posix::{Groups, Posix};

/// The tool that a pattern is for. The GNU tools differ in the syntax that they accept.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tool {
    Awk,
    /// `grep` and `find`. The text is a buffer of lines, and each line is matched separately.
    Grep,
    Sed,
}

/// The syntax of a pattern.
#[derive(Clone, Copy)]
pub(crate) struct Notation {
    pub tool: Tool,
    /// If true, parentheses, braces, `+`, `?` and `|` are operators without a backslash.
    pub extended: bool,
    /// If true, `^` and `$` also match at newlines within the text, and `.` and negated sets do not
    /// match a newline.
    pub lines: bool,
    pub ignore_case: bool,
}

impl Notation {
    pub(crate) const fn new(tool: Tool, extended: bool) -> Notation {
        Notation { tool, extended, lines: false, ignore_case: false }
    }
}

/// A translated pattern.
#[derive(Default)]
pub(crate) struct Translated {
    pub text: String,
    /// The number of groups.
    pub groups: usize,
    /// If true, the pattern has backreferences, which only the backtracking engine supports.
    pub refers_back: bool,
    /// If true, the first alternative that matches may not be the longest match.
    pub has_choices: bool,
    /// The letter or digit of the last escape that has no meaning, such as the `d` of `\d`.
    pub stray: Option<char>,
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    notation: Notation,
    made: Translated,
    last: Last,
    /// The byte offsets of the open groups in the translation.
    open: Vec<usize>,
}

/// The element of the pattern that was parsed last.
#[derive(Clone, Copy)]
enum Last {
    /// The start of the pattern, of a group or of an alternative.
    Start,
    Anchor,
    Atom {
        /// The byte offset of the atom in the translation.
        at: usize,
        is_group: bool,
        /// If true, the atom already has a repetition.
        repeated: bool,
    },
}

/// Translates a pattern into the regex engine's syntax.
///
/// # Errors
///
/// If the pattern is invalid. The message is the same as GNU grep's.
pub(crate) fn translate(pattern: &str, notation: Notation) -> Result<Translated, String> {
    let mut reader = Reader {
        chars: pattern.chars().peekable(),
        notation,
        made: Translated::default(),
        last: Last::Start,
        open: Vec::new(),
    };
    reader.translate()?;
    Ok(reader.made)
}

impl Reader<'_> {
    fn translate(&mut self) -> Result<(), String> {
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
                    self.made.stray = Some(other);
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
        if digit.to_digit(10).is_none_or(|digit| digit as usize > self.made.groups) {
            return Err("Invalid back reference".to_owned());
        }
        self.made.refers_back = true;
        self.atom(&format!(r"(?:\{digit})"));
        Ok(())
    }

    fn atom(&mut self, text: &str) {
        self.last = Last::Atom { at: self.made.text.len(), is_group: false, repeated: false };
        self.made.text.push_str(text);
    }

    fn literal(&mut self, letter: char) {
        self.last = Last::Atom { at: self.made.text.len(), is_group: false, repeated: false };
        push_literal(&mut self.made.text, letter);
    }

    fn anchor(&mut self, anchor: &str) {
        self.last = Last::Anchor;
        self.made.text.push_str(anchor);
    }

    fn group(&mut self) {
        self.made.groups += 1;
        self.open.push(self.made.text.len());
        self.made.text.push('(');
        self.last = Last::Start;
    }

    fn close(&mut self) {
        self.made.text.push(')');
        let at = self.open.pop().unwrap_or_default();
        self.last = Last::Atom { at, is_group: true, repeated: false };
    }

    fn alternative(&mut self) {
        self.made.has_choices = true;
        self.made.text.push('|');
        self.last = Last::Start;
    }

    /// Parses a repetition sign. Without an atom before it, the sign is an ordinary character in
    /// basic patterns and in awk. In extended patterns, grep ignores it and sed reports an error.
    fn repeat(&mut self, sign: char) -> Result<(), String> {
        if self.repeatable() {
            self.made.text.push(sign);
            return Ok(());
        }
        match self.notation.tool {
            Tool::Grep if self.notation.extended => {}
            Tool::Sed if self.notation.extended => return Err(nothing_to_repeat()),
            _ => self.literal(sign),
        }
        Ok(())
    }

    /// Prepares the last atom for a repetition. Wraps it in a group if it is already repeated, so
    /// that `a+?` is not a lazy repetition. Returns false if there is no atom.
    fn repeatable(&mut self) -> bool {
        let Last::Atom { at, is_group, repeated } = self.last else { return false };
        if repeated {
            self.made.text.insert_str(at, "(?:");
            self.made.text.push(')');
        }
        self.made.has_choices |= is_group;
        self.last = Last::Atom { at, is_group, repeated: true };
        true
    }

    /// Parses `{n}`, `{n,}`, `{,m}` or `{n,m}`. In the extended patterns of grep and awk, any other
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
        self.made.text.push_str(&text);
        Ok(())
    }

    /// Looks ahead for an interval. Returns its lower bound, its upper bound and its length.
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
        let number = |digits: &str| {
            let valid = digits.bytes().all(|byte| byte.is_ascii_digit());
            valid.then(|| digits.parse().unwrap_or(u32::MAX))
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

    /// Returns true if a `$` at this position ends a basic pattern, a group or an alternative.
    fn at_end(&self) -> bool {
        let mut ahead = self.chars.clone();
        match ahead.next() {
            None => true,
            Some('\\') => matches!(ahead.next(), Some(')' | '|')),
            _ => false,
        }
    }
}

/// The maximum bound of an interval.
const MOST_REPEATS: u32 = 32_767;

/// The maximum number of characters that are searched for the end of an interval.
const MOST_DIGITS: usize = 64;

fn unmatched(sign: char) -> String {
    format!("Unmatched {sign} or \\{sign}")
}

fn nothing_to_repeat() -> String {
    "Invalid preceding regular expression".to_owned()
}

/// Returns the character that an awk escape denotes, or `None` if it does not denote one.
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

/// Reads at most `most` more digits of a character code. `code` is the value read so far.
fn digits(chars: &mut Peekable<Chars<'_>>, radix: u32, most: usize, mut code: u32) -> char {
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|next| next.to_digit(radix)) else { break };
        chars.next();
        code = code * radix + digit;
    }
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Appends a literal character. Leaves `<` and `>` unescaped: `\<` and `\>` are word boundaries.
fn push_literal(out: &mut String, letter: char) {
    if letter.is_ascii_punctuation() && !matches!(letter, '<' | '>') {
        out.push('\\');
    }
    out.push(letter);
}

/// The interpretation of a bracket expression.
#[derive(Clone, Copy, PartialEq)]
enum Set {
    /// A backslash is an ordinary character.
    Plain,
    /// Like `Plain`, but `!` also negates a set, as in file name patterns.
    Names,
    /// Like `Plain`, but a negated set does not match a newline.
    Lines,
    /// A backslash starts an escape sequence, as in awk.
    Escapes,
}

/// The POSIX character classes, as members of a set in the regex engine's syntax.
const CLASSES: [(&str, &str); 12] = [
    ("alnum", r"\p{Alphabetic}\p{Nd}"),
    ("alpha", r"\p{Alphabetic}"),
    ("blank", "[:blank:]"),
    ("cntrl", "[:cntrl:]"),
    ("digit", "[:digit:]"),
    ("graph", r"[:graph:]\p{Alphabetic}\p{N}\p{P}\p{S}"),
    ("lower", r"\p{Lowercase}"),
    ("print", r"[:print:]\p{Alphabetic}\p{N}\p{P}\p{S}"),
    ("punct", r"[:punct:]\p{P}\p{S}"),
    ("space", r"\s"),
    ("upper", r"\p{Uppercase}"),
    ("xdigit", "[:xdigit:]"),
];

/// Parses a bracket expression, starting after its `[`. Returns a set in the engine's syntax.
///
/// # Errors
///
/// If the expression is invalid. The message is the same as GNU grep's.
fn bracket(chars: &mut Peekable<Chars<'_>>, set: Set) -> Result<String, String> {
    let mut out = String::from("[");
    if chars.next_if(|next| *next == '^' || (*next == '!' && set == Set::Names)).is_some() {
        out.push('^');
        if set == Set::Lines {
            out.push_str(r"\n");
        }
    }
    let mut first = true;
    loop {
        let letter = chars.next().ok_or_else(unmatched_bracket)?;
        match letter {
            ']' if !first => break,
            '[' if matches!(chars.peek(), Some(':' | '.' | '=')) => named(chars, &mut out)?,
            low => {
                let low = member(chars, set, low);
                push_literal(&mut out, low);
                if let Some(high) = range_end(chars, set)? {
                    if high < low {
                        return Err("Invalid range end".to_owned());
                    }
                    out.push('-');
                    push_literal(&mut out, high);
                }
            }
        }
        first = false;
    }
    out.push(']');
    Ok(out)
}

fn unmatched_bracket() -> String {
    "Unmatched [, [^, [:, [., or [=".to_owned()
}

/// Parses a class, an equivalence class or a collating symbol, starting after its `[`.
fn named(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), String> {
    let kind = chars.next().unwrap_or(':');
    let mut name = String::new();
    loop {
        let next = chars.next().ok_or_else(unmatched_bracket)?;
        if next == kind && chars.next_if_eq(&']').is_some() {
            break;
        }
        name.push(next);
    }
    if kind != ':' {
        name.chars().for_each(|letter| push_literal(out, letter));
        return Ok(());
    }
    let class = CLASSES.iter().find(|(known, _)| *known == name);
    let (_, members) = class.ok_or_else(|| "Invalid character class name".to_owned())?;
    out.push_str(members);
    Ok(())
}

/// Parses a set member whose first character, `letter`, was just read. Decodes awk's escapes.
fn member(chars: &mut Peekable<Chars<'_>>, set: Set, letter: char) -> char {
    if letter != '\\' || set != Set::Escapes {
        return letter;
    }
    let Some(escaped) = chars.next() else { return letter };
    escaped_code(escaped, chars).unwrap_or(escaped)
}

/// Parses the `-` and the last character of a range. Returns `None` if no range follows.
fn range_end(chars: &mut Peekable<Chars<'_>>, set: Set) -> Result<Option<char>, String> {
    let mut ahead = chars.clone();
    if ahead.next() != Some('-') || ahead.peek().is_none_or(|next| *next == ']') {
        return Ok(None);
    }
    chars.next();
    let high = chars.next().ok_or_else(unmatched_bracket)?;
    if high != '[' || !matches!(chars.peek(), Some('.' | '=')) {
        return Ok(Some(member(chars, set, high)));
    }
    let kind = chars.next();
    let high = chars.next().ok_or_else(unmatched_bracket)?;
    if chars.next() != kind || chars.next() != Some(']') {
        return Err(unmatched_bracket());
    }
    Ok(Some(high))
}

/// Translates a file name pattern (`*`, `?`, `[…]`) into a regular expression that matches whole
/// names. A star also matches slashes.
fn glob(pattern: &str) -> String {
    let mut out = String::from(r"(?s)\A");
    let mut chars = pattern.chars().peekable();
    while let Some(letter) = chars.next() {
        match letter {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '\\' => push_literal(&mut out, chars.next().unwrap_or('\\')),
            '[' => {
                let mut ahead = chars.clone();
                match bracket(&mut ahead, Set::Names) {
                    Ok(set) => {
                        out.push_str(&set);
                        chars = ahead;
                    }
                    Err(_) => out.push_str(r"\["),
                }
            }
            other => push_literal(&mut out, other),
        }
    }
    out.push_str(r"\z");
    out
}

/// Compiles a file name pattern.
///
/// # Errors
///
/// If the pattern is invalid.
pub(crate) fn names(pattern: &str, ignore_case: bool) -> Result<regex::bytes::Regex, String> {
    regex::bytes::RegexBuilder::new(&glob(pattern))
        .case_insensitive(ignore_case)
        .build()
        .map_err(|error| error.to_string())
}

/// Translates the syntax that the regex engine interprets differently from PCRE. In PCRE, `\<` and
/// `\>` are ordinary characters, `\h` is a space or a tab, `\Z` also matches before a final
/// newline, and `\Q…\E` quotes the text in between.
pub(crate) fn perl(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut members: Option<usize> = None;
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            members = match (members, letter) {
                (None, '[') => Some(0),
                (Some(count), ']') if count > 0 => None,
                (Some(0), '^') => Some(0),
                (Some(count), _) => Some(count + 1),
                (None, _) => None,
            };
            out.push(letter);
            continue;
        }
        let in_set = members.is_some();
        members = members.map(|count| count + 1);
        match letters.next() {
            Some(plain @ ('<' | '>')) => push_literal(&mut out, plain),
            Some('h') => out.push_str(if in_set { r" \t" } else { r"[ \t]" }),
            Some('H') if !in_set => out.push_str(r"[^ \t]"),
            Some('N') if !in_set => out.push('.'),
            Some('R') if !in_set => out.push_str(r"(?:\r\n|[\n\x0b\x0c\r])"),
            Some('Z') if !in_set => out.push_str(r"(?=\n?\z)"),
            Some('Q') => {
                while let Some(quoted) = letters.next() {
                    if quoted == '\\' && letters.next_if_eq(&'E').is_some() {
                        break;
                    }
                    push_literal(&mut out, quoted);
                }
            }
            Some('E') => {}
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

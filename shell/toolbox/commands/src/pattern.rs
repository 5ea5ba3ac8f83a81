//! POSIX patterns (basic, extended, file names), translated into the regex engine's syntax.

/// The syntax of a pattern.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Notation {
    Basic,
    Extended,
    /// Extended, with awk's escapes.
    Awk,
}

/// A translated pattern.
pub(crate) struct Translated {
    pub text: String,
    /// If true, the pattern has backreferences, which only the slower engine supports.
    pub refers_back: bool,
    /// An escaped character whose escape has no meaning.
    pub stray: Option<char>,
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    notation: Notation,
    out: String,
    /// The offset of the last atom in `out`, if a repetition may follow it.
    atom: Option<usize>,
    /// If true, the last atom has a repetition already.
    repeated: bool,
    open: Vec<usize>,
    groups: usize,
    refers_back: bool,
    stray: Option<char>,
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
        atom: None,
        repeated: false,
        open: Vec::new(),
        groups: 0,
        refers_back: false,
        stray: None,
    };
    reader.read()?;
    Ok(Translated { text: reader.out, refers_back: reader.refers_back, stray: reader.stray })
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), String> {
        let basic = self.notation == Notation::Basic;
        while let Some(letter) = self.chars.next() {
            match letter {
                '\\' => self.escaped(basic)?,
                '[' => {
                    self.start();
                    let set = bracket(&mut self.chars)?;
                    self.out.push_str(&set);
                }
                '.' => {
                    self.start();
                    self.out.push_str(if self.notation == Notation::Awk { "(?s:.)" } else { "." });
                }
                '*' => self.star(),
                '^' if !basic || self.out.is_empty() || self.at_start() => self.anchor("^"),
                '$' if !basic || self.at_end() => self.anchor("$"),
                '(' if !basic => self.group(),
                ')' if !basic && !self.open.is_empty() => self.close(),
                '|' if !basic => self.alternative(),
                '+' | '?' if !basic => self.repeat(letter),
                '{' if !basic => self.interval(),
                other => self.literal(other),
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err("Unmatched ( or \\(".to_owned()) }
    }

    fn escaped(&mut self, basic: bool) -> Result<(), String> {
        let Some(letter) = self.chars.next() else { return Err("Trailing backslash".to_owned()) };
        if self.notation == Notation::Awk && self.escaped_in_awk(letter) {
            return Ok(());
        }
        match letter {
            '(' if basic => self.group(),
            ')' if basic => {
                if self.open.is_empty() {
                    return Err("Unmatched ) or \\)".to_owned());
                }
                self.close();
            }
            '{' if basic => self.interval(),
            '|' if basic => self.alternative(),
            '+' | '?' if basic => self.repeat(letter),
            '<' => self.anchor(r"\b{start}"),
            '>' => self.anchor(r"\b{end}"),
            'b' if self.notation != Notation::Awk => self.anchor(r"\b"),
            'y' if self.notation == Notation::Awk => self.anchor(r"\b"),
            'B' => self.anchor(r"\B"),
            '`' => self.anchor(r"\A"),
            '\'' => self.anchor(r"\z"),
            'w' | 'W' | 's' | 'S' => {
                self.start();
                self.out.push('\\');
                self.out.push(letter);
            }
            '1'..='9' if self.notation != Notation::Awk => {
                if letter.to_digit(10).is_none_or(|digit| digit as usize > self.groups) {
                    return Err("Invalid back reference".to_owned());
                }
                self.refers_back = true;
                self.start();
                self.out.push_str("(?:\\");
                self.out.push(letter);
                self.out.push(')');
            }
            other => {
                if other.is_ascii_alphanumeric() {
                    self.stray = Some(other);
                }
                self.literal(other);
            }
        }
        Ok(())
    }

    fn escaped_in_awk(&mut self, letter: char) -> bool {
        let plain = match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'f' => '\x0c',
            'v' => '\x0b',
            'a' => '\x07',
            'b' => '\x08',
            '/' | '"' | '&' => letter,
            '0'..='7' => {
                let mut code = letter.to_digit(8).unwrap_or_default();
                for _ in 0..2 {
                    let Some(digit) = self.chars.peek().and_then(|next| next.to_digit(8)) else {
                        break;
                    };
                    self.chars.next();
                    code = code * 8 + digit;
                }
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            _ => return false,
        };
        self.literal(plain);
        true
    }

    fn start(&mut self) {
        self.atom = Some(self.out.len());
        self.repeated = false;
    }

    fn literal(&mut self, letter: char) {
        self.start();
        push_literal(&mut self.out, letter);
    }

    fn anchor(&mut self, anchor: &str) {
        self.atom = None;
        self.out.push_str(anchor);
    }

    fn group(&mut self) {
        self.groups += 1;
        self.open.push(self.out.len());
        self.out.push('(');
        self.atom = None;
    }

    fn close(&mut self) {
        self.out.push(')');
        self.atom = self.open.pop();
        self.repeated = false;
    }

    fn alternative(&mut self) {
        self.out.push('|');
        self.atom = None;
    }

    fn star(&mut self) {
        if self.atom.is_some() {
            self.repeat('*');
        } else {
            self.literal('*');
        }
    }

    fn repeat(&mut self, sign: char) {
        match self.repeatable() {
            true => self.out.push(sign),
            false => self.literal(sign),
        }
    }

    /// Wraps the last atom in a group, so that `a+?` is a repetition of a repetition, not a lazy
    /// one.
    fn repeatable(&mut self) -> bool {
        let Some(atom) = self.atom else { return false };
        if self.repeated {
            self.out.insert_str(atom, "(?:");
            self.out.push(')');
        }
        self.repeated = true;
        true
    }

    /// Reads `{n}`, `{n,}`, `{,m}` or `{n,m}`. Any other brace stands for itself.
    fn interval(&mut self) {
        let basic = self.notation == Notation::Basic;
        let mut ahead = self.chars.clone();
        let (mut low, mut high, mut comma, mut read) = (String::new(), String::new(), false, 0);
        let closed = loop {
            read += 1;
            match ahead.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    if comma { &mut high } else { &mut low }.push(digit)
                }
                Some(',') if !comma => comma = true,
                Some('\\') if basic && ahead.next() == Some('}') => {
                    read += 1;
                    break true;
                }
                Some('}') if !basic => break true,
                _ => break false,
            }
        };
        if !closed || (low.is_empty() && !comma) || !self.repeatable() {
            return self.literal('{');
        }
        self.chars.nth(read - 1);
        let low = if low.is_empty() { "0" } else { &low };
        let text = if comma { format!("{{{low},{high}}}") } else { format!("{{{low}}}") };
        self.out.push_str(&text);
    }

    fn at_start(&self) -> bool {
        self.out.ends_with('|') && self.atom.is_none()
            || (self.out.ends_with('(') && self.atom.is_none())
    }

    fn at_end(&mut self) -> bool {
        let mut ahead = self.chars.clone();
        match ahead.next() {
            None => true,
            Some('\\') => matches!(ahead.next(), Some(')' | '|')),
            _ => false,
        }
    }
}

fn push_literal(out: &mut String, letter: char) {
    if letter.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(letter);
}

/// Reads a bracket expression, starting after its `[`.
fn bracket(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, String> {
    let unmatched = || "Unmatched [, [^, [:, [., or [=".to_owned();
    let mut out = String::from("[");
    if chars
        .next_if(|next| matches!(next, '^' | '!'))
        .is_some_and(|sign| sign == '^' || sign == '!')
    {
        out.push('^');
    }
    let mut first = true;
    loop {
        let letter = chars.next().ok_or_else(unmatched)?;
        match letter {
            ']' if !first => break,
            '[' if matches!(chars.peek(), Some(':' | '.' | '=')) => {
                let kind = chars.next().unwrap_or(':');
                let mut name = String::new();
                loop {
                    let next = chars.next().ok_or_else(unmatched)?;
                    if next == kind && chars.next_if_eq(&']').is_some() {
                        break;
                    }
                    name.push(next);
                }
                if kind == ':' {
                    if !CLASSES.contains(&name.as_str()) {
                        return Err("Invalid character class name".to_owned());
                    }
                    out.push_str(&format!("[:{name}:]"));
                } else {
                    name.chars().for_each(|letter| push_literal(&mut out, letter));
                }
            }
            low => {
                push_literal(&mut out, low);
                let mut ahead = chars.clone();
                if ahead.next() == Some('-') && ahead.peek().is_some_and(|next| *next != ']') {
                    chars.next();
                    let mut high = chars.next().ok_or_else(unmatched)?;
                    if high == '[' && matches!(chars.peek(), Some('.' | '=')) {
                        let kind = chars.next();
                        high = chars.next().ok_or_else(unmatched)?;
                        if chars.next() != kind || chars.next() != Some(']') {
                            return Err(unmatched());
                        }
                    }
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

const CLASSES: [&str; 12] = [
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "xdigit",
];

/// Translates a pattern for file names (`*`, `?`, `[…]`) into an expression that matches whole
/// names. A star matches slashes too.
pub(crate) fn glob(pattern: &str) -> String {
    let mut out = String::from(r"(?s)\A");
    let mut chars = pattern.chars().peekable();
    while let Some(letter) = chars.next() {
        match letter {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '\\' => push_literal(&mut out, chars.next().unwrap_or('\\')),
            '[' => {
                let mut ahead = chars.clone();
                match bracket(&mut ahead) {
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

/// Compiles a pattern for file names.
///
/// # Errors
///
/// The pattern's syntax error.
pub(crate) fn names(pattern: &str, ignore_case: bool) -> Result<regex::bytes::Regex, String> {
    regex::bytes::RegexBuilder::new(&glob(pattern))
        .case_insensitive(ignore_case)
        .build()
        .map_err(|error| error.to_string())
}

//! The parts of a pattern, and their parser.

/// A piece of text, either quoted or unquoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) text: String,
    pub(crate) quoted: bool,
}

/// Returns the characters of fragments, each with a flag that is true if the character is quoted.
pub(super) fn quoted_chars(fragments: &[Fragment]) -> Vec<(char, bool)> {
    fragments
        .iter()
        .flat_map(|fragment| fragment.text.chars().map(|c| (c, fragment.quoted)))
        .collect()
}

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Glob {
    /// A character that matches itself.
    Char(char),
    /// `?`
    AnyChar,
    /// `*`
    Star,
    /// `[…]`
    Set { negated: bool, members: Vec<Member> },
    /// A group such as `@(…|…)`. `kind` is the character before the parenthesis.
    Group { kind: char, alternatives: Vec<Vec<Glob>> },
}

/// A member of a bracket expression.
#[derive(Clone, Debug)]
pub(super) enum Member {
    Range(char, char),
    Class(String),
}

/// Number of members of a bracket expression that count as one step of a match.
const MEMBERS_PER_STEP: usize = 8;

impl Glob {
    /// Returns the number of steps needed to compare the glob with a character.
    pub(super) fn cost(&self) -> usize {
        match self {
            Glob::Set { members, .. } => 1 + members.len() / MEMBERS_PER_STEP,
            _ => 1,
        }
    }

    /// Returns true if the glob, which consumes exactly one character, matches `c`.
    pub(super) fn accepts(&self, c: char, fold: bool) -> bool {
        let same = |a: char, b: char| a == b || (fold && a.to_lowercase().eq(b.to_lowercase()));
        match self {
            Glob::Char(own) => same(*own, c),
            Glob::AnyChar | Glob::Star | Glob::Group { .. } => true,
            Glob::Set { negated, members } => {
                let has = |c: char| {
                    members.iter().any(|member| match member {
                        Member::Range(from, to) => *from <= c && c <= *to,
                        Member::Class(name) => class_contains(name, c),
                    })
                };
                let found =
                    has(c) || (fold && (c.to_lowercase().any(has) || c.to_uppercase().any(has)));
                found != *negated
            }
        }
    }
}

/// Names of the POSIX character classes.
const CLASSES: [&str; 13] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "xdigit",
];

/// Returns true if there is a character class with this name.
pub(super) fn is_class(name: &str) -> bool {
    CLASSES.contains(&name)
}

fn class_contains(name: &str, c: char) -> bool {
    match name {
        "alnum" => c.is_ascii_alphanumeric(),
        "alpha" => c.is_ascii_alphabetic(),
        "ascii" => c.is_ascii(),
        "blank" => matches!(c, ' ' | '\t'),
        "cntrl" => c.is_ascii_control(),
        "digit" => c.is_ascii_digit(),
        "graph" => c.is_ascii_graphic(),
        "lower" => c.is_ascii_lowercase(),
        "print" => c.is_ascii_graphic() || c == ' ',
        "punct" => c.is_ascii_punctuation(),
        "space" => matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}'),
        "upper" => c.is_ascii_uppercase(),
        _ => c.is_ascii_hexdigit(),
    }
}

/// Maximum nesting depth of extended patterns. More deeply nested patterns are plain text.
const MAX_DEPTH: u32 = 20;

/// A parser for one pattern.
pub(super) struct Reader {
    /// Characters of the pattern, each with a flag that is true if the character is quoted.
    chars: Vec<(char, bool)>,
    at: usize,
    extended: bool,
    depth: u32,
}

impl Reader {
    /// Creates a reader that starts at the index `at`.
    pub(super) fn new(chars: Vec<(char, bool)>, at: usize, extended: bool) -> Reader {
        Reader { chars, at, extended, depth: 0 }
    }

    /// Returns the index of the next character.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Reads a whole pattern.
    pub(super) fn pattern(&mut self) -> Vec<Glob> {
        self.sequence(false)
    }

    /// Returns the character at an offset from the current position, or `None` if it is quoted.
    fn plain(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).filter(|(_, quoted)| !quoted).map(|(c, _)| *c)
    }

    /// Reads parts up to the end of the pattern. In a group, stops before an unquoted `|` or `)`.
    fn sequence(&mut self, in_group: bool) -> Vec<Glob> {
        let mut globs = Vec::new();
        while let Some((c, quoted)) = self.chars.get(self.at).copied() {
            if in_group && matches!(self.plain(0), Some('|' | ')')) {
                break;
            }
            if !quoted
                && self.extended
                && matches!(c, '?' | '*' | '+' | '@' | '!')
                && self.plain(1) == Some('(')
                && self.depth < MAX_DEPTH
            {
                let start = self.at;
                match self.group(c) {
                    Some(group) => {
                        globs.push(group);
                        continue;
                    }
                    None => self.at = start,
                }
            }
            self.at += 1;
            globs.push(match c {
                _ if quoted => Glob::Char(c),
                '*' => {
                    if matches!(globs.last(), Some(Glob::Star)) {
                        continue;
                    }
                    Glob::Star
                }
                '?' => Glob::AnyChar,
                '[' => self.set().unwrap_or(Glob::Char('[')),
                '\\' => match self.chars.get(self.at).copied() {
                    Some((next, _)) => {
                        self.at += 1;
                        Glob::Char(next)
                    }
                    None => Glob::Char('\\'),
                },
                c => Glob::Char(c),
            });
        }
        globs
    }

    /// Reads a group. Returns `None` if it is not closed.
    fn group(&mut self, kind: char) -> Option<Glob> {
        self.at += 2;
        self.depth += 1;
        let mut alternatives = Vec::new();
        let closed = loop {
            alternatives.push(self.sequence(true));
            match self.plain(0) {
                Some('|') => self.at += 1,
                Some(_) => break true,
                None => break false,
            }
        };
        self.depth -= 1;
        self.at += 1;
        closed.then_some(Glob::Group { kind, alternatives })
    }

    /// Reads the rest of a bracket expression after its `[`. Returns `None` if it has no closing
    /// `]`.
    pub(super) fn set(&mut self) -> Option<Glob> {
        let start = self.at;
        let set = self.members();
        if set.is_none() {
            self.at = start;
        }
        set
    }

    fn members(&mut self) -> Option<Glob> {
        let negated = matches!(self.plain(0), Some('!' | '^'));
        if negated {
            self.at += 1;
        }
        let mut members = Vec::new();
        let mut first = true;
        loop {
            let (mut c, mut quoted) = self.chars.get(self.at).copied()?;
            if c == ']' && !quoted && !first {
                self.at += 1;
                return Some(Glob::Set { negated, members });
            }
            first = false;
            if c == '['
                && !quoted
                && let Some(name) = self.class()
            {
                members.push(Member::Class(name));
                continue;
            }
            if c == '\\' && !quoted {
                self.at += 1;
                (c, quoted) = self.chars.get(self.at).copied()?;
            }
            if c == '/' && !quoted {
                members.push(Member::Range('/', '/'));
                self.at += 1;
                continue;
            }
            self.at += 1;
            let mut to = c;
            if self.plain(0) == Some('-')
                && let Some((end, end_quoted)) = self.chars.get(self.at + 1).copied()
                && (end != ']' || end_quoted)
            {
                self.at += 2;
                to = end;
                if end == '\\' && !end_quoted {
                    to = self.chars.get(self.at).copied()?.0;
                    self.at += 1;
                }
            }
            members.push(Member::Range(c, to));
        }
    }

    /// Reads a character class such as `[:alpha:]`, if one comes next.
    fn class(&mut self) -> Option<String> {
        if self.plain(1) != Some(':') {
            return None;
        }
        let letters = self.chars.iter().skip(self.at + 2).map(|(c, _)| *c);
        let name: String = letters.take_while(|c| c.is_ascii_lowercase()).collect();
        let after = 2 + name.len();
        let closed = self.plain(after) == Some(':') && self.plain(after + 1) == Some(']');
        if !closed || !is_class(&name) {
            return None;
        }
        self.at += after + 2;
        Some(name)
    }
}

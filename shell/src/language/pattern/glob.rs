//! The parts of a parsed pattern.

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

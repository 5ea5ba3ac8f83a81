//! Shell patterns: `*`, `?`, `[…]`, and the extended ones `@( )`, `?( )`, `*( )`, `+( )`, `!( )`.
//!
//! A plain pattern becomes a regular expression, which takes linear time on any text. Extended ones, which may negate, are followed by the set of
//! places that they reach; what that costs is counted, and a pattern that costs too much is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};

use super::expand::Run;

/// The steps that one match of an extended pattern may take.
const STEPS: u64 = 5_000_000;
/// How many compiled patterns are kept.
const KEPT: usize = 256;
/// How deep extended patterns may stand in one another.
const DEPTH: u32 = 20;

/// A pattern that takes too long on a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Costly;

/// What a match gives.
pub(crate) type Matched<T> = Result<T, Costly>;

/// The regular expressions that patterns have become.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    kept: Mutex<HashMap<String, Arc<Regex>>>,
}

impl Cache {
    /// The expression of a text, where it is one.
    pub(crate) fn regex(&self, text: &str, fold: bool) -> Result<Arc<Regex>, String> {
        let key = format!("{}{text}", if fold { "i" } else { "c" });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = kept.get(&key) {
            return Ok(regex.clone());
        }
        let built =
            RegexBuilder::new(text).case_insensitive(fold).dot_matches_new_line(true).size_limit(4 << 20).build();
        let regex = Arc::new(built.map_err(|error| {
            error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })?);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, regex.clone());
        Ok(regex)
    }
}

/// One piece of a pattern.
#[derive(Clone, Debug)]
enum Glob {
    One(char),
    Any,
    Star,
    Set { negated: bool, members: Vec<Member> },
    Group { kind: char, choices: Vec<Vec<Glob>> },
}

/// What a `[…]` names.
#[derive(Clone, Debug)]
enum Member {
    Range(char, char),
    Class(String),
}

/// A pattern, ready to be matched.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    globs: Vec<Glob>,
    fold: bool,
    extended: bool,
}

/// Which part of a text a pattern is to match.
#[derive(Clone, Copy)]
enum Shape {
    Whole,
    Prefix { longest: bool },
    LongSuffix,
    ShortSuffix,
    Anywhere,
}

impl Pattern {
    /// Reads the pattern that `runs` spell: quoted ones stand for themselves.
    pub(crate) fn new(runs: &[Run], extended: bool, fold: bool) -> Pattern {
        let signs: Vec<(char, bool)> = runs.iter().flat_map(|run| run.text.chars().map(|c| (c, run.quoted))).collect();
        let mut reader = Reader { signs, at: 0, extended, depth: 0 };
        let globs = reader.sequence(false);
        let extended = has_group(&globs);
        Pattern { globs, fold, extended }
    }

    /// The text that the pattern is, where nothing in it is special.
    pub(crate) fn literal(&self) -> Option<String> {
        let one = |glob: &Glob| if let Glob::One(c) = glob { Some(*c) } else { None };
        if self.fold { None } else { self.globs.iter().map(one).collect() }
    }

    /// Whether it matches the whole text.
    pub(crate) fn matches(&self, text: &str, cache: &Cache) -> Matched<bool> {
        if let Some(literal) = self.literal() {
            return Ok(literal == text);
        }
        match self.regex(Shape::Whole, cache) {
            Some(regex) => Ok(regex.is_match(text)),
            None => Walk::new(text, self.fold).ends(&self.globs, 0).map(|(ends, length)| ends.last() == Some(&length)),
        }
    }

    /// The length in bytes of the beginning of `text` that it matches.
    pub(crate) fn prefix(&self, text: &str, longest: bool, cache: &Cache) -> Matched<Option<usize>> {
        if let Some(literal) = self.literal() {
            return Ok(text.starts_with(&literal).then_some(literal.len()));
        }
        if let Some(regex) = self.regex(Shape::Prefix { longest }, cache) {
            return Ok(regex.find(text).map(|found| found.end()));
        }
        let mut walk = Walk::new(text, self.fold);
        let (ends, _) = walk.ends(&self.globs, 0)?;
        let end = if longest { ends.last() } else { ends.first() };
        Ok(end.map(|end| walk.byte(*end)))
    }

    /// Where in bytes the end of `text` that it matches begins.
    pub(crate) fn suffix(&self, text: &str, longest: bool, cache: &Cache) -> Matched<Option<usize>> {
        if let Some(literal) = self.literal() {
            return Ok(text.ends_with(&literal).then(|| text.len() - literal.len()));
        }
        if longest && let Some(regex) = self.regex(Shape::LongSuffix, cache) {
            return Ok(regex.find(text).map(|found| found.start()));
        }
        if !longest && let Some(regex) = self.regex(Shape::ShortSuffix, cache) {
            return Ok(regex.captures(text).and_then(|found| found.get(1)).map(|kept| kept.end()));
        }
        let mut walk = Walk::new(text, self.fold);
        let length = walk.text.len();
        let mut starts: Vec<usize> = (0..=length).collect();
        if !longest {
            starts.reverse();
        }
        for start in starts {
            if walk.ends(&self.globs, start)?.0.last() == Some(&length) {
                return Ok(Some(walk.byte(start)));
            }
        }
        Ok(None)
    }

    /// The first and longest match, as places in bytes, at or after `from`.
    pub(crate) fn find(&self, text: &str, from: usize, cache: &Cache) -> Matched<Option<(usize, usize)>> {
        let rest = text.get(from..).unwrap_or_default();
        if let Some(literal) = self.literal() {
            return Ok(rest.find(&literal).map(|at| (from + at, from + at + literal.len())));
        }
        if let Some(regex) = self.regex(Shape::Anywhere, cache) {
            return Ok(regex.find_at(text, from).map(|found| (found.start(), found.end())));
        }
        let mut walk = Walk::new(rest, self.fold);
        for start in 0..=walk.text.len() {
            if let Some(end) = walk.ends(&self.globs, start)?.0.last() {
                return Ok(Some((from + walk.byte(start), from + walk.byte(*end))));
            }
        }
        Ok(None)
    }

    fn regex(&self, shape: Shape, cache: &Cache) -> Option<Arc<Regex>> {
        if self.extended {
            return None;
        }
        let star = if matches!(shape, Shape::Prefix { longest: false }) { ".*?" } else { ".*" };
        let mut text = String::new();
        for glob in &self.globs {
            match glob {
                Glob::One(c) => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
                Glob::Any => text.push('.'),
                Glob::Star => text.push_str(star),
                Glob::Set { negated, members } => set_text(&mut text, *negated, members),
                Glob::Group { .. } => return None,
            }
        }
        let text = match shape {
            Shape::Whole => format!("\\A(?:{text})\\z"),
            Shape::Prefix { .. } => format!("\\A(?:{text})"),
            Shape::LongSuffix => format!("(?:{text})\\z"),
            Shape::ShortSuffix => format!("\\A(.*)(?:{text})\\z"),
            Shape::Anywhere => text,
        };
        cache.regex(&text, self.fold).ok()
    }
}

/// Whether runs of text hold anything that makes a pattern of them.
pub(crate) fn is_special(runs: &[Run], extended: bool) -> bool {
    let mut bracket = false;
    let mut before = ' ';
    for c in runs.iter().filter(|run| !run.quoted).flat_map(|run| run.text.chars()) {
        match c {
            '*' | '?' => return true,
            '[' => bracket = true,
            ']' if bracket => return true,
            '(' if extended && matches!(before, '@' | '+' | '!') => return true,
            _ => {}
        }
        before = c;
    }
    false
}

fn has_group(globs: &[Glob]) -> bool {
    globs.iter().any(|glob| matches!(glob, Glob::Group { .. }))
}

fn set_text(text: &mut String, negated: bool, members: &[Member]) {
    let start = text.len();
    text.push_str(if negated { "[^" } else { "[" });
    let mut empty = true;
    for member in members {
        match member {
            Member::Range(from, to) if from <= to => {
                text.push_str(&format!("\\x{{{:x}}}-\\x{{{:x}}}", *from as u32, *to as u32))
            }
            Member::Range(..) => continue,
            Member::Class(name) => text.push_str(&format!("[:{name}:]")),
        }
        empty = false;
    }
    if empty {
        text.truncate(start);
        text.push_str(if negated { "." } else { "[^\\x{0}-\\x{10ffff}]" });
    } else {
        text.push(']');
    }
}

const CLASSES: [&str; 13] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
    "xdigit",
];

fn class_has(name: &str, c: char) -> bool {
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

/// Reads a pattern.
struct Reader {
    signs: Vec<(char, bool)>,
    at: usize,
    extended: bool,
    depth: u32,
}

impl Reader {
    fn plain(&self, ahead: usize) -> Option<char> {
        self.signs.get(self.at + ahead).filter(|(_, quoted)| !quoted).map(|(c, _)| *c)
    }

    fn sequence(&mut self, inside: bool) -> Vec<Glob> {
        let mut globs = Vec::new();
        while let Some((c, quoted)) = self.signs.get(self.at).copied() {
            if inside && matches!(self.plain(0), Some('|' | ')')) {
                break;
            }
            if !quoted
                && self.extended
                && matches!(c, '?' | '*' | '+' | '@' | '!')
                && self.plain(1) == Some('(')
                && self.depth < DEPTH
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
                _ if quoted => Glob::One(c),
                '*' => {
                    if matches!(globs.last(), Some(Glob::Star)) {
                        continue;
                    }
                    Glob::Star
                }
                '?' => Glob::Any,
                '[' => self.set().unwrap_or(Glob::One('[')),
                '\\' => match self.signs.get(self.at).copied() {
                    Some((next, _)) => {
                        self.at += 1;
                        Glob::One(next)
                    }
                    None => Glob::One('\\'),
                },
                c => Glob::One(c),
            });
        }
        globs
    }

    fn group(&mut self, kind: char) -> Option<Glob> {
        self.at += 2;
        self.depth += 1;
        let mut choices = Vec::new();
        let closed = loop {
            choices.push(self.sequence(true));
            match self.plain(0) {
                Some('|') => self.at += 1,
                Some(_) => break true,
                None => break false,
            }
        };
        self.depth -= 1;
        self.at += 1;
        closed.then_some(Glob::Group { kind, choices })
    }

    /// What follows a `[`; nothing where it is not closed.
    fn set(&mut self) -> Option<Glob> {
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
            let (mut c, mut quoted) = self.signs.get(self.at).copied()?;
            if c == ']' && !quoted && !first {
                self.at += 1;
                return Some(Glob::Set { negated, members });
            }
            first = false;
            if c == '[' && !quoted && self.plain(1) == Some(':') {
                let name: String = self
                    .signs
                    .iter()
                    .skip(self.at + 2)
                    .map(|(c, _)| *c)
                    .take_while(|c| c.is_ascii_lowercase())
                    .collect();
                let after = 2 + name.len();
                if self.plain(after) == Some(':')
                    && self.plain(after + 1) == Some(']')
                    && CLASSES.contains(&name.as_str())
                {
                    self.at += after + 2;
                    members.push(Member::Class(name));
                    continue;
                }
            }
            if c == '\\' && !quoted {
                self.at += 1;
                (c, quoted) = self.signs.get(self.at).copied()?;
            }
            if c == '/' && !quoted {
                members.push(Member::Range('/', '/'));
                self.at += 1;
                continue;
            }
            self.at += 1;
            let mut to = c;
            if self.plain(0) == Some('-')
                && let Some((end, end_quoted)) = self.signs.get(self.at + 1).copied()
                && (end != ']' || end_quoted)
            {
                self.at += 2;
                to = end;
                if end == '\\' && !end_quoted {
                    to = self.signs.get(self.at).copied()?.0;
                    self.at += 1;
                }
            }
            members.push(Member::Range(c, to));
        }
    }
}

/// Follows an extended pattern over a text.
struct Walk {
    text: Vec<char>,
    fold: bool,
    steps: u64,
}

impl Walk {
    fn new(text: &str, fold: bool) -> Walk {
        Walk { text: text.chars().collect(), fold, steps: 0 }
    }

    /// The place in bytes of a place in characters.
    fn byte(&self, place: usize) -> usize {
        self.text.iter().take(place).map(|c| c.len_utf8()).sum()
    }

    /// Where a match that begins at `start` can end, in order; with the text's length.
    fn ends(&mut self, globs: &[Glob], start: usize) -> Matched<(Vec<usize>, usize)> {
        Ok((self.follow(globs, vec![start])?, self.text.len()))
    }

    fn follow(&mut self, globs: &[Glob], mut places: Vec<usize>) -> Matched<Vec<usize>> {
        for glob in globs {
            self.steps += places.len() as u64 + 1;
            if self.steps > STEPS {
                return Err(Costly);
            }
            places = match glob {
                Glob::Star => places.first().map(|first| (*first..=self.text.len()).collect()).unwrap_or_default(),
                Glob::Group { kind, choices } => self.group(*kind, choices, places)?,
                one => places
                    .into_iter()
                    .filter(|place| self.text.get(*place).is_some_and(|c| accepts(one, *c, self.fold)))
                    .map(|place| place + 1)
                    .collect(),
            };
            self.steps += places.len() as u64;
            if places.is_empty() {
                break;
            }
        }
        Ok(places)
    }

    fn group(&mut self, kind: char, choices: &[Vec<Glob>], places: Vec<usize>) -> Matched<Vec<usize>> {
        if kind == '!' {
            let mut all = Vec::new();
            for place in places {
                let taken = self.once(choices, vec![place])?;
                self.steps += (self.text.len() - place) as u64;
                all.extend((place..=self.text.len()).filter(|end| !taken.contains(end)));
            }
            return Ok(ordered(all));
        }
        let once = self.once(choices, places.clone())?;
        Ok(match kind {
            '@' => once,
            '?' => ordered([places, once].concat()),
            _ => {
                let mut all = if kind == '*' { ordered([places, once.clone()].concat()) } else { once.clone() };
                let mut fresh = once;
                while !fresh.is_empty() {
                    let next = self.once(choices, fresh)?;
                    fresh = next.into_iter().filter(|place| all.binary_search(place).is_err()).collect();
                    all = ordered([all, fresh.clone()].concat());
                }
                all
            }
        })
    }

    fn once(&mut self, choices: &[Vec<Glob>], places: Vec<usize>) -> Matched<Vec<usize>> {
        let mut all = Vec::new();
        for choice in choices {
            all.extend(self.follow(choice, places.clone())?);
        }
        Ok(ordered(all))
    }
}

fn ordered(mut places: Vec<usize>) -> Vec<usize> {
    places.sort_unstable();
    places.dedup();
    places
}

fn accepts(glob: &Glob, c: char, fold: bool) -> bool {
    let same = |a: char, b: char| a == b || (fold && a.to_lowercase().eq(b.to_lowercase()));
    match glob {
        Glob::One(one) => same(*one, c),
        Glob::Any | Glob::Star | Glob::Group { .. } => true,
        Glob::Set { negated, members } => {
            let has = |c: char| {
                members.iter().any(|member| match member {
                    Member::Range(from, to) => *from <= c && c <= *to,
                    Member::Class(name) => class_has(name, c),
                })
            };
            let found = has(c) || (fold && (c.to_lowercase().any(has) || c.to_uppercase().any(has)));
            found != *negated
        }
    }
}

/// A POSIX extended regular expression, of which `quoted` runs stand for themselves, as this crate's library spells it.
pub(crate) fn extended_regex(runs: &[Run]) -> String {
    let signs: Vec<(char, bool)> = runs.iter().flat_map(|run| run.text.chars().map(|c| (c, run.quoted))).collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some((c, quoted)) = signs.get(at).copied() {
        at += 1;
        if quoted {
            out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
            continue;
        }
        match c {
            '\\' => {
                out.push('\\');
                match signs.get(at) {
                    Some((next, _)) => {
                        if next.is_alphanumeric() && !matches!(next, 'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'd' | 'D') {
                            out.pop();
                        }
                        out.push(*next);
                    }
                    None => out.push('\\'),
                }
                at += 1;
            }
            '[' => {
                let mut reader = Reader { signs: signs.clone(), at, extended: false, depth: 0 };
                match reader.set() {
                    Some(Glob::Set { negated, members }) => {
                        // Between brackets `!` is a plain character here; only `^` negates.
                        let bang = negated && signs.get(at).is_some_and(|(c, _)| *c == '!');
                        let members = if bang { [vec![Member::Range('!', '!')], members].concat() } else { members };
                        set_text(&mut out, negated && !bang, &members);
                        at = reader.at;
                    }
                    _ => out.push_str("\\["),
                }
            }
            '{' if !signs.get(at).is_some_and(|(c, _)| c.is_ascii_digit()) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    out
}

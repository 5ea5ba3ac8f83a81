//! Shell patterns: `*`, `?`, `[…]`, and extended patterns: `@( )`, `?( )`, `*( )`, `+( )`, `!( )`.
//!
//! A pattern without groups is compiled to a regular expression, which takes linear time on any
//! string. A pattern with groups, which can be negated, is matched by a walk over the string. A
//! match that takes too many steps fails.

mod compile;
mod fragment;
mod glob;
mod reader;
mod walk;

use std::sync::Arc;

use regex::Regex;

pub(crate) use compile::{Cache, extended_regex};
pub(crate) use fragment::Fragment;
pub(crate) use walk::{MatchResult, TooCostly};

use compile::Shape;
use fragment::quoted_chars;
use glob::Glob;
use reader::Reader;
use walk::Walk;

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    globs: Vec<Glob>,
    /// If true, the pattern ignores case.
    fold: bool,
    /// If true, the pattern contains a group.
    has_groups: bool,
}

impl Pattern {
    /// Parses a pattern. Quoted fragments match themselves. `extended` enables groups, and `fold`
    /// makes the pattern ignore case.
    pub(crate) fn new(fragments: &[Fragment], extended: bool, fold: bool) -> Pattern {
        let globs = Reader::new(quoted_chars(fragments), 0, extended).pattern();
        let has_groups = globs.iter().any(|glob| matches!(glob, Glob::Group { .. }));
        Pattern { globs, fold, has_groups }
    }

    /// Returns the only string that the pattern matches, or `None` if the pattern contains special
    /// characters or ignores case.
    pub(crate) fn literal(&self) -> Option<String> {
        let char = |glob: &Glob| if let Glob::Char(c) = glob { Some(*c) } else { None };
        if self.fold { None } else { self.globs.iter().map(char).collect() }
    }

    /// Returns true if the pattern matches the whole string.
    pub(crate) fn matches(&self, text: &str, cache: &Cache) -> MatchResult<bool> {
        if let Some(literal) = self.literal() {
            return Ok(literal == text);
        }
        match self.regex(Shape::Whole, cache) {
            Some(regex) => Ok(regex.is_match(text)),
            None => {
                let mut walk = Walk::new(text, self.fold);
                let ends = walk.ends(&self.globs, 0)?;
                Ok(ends.last() == Some(&walk.len()))
            }
        }
    }

    /// Returns the length in bytes of the longest or shortest matching prefix, or `None` if no
    /// prefix matches.
    pub(crate) fn prefix(
        &self,
        text: &str,
        longest: bool,
        cache: &Cache,
    ) -> MatchResult<Option<usize>> {
        if let Some(literal) = self.literal() {
            return Ok(text.starts_with(&literal).then_some(literal.len()));
        }
        if let Some(regex) = self.regex(Shape::Prefix { longest }, cache) {
            return Ok(regex.find(text).map(|found| found.end()));
        }
        let mut walk = Walk::new(text, self.fold);
        let ends = walk.ends(&self.globs, 0)?;
        let end = if longest { ends.last() } else { ends.first() };
        Ok(end.map(|end| walk.byte_index(*end)))
    }

    /// Returns the byte index where the longest or shortest matching suffix starts, or `None` if no
    /// suffix matches.
    pub(crate) fn suffix(
        &self,
        text: &str,
        longest: bool,
        cache: &Cache,
    ) -> MatchResult<Option<usize>> {
        if let Some(literal) = self.literal() {
            return Ok(text.ends_with(&literal).then(|| text.len() - literal.len()));
        }
        if longest && let Some(regex) = self.regex(Shape::LongestSuffix, cache) {
            return Ok(regex.find(text).map(|found| found.start()));
        }
        if !longest && let Some(regex) = self.regex(Shape::ShortestSuffix, cache) {
            return Ok(regex.captures(text).and_then(|found| found.get(1)).map(|rest| rest.end()));
        }
        let mut walk = Walk::new(text, self.fold);
        let length = walk.len();
        let mut starts: Vec<usize> = (0..=length).collect();
        if !longest {
            starts.reverse();
        }
        for start in starts {
            if walk.ends(&self.globs, start)?.last() == Some(&length) {
                return Ok(Some(walk.byte_index(start)));
            }
        }
        Ok(None)
    }

    /// Returns the start and end, in bytes, of the first match at or after the byte index `from`,
    /// or `None` if there is no match. The match is as long as possible.
    pub(crate) fn find(
        &self,
        text: &str,
        from: usize,
        cache: &Cache,
    ) -> MatchResult<Option<(usize, usize)>> {
        let rest = text.get(from..).unwrap_or_default();
        if let Some(literal) = self.literal() {
            return Ok(rest.find(&literal).map(|at| (from + at, from + at + literal.len())));
        }
        if let Some(regex) = self.regex(Shape::Anywhere, cache) {
            return Ok(regex.find_at(text, from).map(|found| (found.start(), found.end())));
        }
        let mut walk = Walk::new(rest, self.fold);
        for start in 0..=walk.len() {
            if let Some(end) = walk.ends(&self.globs, start)?.last() {
                return Ok(Some((from + walk.byte_index(start), from + walk.byte_index(*end))));
            }
        }
        Ok(None)
    }

    fn regex(&self, shape: Shape, cache: &Cache) -> Option<Arc<Regex>> {
        if self.has_groups { None } else { compile::compile(&self.globs, shape, self.fold, cache) }
    }
}

/// Returns true if the fragments contain a special pattern character.
pub(crate) fn is_special(fragments: &[Fragment], extended: bool) -> bool {
    let mut bracket = false;
    let mut previous = ' ';
    for c in fragments
        .iter()
        .filter(|fragment| !fragment.quoted)
        .flat_map(|fragment| fragment.text.chars())
    {
        match c {
            '*' | '?' => return true,
            '[' => bracket = true,
            ']' if bracket => return true,
            '(' if extended && matches!(previous, '@' | '+' | '!') => return true,
            _ => {}
        }
        previous = c;
    }
    false
}

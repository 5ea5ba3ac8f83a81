//! Shell patterns: `*`, `?`, `[…]`, and extended patterns: `@( )`, `?( )`, `*( )`, `+( )`, `!( )`.
//!
//! A pattern without groups is compiled to a regular expression, which takes linear time on any
//! string. A pattern with groups, which can be negated, is matched by a walk over the string. An
//! operation whose matches take too many steps fails.

mod compile;
mod glob;
mod walk;

use std::sync::Arc;

use regex::Regex;

pub(crate) use compile::{Cache, extended_regex};
pub(crate) use glob::Fragment;
pub(crate) use walk::{MatchResult, Matching, TooCostly};

use compile::Shape;
use glob::{Glob, Reader, quoted_chars};
use walk::{Walk, positions_from};

/// Number of parts of a pattern that count as one step of a match.
const PARTS_PER_STEP: usize = 16;

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    globs: Vec<Glob>,
    /// If true, the pattern ignores case.
    fold: bool,
    /// If true, the pattern contains a group.
    has_groups: bool,
    /// Number of steps needed to prepare a match.
    cost: usize,
}

impl Pattern {
    /// Parses a pattern. Quoted fragments match themselves. `extended` enables groups, and `fold`
    /// makes the pattern ignore case.
    pub(crate) fn new(fragments: &[Fragment], extended: bool, fold: bool) -> Pattern {
        let globs = Reader::new(quoted_chars(fragments), 0, extended).pattern();
        let has_groups = globs.iter().any(|glob| matches!(glob, Glob::Group { .. }));
        let cost = globs.iter().map(Glob::cost).sum::<usize>() / PARTS_PER_STEP;
        Pattern { globs, fold, has_groups, cost }
    }

    /// Returns the only string that the pattern matches, or `None` if the pattern contains special
    /// characters or ignores case.
    pub(crate) fn literal(&self) -> Option<String> {
        let char = |glob: &Glob| if let Glob::Char(c) = glob { Some(*c) } else { None };
        if self.fold { None } else { self.globs.iter().map(char).collect() }
    }

    /// Returns true if the pattern matches the whole string.
    pub(crate) fn matches(&self, text: &str, matching: &mut Matching) -> MatchResult<bool> {
        matching.spend(self.cost)?;
        if let Some(literal) = self.literal() {
            return Ok(literal == text);
        }
        if let Some(regex) = self.regex(Shape::Whole, matching.cache) {
            return Ok(regex.is_match(text));
        }
        let ends = Walk::new(text, self.fold, matching).ends(&self.globs, 0)?;
        Ok(ends.last() == Some(&text.len()))
    }

    /// Returns the length in bytes of the longest or shortest matching prefix, or `None` if no
    /// prefix matches.
    pub(crate) fn prefix(
        &self,
        text: &str,
        longest: bool,
        matching: &mut Matching,
    ) -> MatchResult<Option<usize>> {
        matching.spend(self.cost)?;
        if let Some(literal) = self.literal() {
            return Ok(text.starts_with(&literal).then_some(literal.len()));
        }
        if let Some(regex) = self.regex(Shape::Prefix { longest }, matching.cache) {
            return Ok(regex.find(text).map(|found| found.end()));
        }
        let ends = Walk::new(text, self.fold, matching).ends(&self.globs, 0)?;
        Ok(if longest { ends.last() } else { ends.first() }.copied())
    }

    /// Returns the byte index where the longest or shortest matching suffix starts, or `None` if no
    /// suffix matches.
    pub(crate) fn suffix(
        &self,
        text: &str,
        longest: bool,
        matching: &mut Matching,
    ) -> MatchResult<Option<usize>> {
        matching.spend(self.cost)?;
        if let Some(literal) = self.literal() {
            return Ok(text.ends_with(&literal).then(|| text.len() - literal.len()));
        }
        if longest && let Some(regex) = self.regex(Shape::LongestSuffix, matching.cache) {
            return Ok(regex.find(text).map(|found| found.start()));
        }
        if !longest && let Some(regex) = self.regex(Shape::ShortestSuffix, matching.cache) {
            return Ok(regex.captures(text).and_then(|found| found.get(1)).map(|rest| rest.end()));
        }
        let starts = positions_from(text, 0);
        if longest {
            self.first_suffix(text, starts, matching)
        } else {
            self.first_suffix(text, starts.rev(), matching)
        }
    }

    /// Returns the first byte index in `starts` at which a matching suffix starts.
    fn first_suffix(
        &self,
        text: &str,
        starts: impl Iterator<Item = usize>,
        matching: &mut Matching,
    ) -> MatchResult<Option<usize>> {
        let mut walk = Walk::new(text, self.fold, matching);
        for start in starts {
            if walk.ends(&self.globs, start)?.last() == Some(&text.len()) {
                return Ok(Some(start));
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
        matching: &mut Matching,
    ) -> MatchResult<Option<(usize, usize)>> {
        matching.spend(self.cost)?;
        if let Some(literal) = self.literal() {
            let found = text.get(from..).and_then(|rest| rest.find(&literal));
            return Ok(found.map(|at| (from + at, from + at + literal.len())));
        }
        if let Some(regex) = self.regex(Shape::Anywhere, matching.cache) {
            return Ok(regex.find_at(text, from).map(|found| (found.start(), found.end())));
        }
        let mut walk = Walk::new(text, self.fold, matching);
        for start in positions_from(text, from) {
            if let Some(end) = walk.ends(&self.globs, start)?.last() {
                return Ok(Some((start, *end)));
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

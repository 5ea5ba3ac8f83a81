//! Compilation of patterns, and of the regular expressions of `[[ =~ ]]`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use regex::{Regex, RegexBuilder};

use super::glob::{Fragment, Glob, Member, Reader, quoted_chars};
use crate::lock::lock;

/// Maximum size of a compiled regular expression, in bytes.
const MAX_SIZE: usize = 4 << 20;

/// Maximum size of the state that a large regular expression builds up while it is matched, in
/// bytes.
const MAX_STATE: usize = 256 << 10;

/// A size class of cached regular expressions.
struct Class {
    /// Maximum size of the compiled regular expression, in bytes.
    size: usize,
    /// Maximum size of the state that it builds up while it is matched, in bytes.
    state: usize,
    /// The cost of a cached expression of this class, which counts toward [`MAX_COST`].
    cost: usize,
}

/// The classes of small regular expressions. Including the state for both directions of matching,
/// an expression of the first class takes at most 160 KiB, and one of the second at most 1 MiB.
const CLASSES: [Class; 2] = [
    Class { size: 16 << 10, state: 64 << 10, cost: 1 },
    Class { size: 256 << 10, state: MAX_STATE, cost: 6 },
];

/// Maximum total cost of the cached small regular expressions, which take at most 32 MiB.
const MAX_COST: usize = 192;

/// A cache of compiled regular expressions.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    compiled: Mutex<Compiled>,
}

#[derive(Debug, Default)]
struct Compiled {
    /// Small regular expressions with their costs.
    small: HashMap<String, (Arc<Regex>, usize)>,
    /// The total cost of the small regular expressions.
    cost: usize,
    /// The large regular expression that was used last. A loop often uses the same one again and
    /// again.
    large: Option<(String, Arc<Regex>)>,
}

impl Compiled {
    fn get(&self, key: &str) -> Option<Arc<Regex>> {
        let large = || self.large.as_ref().filter(|(known, _)| known == key);
        let small = self.small.get(key).map(|(regex, _)| regex);
        small.or_else(|| large().map(|(_, regex)| regex)).cloned()
    }

    /// Adds a small regular expression. Removes only as many others as necessary, so that a loop
    /// over slightly more expressions than the cache can hold still finds most of them there.
    fn insert(&mut self, key: String, regex: Arc<Regex>, cost: usize) {
        while self.cost + cost > MAX_COST
            && let Some(other) = self.small.keys().next().cloned()
        {
            let removed = self.small.remove(&other).map_or(0, |(_, cost)| cost);
            self.cost = self.cost.saturating_sub(removed);
        }
        self.cost += cost;
        self.small.insert(key, (regex, cost));
    }
}

impl Cache {
    /// Compiles a regular expression, or returns the cached one. If `fold` is true, the expression
    /// ignores case.
    ///
    /// # Errors
    /// If the expression is invalid. The error is the last line of the `regex` crate's message.
    pub(crate) fn regex(&self, text: &str, fold: bool) -> Result<Arc<Regex>, String> {
        let key = format!("{}{text}", if fold { "i" } else { "c" });
        let mut compiled = lock(&self.compiled);
        if let Some(regex) = compiled.get(&key) {
            return Ok(regex);
        }
        let build = |size, state| {
            RegexBuilder::new(text)
                .case_insensitive(fold)
                .dot_matches_new_line(true)
                .size_limit(size)
                .dfa_size_limit(state)
                .build()
        };
        for class in CLASSES.iter().filter(|class| text.len() < class.size) {
            if let Ok(regex) = build(class.size, class.state) {
                let regex = Arc::new(regex);
                compiled.insert(key, Arc::clone(&regex), class.cost);
                return Ok(regex);
            }
        }
        let regex = Arc::new(build(MAX_SIZE, MAX_STATE).map_err(|error| {
            error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned()
        })?);
        compiled.large = Some((key, Arc::clone(&regex)));
        Ok(regex)
    }
}

/// The part of a string that a pattern must match.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Whole,
    Prefix { longest: bool },
    LongestSuffix,
    ShortestSuffix,
    Anywhere,
}

/// Compiles a pattern to a regular expression. Returns `None` if the pattern contains a group, or
/// if the regular expression is too large.
pub(super) fn compile(
    globs: &[Glob],
    shape: Shape,
    fold: bool,
    cache: &Cache,
) -> Option<Arc<Regex>> {
    let star = if matches!(shape, Shape::Prefix { longest: false }) { ".*?" } else { ".*" };
    let mut text = String::new();
    for glob in globs {
        match glob {
            Glob::Char(c) => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            Glob::AnyChar => text.push('.'),
            Glob::Star => text.push_str(star),
            Glob::Set { negated, members } => push_set(&mut text, *negated, members),
            Glob::Group { .. } => return None,
        }
    }
    let text = match shape {
        Shape::Whole => format!("\\A(?:{text})\\z"),
        Shape::Prefix { .. } => format!("\\A(?:{text})"),
        Shape::LongestSuffix => format!("(?:{text})\\z"),
        Shape::ShortestSuffix => format!("\\A(.*)(?:{text})\\z"),
        Shape::Anywhere => text,
    };
    cache.regex(&text, fold).ok()
}

/// Appends a bracket expression, translated to the syntax of the `regex` crate.
fn push_set(text: &mut String, negated: bool, members: &[Member]) {
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

/// Translates a POSIX extended regular expression to the syntax of the `regex` crate. Quoted
/// fragments match themselves.
pub(crate) fn extended_regex(fragments: &[Fragment]) -> String {
    let chars = quoted_chars(fragments);
    let mut out = String::new();
    let mut at = 0;
    while let Some((c, quoted)) = chars.get(at).copied() {
        at += 1;
        if quoted {
            out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
            continue;
        }
        match c {
            '\\' => {
                out.push('\\');
                match chars.get(at) {
                    Some((next, _)) => {
                        if next.is_alphanumeric()
                            && !matches!(next, 'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'd' | 'D')
                        {
                            out.pop();
                        }
                        out.push(*next);
                    }
                    None => out.push('\\'),
                }
                at += 1;
            }
            '[' => {
                let mut reader = Reader::new(chars.clone(), at, false);
                match reader.set() {
                    Some(Glob::Set { negated, members }) => {
                        // In a regular expression only `^` negates a set; `!` is a plain character.
                        let bang = negated && chars.get(at).is_some_and(|(c, _)| *c == '!');
                        let members = if bang {
                            [vec![Member::Range('!', '!')], members].concat()
                        } else {
                            members
                        };
                        push_set(&mut out, negated && !bang, &members);
                        at = reader.at();
                    }
                    _ => out.push_str("\\["),
                }
            }
            '{' if !chars.get(at).is_some_and(|(c, _)| c.is_ascii_digit()) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_expressions_are_kept_and_the_last_large_one() {
        let cache = Cache::default();
        for at in 0..40 {
            cache.regex(&format!("a{at}"), false).unwrap();
            cache.regex(&format!("\\w{at}"), false).unwrap();
            cache.regex(&format!("{}{at}", "b".repeat(90_000)), false).unwrap();
            cache.regex(&format!("\\w{{10}}{at}"), false).unwrap();
        }
        let compiled = cache.compiled.lock().unwrap();
        let costs: usize = compiled.small.values().map(|(_, cost)| cost).sum();
        assert_eq!(costs, compiled.cost);
        assert!(costs <= MAX_COST && compiled.small.len() >= MAX_COST / 6);
        assert!(compiled.small.keys().all(|key| key.len() < 9 && !key.contains('{')));
        assert!(compiled.large.as_ref().is_some_and(|(key, _)| key.starts_with("c\\w{10}")));
    }

    #[test]
    fn a_loop_over_a_few_more_patterns_than_are_kept_compiles_few_of_them_again() {
        let cache = Cache::default();
        let round = || -> Vec<Arc<Regex>> {
            let all = 0..MAX_COST + 8;
            all.map(|at| cache.regex(&format!(".*a{at}b.*"), false).unwrap()).collect()
        };
        let first = round();
        let second = round();
        let same = first.iter().zip(&second).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert!(same > MAX_COST / 2, "{same}");
    }
}

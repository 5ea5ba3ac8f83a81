//! POSIX matching, which finds the longest of the leftmost matches.
//!
//! The regex engine prefers the first alternative instead. For patterns whose matches may differ,
//! the engine finds only the start of a match, and a slower engine finds the longest match there.

use std::cell::RefCell;
use std::ops::Range;

use regex_automata::meta;
use regex_automata::nfa::thompson::{self, pikevm};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use super::{Notation, Translated, translate};

/// The maximum size of a compiled pattern, in bytes.
const SIZE: usize = 64 << 20;

/// A compiled pattern.
pub(crate) struct Posix {
    engine: Engine,
    groups: usize,
}

enum Engine {
    First(meta::Regex),
    Longest(meta::Regex, Box<Longest>),
    /// An engine that supports backreferences. It prefers the first alternative.
    Backtracking(Box<fancy_regex::Regex>),
}

struct Longest {
    vm: pikevm::PikeVM,
    cache: RefCell<pikevm::Cache>,
}

/// The byte ranges of the groups of a match. Group 0 is the whole match.
#[derive(Clone, Debug)]
pub(crate) struct Groups(Vec<Option<Range<usize>>>);

impl Groups {
    /// Returns the range of the whole match.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.get(0).unwrap_or_default()
    }

    /// Returns the range of a group, or `None` if the group did not participate in the match.
    pub(crate) fn get(&self, number: usize) -> Option<Range<usize>> {
        self.0.get(number).cloned().flatten()
    }

    /// Returns the number of groups, including the whole match.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Posix {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// If the pattern is invalid or too large.
    pub(crate) fn new(pattern: &str, notation: Notation) -> Result<Posix, String> {
        Posix::from_translated(&translate(pattern, notation)?, notation)
    }

    /// Compiles a translated pattern.
    ///
    /// # Errors
    ///
    /// If the pattern is invalid or too large.
    pub(crate) fn from_translated(made: &Translated, notation: Notation) -> Result<Posix, String> {
        let groups = made.groups;
        if made.refers_back {
            let regex = fancy_regex::RegexBuilder::new(&made.text)
                .case_insensitive(notation.ignore_case)
                .multi_line(notation.lines)
                .build()
                .map_err(|error| error.to_string())?;
            return Ok(Posix { engine: Engine::Backtracking(Box::new(regex)), groups });
        }
        let syntax = syntax::Config::new()
            .utf8(false)
            .multi_line(notation.lines)
            .case_insensitive(notation.ignore_case);
        let regex = meta::Regex::builder()
            .syntax(syntax)
            .configure(meta::Config::new().utf8_empty(false).nfa_size_limit(Some(SIZE)))
            .build(&made.text)
            .map_err(|error| too_big(&error))?;
        if !made.has_choices {
            return Ok(Posix { engine: Engine::First(regex), groups });
        }
        let vm = pikevm::PikeVM::builder()
            .syntax(syntax)
            .configure(pikevm::Config::new().match_kind(MatchKind::All))
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(SIZE)))
            .build(&made.text)
            .map_err(|error| error.to_string())?;
        let cache = RefCell::new(vm.create_cache());
        Ok(Posix { engine: Engine::Longest(regex, Box::new(Longest { vm, cache })), groups })
    }

    /// Returns the number of groups in the pattern, excluding the whole match.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// Returns true if the pattern matches anywhere in the text.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        match &self.engine {
            Engine::First(regex) | Engine::Longest(regex, _) => regex.is_match(text),
            Engine::Backtracking(_) => self.find_at(text, 0).is_some(),
        }
    }

    /// Returns the first match that starts at or after `at`.
    pub(crate) fn find_at(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        match &self.engine {
            Engine::First(regex) => {
                regex.find(Input::new(text).range(at..)).map(|found| found.range())
            }
            _ => self.groups_at(text, at).map(|found| found.whole()),
        }
    }

    /// Returns the groups of the first match that starts at or after `at`.
    pub(crate) fn groups_at(&self, text: &[u8], at: usize) -> Option<Groups> {
        match &self.engine {
            Engine::First(regex) => {
                let mut captures = regex.create_captures();
                regex.search_captures(&Input::new(text).range(at..), &mut captures);
                groups(&captures)
            }
            Engine::Longest(regex, longest) => {
                let start = regex.find(Input::new(text).range(at..))?.start();
                let input = Input::new(text).range(start..).anchored(Anchored::Yes);
                let mut captures = longest.vm.create_captures();
                longest.vm.captures(&mut longest.cache.borrow_mut(), input, &mut captures);
                groups(&captures)
            }
            Engine::Backtracking(regex) => {
                let text =
                    std::str::from_utf8(text).ok().filter(|text| text.is_char_boundary(at))?;
                let found = regex.captures_from_pos(text, at).ok().flatten()?;
                Some(Groups(found.iter().map(|group| Some(group?.range())).collect()))
            }
        }
    }

    /// Calls `each` with each match in turn until `each` returns false. Skips an empty match that
    /// directly follows the previous match.
    pub(crate) fn each(&self, text: &[u8], mut each: impl FnMut(&Groups) -> bool) {
        let mut at = 0;
        let mut end = None;
        while at <= text.len() {
            let Some(found) = self.groups_at(text, at) else { return };
            let whole = found.whole();
            if !(whole.is_empty() && end == Some(whole.start)) {
                if !each(&found) {
                    return;
                }
                end = Some(whole.end);
            }
            at = if whole.is_empty() { next_letter(text, whole.end) } else { whole.end };
        }
    }
}

fn groups(captures: &Captures) -> Option<Groups> {
    if !captures.is_match() {
        return None;
    }
    let ranges = captures.iter().map(|group| group.map(|span| span.range()));
    Some(Groups(ranges.collect()))
}

/// Returns the byte offset of the character after the one at `at`.
fn next_letter(text: &[u8], at: usize) -> usize {
    let rest = text.get(at + 1..).unwrap_or_default();
    at + 1 + rest.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count()
}

fn too_big(error: &meta::BuildError) -> String {
    match error.size_limit() {
        Some(_) => "Regular expression too big".to_owned(),
        None => match error.syntax_error() {
            Some(error) => error.to_string(),
            None => error.to_string(),
        },
    }
}

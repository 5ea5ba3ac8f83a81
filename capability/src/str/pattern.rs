//! Regular expressions: `str.match`, `str.group`, `str.find_all`, `str.replace_re`. For every
//! pattern, the time for one match is linear in the length of the text. The time for all matches
//! can be quadratic, because the search for each match may read the text to its end.
//!
//! Searches use a lazy DFA. If its cache is cleared too often, the DFA gives up. A slower engine
//! then takes over if the pattern and the text are small enough; otherwise the call fails. Between
//! matches, a search yields to other runs. It ends if the run's time or processor time is used up.
//!
//! Patterns, their caches, the text and the result are charged to the run's account.

use std::time::{Duration, Instant};

use regex_automata::hybrid::{dfa, regex as lazy};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures, pikevm};
use regex_automata::util::captures::Captures;
use regex_automata::util::iter::Searcher;
use regex_automata::util::primitives::PatternID;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, Match, MatchError, MatchKind};
use wattle_rt::{Account, Code, Failure, MemoryCharge, Run, quote};

use crate::arr::{Arrays, Handle};
use crate::{MAX_TEXT, QUOTED, too_large};

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN: usize = 4_096;
/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// Maximum nesting depth of a pattern's groups.
const MAX_NESTING: u32 = 100;
/// Maximum number of slots that the engine for capture groups allocates for all states together.
const MAX_SLOTS: usize = 1 << 20;
/// Maximum product of the number of states and the number of bytes in one search by the slower
/// engine. A search of this size takes about a second.
const MAX_STEPS: usize = 100_000_000;
/// Maximum number of compiled patterns that a run caches.
const MAX_CACHED: usize = 4;
/// Time after which a call yields to other runs.
const TIME_SLICE: Duration = Duration::from_millis(5);

/// A compiled pattern with its search caches. Its memory is charged to the run's account.
struct Pattern {
    text: String,
    search: lazy::Regex,
    search_cache: lazy::Cache,
    groups: pikevm::PikeVM,
    groups_cache: pikevm::Cache,
    /// The size of the compiled pattern without its caches, in bytes.
    size: usize,
    held: MemoryCharge,
}

/// The compiled patterns of a run, ordered from the least to the most recently used.
#[derive(Default)]
struct Patterns(Vec<Pattern>);

fn invalid(pattern: &str, why: &str) -> Failure {
    Failure::new(Code::EPARSE, format!("invalid pattern {}: {why}", quote(pattern, QUOTED)))
}

fn gave_up() -> Failure {
    let message = "the pattern is too expensive on this text: make it more specific, or apply it \
                   to smaller pieces (`str.lines`)";
    Failure::new(Code::ETRFM, message)
}

impl Pattern {
    fn compile(text: &str, account: &Account) -> Result<Pattern, Failure> {
        if text.len() > MAX_PATTERN {
            return Err(invalid(
                text,
                &format!("it has {} bytes, more than {MAX_PATTERN}", text.len()),
            ));
        }
        let hir = syntax::parse_with(text, &syntax::Config::new().nest_limit(MAX_NESTING))
            .map_err(|error| {
                // The library prints the pattern with a marker below it. The last line contains the
                // reason.
                let words = error.to_string();
                invalid(
                    text,
                    words.lines().last().unwrap_or_default().trim_start_matches("error: "),
                )
            })?;
        let limit = thompson::Config::new().nfa_size_limit(Some(MAX_COMPILED));
        let large = |_| {
            invalid(
                text,
                "it takes more than 1 MiB compiled; repeat less, or use `[0-9A-Za-z]` for `\\w`",
            )
        };
        let nfa = |config| {
            thompson::Compiler::new().configure(config).build_from_hir(&hir).map_err(large)
        };
        let forward = nfa(limit.clone())?;
        let backward = nfa(limit.reverse(true).which_captures(WhichCaptures::None))?;
        if forward.states().len().saturating_mul(forward.group_info().slot_len()) > MAX_SLOTS {
            return Err(invalid(
                text,
                "it has too many groups for its size; use `(?:…)` if you do not need the group",
            ));
        }
        let size = forward.memory_usage() + backward.memory_usage();
        let dfa = |nfa: NFA, kind| {
            let config = dfa::Config::new()
                .match_kind(kind)
                .cache_capacity(1 << 20)
                .skip_cache_capacity_check(true)
                .minimum_cache_clear_count(Some(10))
                .minimum_bytes_per_state(Some(10))
                .unicode_word_boundary(true);
            dfa::Builder::new()
                .configure(config)
                .build_from_nfa(nfa)
                .map_err(|e| invalid(text, &e.to_string()))
        };
        let forward_dfa = dfa(forward.clone(), MatchKind::LeftmostFirst)?;
        let search =
            lazy::Builder::new().build_from_dfas(forward_dfa, dfa(backward, MatchKind::All)?);
        let groups =
            pikevm::PikeVM::new_from_nfa(forward).map_err(|e| invalid(text, &e.to_string()))?;
        let mut pattern = Pattern {
            text: text.to_owned(),
            search_cache: search.create_cache(),
            groups_cache: groups.create_cache(),
            search,
            groups,
            size,
            held: account.nothing(),
        };
        pattern.charge()?;
        Ok(pattern)
    }

    /// Charges the run's account for the growth of the caches since the last call.
    fn charge(&mut self) -> Result<(), Failure> {
        let caches = self.search_cache.memory_usage() + self.groups_cache.memory_usage();
        self.held.grow((self.size + caches).saturating_sub(self.held.used()))
    }

    /// Returns true if the slower engine may search `bytes` bytes.
    fn affords(&self, bytes: usize) -> bool {
        self.groups.get_nfa().states().len().saturating_mul(bytes) <= MAX_STEPS
    }

    fn next(&mut self, input: &Input<'_>) -> Result<Option<Match>, MatchError> {
        self.search.try_search(&mut self.search_cache, input).or_else(|error| {
            if !self.affords(input.get_span().len()) {
                return Err(error);
            }
            let mut slots = [None, None];
            let found = self.groups.search_slots(&mut self.groups_cache, input, &mut slots);
            let [start, end] = slots.map(|slot| slot.map(|at| at.get()));
            Ok(found.and_then(|id| Some(Match::new(id, start?..end?))))
        })
    }

    /// Returns the capture groups of a match.
    fn groups_of(&mut self, s: &str, found: Match) -> Result<Captures, Failure> {
        if !self.affords(found.len()) {
            return Err(gave_up());
        }
        let mut captures = self.groups.create_captures();
        let input = Input::new(s).span(found.range()).anchored(Anchored::Yes);
        self.groups.search(&mut self.groups_cache, &input, &mut captures);
        self.charge()?;
        Ok(captures)
    }

    /// Returns the text of one group of a match. Returns an empty string if the group did not
    /// participate in the match.
    fn group_text<'t>(
        &mut self,
        s: &'t str,
        found: Match,
        group: usize,
    ) -> Result<&'t str, Failure> {
        let span = match group {
            0 => Some(found.span()),
            group => self.groups_of(s, found)?.get_group(group),
        };
        Ok(span.and_then(|span| s.get(span.range())).unwrap_or_default())
    }

    fn group_count(&self) -> usize {
        self.groups.get_nfa().group_info().group_len(PatternID::ZERO)
    }
}

/// The state of a search within one call.
struct Search<'t> {
    pattern: Pattern,
    searcher: Searcher<'t>,
    /// The start of the current time slice.
    slice_start: Instant,
    /// The charge for the memory of the text.
    _held: MemoryCharge,
}

impl<'t> Search<'t> {
    /// Starts a search. Takes the compiled pattern out of the run's cache, or compiles it if the
    /// cache does not contain it.
    fn begin(run: &mut Run, s: &'t str, pattern: &str) -> Result<Search<'t>, Failure> {
        let account = run.account().clone();
        let held = account.hold(s.len())?;
        let Patterns(cache) = run.state();
        let at = cache.iter().position(|known| known.text == pattern);
        let pattern = match at {
            Some(at) => cache.remove(at),
            None => Pattern::compile(pattern, &account)?,
        };
        Ok(Search {
            pattern,
            searcher: Searcher::new(Input::new(s)),
            slice_start: Instant::now(),
            _held: held,
        })
    }

    /// Returns the next match, or `None` if there are no more matches. Yields to other runs first
    /// if the time slice has expired.
    async fn next(&mut self, run: &Run) -> Result<Option<Match>, Failure> {
        if self.slice_start.elapsed() > TIME_SLICE {
            check_time(run)?;
            tokio::task::yield_now().await;
            self.slice_start = Instant::now();
        }
        let found =
            self.searcher.try_advance(|input| self.pattern.next(input)).map_err(|_| gave_up())?;
        self.pattern.charge()?;
        Ok(found)
    }

    /// Ends the search and puts the pattern back into the run's cache.
    fn end(self, run: &mut Run) {
        let Patterns(cache) = run.state();
        if cache.len() >= MAX_CACHED {
            cache.remove(0);
        }
        cache.push(self.pattern);
    }
}

/// Checks that the run has time and processor time left.
fn check_time(run: &Run) -> Result<(), Failure> {
    if Instant::now() >= run.deadline() {
        let why = "the run's time ended before all matches were found";
        return Err(Failure::new(Code::ETIME, why));
    }
    if run.account().cpu_left().is_zero() {
        Err(Failure::new(Code::ETIME, run.account().out_of_cpu()))
    } else {
        Ok(())
    }
}

pub(super) async fn first(run: &mut Run, s: String, pattern: String) -> Result<Handle, Failure> {
    let mut search = Search::begin(run, &s, &pattern)?;
    let groups = match search.next(run).await? {
        None => Vec::new(),
        Some(found) => {
            let captures = search.pattern.groups_of(&s, found)?;
            let text =
                |n| captures.get_group(n).and_then(|span| s.get(span.range())).unwrap_or_default();
            (0..search.pattern.group_count()).map(text).collect()
        }
    };
    search.end(run);
    Arrays::make(run, groups)
}

pub(super) async fn first_group(
    run: &mut Run,
    s: String,
    pattern: String,
    n: i32,
) -> Result<String, Failure> {
    let mut search = Search::begin(run, &s, &pattern)?;
    let group = group_by_number(n, &search.pattern)?;
    let text = match search.next(run).await? {
        Some(found) => search.pattern.group_text(&s, found, group)?.to_owned(),
        None => String::new(),
    };
    search.end(run);
    Ok(text)
}

pub(super) async fn all(run: &mut Run, s: String, pattern: String) -> Result<Handle, Failure> {
    all_of_group(run, s, pattern, None).await
}

pub(super) async fn all_of_group(
    run: &mut Run,
    s: String,
    pattern: String,
    group: Option<i32>,
) -> Result<Handle, Failure> {
    let mut search = Search::begin(run, &s, &pattern)?;
    let group = group_by_number(group.unwrap_or(0), &search.pattern)?;
    let array = Arrays::make(run, std::iter::empty::<&str>())?;
    while let Some(found) = search.next(run).await? {
        let text = search.pattern.group_text(&s, found, group)?;
        run.charge(text.len())?;
        Arrays::of(run).get(array)?.push(text.as_bytes().to_vec());
    }
    search.end(run);
    Ok(array)
}

pub(super) async fn replace(
    run: &mut Run,
    s: String,
    pattern: String,
    with: String,
) -> Result<String, Failure> {
    let mut search = Search::begin(run, &s, &pattern)?;
    let parts = template(&with, &search.pattern)?;
    let grouped = parts.iter().any(|part| matches!(part, Part::Group(n) if *n > 0));
    let mut text = String::new();
    let mut held = run.account().nothing();
    let mut end = 0;
    while let Some(found) = search.next(run).await? {
        text.push_str(s.get(end..found.start()).unwrap_or_default());
        let captures = if grouped { Some(search.pattern.groups_of(&s, found)?) } else { None };
        for part in &parts {
            text.push_str(match part {
                Part::Text(words) => words,
                Part::Group(n) => {
                    let span = captures
                        .as_ref()
                        .map_or(Some(found.span()), |captures| captures.get_group(*n));
                    span.and_then(|span| s.get(span.range())).unwrap_or_default()
                }
            });
        }
        if text.len() > MAX_TEXT {
            return Err(too_large());
        }
        held.grow(text.len() - held.used())?;
        end = found.end();
    }
    search.end(run);
    text.push_str(s.get(end..).unwrap_or_default());
    Ok(text)
}

/// A part of a replacement string: literal text, or a reference to a capture group.
enum Part<'w> {
    Text(&'w str),
    Group(usize),
}

/// Parses a replacement string, which may contain `$1`, `$name`, `${name}` and `$$`. A dollar sign
/// before anything else is literal.
fn template<'w>(with: &'w str, pattern: &Pattern) -> Result<Vec<Part<'w>>, Failure> {
    if let Some(n) = backslashed_group(with, pattern) {
        let message = format!("`\\{n}` is not a group in a replacement; write ${n}");
        return Err(Failure::new(Code::EPARSE, message));
    }
    let mut parts = Vec::new();
    let mut rest = with;
    while let Some((before, behind)) = rest.split_once('$') {
        parts.push(Part::Text(before));
        let end =
            behind.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(behind.len());
        let (name, tail) = if let Some(tail) = behind.strip_prefix('$') {
            parts.push(Part::Text("$"));
            rest = tail;
            continue;
        } else if let Some((name, tail)) =
            behind.strip_prefix('{').and_then(|inside| inside.split_once('}'))
        {
            (name, tail)
        } else if end > 0 {
            behind.split_at_checked(end).unwrap_or((behind, ""))
        } else {
            parts.push(Part::Text("$"));
            rest = behind;
            continue;
        };
        parts.push(Part::Group(group(name, pattern)?));
        rest = tail;
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// Returns the first digit that follows a backslash in a replacement string and is the number of a
/// group in the pattern. Other languages refer to groups in this way.
fn backslashed_group(with: &str, pattern: &Pattern) -> Option<char> {
    let groups = u32::try_from(pattern.group_count()).unwrap_or(u32::MAX);
    let is_group = |c: &char| c.to_digit(10).is_some_and(|n| n > 0 && n < groups);
    with.match_indices('\\').find_map(|(at, _)| {
        with.get(at + 1..).and_then(|rest| rest.chars().next()).filter(is_group)
    })
}

/// Checks that the pattern has a group with this number. Group 0 is the whole match.
fn group_by_number(n: i32, pattern: &Pattern) -> Result<usize, Failure> {
    let count = pattern.group_count();
    usize::try_from(n).ok().filter(|n| *n < count).ok_or_else(|| {
        let last = count.saturating_sub(1);
        let message = format!(
            "the pattern has no group {n}; its last group is {last}, and 0 is the whole match"
        );
        Failure::new(Code::EPARSE, message)
    })
}

/// Returns the index of a group, given its number or name.
fn group(name: &str, pattern: &Pattern) -> Result<usize, Failure> {
    let groups = pattern.group_count();
    let by_name = || pattern.groups.get_nfa().group_info().to_index(PatternID::ZERO, name);
    let found = name.parse().ok().filter(|n| *n < groups).or_else(by_name);
    found.ok_or_else(|| {
        let number: String = name.chars().take_while(char::is_ascii_digit).collect();
        let hint = if number.is_empty() || number == name {
            "write $$ for a literal dollar".to_owned()
        } else {
            format!("write ${{{number}}} to separate the number from what follows")
        };
        let last = groups.saturating_sub(1);
        let message =
            format!("the pattern has no group {name:?}; its last group is {last}; {hint}");
        Failure::new(Code::EPARSE, message)
    })
}

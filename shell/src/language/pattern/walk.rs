//! Matching of patterns that contain groups. A group can be negated, which a regular expression
//! cannot express.

use std::collections::BTreeSet;

use super::compile::Cache;
use super::glob::Glob;

/// Maximum total number of steps of all matches that share a [`Matching`].
const MAX_STEPS: u64 = 5_000_000;

/// The error returned if matches exceed their maximum number of steps, or if the result of a
/// replacement is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooCostly;

/// Result of a match.
pub(crate) type MatchResult<T> = Result<T, TooCostly>;

/// The state that all matches of one operation share: the cache, and the total number of steps.
pub(crate) struct Matching<'a> {
    pub(super) cache: &'a Cache,
    steps: u64,
}

impl<'a> Matching<'a> {
    pub(crate) fn new(cache: &'a Cache) -> Matching<'a> {
        Matching { cache, steps: 0 }
    }

    /// Returns the number of steps taken.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts steps. Fails if their total exceeds [`MAX_STEPS`].
    pub(super) fn spend(&mut self, steps: usize) -> MatchResult<()> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > MAX_STEPS { Err(TooCostly) } else { Ok(()) }
    }
}

/// A matcher for patterns with groups. For each part of a pattern, it tracks the positions that a
/// match can reach in the string. A position is a byte index.
pub(super) struct Walk<'a, 'b> {
    text: &'a str,
    fold: bool,
    matching: &'a mut Matching<'b>,
}

impl<'a, 'b> Walk<'a, 'b> {
    pub(super) fn new(text: &'a str, fold: bool, matching: &'a mut Matching<'b>) -> Walk<'a, 'b> {
        Walk { text, fold, matching }
    }

    /// Returns all positions, in ascending order, at which a match starting at `start` can end.
    pub(super) fn ends(&mut self, globs: &[Glob], start: usize) -> MatchResult<Vec<usize>> {
        self.follow(globs, vec![start])
    }

    /// Returns all positions at which a match of `globs` starting at one of `positions` can end.
    fn follow(&mut self, globs: &[Glob], mut positions: Vec<usize>) -> MatchResult<Vec<usize>> {
        for glob in globs {
            self.matching.spend((positions.len() + 1).saturating_mul(glob.cost()))?;
            positions = match glob {
                Glob::Star => match positions.first() {
                    Some(first) => {
                        self.matching.spend(self.text.len().saturating_sub(*first))?;
                        positions_from(self.text, *first).collect()
                    }
                    None => Vec::new(),
                },
                Glob::Group { kind, alternatives } => self.group(*kind, alternatives, positions)?,
                one => positions
                    .into_iter()
                    .filter_map(|position| self.after_char(one, position))
                    .collect(),
            };
            self.matching.spend(positions.len())?;
            if positions.is_empty() {
                break;
            }
        }
        Ok(positions)
    }

    /// Returns the position after the character at `position` if `glob` matches this character.
    fn after_char(&self, glob: &Glob, position: usize) -> Option<usize> {
        let c = self.text.get(position..)?.chars().next()?;
        glob.accepts(c, self.fold).then(|| position + c.len_utf8())
    }

    /// Returns all positions at which a match of a group starting at one of `positions` can end.
    fn group(
        &mut self,
        kind: char,
        alternatives: &[Vec<Glob>],
        positions: Vec<usize>,
    ) -> MatchResult<Vec<usize>> {
        match kind {
            '!' => self.unmatched(alternatives, positions),
            '@' => self.once(alternatives, positions),
            '?' => {
                let once = self.once(alternatives, positions.clone())?;
                Ok(ordered([positions, once].concat()))
            }
            '*' => self.repeated(alternatives, positions.clone(), positions),
            _ => {
                let once = self.once(alternatives, positions)?;
                self.repeated(alternatives, once.clone(), once)
            }
        }
    }

    /// Returns the end positions of all substrings that start at one of `positions` and match none
    /// of the alternatives.
    fn unmatched(
        &mut self,
        alternatives: &[Vec<Glob>],
        positions: Vec<usize>,
    ) -> MatchResult<Vec<usize>> {
        let first = positions.first().copied().unwrap_or_default();
        let mut reached = vec![false; self.text.len().saturating_sub(first) + 1];
        for position in positions {
            let taken = self.once(alternatives, vec![position])?;
            self.matching.spend(self.text.len().saturating_sub(position))?;
            for end in positions_from(self.text, position) {
                if taken.binary_search(&end).is_err()
                    && let Some(reached) = reached.get_mut(end - first)
                {
                    *reached = true;
                }
            }
        }
        Ok((first..).zip(reached).filter_map(|(end, reached)| reached.then_some(end)).collect())
    }

    /// Returns the positions in `all`, and all positions that consecutive matches of the
    /// alternatives can reach from a position in `new`.
    fn repeated(
        &mut self,
        alternatives: &[Vec<Glob>],
        all: Vec<usize>,
        mut new: Vec<usize>,
    ) -> MatchResult<Vec<usize>> {
        let mut all: BTreeSet<usize> = all.into_iter().collect();
        while !new.is_empty() {
            let next = self.once(alternatives, new)?;
            new = next.into_iter().filter(|position| all.insert(*position)).collect();
        }
        Ok(all.into_iter().collect())
    }

    /// Returns all positions at which a match of one alternative starting at one of `positions` can
    /// end.
    fn once(
        &mut self,
        alternatives: &[Vec<Glob>],
        positions: Vec<usize>,
    ) -> MatchResult<Vec<usize>> {
        let mut all = Vec::new();
        for alternative in alternatives {
            self.matching.spend(positions.len())?;
            all.extend(self.follow(alternative, positions.clone())?);
        }
        Ok(ordered(all))
    }
}

/// Returns the position `first` and all later ones, up to the end of the string.
pub(super) fn positions_from(text: &str, first: usize) -> impl DoubleEndedIterator<Item = usize> {
    (first..=text.len()).filter(move |position| text.is_char_boundary(*position))
}

/// Sorts positions and removes duplicates.
fn ordered(mut positions: Vec<usize>) -> Vec<usize> {
    // The stable sort is fast on lists that were joined from sorted ones.
    positions.sort();
    positions.dedup();
    positions
}

//! Matching of patterns that contain groups. A group can be negated, which a regular expression
//! cannot express.

use super::glob::Glob;

/// Maximum number of steps in one match.
const MAX_STEPS: u64 = 5_000_000;

/// The error returned if a match exceeds its maximum number of steps, or if the result of a
/// replacement is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooCostly;

/// Result of a match.
pub(crate) type MatchResult<T> = Result<T, TooCostly>;

/// A matcher for patterns with groups. It tracks the set of positions that each part of a pattern
/// reaches in the string.
pub(super) struct Walk {
    text: Vec<char>,
    fold: bool,
    steps: u64,
}

impl Walk {
    pub(super) fn new(text: &str, fold: bool) -> Walk {
        Walk { text: text.chars().collect(), fold, steps: 0 }
    }

    /// Returns the number of characters in the string.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Converts an index in characters to an index in bytes.
    pub(super) fn byte_index(&self, position: usize) -> usize {
        self.text.iter().take(position).map(|c| c.len_utf8()).sum()
    }

    /// Returns all positions where a match that begins at `start` can end, in ascending order.
    pub(super) fn ends(&mut self, globs: &[Glob], start: usize) -> MatchResult<Vec<usize>> {
        self.follow(globs, vec![start])
    }

    /// Returns the positions after matching `globs` from any of the given positions.
    fn follow(&mut self, globs: &[Glob], mut positions: Vec<usize>) -> MatchResult<Vec<usize>> {
        for glob in globs {
            self.steps += positions.len() as u64 + 1;
            if self.steps > MAX_STEPS {
                return Err(TooCostly);
            }
            positions = match glob {
                Glob::Star => positions
                    .first()
                    .map(|first| (*first..=self.text.len()).collect())
                    .unwrap_or_default(),
                Glob::Group { kind, alternatives } => self.group(*kind, alternatives, positions)?,
                one => positions
                    .into_iter()
                    .filter(|position| {
                        self.text.get(*position).is_some_and(|c| one.accepts(*c, self.fold))
                    })
                    .map(|position| position + 1)
                    .collect(),
            };
            self.steps += positions.len() as u64;
            if positions.is_empty() {
                break;
            }
        }
        Ok(positions)
    }

    /// Returns the positions after matching a group from any of the given positions.
    fn group(
        &mut self,
        kind: char,
        alternatives: &[Vec<Glob>],
        positions: Vec<usize>,
    ) -> MatchResult<Vec<usize>> {
        if kind == '!' {
            let mut all = Vec::new();
            for position in positions {
                let taken = self.once(alternatives, vec![position])?;
                self.steps += (self.text.len() - position) as u64;
                all.extend((position..=self.text.len()).filter(|end| !taken.contains(end)));
            }
            return Ok(ordered(all));
        }
        let once = self.once(alternatives, positions.clone())?;
        Ok(match kind {
            '@' => once,
            '?' => ordered([positions, once].concat()),
            _ => {
                let mut all = if kind == '*' {
                    ordered([positions, once.clone()].concat())
                } else {
                    once.clone()
                };
                let mut new = once;
                while !new.is_empty() {
                    let next = self.once(alternatives, new)?;
                    new = next
                        .into_iter()
                        .filter(|position| all.binary_search(position).is_err())
                        .collect();
                    all = ordered([all, new.clone()].concat());
                }
                all
            }
        })
    }

    /// Returns the positions after matching one of the alternatives once.
    fn once(
        &mut self,
        alternatives: &[Vec<Glob>],
        positions: Vec<usize>,
    ) -> MatchResult<Vec<usize>> {
        let mut all = Vec::new();
        for alternative in alternatives {
            all.extend(self.follow(alternative, positions.clone())?);
        }
        Ok(ordered(all))
    }
}

/// Sorts positions and removes duplicates.
fn ordered(mut positions: Vec<usize>) -> Vec<usize> {
    positions.sort_unstable();
    positions.dedup();
    positions
}

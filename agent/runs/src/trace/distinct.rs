//! Counts distinct values in limited memory.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};

/// A counter of distinct values, such as the ids of runs. The count is exact for the first
/// 1,000,000 values. Any other value is counted each time it follows a different value, so the
/// count stays exact as long as equal values are adjacent.
pub(super) struct DistinctCounter {
    hashes: RandomState,
    /// Hashes of the first values.
    known: HashSet<u64>,
    /// Maximum number of hashes in `known`.
    max: usize,
    last: Option<u64>,
    /// Number of values that were counted but are not in `known`.
    others: usize,
}

impl Default for DistinctCounter {
    fn default() -> Self {
        DistinctCounter {
            hashes: RandomState::new(),
            known: HashSet::new(),
            max: 1_000_000,
            last: None,
            others: 0,
        }
    }
}

impl DistinctCounter {
    /// Counts a value unless it is known to have been counted already. Returns true if this call
    /// counted the value.
    pub(super) fn add(&mut self, value: impl Hash) -> bool {
        let hash = self.hashes.hash_one(value);
        if self.last.replace(hash) == Some(hash) || self.known.contains(&hash) {
            return false;
        }
        if self.known.len() < self.max {
            self.known.insert(hash);
        } else {
            self.others += 1;
        }
        true
    }

    /// Returns the number of counted values.
    pub(super) fn count(&self) -> usize {
        self.known.len() + self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_maximum_are_counted_without_being_kept() {
        let mut counter = DistinctCounter { max: 2, ..DistinctCounter::default() };
        let added = ["a", "a", "b", "a", "c", "c", "b", "d", "d"].map(|value| counter.add(value));
        assert_eq!(added, [true, false, true, false, true, false, false, true, false]);
        assert_eq!((counter.count(), counter.known.len()), (4, 2));
    }
}

//! The static data that a program may overwrite.

use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum number of distinct ranges. A program that writes to more ranges is assumed to write
/// anywhere.
const MAX_RANGES: usize = 1_000;
/// Maximum width of a single write, in bytes.
const MAX_WIDTH: u64 = 8;

/// The memory that a program may write to, besides memory that the host allocated for it.
#[derive(Default)]
pub(super) struct Writes {
    /// The start and the end of each written range. A range has at most [`MAX_WIDTH`] bytes.
    ranges: BTreeSet<(u64, u64)>,
    anywhere: bool,
}

impl Writes {
    /// Adds every address.
    pub(super) fn add_everything(&mut self) {
        self.anywhere = true;
    }

    /// Adds the `width` bytes that start at an address.
    pub(super) fn add(&mut self, from: u64, width: u64) {
        let range = (from, from.saturating_add(width));
        if self.ranges.contains(&range) {
            return;
        }
        if width > MAX_WIDTH || self.ranges.len() == MAX_RANGES {
            self.anywhere = true;
        } else {
            self.ranges.insert(range);
        }
    }

    /// Returns true if the program may write to any address.
    pub(super) fn is_anywhere(&self) -> bool {
        self.anywhere
    }

    /// Returns true if the program may overwrite a part of the range.
    pub(super) fn overlap(&self, range: &Range<u64>) -> bool {
        let from = (range.start.saturating_sub(MAX_WIDTH), 0);
        self.anywhere || self.ranges.range(from..(range.end, 0)).any(|(_, end)| *end > range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_overlaps_every_range_that_it_touches() {
        let mut writes = Writes::default();
        writes.add(100, 8);
        for (range, expected) in [
            (100..101, true),
            (90..101, true),
            (107..200, true),
            (108..200, false),
            (0..100, false),
        ] {
            assert_eq!(writes.overlap(&range), expected, "{range:?}");
        }
        writes.add(95, 4);
        assert!(writes.overlap(&(96..99)) && !writes.overlap(&(99..100)));
    }

    #[test]
    fn too_many_ranges_are_everywhere() {
        let mut writes = Writes::default();
        for at in 0..=MAX_RANGES as u64 {
            assert!(!writes.is_anywhere());
            writes.add(at * 16, 4);
        }
        assert!(writes.is_anywhere() && writes.overlap(&(1 << 40..(1 << 40) + 1)));
    }
}

//! The versions of the base files that the run has read.

use std::collections::HashMap;

use crate::path::RunPath;
use crate::stamp::{FileStamp, Stamp};

/// Maximum number of files in [`Reads::newer`]. When that map is full, it replaces
/// [`Reads::older`].
const GENERATION: usize = 4096;

/// The versions of the last few thousand files that the run read from the base. If the run writes a
/// file after reading it, the write depends on the version that was read.
#[derive(Debug, Default)]
pub(super) struct Reads {
    newer: HashMap<RunPath, FileStamp>,
    older: HashMap<RunPath, FileStamp>,
}

impl Reads {
    pub(super) fn record(&mut self, path: &RunPath, stamp: FileStamp) {
        if self.newer.len() >= GENERATION {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(path.clone(), stamp);
    }

    pub(super) fn get(&self, path: &RunPath) -> Option<Stamp> {
        self.newer.get(path).or_else(|| self.older.get(path)).cloned().map(Stamp::File)
    }

    pub(super) fn clear(&mut self) {
        *self = Reads::default();
    }
}

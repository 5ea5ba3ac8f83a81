//! Fusion of ranked lists.

use std::collections::HashMap;
use std::hash::Hash;

/// Maximum number of items in a ranked list before it is fused with another list.
pub const POOL: usize = 60;

/// The number that reciprocal rank fusion adds to each rank. 60 is the usual value.
const OFFSET: f64 = 60.0;

/// The identifier of a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PassageId {
    /// If true, the passage is in the database of the run's overlay.
    pub(super) own: bool,
    pub(super) id: i64,
}

/// Fuses two ranked lists by reciprocal rank. Returns the items with their new scores, best first.
pub fn fuse<Id: Copy + Ord + Hash>(one: &[(Id, f64)], other: &[(Id, f64)]) -> Vec<(Id, f64)> {
    let mut scores: HashMap<Id, f64> = HashMap::new();
    for list in [one, other] {
        for (rank, (id, _)) in (1_u32..).zip(list) {
            *scores.entry(*id).or_default() += 1.0 / (OFFSET + f64::from(rank));
        }
    }
    let mut fused: Vec<(Id, f64)> = scores.into_iter().collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused
}

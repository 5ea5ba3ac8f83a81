//! What the programs of one run used of the model.

use std::sync::{Arc, Mutex, PoisonError};

use wattle_machine::Usage;

/// Counts tokens until they are taken into the account of the run. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<Usage>>);

impl Meter {
    /// Adds what a request took.
    pub fn add(&self, usage: Usage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += usage;
    }

    /// Gives what was counted, and begins anew.
    #[must_use]
    pub fn take(&self) -> Usage {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! Model usage of one run's programs.

use std::sync::{Arc, Mutex, PoisonError};

use wattle_machine::Usage;

/// A counter of model usage that has not yet been charged to the run. Clones share one counter.
#[derive(Clone, Debug, Default)]
pub struct UsageMeter(Arc<Mutex<Usage>>);

impl UsageMeter {
    /// Adds the usage of one request.
    pub fn add(&self, usage: Usage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += usage;
    }

    /// Returns the counted usage.
    #[must_use]
    pub fn pending(&self) -> Usage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the counted usage and resets the counter.
    #[must_use]
    pub fn take(&self) -> Usage {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

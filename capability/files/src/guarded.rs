//! The run's files as one function may see them.

use std::fmt;
use std::sync::{Arc, MutexGuard};

use wattle_lang::Target;

use super::Files;
use super::error::{FilesError, Intent};
use super::view::{Last, Store};

/// Decides about a path that links were followed on, from the workdir's top: how it is touched, and why it may not be.
pub type PathGuard = Arc<dyn Fn(Target, &str) -> Result<(), String> + Send + Sync>;

/// How many times a path is resolved for one operation.
const ATTEMPTS: usize = 8;

/// A guard, where there is one.
#[derive(Clone, Default)]
pub(super) struct Guarded(Option<PathGuard>);

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Guarded" } else { "Open" })
    }
}

impl Files {
    /// The same files, where each operation asks `guard` about the paths that it touches: both the entry itself and what it leads to,
    /// where it is a link.
    #[must_use]
    pub fn guarded(&self, guard: PathGuard) -> Files {
        Files { store: Arc::clone(&self.store), guard: Guarded(Some(guard)) }
    }

    /// Carries out an operation on a path. Where a link took the place of a folder or file after the path had been resolved and
    /// admitted, that is done again, a bounded number of times.
    pub(super) fn on<T>(
        &self,
        path: &str,
        target: Target,
        mut work: impl FnMut(&mut Store) -> Result<T, FilesError>,
    ) -> Result<T, FilesError> {
        for _ in 0..ATTEMPTS {
            match self.enter(path, target).and_then(|mut store| work(&mut store)) {
                Err(error) if error.is_raced() => {}
                done => return done,
            }
        }
        Err(FilesError::restless(path))
    }

    /// Begins an operation on a path.
    fn enter(&self, path: &str, target: Target) -> Result<MutexGuard<'_, Store>, FilesError> {
        let mut store = self.lock();
        store.refresh();
        if let Guarded(Some(guard)) = &self.guard {
            let intent = if target == Target::Read { Intent::Read } else { Intent::Write };
            let entry = store.resolve(path, Last::Keep, intent)?;
            let leads = store.resolve(path, Last::Follow, intent)?;
            for path in [&entry, &leads] {
                guard(target, path.as_str()).map_err(|why| FilesError::guarded(intent, &why))?;
            }
        }
        Ok(store)
    }
}

//! The `par` capability's port on the catalog.

use std::sync::Arc;

use wattle_capability::Answer;
use wattle_capability::par;
use wattle_catalog::Catalog;
use wattle_rt::{Code, Failure, Grants, Nested, Outcome, RunError, Runtime};

use crate::act::unknown;
use crate::wiring::denied;

/// The programs of a catalog, for programs. It holds no grants: a program gets those of the one that starts it.
pub struct Programs {
    runtime: Runtime,
    catalog: Catalog,
}

impl Programs {
    /// Lets programs run those of the catalog.
    #[must_use]
    pub fn new(runtime: Runtime, catalog: Catalog) -> Self {
        Programs { runtime, catalog }
    }
}

impl par::Programs for Programs {
    fn run(&self, program: String, args: Vec<String>, grants: Arc<Grants>, place: Nested) -> Answer<'_, Outcome> {
        Box::pin(async move {
            let told = |code, reason: String| Failure::new(code, reason);
            let entry =
                self.catalog.get(&program).ok_or_else(|| told(Code::ENOENT, unknown(&self.catalog, &program)))?;
            let args = entry
                .arguments(&args)
                .map_err(|error| told(Code::EPARSE, format!("{error}; hint: {}", error.hint())))?;
            let prepared = self.runtime.prepare(entry.source()).await.map_err(|diagnostic| {
                told(Code::EPARSE, format!("the program `{program}` cannot be compiled: {}", diagnostic.message))
            })?;
            let time = entry.meta().timeout.unwrap_or(self.runtime.limits().time);
            self.runtime.run_nested(&prepared, &grants, args, time, place).await.map_err(|error| match error {
                RunError::Denied(missing) => told(Code::EACCESS, denied(&missing)),
                RunError::Refused(why) => told(Code::EACCESS, format!("`{program}` was denied before it ran: {why}")),
                // The run that asked meets the same at its next step, where it can be ended.
                RunError::Engine(error) => told(Code::EREMOTE, error.to_string()),
            })
        })
    }

    fn is_exclusive(&self, program: &str) -> bool {
        self.catalog.get(program).is_some_and(|entry| entry.meta().exclusive)
    }
}

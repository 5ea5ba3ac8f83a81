//! The ports on the catalog: of programs that start others, and of those that look for them.

use std::sync::Arc;

use wattle_capability::PortFuture;
use wattle_capability::par::{self, Work};
use wattle_capability::wattle::CatalogIndex;
use wattle_catalog::{Catalog, Entry};
use wattle_rt::{Code, Failure, Grants, Nested, Outcome, Program, RunError, Runtime};

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

impl Programs {
    /// The program of that name.
    fn entry(&self, name: &str) -> Result<&Arc<Entry>, Failure> {
        self.catalog.get(name).ok_or_else(|| Failure::new(Code::ENOENT, unknown(&self.catalog, name)))
    }

    /// Makes a program of a text; `name` is the catalog's for it, where it has one.
    async fn prepared(&self, source: &str, name: Option<&str>) -> Result<Program, Failure> {
        self.runtime.prepare(source).await.map_err(|diagnostic| {
            let words = match name {
                Some(name) => format!("the program `{name}` cannot be compiled: {}", diagnostic.message),
                None => format!("the program does not compile:\n{}", diagnostic.to_string().trim_end()),
            };
            Failure::new(Code::EPARSE, words)
        })
    }
}

impl par::Programs for Programs {
    fn run(&self, work: Work, args: Vec<String>, grants: Arc<Grants>, place: Nested) -> PortFuture<'_, Outcome> {
        Box::pin(async move {
            let told = |code, reason: String| Failure::new(code, reason);
            let most = self.runtime.limits().time;
            let (program, args, time, name) = match work {
                Work::Inline(source) => (self.prepared(&source, None).await?, args, most, "the program".to_owned()),
                Work::Named(name) => {
                    let entry = self.entry(&name)?;
                    let args = entry
                        .arguments(&args)
                        .map_err(|error| told(Code::EPARSE, format!("{error}; hint: {}", error.hint())))?;
                    let program = self.prepared(entry.source(), Some(&name)).await?;
                    (program, args, entry.meta().timeout.unwrap_or(most), format!("`{name}`"))
                }
            };
            self.runtime.run_nested(&program, &grants, args, time, place).await.map_err(|error| match error {
                RunError::Denied(missing) => told(Code::EACCESS, denied(&missing)),
                RunError::Refused(why) => told(Code::EACCESS, format!("{name} was denied before it ran: {why}")),
                // The panic goes on in the program that asked, and ends its run, too.
                RunError::Bug(bug) => std::panic::resume_unwind(Box::new(bug)),
                // The run that asked meets the same at its next step, where it can be ended.
                RunError::Engine(error) => told(Code::EREMOTE, error.to_string()),
            })
        })
    }

    fn check(&self, work: Work) -> PortFuture<'_, ()> {
        Box::pin(async move {
            match work {
                Work::Inline(source) => self.prepared(&source, None).await.map(drop),
                Work::Named(name) => self.prepared(self.entry(&name)?.source(), Some(&name)).await.map(drop),
            }
        })
    }

    fn is_exclusive(&self, work: &Work) -> bool {
        match work {
            Work::Inline(_) => false,
            Work::Named(name) => self.catalog.get(name).is_some_and(|entry| entry.meta().exclusive),
        }
    }
}

impl CatalogIndex for Programs {
    fn list(&self) -> Vec<(String, String)> {
        self.catalog.iter().map(|entry| line(entry)).collect()
    }

    fn search(&self, words: &str) -> Vec<(String, String)> {
        self.catalog.search(words).into_iter().map(|entry| line(entry)).collect()
    }

    fn show(&self, name: &str) -> Result<String, Failure> {
        self.entry(name).map(|entry| entry.manual())
    }
}

fn line(entry: &Entry) -> (String, String) {
    (entry.name().to_string(), entry.meta().description.clone())
}

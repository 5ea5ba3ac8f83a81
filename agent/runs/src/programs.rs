//! Two ports that the catalog implements: one for programs that start other programs, and one for
//! programs that search the catalog.

use std::sync::Arc;

use wattle_capability::PortFuture;
use wattle_capability::par::{self, Work};
use wattle_capability::wattle::{CatalogIndex, ProgramSummary};
use wattle_catalog::{Catalog, Entry};
use wattle_rt::{
    Code, Diagnostic, Failure, Grants, Kept, NestedContext, Outcome, Program, RunError, Runtime,
};

use crate::act::with_context;
use crate::refusal::{denied, unknown_program};

/// The port through which programs start catalog programs. It has no grants: a nested program gets
/// its parent's grants.
pub struct Programs {
    runtime: Runtime,
    /// The programs by the names under which they are called, which may be aliases.
    catalog: Catalog,
    /// The programs by their own names.
    base: Catalog,
}

impl Programs {
    /// Creates a port for the programs of a catalog.
    #[must_use]
    pub fn new(runtime: Runtime, catalog: Catalog) -> Self {
        Programs { runtime, base: catalog.clone(), catalog }
    }

    /// Sets the whole catalog, whose names are those of the programs, whatever an agent calls them.
    #[must_use]
    pub(crate) fn with_base(self, base: Catalog) -> Self {
        Programs { base, ..self }
    }
}

impl Programs {
    /// Returns the catalog entry with this name. Fails with `ENOENT` if there is none.
    fn entry(&self, name: &str) -> Result<&Arc<Entry>, Failure> {
        self.catalog
            .get(name)
            .ok_or_else(|| Failure::new(Code::ENOENT, unknown_program(&self.catalog, name)))
    }

    /// Compiles a program from its source. `name` is its name in the catalog, if it has one.
    async fn prepare(&self, source: &str, name: Option<&str>) -> Result<Program, Failure> {
        prepare_in(&self.runtime, &self.catalog, source, None).await.map_err(|diagnostic| {
            let reason = match name {
                Some(name) => {
                    format!("the program `{name}` does not compile: {}", diagnostic.message)
                }
                None => {
                    format!("the program does not compile:\n{}", diagnostic.to_string().trim_end())
                }
            };
            Failure::new(Code::EPARSE, reason)
        })
    }
}

/// Compiles a source that may call the programs of a catalog by their names, and read kept values. A
/// source that uses none of them is compiled without them, so that it has one place in the cache for
/// all catalogs.
///
/// # Errors
/// The same as for [`Runtime::prepare`].
pub(crate) async fn prepare_in(
    runtime: &Runtime,
    catalog: &Catalog,
    source: &str,
    kept: Option<&Kept>,
) -> Result<Program, Arc<Diagnostic>> {
    match runtime.prepare(source).await {
        Ok(program) => Ok(program),
        Err(_) => knowing(runtime, catalog, kept).prepare(source).await,
    }
}

/// Returns the runtime for programs that may call the programs of a catalog and read kept values.
pub(crate) fn knowing(runtime: &Runtime, catalog: &Catalog, kept: Option<&Kept>) -> Runtime {
    let runtime = runtime.with_callables(catalog.callables());
    kept.map_or_else(|| runtime.clone(), |kept| runtime.with_kept(kept.names()))
}

impl par::Programs for Programs {
    fn run(
        &self,
        work: Work,
        args: Vec<String>,
        grants: Arc<Grants>,
        position: NestedContext,
    ) -> PortFuture<'_, Outcome> {
        Box::pin(async move {
            let max_time = self.runtime.limits().time;
            let (program, args, time, name, grants) = match work {
                Work::Inline(source) => {
                    let program = self.prepare(&source, None).await?;
                    (program, args, max_time, "the program".to_owned(), grants)
                }
                Work::Named(name) => {
                    let entry = self.entry(&name)?;
                    let args = entry.arguments(&args).map_err(|error| {
                        Failure::new(Code::EPARSE, format!("{error}; hint: {}", error.hint()))
                    })?;
                    let program = self.prepare(entry.source(), Some(&name)).await?;
                    let program = entry.start(program);
                    let time = entry.meta().timeout.unwrap_or(max_time);
                    (program, args, time, format!("`{name}`"), with_context(entry, &grants))
                }
            };
            self.runtime.run_nested(&program, &grants, args, time, position).await.map_err(
                |error| match error {
                    RunError::Denied(missing) => Failure::new(Code::EACCESS, denied(&missing)),
                    RunError::Refused(why) => Failure::new(
                        Code::EACCESS,
                        format!("{name} was denied before it ran: {why}"),
                    ),
                    // The panic is propagated to the calling program, so that its run ends, too.
                    RunError::Bug(bug) => std::panic::resume_unwind(Box::new(bug)),
                    // The calling run encounters the same failure at its next step and ends there.
                    RunError::Engine(error) => Failure::new(Code::EREMOTE, error.to_string()),
                },
            )
        })
    }

    fn check(&self, work: Work) -> PortFuture<'_, ()> {
        Box::pin(async move {
            match work {
                Work::Inline(source) => self.prepare(&source, None).await.map(drop),
                Work::Named(name) => {
                    self.prepare(self.entry(&name)?.source(), Some(&name)).await.map(drop)
                }
            }
        })
    }

    fn is_exclusive(&self, work: &Work) -> bool {
        match work {
            Work::Inline(_) => false,
            Work::Named(name) => self.catalog.get(name).is_some_and(|entry| entry.meta().exclusive),
        }
    }

    fn real_name(&self, name: &str) -> Option<String> {
        self.catalog.get(name).map(|entry| entry.real_name().to_string())
    }

    fn in_order(&self, name: &str, args: Vec<(String, String)>) -> Result<Vec<String>, Failure> {
        let (names, args): (Vec<String>, Vec<String>) = args.into_iter().unzip();
        self.entry(name)?
            .in_order(&args, &names)
            .map_err(|error| Failure::new(Code::EPARSE, format!("{error}; hint: {}", error.hint())))
    }

    fn source(&self, name: &str) -> Option<Arc<str>> {
        let own = || self.catalog.get(name).filter(|entry| entry.real_name() == entry.name());
        self.base.get(name).or_else(own).map(|entry| Arc::clone(entry.source()))
    }

    fn name_of(&self, source: &str) -> Option<String> {
        let mut entries = self.catalog.iter().chain(self.base.iter());
        let found = entries.find(|entry| entry.source().as_ref() == source);
        found.map(|entry| entry.real_name().to_string())
    }
}

impl CatalogIndex for Programs {
    fn list(&self) -> Vec<ProgramSummary> {
        self.catalog.iter().map(|entry| summary(entry)).collect()
    }

    fn search(&self, words: &str) -> Vec<ProgramSummary> {
        self.catalog.search(words).into_iter().map(|entry| summary(entry)).collect()
    }

    fn show(&self, name: &str) -> Result<String, Failure> {
        self.entry(name).map(|entry| entry.manual())
    }
}

fn summary(entry: &Entry) -> ProgramSummary {
    ProgramSummary { name: entry.name().to_string(), about: entry.meta().description.clone() }
}

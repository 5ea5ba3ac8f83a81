//! What programs may call by name: the programs of a catalog, and the tools of the application.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::catalog::{Catalog, Entry};
use wattle_agent::host::rt::{Diagnostic, Program as Prepared};
use wattle_agent::host::{AgentPrograms, touched};
use wattle_agent::{Host, Tool, ToolSet};

use crate::process::{PerProcess, engine};
use crate::{Error, Program};

/// Maximum number of findings of a [`check`](Scope::check).
const MAX_FINDINGS: usize = 32;

/// The name under which the catalog lists the tools of an application.
const OWNER: &str = "application";

/// What programs may call by name: the programs of a catalog, and the tools of the application.
/// Cheap to clone; programs and agents share it.
#[derive(Clone, Default)]
pub struct Scope(Arc<Parts>);

#[derive(Default)]
struct Parts {
    /// The catalog, or `None` for the built-in one.
    catalog: Option<Catalog>,
    tools: ToolSet,
    /// The engine with the programs of the catalog.
    base: PerProcess<Result<Host, Error>>,
    /// The engine with the programs of the catalog and of the tools.
    host: PerProcess<Result<Host, Error>>,
}

impl Scope {
    /// Creates a scope with the built-in programs, those in the folders, and the tools.
    ///
    /// # Errors
    /// If a program in a folder is invalid, a tool is invalid, or a name is taken.
    pub fn new(folders: &[PathBuf], tools: &[Tool]) -> Result<Scope, Error> {
        let catalog = (!folders.is_empty()).then(|| Catalog::load(folders));
        if let Some(problem) = catalog.iter().flat_map(Catalog::problems).next() {
            return Err(Error::settings(problem));
        }
        let tools = ToolSet::new(tools).map_err(Error::settings)?;
        let known = catalog.clone().unwrap_or_else(Catalog::built_in);
        let mut names: Vec<&str> = Vec::new();
        for tool in tools.iter() {
            if known.get(tool.name()).is_some() || names.contains(&tool.name()) {
                return Err(Error::settings(format!(
                    "the name of the tool `{}` is taken; rename the tool",
                    tool.name()
                )));
            }
            names.push(tool.name());
        }
        Ok(Scope(Arc::new(Parts { catalog, tools, ..Parts::default() })))
    }

    /// Returns the tools.
    pub(crate) fn tools(&self) -> &ToolSet {
        &self.0.tools
    }

    /// Returns the engine with the programs of the catalog, without the tools.
    pub(crate) fn base(&self) -> Result<&Host, Error> {
        let make = || {
            let host = engine()?.host.clone();
            let Some(catalog) = &self.0.catalog else { return Ok(host) };
            let offered = catalog.clone();
            Ok(host.for_agent(AgentPrograms { offered, ..AgentPrograms::default() }))
        };
        self.0.base.get(make).as_ref().map_err(Clone::clone)
    }

    /// Returns the engine with everything that programs of this scope may call.
    pub(crate) fn host(&self) -> Result<&Host, Error> {
        if self.tools().is_empty() {
            return self.base();
        }
        let make = || Ok(self.base()?.with_offered(OWNER, self.tools().programs(OWNER)));
        self.0.host.get(make).as_ref().map_err(Clone::clone)
    }

    /// Compiles a program.
    ///
    /// # Errors
    /// If the program is invalid.
    pub async fn prepare(&self, source: &str) -> Result<Program, Error> {
        let prepared = self.compiled(source).await?;
        Ok(Program::new(self.clone(), source.to_owned(), None, prepared))
    }

    /// Compiles a program of the catalog. Its arguments are checked by their declared types.
    ///
    /// # Errors
    /// If there is no such program.
    pub async fn named(&self, name: &str) -> Result<Program, Error> {
        let catalog = self.host()?.catalog();
        let entry = catalog.get(name).ok_or_else(|| {
            let nearest: Vec<String> =
                catalog.nearest(name).iter().map(|name| format!("`{name}`")).collect();
            let near = if nearest.is_empty() {
                String::new()
            } else {
                format!("; the nearest: {}", nearest.join(", "))
            };
            Error::settings(format!("there is no program `{name}` in the catalog{near}"))
        })?;
        let prepared = entry.start(self.compiled(entry.source()).await?);
        let source = entry.source().to_string();
        Ok(Program::new(self.clone(), source, Some(Arc::clone(entry)), prepared))
    }

    pub(crate) async fn compiled(&self, source: &str) -> Result<Prepared, Error> {
        self.host()?.prepare(source).await.map_err(|diagnostic| Error::invalid(&diagnostic))
    }

    /// Checks a program without running it. Returns a JSON object: `ok`, the `diagnostics` (each
    /// with `severity`, `code`, `line`, `column`, `message`, `hint` and `fix`), and, if the program
    /// is valid, the `touches`: what it may access outside its run.
    ///
    /// # Errors
    /// If the engine cannot be created.
    pub async fn check(&self, source: &str) -> Result<Json, Error> {
        let host = self.host()?;
        let (found, program) = match host.prepare(source).await {
            Ok(program) => (program.warnings().to_vec(), Some(program)),
            Err(first) => match host.calling_runtime().check(source, MAX_FINDINGS).await {
                // The checks found no error, so only the engine rejects the program.
                none if none.is_empty() => (vec![(*first).clone()], None),
                all => (all, None),
            },
        };
        Ok(json!({
            "ok": program.is_some(),
            "diagnostics": found.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
            "touches": program.as_ref().map(touched),
        }))
    }

    /// Returns the programs that match some words, best first, or all programs sorted by name if
    /// there are no words. Each is a JSON object with `name`, `description`, `usage`, `args` and the
    /// rest of its front matter.
    ///
    /// # Errors
    /// If the engine cannot be created.
    pub fn programs(&self, words: Option<&str>) -> Result<Vec<Json>, Error> {
        let catalog = self.host()?.catalog();
        Ok(match words {
            Some(words) => catalog.search(words).into_iter().map(|entry| entry.to_json()).collect(),
            None => catalog.iter().map(|entry| entry.to_json()).collect(),
        })
    }

    /// Returns a program of the catalog with its source and its manual page, or `None` if there is
    /// none of that name.
    ///
    /// # Errors
    /// If the engine cannot be created.
    pub fn program(&self, name: &str) -> Result<Option<Json>, Error> {
        let catalog = self.host()?.catalog();
        Ok(catalog.get(name).map(|entry| detail(entry)))
    }
}

fn detail(entry: &Entry) -> Json {
    let mut program = entry.to_json();
    if let Some(fields) = program.as_object_mut() {
        fields.insert("source".to_owned(), entry.source().as_ref().into());
        fields.insert("manual".to_owned(), entry.manual().into());
    }
    program
}

//! Wattle itself, which runs jobs as new programs, cached programs or catalog programs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use wattle_catalog::Catalog;
use wattle_rt::{Grants, Limits, Outcome, Runtime, Signatures, assemble};

use crate::Result;
use crate::bare::Module;
use crate::jobs::{Job, folder};
use crate::sample::{Peer, current_kib};

/// A program that waits longer than any measurement.
const WAITING: &str = "(sys.sleep 60000)";

/// Time after which all waiting programs are assumed to be suspended.
const SETTLED: Duration = Duration::from_secs(1);

/// The kind of program that a job's runs use.
#[derive(Clone, Copy)]
pub enum Path {
    /// Each run uses a program that the runtime has not seen before.
    Cold,
    /// All runs use the same program, which is cached.
    Warm,
    /// All runs call the same catalog program by name, with arguments in the form that a model
    /// supplies.
    Catalog,
}

/// Creates a runtime and grants for all pure capabilities.
///
/// # Errors
/// If the engine cannot be created.
pub fn runtime(limits: Limits) -> Result<(Runtime, Arc<Grants>)> {
    let runtime = Runtime::new(wattle_capability::ALL, limits)?;
    Ok((runtime, Arc::new(wattle_capability::pure_grants())))
}

/// Returns the catalog of the jobs' programs.
///
/// # Errors
/// If a job's program is not a valid catalog program.
pub fn catalog() -> Result<Catalog> {
    let catalog = Catalog::load(&[folder("wattle")]);
    match catalog.problems().first() {
        Some(problem) => Err(problem.message().into()),
        None => Ok(catalog),
    }
}

/// Returns the source of a job's program.
///
/// # Errors
/// If the catalog does not contain the job's program.
pub fn program(job: &Job) -> Result<String> {
    let catalog = catalog()?;
    let entry = catalog.get(job.name()).ok_or_else(|| format!("no program {:?}", job.name()))?;
    Ok(entry.body().to_owned())
}

/// Returns a program whose code differs for each number, so that it is not cached.
#[must_use]
pub fn unseen(text: &str, number: u32) -> String {
    format!("(drop (i32.const {}))\n{text}", 1_000_000 + number)
}

/// Returns the signatures of all host functions. They suffice to generate modules without an
/// engine.
#[must_use]
pub fn signatures() -> Signatures {
    let functions = wattle_capability::ALL.iter().flat_map(|capability| capability.functions);
    Signatures::new(functions.map(|function| function.signature))
}

/// Returns the module that the runtime generates from a program.
///
/// # Errors
/// If the source is not a valid program.
pub fn module(signatures: &Signatures, text: &str) -> Result<Module> {
    let assembled = assemble(text, signatures).map_err(|why| why.to_string())?;
    Ok(Module { text: assembled.module, heap: assembled.heap_base })
}

/// Prepares and runs a program and checks that it succeeds.
///
/// # Errors
/// If the program is invalid or fails.
pub async fn run(
    runtime: &Runtime,
    grants: &Arc<Grants>,
    text: &str,
    args: Vec<String>,
) -> Result<Outcome> {
    let program = runtime.prepare(text).await.map_err(|why| why.to_string())?;
    let outcome = runtime.run(&program, grants, args).await?;
    if outcome.success() { Ok(outcome) } else { Err(format!("{:?}", outcome.exit).into()) }
}

/// A job that Wattle runs.
pub struct Wattle {
    runtime: Runtime,
    grants: Arc<Grants>,
    catalog: Catalog,
    path: Path,
    name: String,
    text: String,
    args: Vec<String>,
    runs: u32,
}

impl Wattle {
    /// Prepares a job.
    ///
    /// # Errors
    /// If the runtime cannot be created, or the catalog does not contain the job's program.
    pub fn new(path: Path, job: &Job) -> Result<Wattle> {
        let (runtime, grants) = runtime(Limits::default())?;
        Ok(Wattle {
            runtime,
            grants,
            catalog: catalog()?,
            path,
            name: job.name().to_owned(),
            text: program(job)?,
            args: job.args(),
            runs: 0,
        })
    }
}

impl Peer for Wattle {
    async fn run(&mut self) -> Result<(Duration, String)> {
        self.runs += 1;
        let args = self.args.clone();
        let (outcome, time) = match self.path {
            Path::Cold => {
                let text = unseen(&self.text, self.runs);
                let started = Instant::now();
                (run(&self.runtime, &self.grants, &text, args).await?, started.elapsed())
            }
            Path::Warm => {
                let started = Instant::now();
                (run(&self.runtime, &self.grants, &self.text, args).await?, started.elapsed())
            }
            Path::Catalog => {
                let started = Instant::now();
                let entry = self.catalog.get(&self.name).ok_or("the catalog changed")?;
                let args = entry.arguments(&args)?;
                (run(&self.runtime, &self.grants, entry.source(), args).await?, started.elapsed())
            }
        };
        Ok((time, outcome.texts().join("\n")))
    }

    /// Keeps programs suspended in a host call. Returns their average memory use.
    async fn live(&mut self, count: usize) -> Result<Option<f64>> {
        let waiting = |count| {
            let one = || run(&self.runtime, &self.grants, WAITING, Vec::new());
            join_all((0..count).map(move |_| one()))
        };
        let settle = async |count| {
            tokio::select! {
                ended = waiting(count) => {
                    ended.into_iter().collect::<Result<Vec<_>>>()?;
                    Err("the programs did not wait".into())
                }
                () = tokio::time::sleep(SETTLED) => current_kib(),
            }
        };
        let (before, after) = (settle(1).await?, settle(1 + count).await?);
        Ok(Some(after.saturating_sub(before) as f64 / count as f64))
    }
}

//! Programs that run without a model, and what they call.

use std::path::PathBuf;
use std::sync::Arc;

use napi_derive::napi;
use serde::Deserialize;
use wattle_bindings::{Cancel, Error, Grants, Outcome, RunOptions, RunState, Scope, Tool};

use crate::fault::{Thrown, parse, thrown};
use crate::handle::{OutcomeHandle, ProgramHandle};
use crate::link::{Hub, Value};
use crate::tool::{Caller, ToolSpec, milliseconds, tool};

/// The programs of a catalog, and tools.
#[napi]
pub struct ScopeHandle(Scope);

impl ScopeHandle {
    pub(crate) fn scope(&self) -> &Scope {
        &self.0
    }
}

#[napi]
impl ScopeHandle {
    /// Creates a scope. `tools` is JSON.
    #[napi(constructor)]
    pub fn new(folders: Vec<String>, tools: String) -> Result<ScopeHandle, Thrown> {
        let new = || -> Result<Scope, Error> {
            let folders: Vec<PathBuf> = folders.into_iter().map(PathBuf::from).collect();
            let tools: Vec<ToolSpec> = parse(&tools)?;
            let tools = tools.into_iter().map(tool).collect::<Result<Vec<Tool>, _>>()?;
            Scope::new(&folders, &tools)
        };
        new().map(ScopeHandle).map_err(thrown)
    }

    /// Compiles a program.
    #[napi]
    pub fn prepare(&self, hub: &Hub, operation: f64, source: String) -> Result<(), Thrown> {
        let scope = self.0.clone();
        hub.link().operate(operation, async move {
            Ok(Value::Program(ProgramHandle(scope.prepare(&source).await?)))
        })
    }

    /// Compiles a program of the catalog.
    #[napi]
    pub fn named(&self, hub: &Hub, operation: f64, name: String) -> Result<(), Thrown> {
        let scope = self.0.clone();
        hub.link().operate(operation, async move {
            Ok(Value::Program(ProgramHandle(scope.named(&name).await?)))
        })
    }

    /// Checks a program.
    #[napi]
    pub fn check(&self, hub: &Hub, operation: f64, source: String) -> Result<(), Thrown> {
        let scope = self.0.clone();
        hub.link().operate(operation, async move {
            Ok(Value::Text(scope.check(&source).await?.to_string()))
        })
    }

    /// Returns the programs as JSON, those that match `words` or all.
    #[napi]
    pub fn programs(&self, words: Option<String>) -> Result<String, Thrown> {
        let programs = self.0.programs(words.as_deref()).map_err(thrown)?;
        Ok(serde_json::Value::from(programs).to_string())
    }

    /// Returns a program with its source and manual as JSON.
    #[napi]
    pub fn program(&self, name: String) -> Result<Option<String>, Thrown> {
        Ok(self.0.program(&name).map_err(thrown)?.map(|program| program.to_string()))
    }
}

/// The handle that cancels a run.
#[napi]
#[derive(Default)]
pub struct CancelHandle(Cancel);

impl CancelHandle {
    pub(crate) fn cancel_of_run(&self) -> Cancel {
        self.0.clone()
    }
}

#[napi]
impl CancelHandle {
    /// Creates a handle.
    #[napi(constructor)]
    pub fn new() -> CancelHandle {
        CancelHandle::default()
    }

    /// Cancels the run.
    #[napi]
    pub fn cancel(&self, reason: String) {
        self.0.cancel(reason);
    }
}

/// The options of one run of a program.
#[derive(Deserialize)]
struct ProgramOptions {
    /// The number of the run, by which JavaScript finds its functions.
    run: f64,
    /// If true, JavaScript answers requests for approval.
    approve: bool,
    /// Maximum running time, in milliseconds.
    timeout: Option<f64>,
}

/// Checked grants.
#[napi]
pub struct GrantsHandle(Grants);

#[napi]
impl GrantsHandle {
    /// Checks grants, which are JSON.
    #[napi(constructor)]
    pub fn new(grants: String) -> Result<GrantsHandle, Thrown> {
        parse(&grants).and_then(Grants::new).map(GrantsHandle).map_err(thrown)
    }
}

/// Runs a program with the default grants, without functions of JavaScript.
#[napi]
pub fn compute(
    hub: &Hub,
    operation: f64,
    program: &ProgramHandle,
    args: Vec<String>,
) -> Result<(), Thrown> {
    let program = program.0.clone();
    hub.link().operate(operation, async move {
        let outcome = program.run(args, RunOptions::default()).await?;
        Ok(Value::Outcome(OutcomeHandle(Arc::new(outcome))))
    })
}

/// Runs a program. `options` is JSON.
#[napi]
pub fn run(
    hub: &Hub,
    operation: f64,
    program: &ProgramHandle,
    args: Vec<String>,
    grants: &GrantsHandle,
    options: String,
    cancel: &CancelHandle,
) -> Result<(), Thrown> {
    let options: ProgramOptions = parse(&options).map_err(thrown)?;
    let caller = Caller::new(hub.link(), options.run);
    let state = RunState::of_program(options.run.to_string(), cancel.cancel_of_run());
    let approver = options.approve.then(|| caller.approver());
    state.set(Arc::new(caller));
    let options = RunOptions {
        grants: grants.0.clone(),
        timeout: options.timeout.map(milliseconds).transpose().map_err(thrown)?,
        approver,
        state: Some(Arc::new(state)),
    };
    let program = program.0.clone();
    hub.link().operate(operation, async move {
        Ok(Value::Outcome(OutcomeHandle(Arc::new(program.run(args, options).await?))))
    })
}

/// Returns the changes of files as JSON.
#[napi]
pub fn changes(hub: &Hub, operation: f64, outcome: &OutcomeHandle) -> Result<(), Thrown> {
    blocking(hub, operation, outcome, |outcome| Ok(Value::Text(outcome.changes()?.to_string())))
}

/// Reads a file as the program left it.
#[napi]
pub fn file(
    hub: &Hub,
    operation: f64,
    outcome: &OutcomeHandle,
    path: String,
) -> Result<(), Thrown> {
    blocking(hub, operation, outcome, move |outcome| Ok(Value::Bytes(outcome.file(&path)?)))
}

/// Writes the changes to the granted folder.
#[napi]
pub fn apply(hub: &Hub, operation: f64, outcome: &OutcomeHandle) -> Result<(), Thrown> {
    blocking(hub, operation, outcome, |outcome| outcome.apply().map(|()| Value::Nothing))
}

/// Runs an operation that waits for the disk.
fn blocking(
    hub: &Hub,
    operation: f64,
    outcome: &OutcomeHandle,
    work: impl FnOnce(&Outcome) -> Result<Value, Error> + Send + 'static,
) -> Result<(), Thrown> {
    let outcome = Arc::clone(&outcome.0);
    hub.link().operate(operation, async move {
        tokio::task::spawn_blocking(move || work(&outcome)).await.map_err(Error::host)?
    })
}

//! Programs, what they may call, and what they may use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value as Json;
use wattle_bindings::{self as bindings, Cancel, RunOptions, RunState, Tool, ToolContext, engine};

use crate::error::raise;
use crate::outcome::Outcome;
use crate::run::{Finished, Link, Run, Session};
use crate::wait::{check, wait};
use crate::waker::Waker;

/// A tool: its name, description, schema, the schema of its results, and its timeout in seconds.
type ToolParts = (String, String, String, Option<String>, Option<f64>);

/// What programs may call by name.
#[pyclass(frozen, module = "wattle._native")]
pub(crate) struct Scope(pub(crate) bindings::Scope);

#[pymethods]
impl Scope {
    #[new]
    fn new(py: Python<'_>, folders: Vec<PathBuf>, tools: Vec<ToolParts>) -> PyResult<Scope> {
        let tools: Vec<Tool> = tools.into_iter().map(tool).collect::<PyResult<_>>()?;
        let scope = py.detach(|| bindings::Scope::new(&folders, &tools));
        scope.map(Scope).map_err(|error| raise(py, error))
    }

    /// Compiles a program.
    fn prepare(&self, py: Python<'_>, source: &str) -> PyResult<Program> {
        let program = wait(py, self.0.prepare(source))?;
        program.map(Program).map_err(|error| raise(py, error))
    }

    /// Compiles a program of the catalog.
    fn named(&self, py: Python<'_>, name: &str) -> PyResult<Program> {
        let program = wait(py, self.0.named(name))?;
        program.map(Program).map_err(|error| raise(py, error))
    }

    /// Checks a program. Returns a JSON text.
    fn check(&self, py: Python<'_>, source: &str) -> PyResult<String> {
        let checked = wait(py, self.0.check(source))?;
        checked.map(|checked| checked.to_string()).map_err(|error| raise(py, error))
    }

    /// Returns the programs that match some words, or all, as a JSON text.
    fn programs(&self, py: Python<'_>, words: Option<&str>) -> PyResult<String> {
        let programs = py.detach(|| self.0.programs(words)).map_err(|error| raise(py, error))?;
        Ok(Json::from(programs).to_string())
    }

    /// Returns a program of the catalog as a JSON text, or `None` if there is none of that name.
    fn program(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let program = py.detach(|| self.0.program(name)).map_err(|error| raise(py, error))?;
        Ok(program.map(|program| program.to_string()))
    }
}

/// Creates a tool that sends each call to the session of its run.
fn tool((name, description, schema, result, timeout): ToolParts) -> PyResult<Tool> {
    let called = name.clone();
    let function = move |arguments: Json, context: ToolContext| {
        let (called, link) = (called.clone(), context.run().of::<Link>());
        async move {
            match &link.0 {
                Some(session) => session.call(called, arguments).await,
                None => Err(bindings::ToolError::new("the run has no connection to Python")),
            }
        }
    };
    let tool = Tool::with_schema(name, description, parse(&schema)?, function);
    let tool = match result {
        Some(result) => tool.result(parse(&result)?),
        None => tool,
    };
    Ok(match timeout {
        Some(seconds) => tool.timeout(duration(seconds)?),
        None => tool,
    })
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|why| PyValueError::new_err(why.to_string()))
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|why| PyValueError::new_err(format!("timeout: {why}")))
}

/// Checked grants.
#[pyclass(frozen, module = "wattle._native")]
pub(crate) struct Grants(bindings::Grants);

#[pymethods]
impl Grants {
    #[new]
    fn new(py: Python<'_>, settings: &str) -> PyResult<Grants> {
        let grants = bindings::Grants::new(parse(settings)?);
        grants.map(Grants).map_err(|error| raise(py, error))
    }
}

/// A prepared program.
#[pyclass(frozen, module = "wattle._native")]
pub(crate) struct Program(bindings::Program);

#[pymethods]
impl Program {
    /// The source.
    #[getter]
    fn source(&self) -> &str {
        self.0.source()
    }

    /// If true, the program can call tools of the application.
    #[getter]
    fn has_tools(&self) -> bool {
        self.0.has_tools()
    }

    /// Runs a program that needs no answers of Python on the calling thread.
    #[pyo3(signature = (args, grants=None, timeout=None))]
    fn run(
        &self,
        py: Python<'_>,
        args: Vec<String>,
        grants: Option<&Grants>,
        timeout: Option<f64>,
    ) -> PyResult<Outcome> {
        let options = options(grants, timeout)?;
        let outcome = wait(py, self.0.run(args, options))?;
        outcome.map(Outcome::new).map_err(|error| raise(py, error))
    }

    /// Starts a run on a thread of the engine.
    fn start(
        &self,
        py: Python<'_>,
        args: Vec<String>,
        grants: Option<&Grants>,
        timeout: Option<f64>,
        asks: bool,
        waker: Option<&Waker>,
    ) -> PyResult<Run> {
        check(py)?;
        let session = Session::new(waker);
        let (id, cancel) = (String::new(), Cancel::new());
        let state = RunState::of_program(&id, cancel.clone());
        state.set(Arc::new(Link(Some(Arc::clone(&session)))));
        let options = RunOptions {
            approver: asks.then(|| session.approver()),
            state: Some(Arc::new(state)),
            ..options(grants, timeout)?
        };
        let (program, own) = (self.0.clone(), Arc::clone(&session));
        let engine = engine().map_err(|error| raise(py, error))?;
        engine.runtime().spawn(async move {
            let outcome = program.run(args, options).await;
            own.end(outcome.map(|outcome| Finished::Program(Box::new(outcome))));
        });
        Ok(Run::new(id, session, cancel))
    }
}

fn options(grants: Option<&Grants>, timeout: Option<f64>) -> PyResult<RunOptions> {
    Ok(RunOptions {
        grants: grants.map(|grants| grants.0.clone()).unwrap_or_default(),
        timeout: timeout.map(duration).transpose()?,
        ..RunOptions::default()
    })
}

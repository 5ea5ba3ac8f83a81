//! Agents.

use std::sync::Arc;

use pyo3::prelude::*;
use serde_json::Value as Json;
use wattle_bindings::{self as bindings, AgentRunOptions, Answer, Cancel, engine};

use crate::error::raise;
use crate::program::{Scope, parse};
use crate::run::{Finished, Link, Run, Session};
use crate::wait::{check, wait};
use crate::waker::Waker;

/// An agent.
#[pyclass(frozen, module = "wattle._native")]
pub(crate) struct Agent(bindings::Agent);

#[pymethods]
impl Agent {
    #[new]
    fn new(py: Python<'_>, settings: &str, scope: &Scope) -> PyResult<Agent> {
        // The engine is created with the lock held, so that no thread forks meanwhile.
        engine().map_err(|error| raise(py, error))?;
        let (settings, scope) = (parse(settings)?, scope.0.clone());
        let agent = py.detach(|| bindings::Agent::new(settings, scope));
        agent.map(Agent).map_err(|error| raise(py, error))
    }

    /// The agent's name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        self.0.name().map_err(|error| raise(py, error))
    }

    /// Starts a run. `options` is a JSON object with `history`, `session` and `context`.
    fn start(
        &self,
        py: Python<'_>,
        message: &str,
        options: &str,
        asks: bool,
        streams: bool,
        waker: Option<&Waker>,
    ) -> PyResult<Run> {
        let start = |options, link| self.0.start(message, options, link);
        begin(py, options, asks, streams, waker, start)
    }

    /// Resumes a run. `answers` is a JSON object of answers by the ids of the pending approvals.
    #[expect(clippy::too_many_arguments, reason = "only the package calls it, by position")]
    fn resume(
        &self,
        py: Python<'_>,
        run: &str,
        answers: &str,
        options: &str,
        asks: bool,
        streams: bool,
        waker: Option<&Waker>,
    ) -> PyResult<Run> {
        let answers: serde_json::Map<String, Json> = parse(answers)?;
        let answer = |(call, answer): (String, Json)| Ok((call, bindings::answer(&answer)?));
        let answers: Result<Vec<(String, Answer)>, bindings::Error> =
            answers.into_iter().map(answer).collect();
        let answers = answers.map_err(|error| raise(py, error))?;
        let resume = |options, link| self.0.resume(run, answers, options, link);
        begin(py, options, asks, streams, waker, resume)
    }

    /// Closes the agent's store.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.0.close())?.map_err(|error| raise(py, error))
    }
}

fn begin(
    py: Python<'_>,
    options: &str,
    asks: bool,
    streams: bool,
    waker: Option<&Waker>,
    start: impl FnOnce(AgentRunOptions, Arc<Link>) -> Result<bindings::AgentRun, bindings::Error>,
) -> PyResult<Run> {
    check(py)?;
    let session = Session::new(waker);
    let cancel = Cancel::new();
    let mut given: serde_json::Map<String, Json> = parse(options)?;
    let history = given.remove("history").and_then(|history| match history {
        Json::Array(messages) => Some(messages),
        _ => None,
    });
    let options = AgentRunOptions {
        history: history.unwrap_or_default(),
        session: given.get("session").and_then(Json::as_str).map(str::to_owned),
        context: given.remove("context").unwrap_or_default(),
        approver: asks.then(|| session.approver()),
        cancel: cancel.clone(),
    };
    let link = Arc::new(Link(Some(Arc::clone(&session))));
    let mut run = start(options, link).map_err(|error| raise(py, error))?;
    let (id, own) = (run.id().to_owned(), Arc::clone(&session));
    let engine = engine().map_err(|error| raise(py, error))?;
    engine.runtime().spawn(async move {
        while streams && let Some(event) = run.next().await {
            own.event(event);
        }
        own.end(run.result().await.map(Finished::Agent));
    });
    Ok(Run::new(id, session, cancel))
}

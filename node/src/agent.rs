//! Agents and their runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use napi_derive::napi;
use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::Mutex;
use wattle_bindings::{Agent, AgentRun, AgentRunOptions, Answer, Cancel, Error, answer};

use crate::fault::{Thrown, parse, thrown};
use crate::link::{Hub, Value};
use crate::program::{CancelHandle, ScopeHandle};
use crate::tool::Caller;

/// The options of one run of an agent.
#[derive(Deserialize)]
struct AgentOptions {
    /// The number of the run, by which JavaScript finds its functions.
    run: f64,
    /// If true, JavaScript answers requests for approval.
    approve: bool,
    #[serde(default)]
    history: Vec<Json>,
    session: Option<String>,
}

impl AgentOptions {
    fn into_run(self, hub: &Hub, cancel: Cancel) -> (AgentRunOptions, Arc<Caller>) {
        let caller = Caller::new(hub.link(), self.run);
        let options = AgentRunOptions {
            history: self.history,
            session: self.session,
            context: Json::Null,
            approver: self.approve.then(|| caller.approver()),
            cancel,
        };
        (options, Arc::new(caller))
    }
}

/// An agent.
#[napi]
pub struct AgentHandle(Agent);

#[napi]
impl AgentHandle {
    /// Creates an agent. `settings` is JSON.
    #[napi(constructor)]
    pub fn new(settings: String, scope: &ScopeHandle) -> Result<AgentHandle, Thrown> {
        let new = || Agent::new(parse(&settings)?, scope.scope().clone());
        new().map(AgentHandle).map_err(thrown)
    }

    /// Returns the agent's name.
    #[napi(getter)]
    pub fn name(&self) -> Result<String, Thrown> {
        self.0.name().map(str::to_owned).map_err(thrown)
    }

    /// Starts a run. `options` is JSON.
    #[napi]
    pub fn start(
        &self,
        hub: &Hub,
        message: String,
        options: String,
        cancel: &CancelHandle,
    ) -> Result<AgentRunHandle, Thrown> {
        let start = || {
            let options: AgentOptions = parse(&options)?;
            let (options, caller) = options.into_run(hub, cancel.cancel_of_run());
            self.0.start(&message, options, caller)
        };
        start().map(AgentRunHandle::new).map_err(thrown)
    }

    /// Resumes a run. `answers` and `options` are JSON.
    #[napi]
    pub fn resume(
        &self,
        hub: &Hub,
        run: String,
        answers: String,
        options: String,
        cancel: &CancelHandle,
    ) -> Result<AgentRunHandle, Thrown> {
        let resume = || {
            let answers: BTreeMap<String, Json> = parse(&answers)?;
            let answers = answers.into_iter().map(|(call, word)| Ok((call, answer(&word)?)));
            let answers: Vec<(String, Answer)> = answers.collect::<Result<_, Error>>()?;
            let options: AgentOptions = parse(&options)?;
            let (options, caller) = options.into_run(hub, cancel.cancel_of_run());
            self.0.resume(&run, answers, options, caller)
        };
        resume().map(AgentRunHandle::new).map_err(thrown)
    }

    /// Closes the agent's store.
    #[napi]
    pub fn close(&self, hub: &Hub, operation: f64) -> Result<(), Thrown> {
        let agent = self.0.clone();
        hub.link().operate(operation, async move { agent.close().await.map(|()| Value::Nothing) })
    }
}

/// A run of an agent. When JavaScript loses it, the run is cancelled.
#[napi]
pub struct AgentRunHandle {
    id: String,
    /// The run, until its result is read.
    run: Arc<Mutex<Option<AgentRun>>>,
}

impl AgentRunHandle {
    fn new(run: AgentRun) -> AgentRunHandle {
        AgentRunHandle { id: run.id().to_owned(), run: Arc::new(Mutex::new(Some(run))) }
    }
}

#[napi]
impl AgentRunHandle {
    /// Returns the run's id.
    #[napi(getter)]
    pub fn id(&self) -> String {
        self.id.clone()
    }

    /// Waits for the next event, which is JSON. There is none after the last one.
    #[napi]
    pub fn next(&self, hub: &Hub, operation: f64) -> Result<(), Thrown> {
        let run = Arc::clone(&self.run);
        hub.link().operate(operation, async move {
            let mut run = run.lock().await;
            let event = match run.as_mut() {
                Some(run) => run.next().await,
                None => None,
            };
            Ok(event.map_or(Value::Nothing, |event| Value::Text(event.to_string())))
        })
    }

    /// Waits for the end of the run and returns its report, which is JSON.
    #[napi]
    pub fn result(&self, hub: &Hub, operation: f64) -> Result<(), Thrown> {
        let run = Arc::clone(&self.run);
        hub.link().operate(operation, async move {
            let run = run.lock().await.take();
            let run =
                run.ok_or_else(|| Error::settings("the result of the run was read before"))?;
            Ok(Value::Text(run.result().await?.to_string()))
        })
    }
}

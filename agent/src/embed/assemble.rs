//! The assembler of an agent's runs: it creates the parts of each run when the run service asks for
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use wattle_capability::files::Files;
use wattle_model::Model;
use wattle_runs::service::{AssembleFuture, RunAssembler};
use wattle_runs::{Bug, ChildError, caught};
use wattle_store::TenantStore;
use wattle_store::journal::RunRequest;

use super::agent::Inner;
use super::middleware::PANICKED;
use super::run::AgentRun;

/// The runs of an agent and of its delegates that the application waits for. What only the process
/// has, such as handlers, is found here by a run's id.
#[derive(Default)]
pub(super) struct AgentRuns(Mutex<HashMap<String, Arc<AgentRun>>>);

impl AgentRuns {
    /// Adds a run.
    pub(super) fn add(&self, run: &Arc<AgentRun>) {
        self.lock().insert(run.state.run_id().to_owned(), Arc::clone(run));
    }

    /// Removes and returns a run.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<AgentRun>> {
        self.lock().remove(id)
    }

    fn get(&self, id: &str) -> Option<Arc<AgentRun>> {
        self.lock().get(id).cloned()
    }

    /// Returns an agent to which the run may delegate.
    fn delegate(&self, run: &RunRequest, agent: &str) -> Result<Arc<Inner>, ChildError> {
        let run = self.get(&run.id).ok_or_else(|| ChildError::Refused(LEFT.to_owned()))?;
        run.agent.team.agent(agent).map_err(|why| ChildError::Unknown(why.to_string()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<AgentRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason for refusing a run that the application does not wait for.
const LEFT: &str = "the application does not wait for this run; resume it with its agent";

impl RunAssembler for AgentRuns {
    fn assemble<'a>(
        &'a self,
        _: &'a TenantStore,
        run: &'a RunRequest,
        files: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a> {
        async move {
            let held = self.get(&run.id).ok_or_else(|| LEFT.to_owned())?;
            // The application's functions may panic.
            let parts = caught(&run.id, async { held.parts(files) }).await;
            parts.map_err(|Bug| PANICKED.to_owned().into())
        }
        .boxed()
    }

    fn model(&self, run: &RunRequest, agent: &str) -> Option<Arc<dyn Model>> {
        self.delegate(run, agent).ok().map(|agent| Arc::clone(&agent.model))
    }

    fn child_origin<'a>(
        &'a self,
        _: &'a TenantStore,
        run: &'a RunRequest,
        agent: &'a str,
    ) -> BoxFuture<'a, Result<Json, ChildError>> {
        async move { self.delegate(run, agent).map(|_| origin()) }.boxed()
    }

    /// Returns a requirement that only an application meets, so that no server drives the run.
    fn needs(&self, _: &Json) -> String {
        "application".to_owned()
    }

    /// Returns an empty list, because an application resumes only the runs that it names.
    fn offers(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the origin of an application's run.
pub(super) fn origin() -> Json {
    json!({ "by": "application" })
}

//! The port that creates the parts of each run. Each deployment implements it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use wattle_capability::files::Files;
use wattle_model::Model;
use wattle_store::{StoreError, TenantStore};

use crate::agents::{AgentSpec, Agents};
use crate::delegates::ChildError;
use crate::journal::{RunLimits, RunRequest};
use crate::parts::RunParts;

/// A port that creates the parts of runs. The command line creates them from its settings, and the
/// server from a tenant and a session.
pub trait RunAssembler: Send + Sync {
    /// Creates the parts of a run when the run starts and each time it is resumed. `store` is that
    /// of the run's tenant, and `files` are those that a child run shares with its parent. The
    /// service sets the parts that belong to the run's place in its session and its tree.
    ///
    /// # Errors
    /// If the parts cannot be created, or the store fails.
    fn assemble<'a>(
        &'a self,
        store: &'a TenantStore,
        run: &'a RunRequest,
        files: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a>;

    /// Returns the reason why a root run with this origin must not go on by itself, such as a token
    /// that was revoked, or `None` if it may. A run that has not begun is refused, and any other run
    /// is parked until an operator releases it. By default, every run goes on.
    ///
    /// # Errors
    /// If the store fails.
    fn refusal<'a>(
        &'a self,
        _store: &'a TenantStore,
        _origin: &'a Json,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        async { Ok(None) }.boxed()
    }

    /// Returns the agents that runs may delegate to.
    fn agents(&self) -> Agents {
        Agents::default()
    }

    /// Returns the model of the child runs of `agent` that `run` starts, or `None` if it is unknown
    /// or cannot be used. By default, it is unknown. A question to an agent whose model is at
    /// another endpoint than that of the run leaves the machine, and one to an agent with an unknown
    /// model may.
    fn model(&self, _run: &RunRequest, _agent: &str) -> Option<Arc<dyn Model>> {
        None
    }

    /// Returns the origin of a child run of `agent` that `run` starts. By default, the agent is one
    /// of the [`agents`](RunAssembler::agents), and its declaration replaces that of `run`.
    ///
    /// # Errors
    /// If there is no such agent, or it cannot be used.
    fn child_origin<'a>(
        &'a self,
        store: &'a TenantStore,
        run: &'a RunRequest,
        agent: &'a str,
    ) -> BoxFuture<'a, Result<Json, ChildError>> {
        async move {
            let parent = AgentSpec::of_origin(&run.origin).map_err(ChildError::Refused)?;
            let agent = self.agents().load(store.tenant(), agent).await;
            let agent = agent.map_err(|why| ChildError::Unknown(why.to_string()))?;
            let mut origin = run.origin.clone();
            agent.delegated_by(&parent).write_to(&mut origin);
            Ok(origin)
        }
        .boxed()
    }

    /// Adds the secrets of a tenant to the mask of its store, so that a message is encrypted if it
    /// contains one. Called before a message is recorded. By default, there are no secrets.
    fn mask_secrets<'a>(&'a self, _store: &'a TenantStore) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    /// Returns the operator's limits for runs. By default, there are none. A forked run keeps the
    /// limits recorded for the original run, lowered to these limits if they are higher. For all
    /// other runs, [`assemble`](RunAssembler::assemble) applies the limits.
    fn limits(&self) -> RunLimits {
        RunLimits::default()
    }

    /// Returns true if a run of the tenant with this origin changes its files in an overlay, which
    /// is the default, and not directly in the workdir.
    fn has_overlay(&self, _store: &TenantStore, _origin: &Json) -> bool {
        true
    }

    /// Returns the name of the requirement that a process must meet to drive a run with this
    /// origin. A requirement may be a setting, a folder or a model. By default, the name is empty.
    fn needs(&self, _origin: &Json) -> String {
        String::new()
    }

    /// Returns the names of all requirements that this process meets. The process drives queued and
    /// open runs that have one of these requirements, including runs of other processes. By
    /// default, it meets only the requirement with the empty name.
    fn offers(&self) -> Vec<String> {
        vec![String::new()]
    }
}

/// The future of [`RunAssembler::assemble`].
pub type AssembleFuture<'a> = BoxFuture<'a, Result<RunParts, AssembleError>>;

/// The reason why a run's [parts](RunParts) cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The run is refused and ends. The string is the message for the user.
    #[error("{0}")]
    Refused(String),
    /// The store failed. If it is an [outage](StoreError::is_outage), the run stays queued or open,
    /// and is retried.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<String> for AssembleError {
    fn from(message: String) -> AssembleError {
        AssembleError::Refused(message)
    }
}

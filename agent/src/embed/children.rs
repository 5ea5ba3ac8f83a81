//! The runs of an agent's delegates.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use tokio_util::task::TaskTracker;
use wattle_capability::files::Files;
use wattle_capability::policy::{Approver, Policy};
use wattle_machine::{Ending, Usage};
use wattle_model::Model;
use wattle_runs::journal::{Journal as _, RunRecord, Status};
use wattle_runs::{ChildEnd, ChildError, ChildRequest, ChildRuns};
use wattle_store::TenantStore;

use super::agent::Inner;
use super::event::RunEventKind;
use super::execute::{Finished, Run, Start};
use super::hooks::RunObserver;
use super::report::ReportBuilder;

/// The implementation of [`ChildRuns`] for agents that are embedded in an application.
#[derive(Clone)]
pub(super) struct AgentChildren {
    agent: Arc<Inner>,
    observer: Arc<RunObserver>,
    /// The rules for the run's programs.
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    files: Arc<Files>,
    session_id: Option<String>,
    context: Arc<Json>,
    store: Option<TenantStore>,
    tasks: TaskTracker,
}

impl AgentChildren {
    pub(super) fn of(run: &Run, observer: &Arc<RunObserver>) -> AgentChildren {
        AgentChildren {
            agent: Arc::clone(&run.inner),
            observer: Arc::clone(observer),
            policy: run.policy(),
            approver: run.approver.clone(),
            files: Arc::clone(&run.files),
            session_id: run.session_id.clone(),
            context: Arc::clone(&run.context),
            store: run.store.clone(),
            tasks: TaskTracker::new(),
        }
    }

    /// Waits until all child runs have ended. Child runs that nobody waits for have already been
    /// cancelled.
    pub(super) async fn join(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn run_child(self, request: ChildRequest) -> Result<ChildEnd, ChildError> {
        let ChildRequest { id, agent: name, message, tree, cancel } = request;
        let agent = self.agent.team.agent(&name);
        let agent = agent.map_err(|why| ChildError::Unknown(why.to_string()))?;
        let known = match &self.store {
            Some(store) => store.run(&id).await?,
            None => None,
        };
        let child = id.clone();
        self.observer.notify(RunEventKind::ChildStarted {
            child,
            name: name.clone(),
            message: message.clone(),
        });
        let finished = match known {
            Some(ended) if ended.status == Status::Ended => self.of_record(ended, &agent, &tree)?,
            known => {
                let host = agent.host.clone();
                let permit = host.child_permit(tree.depth);
                let _permit = tokio::select! {
                    permit = permit => permit,
                    () = cancel.cancelled() => None,
                };
                let run = Run {
                    approver: agent.approver.clone().or_else(|| self.approver.clone()),
                    inner: agent,
                    id,
                    session_id: self.session_id.clone(),
                    cancel,
                    files: Arc::clone(&self.files),
                    context: Arc::clone(&self.context),
                    handlers: Vec::new(),
                    stream: None,
                    gate: None,
                    tree,
                    narrowed: self.policy.clone(),
                    store: self.store.clone(),
                };
                run.drive(match known {
                    Some(_) => Start::Resume { answers: Vec::new() },
                    None => Start::New { message, history: Vec::new() },
                })
                .await
            }
        };
        let Finished { report, ending, pending } = finished;
        let usage = report.usage;
        self.observer.child_ended(name, report);
        Ok(match ending {
            Some(ending) => ChildEnd::Ended { ending, usage },
            None => ChildEnd::Waits(pending),
        })
    }

    /// Returns the recorded outcome of a child run that ended before its parent was resumed. The
    /// report contains no model calls.
    fn of_record(
        &self,
        run: RunRecord,
        agent: &Inner,
        tree: &wattle_runs::RunTree,
    ) -> Result<Finished, ChildError> {
        let root = tree.root(&run.id).to_owned();
        let (ending, usage): (Ending, Usage) = match run.summary {
            Some(summary) => (summary.ending, summary.usage),
            None => {
                let why = format!("the run `{}` has no recorded end", run.id);
                return Err(ChildError::Refused(why));
            }
        };
        let mut report =
            ReportBuilder::new((run.id, root), self.session_id.clone(), agent.name.clone());
        let report = report.finish(&ending, ("", usage), Vec::new());
        Ok(Finished { report, ending: Some(ending), pending: Vec::new() })
    }
}

impl ChildRuns for AgentChildren {
    fn model(&self, agent: &str) -> Option<Arc<dyn Model>> {
        self.agent.team.agent(agent).ok().map(|agent| Arc::clone(&agent.model))
    }

    fn run(&self, request: ChildRequest) -> BoxFuture<'_, Result<ChildEnd, ChildError>> {
        // A separate task, because a program's stack is too small for a run.
        let task = self.tasks.spawn(self.clone().run_child(request));
        async move {
            task.await.unwrap_or_else(|stopped| {
                Err(ChildError::Refused(format!("the delegate's run stopped: {stopped}")))
            })
        }
        .boxed()
    }
}

//! Attempts by agents. Each attempt is a tree of runs that share the task's [`ExampleWorld`].
//!
//! An agent can send requests to other agents only in a run of the run service. Each attempt by an
//! agent therefore has its own service and store, which exist only for that attempt.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wattle_agent::Cancel;
use wattle_agent::agents::{AgentBase, AgentParts, AgentSpec, Agents};
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::policy::Preflight;
use wattle_agent::host::journal::{Journal as _, RunFilter};
use wattle_agent::host::machine::Ending;
use wattle_agent::host::service::{
    AssembleFuture, Outcome, RunAssembler, RunService, ServiceLimits,
};
use wattle_agent::host::{
    DialectSetting, ExampleWorld, RunParts, RunRequest, StoreError, TenantStore,
};
use wattle_agent::model::Model;
use wattle_agent::{Host, Settings, Store, Tenant};

use crate::tally::{Count, Tally};
use crate::trial::{Run, grants};

/// Maximum time for an attempt's open runs to stop after the attempt has ended.
const GRACE: Duration = Duration::from_secs(5);

/// The setup for an agent's attempt at a task: host, agents, settings, scene and model.
pub(crate) struct AgentTask {
    /// The host of the evaluation, with all programs.
    pub(crate) host: Host,
    /// The agents that the agent may delegate to.
    pub(crate) agents: Agents,
    /// The settings of the attempt, such as its dialect and its limits.
    pub(crate) settings: Settings,
    /// The scene in which all runs of the attempt work.
    pub(crate) scene: Arc<ExampleWorld>,
    /// The model that all agents use.
    pub(crate) model: Arc<dyn Model>,
    /// If true, programs may send prompts to a model.
    pub(crate) with_ai: bool,
}

/// Returns the [`AgentParts`] of an agent, adapted to an evaluation. The evaluation's dialect
/// replaces the agent's dialect, unless the evaluation's dialect is `auto`. The agent's limit on
/// steps cannot exceed the evaluation's limit.
pub(crate) fn parts(
    agent: &AgentSpec,
    host: &Host,
    settings: &Settings,
    agents: &Agents,
) -> Result<AgentParts, String> {
    let max_steps = Some(settings.machine.max_steps);
    let parts = agent
        .parts(AgentBase { host, settings, agents, max_steps })
        .map_err(|error| error.to_string())?;
    let dialect = match settings.dialect {
        DialectSetting::Auto => parts.settings.dialect,
        dialect => dialect,
    };
    let settings = Settings { dialect, ..parts.settings };
    Ok(AgentParts { settings, ..parts })
}

impl RunAssembler for AgentTask {
    fn assemble<'a>(
        &'a self,
        _: &'a TenantStore,
        run: &'a RunRequest,
        _: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a> {
        Box::pin(async move {
            let agent = AgentSpec::of_origin(&run.origin)?;
            let AgentParts { host, settings, policy } =
                parts(&agent, &self.host, &self.settings, &self.agents)?;
            // No person is available to approve a call.
            let guard = Arc::new(Preflight::new(policy, None));
            let grants = grants(&host, &self.scene, self.with_ai).guarded(guard);
            let parts = RunParts::new(host, Arc::clone(&self.model), grants);
            Ok(RunParts { settings, ..parts })
        })
    }

    fn agents(&self) -> Agents {
        self.agents.clone()
    }

    fn model(&self, _: &RunRequest, _: &str) -> Option<Arc<dyn Model>> {
        Some(Arc::clone(&self.model))
    }
}

/// Sends a message to an agent and waits until the agent's run and all child runs have ended. The
/// result includes the steps and programs of the child runs.
pub(crate) async fn run(
    task: AgentTask,
    agent: &AgentSpec,
    message: &str,
    cancel: &CancellationToken,
) -> Result<Run, StoreError> {
    let host = task.host.clone();
    let store = Store::in_memory(Duration::MAX)?.tenant(&Tenant::default());
    let service = RunService::new(host.clone(), Arc::new(task), ServiceLimits::default());
    let mut request = RunRequest::new(message);
    agent.write_to(&mut request.origin);
    let run = match service.start(&store, request, &Cancel::new()).await {
        Ok(run) => run,
        Err(error) => return Ok(failed(&error.to_string())),
    };
    let outcome = tokio::select! {
        outcome = run.outcome() => outcome,
        () = cancel.cancelled() => {
            run.cancel().cancel("the evaluation was interrupted");
            run.outcome().await
        }
    };
    service.stop(GRACE).await;
    let mut ended = match outcome {
        Outcome::Ended(report) => {
            Run { ending: report.ending.clone(), steps: report.steps, count: Count::default() }
        }
        Outcome::Parked(_) => failed("the run waits for a person, and an attempt has none"),
        Outcome::Suspended(reason) => failed(&reason),
    };
    ended.count = count(&store, &host, &run.id).await?;
    let children = RunFilter { tree_of: Some(run.id.clone()), ..RunFilter::default() };
    for child in store.runs(children).await? {
        ended.count += count(&store, &host, &child.id).await?;
        let steps = child.summary.as_ref().map_or(0, |summary| summary.steps);
        ended.steps = ended.steps.saturating_add(steps);
    }
    Ok(ended)
}

async fn count(store: &TenantStore, host: &Host, run: &str) -> Result<Count, StoreError> {
    let tally = Tally::default();
    store.events(run, 0, u32::MAX).await?.iter().for_each(|event| tally.record(event));
    Ok(tally.count(&host.calling_runtime()).await)
}

fn failed(why: &str) -> Run {
    let ending = Ending::Failed { message: format!("error: {why}") };
    Run { ending, steps: 0, count: Count::default() }
}

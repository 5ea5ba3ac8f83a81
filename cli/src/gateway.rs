//! The MCP server of the command line: one client, over standard input and output.
//!
//! Each program and each task of the client is a run of its own, recorded like all others. The runs
//! share the files, so that a program sees what the one before it wrote.

use std::sync::Arc;

use wattle_agent::agents::DEFAULT_AGENT;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::catalog::{Catalog, Entry};
use wattle_agent::host::machine::Ending;
use wattle_agent::host::{DialectSetting, Report, RunRequest, TenantStore};
use wattle_agent::model::Model;
use wattle_agent::{Cancel, Settings};
use wattle_mcp::{CallEnd, ClientCall, ClientModel, Deployment, Performing, TaskAgent, Underway};

use crate::changes::Fate;
use crate::fault::Fault;
use crate::setup::{LocalAssembler, LocalRuns, RUN_STEPS, Setup};
use crate::writers;

/// Maximum length of a program's output, in characters.
const MAX_OUTPUT: usize = 20_000;

/// Maximum number of steps of a client's call: the call, and the end of the run.
const CALL_STEPS: u32 = 2;

/// The command line's deployment.
pub(crate) struct LocalDeployment {
    setup: Setup,
    store: TenantStore,
    files: Arc<Files>,
    /// The model for tasks, if one is configured.
    model: Option<Arc<dyn Model>>,
    exposed: Vec<String>,
    /// A lock that is held during a call, because the calls share the files.
    turn: tokio::sync::Mutex<()>,
}

impl LocalDeployment {
    /// Creates the deployment. The programs in `exposed` are tools of their own.
    ///
    /// # Errors
    /// If the store or the workdir cannot be used.
    pub(crate) fn new(mut setup: Setup, exposed: Vec<String>) -> Result<LocalDeployment, Fault> {
        let store = setup.journal().map_or_else(|| setup.memory(), Ok)?;
        writers::set_name("`wattle mcp`".to_owned());
        let (files, model) = (setup.files()?, setup.model().ok());
        Ok(LocalDeployment {
            setup,
            store,
            files,
            model,
            exposed,
            turn: tokio::sync::Mutex::default(),
        })
    }

    async fn run(
        &self,
        message: String,
        agent: Option<&str>,
        (model, settings): (Arc<dyn Model>, Settings),
        underway: &Underway,
    ) -> Result<CallEnd, Fault> {
        let mut setup = self.setup.clone().asking(Arc::clone(&underway.approver));
        if let Some(agent) = agent {
            setup.config.agent.value = Some(agent.to_owned());
        }
        let origin = setup.origin(&*setup.agent().await?);
        let request = RunRequest { origin, ..RunRequest::new(message) };
        let config = setup.config.clone();
        let fate = move |report: &Report, kept_by: Option<&str>| {
            let succeeded = matches!(report.ending, Ending::Answered { .. });
            Some(Fate::of(&config, succeeded, kept_by))
        };
        let (service, assembler) = LocalAssembler::service(LocalRuns {
            setup: Arc::new(setup),
            model,
            settings,
            output: None,
            files: Arc::clone(&self.files),
            fate: Some(Arc::new(fate)),
        });
        let run = service.start(&self.store, request, &Cancel::new()).await;
        let run = run.map_err(Fault::failed)?;
        let mut follower = service.follow(&self.store, &run.id, 0).until_parked();
        let (mut end, mut is_cancelled) = (None, false);
        loop {
            let next = tokio::select! {
                biased;
                () = underway.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    run.cancel().cancel("the client cancelled its request");
                    continue;
                }
                next = follower.next() => next,
            };
            let Some(event) = next.map_err(Fault::failed)? else { break };
            let found = underway.observe(&event.event);
            // The end of a task is its answer, and that of a call the result of its program.
            if found.is_some() && (agent.is_some() || end.is_none()) {
                end = found;
            }
        }
        drop(run.outcome().await);
        if let Some(fault) = assembler.failure() {
            return Err(fault);
        }
        Ok(end.unwrap_or_else(|| CallEnd::failed("the run has no result".to_owned())))
    }

    /// Runs a request, and reports an error as its result.
    async fn perform(
        &self,
        message: String,
        agent: Option<&str>,
        with: (Arc<dyn Model>, Settings),
        underway: &Underway,
    ) -> CallEnd {
        let _turn = self.turn.lock().await;
        self.run(message, agent, with, underway)
            .await
            .unwrap_or_else(|fault| CallEnd::failed(fault.sentence()))
    }
}

impl Deployment for LocalDeployment {
    fn catalog(&self) -> Catalog {
        self.setup.host.catalog()
    }

    fn offers(&self, _: &Entry) -> bool {
        true
    }

    fn exposed(&self) -> &[String] {
        &self.exposed
    }

    fn call(&self, call: ClientCall, underway: Underway) -> Performing<'_> {
        Box::pin(async move {
            self.setup.host.refresh().await;
            let mut settings = self.setup.settings(RUN_STEPS);
            settings.machine.max_steps = CALL_STEPS;
            settings.machine.observation_limit = MAX_OUTPUT;
            (settings.orient, settings.dialect) = (false, DialectSetting::Native);
            let model: Arc<dyn Model> = Arc::new(ClientModel);
            self.perform(call.message(), None, (model, settings), &underway).await
        })
    }

    fn check(&self, program: String) -> Performing<'_> {
        Box::pin(async move { wattle_mcp::check(&program, &self.setup.host).await })
    }

    fn agents(&self) -> Vec<TaskAgent> {
        // Without a model, nobody can solve a task.
        self.model.as_ref().map(|_| TaskAgent::among(&self.setup.agents)).unwrap_or_default()
    }

    fn task(&self, task: String, agent: Option<String>, underway: Underway) -> Performing<'_> {
        Box::pin(async move {
            let Some(model) = self.model.clone() else {
                return CallEnd::failed("no model is configured".to_owned());
            };
            let settings = match self.setup.run_settings(RUN_STEPS, &model) {
                Ok(settings) => settings,
                Err(fault) => return CallEnd::failed(fault.sentence()),
            };
            let agent = agent.as_deref().unwrap_or(DEFAULT_AGENT);
            self.perform(task, Some(agent), (model, settings), &underway).await
        })
    }

    fn page(&self, name: &str) -> Option<String> {
        wattle_mcp::page(name, &self.setup.host)
    }
}

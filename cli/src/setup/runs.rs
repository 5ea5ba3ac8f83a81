//! The runs that commands start: the service that drives them, and their components.

use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value as Json;
use wattle_agent::Settings;
use wattle_agent::agents::{AgentSpec, Agents};
use wattle_agent::host::capability::files::{Change, Files};
use wattle_agent::host::capability::secrets::Vault;
use wattle_agent::host::journal::{KeptFiles, RunRequest};
use wattle_agent::host::service::{AssembleFuture, RunAssembler, RunService, ServiceLimits};
use wattle_agent::host::{Report, RunParts, Settle, TenantStore, UsageMeter};
use wattle_agent::model::{Model, Models};
use wattle_agent::output::OutputSettings;

use super::{Session, Setup, check_keys, trace_dir};
use crate::changes::{self, Fate, Rules};
use crate::fault::Fault;
use crate::output;

/// The key under which a run's origin stores a session id that is only a label.
pub(crate) const LABEL: &str = "label";

/// The components and settings that the runs of one command or one interactive session share.
pub(crate) struct LocalRuns {
    /// The settings of the command, and the components created from them.
    pub(crate) setup: Arc<Setup>,
    /// The model.
    pub(crate) model: Arc<dyn Model>,
    /// The settings of the agent loop.
    pub(crate) settings: Settings,
    /// The requirements for the runs' output.
    pub(crate) output: Option<OutputSettings>,
    /// The files of the runs. For each run of a session, the session's changes are loaded into
    /// them.
    pub(crate) files: Arc<Files>,
    /// A function that chooses what happens to the changes of a root run at its end.
    pub(crate) fate: Option<ChooseFate>,
}

/// A function that chooses what happens to the changes of a finished run. The second argument is the
/// id of the run or the session that keeps the changes that are not applied. Without a fate, they
/// are neither listed nor applied.
pub(crate) type ChooseFate = Arc<dyn Fn(&Report, Option<&str>) -> Option<Fate> + Send + Sync>;

/// A [`RunAssembler`] that keeps the error with which the changes of a run were not applied.
pub(crate) struct LocalAssembler {
    runs: LocalRuns,
    models: Arc<dyn Models>,
    failure: Arc<Mutex<Option<Fault>>>,
    /// The unapplied changes with which the last root run began.
    began_with: Mutex<Vec<Change>>,
}

impl LocalAssembler {
    /// Creates the assembler and the service for these runs.
    pub(crate) fn service(runs: LocalRuns) -> (RunService, Arc<LocalAssembler>) {
        let host = runs.setup.host.clone();
        let models = runs.setup.models(Arc::clone(&runs.model));
        let (failure, began_with) = (Arc::default(), Mutex::default());
        let assembler = Arc::new(LocalAssembler { runs, models, failure, began_with });
        let shared: Arc<dyn RunAssembler> = Arc::<LocalAssembler>::clone(&assembler);
        (RunService::new(host, shared, ServiceLimits::default()), assembler)
    }

    /// Returns and clears the last error with which the changes of a run were not applied.
    pub(crate) fn failure(&self) -> Option<Fault> {
        self.failure.lock().take()
    }

    /// Returns true if the last root run changed files, compared with the changes that its session
    /// kept before.
    ///
    /// # Errors
    /// If the changes cannot be listed.
    pub(crate) fn has_changed_files(&self) -> Result<bool, Fault> {
        Ok(changes::of(&self.runs.files)? != *self.began_with.lock())
    }

    async fn parts(
        &self,
        store: &TenantStore,
        run: &RunRequest,
        is_child: bool,
    ) -> Result<RunParts, Fault> {
        let LocalRuns { setup, model, settings, output, files, fate } = &self.runs;
        check_keys(&setup.config, store.file(), Some(store.tenant())).await?;
        let signer = setup.signer()?;
        check_keys(&setup.config, store.file(), Some(store.tenant())).await?;
        let agent = AgentSpec::of_origin(&run.origin).map_err(Fault::failed)?;
        let (setup, settings) = setup.for_agent(&agent, settings)?;
        let model = &agent.open_model(&*self.models, model).map_err(Fault::configuration)?;
        let meter = UsageMeter::default();
        let state = Session::of_run(store, &run.id, run.session.as_deref());
        let access = setup.access(
            Arc::clone(files),
            Some(&state),
            Some((Arc::clone(model), meter.clone())),
            &settings,
        )?;
        // A child run shares the files of its root run, and belongs to no session.
        let newest = match run.session {
            Some(_) => state.load_files(files).await?,
            None => 0,
        };
        let keeps_files = run.session.is_some() && files.is_overlay();
        if !is_child && files.is_overlay() {
            *self.began_with.lock() = changes::of(files)?;
        }
        let is_stored = setup.config.store.value.is_some();
        let kept_by = (run.session.is_some() || is_stored).then(|| state.name().to_owned());
        let (files, failure) = (Arc::clone(files), Arc::clone(&self.failure));
        let rules = Rules::of(&setup.config);
        let settle = fate.clone().filter(|_| !is_child).map(|fate| {
            Box::new(move |report: &Report| {
                let fate = fate(report, kept_by.as_deref());
                if let Some(fate) = &fate
                    && let Err(fault) = changes::settle(&files, &rules, fate)
                {
                    *failure.lock() = Some(fault);
                }
                match fate {
                    _ if !files.is_overlay() => KeptFiles::Nothing,
                    Some(Fate::Apply) => KeptFiles::Replaced { newest, delta: files.take_all() },
                    _ => KeptFiles::Added,
                }
            }) as Settle
        });
        let parts = RunParts::new(setup.host.clone(), Arc::clone(model), setup.grants(access));
        Ok(RunParts {
            settings,
            meter,
            trace_dir: trace_dir(&setup.config, &setup.config.root.value),
            label: run.origin.get(LABEL).and_then(Json::as_str).map(str::to_owned),
            signer,
            output: output.clone().filter(|_| !is_child),
            keeps_files,
            settle,
            ..parts
        })
    }
}

impl RunAssembler for LocalAssembler {
    fn assemble<'a>(
        &'a self,
        store: &'a TenantStore,
        run: &'a RunRequest,
        files: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a> {
        Box::pin(async move {
            let parts = self.parts(store, run, files.is_some()).await;
            parts.map_err(|fault| fault.to_string().into())
        })
    }

    fn mask_secrets<'a>(
        &'a self,
        _: &'a TenantStore,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let secrets = super::trusted::secrets(&self.runs.setup.config);
        Box::pin(async move {
            // If they cannot be read, the run fails when it starts.
            if let Ok(secrets) = secrets {
                _ = Vault::new(secrets).mask_in(output::mask()).await;
            }
        })
    }

    fn agents(&self) -> Agents {
        self.runs.setup.agents.refresh();
        self.runs.setup.agents.clone()
    }

    fn model(&self, _: &RunRequest, agent: &str) -> Option<Arc<dyn Model>> {
        self.agents().get(agent)?.open_model(&*self.models, &self.runs.model).ok()
    }

    fn has_overlay(&self, _: &TenantStore, _: &Json) -> bool {
        self.runs.files.is_overlay()
    }

    fn needs(&self, _: &Json) -> String {
        "command line".to_owned()
    }

    /// Returns an empty list, because a command resumes only the run that it names.
    fn offers(&self) -> Vec<String> {
        Vec::new()
    }
}

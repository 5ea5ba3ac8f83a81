//! The fixtures of a run within the test process: host, store and workdir.

#![allow(clippy::unwrap_used, reason = "a test cannot go on without its world")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;
use wattle_agent::host::engine::{Bounds, Component};
use wattle_agent::host::rt::Grants;
use wattle_agent::host::{Report, RunParts, RunRequest, STEPS_FILE, TenantStore, UsageMeter};
use wattle_agent::model::Model;
use wattle_agent::output::OutputSettings;
use wattle_agent::{Cancel, Host, Resources, Settings, Tenant};
use wattle_capability::egress::{Egress, Policy};
use wattle_capability::files::Files;
use wattle_cases::guests::SharedGuests;
use wattle_catalog::Catalog;
use wattle_machine::{Envelope, Message};
use wattle_rt::Limits;

use crate::store::empty_store;

/// Maximum size of a run's overlay, in bytes.
const OVERLAY_BYTES: u64 = 1 << 20;

/// A test environment: a host with the built-in catalog, an empty store, and an empty workdir.
/// Dropping it removes the workdir.
pub struct World {
    /// The host of the runs: engine, catalog and network.
    pub host: Host,
    /// The tenant's store. Jobs use the state of its session `s`.
    pub store: TenantStore,
    /// The workdir.
    pub dir: tempfile::TempDir,
}

/// The input of a run that a test starts.
pub struct Job {
    /// The user's message.
    pub message: String,
    /// The earlier messages of the conversation, oldest first.
    pub history: Vec<Message>,
    /// The session that the run belongs to.
    pub session_id: Option<String>,
    /// The capabilities that the run's programs may use.
    pub grants: Arc<Grants>,
    /// The meter that counts the model usage of the run's programs.
    pub meter: UsageMeter,
    /// The folder of the trace.
    pub trace_dir: Option<PathBuf>,
    /// The handle that cancels the run.
    pub cancel: Cancel,
    /// The required output of the run.
    pub output: Option<OutputSettings>,
}

impl Job {
    /// Creates a job without a history, a session or a trace.
    pub fn new(message: impl Into<String>, grants: Grants) -> Job {
        Job {
            message: message.into(),
            history: Vec::new(),
            session_id: None,
            grants: Arc::new(grants),
            meter: UsageMeter::default(),
            trace_dir: None,
            cancel: Cancel::new(),
            output: None,
        }
    }

    /// Returns the parts and the request of the run.
    pub fn on(
        self,
        host: &Host,
        model: &(impl Model + Clone + 'static),
        settings: &Settings,
    ) -> (RunParts, RunRequest) {
        let Job { message, history, session_id, grants, meter, trace_dir, cancel, output } = self;
        let parts = RunParts {
            settings: settings.clone(),
            history,
            meter,
            trace_dir,
            cancel,
            output,
            ..RunParts::new(host.clone(), Arc::new(model.clone()), grants)
        };
        (parts, RunRequest { session: session_id, ..RunRequest::new(message) })
    }
}

/// Creates a host with the built-in programs. Its compiled guests are shared with other tests. If the
/// variable `WATTLE_TESTS_ENGINE` is set, the loop of its runs is the machine as a component.
pub fn built_in_host(limits: Limits) -> Host {
    let host = Host::new(limits, Catalog::built_in(), Egress::new(Policy::default())).unwrap();
    let host = host.with_cache(SharedGuests::in_target().folder()).unwrap();
    match std::env::var_os("WATTLE_TESTS_ENGINE") {
        Some(_) => host.with_engine(engine()),
        None => host,
    }
}

/// Returns the machine's loop as a component, or `None` if it is not built.
pub fn engine() -> Option<Component> {
    let binary = wattle_cases::engine::component()?;
    let folder = SharedGuests::in_target();
    Some(Component::load(&binary, Some(folder.folder()), Bounds::default()).unwrap())
}

impl World {
    /// Creates an environment with the default limits.
    pub fn new() -> World {
        World::with(Limits::default())
    }

    /// Creates an environment with the given limits.
    pub fn with(limits: Limits) -> World {
        let host = built_in_host(limits);
        let store = empty_store().tenant(&Tenant::default());
        World { host, store, dir: tempfile::tempdir().unwrap() }
    }

    /// Returns the workdir.
    pub fn workdir(&self) -> &Path {
        self.dir.path()
    }

    /// Creates a job whose files are an overlay on the workdir. Its programs cannot call a model.
    pub fn job(&self, message: &str) -> Job {
        let base = Files::open_base(self.workdir()).unwrap();
        let files = Arc::new(Files::overlay(Some(base), OVERLAY_BYTES));
        let access = Resources {
            state: Arc::new(self.store.state("s")),
            tenant: Arc::new(self.store.variables()),
            memory: Arc::new(self.store.memory(Some("s"))),
            ..Resources::new(&self.host, files)
        };
        Job { trace_dir: Some(self.workdir().to_owned()), ..Job::new(message, access.grants()) }
    }

    /// Runs a job until it ends and returns its report and its events.
    pub async fn run(
        &self,
        model: &(impl Model + Clone + 'static),
        settings: &Settings,
        job: Job,
    ) -> (Report, Vec<Envelope>) {
        let events = Mutex::new(Vec::new());
        let sink = |event: &Envelope| events.lock().unwrap().push(event.clone());
        let (parts, request) = job.on(&self.host, model, settings);
        let report = wattle_agent::host::run(parts, &request, &sink).await;
        (report, events.into_inner().unwrap())
    }

    /// Reads the steps from the trace in the workdir.
    pub fn steps(&self) -> Vec<Json> {
        let text = std::fs::read_to_string(self.workdir().join(STEPS_FILE)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

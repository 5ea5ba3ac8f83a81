//! A fixture for stored runs: a host whose network counts every request.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use wattle_agent::host::capability::PortFuture;
use wattle_agent::host::capability::egress::{HeaderMap, Incoming, Outgoing, StatusCode};
use wattle_agent::host::capability::files::{Files, OVERLAY_LIMIT};
use wattle_agent::host::capability::http;
use wattle_agent::host::capability::kv::Backend as _;
use wattle_agent::host::capability::policy::{self, NoApprover, Preflight};
use wattle_agent::host::journal::{
    self, Approval, RunOutcome, RunRecord, RunRequest, SharedJournal, Status,
};
use wattle_agent::host::machine::{Envelope, Message, Role};
use wattle_agent::host::rt::{Grants, Limits};
use wattle_agent::host::{RunParts, STEPS_FILE, TenantStore};
use wattle_agent::model::{Delta, Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::output::OutputSettings;
use wattle_agent::{Host, Resources, Settings, Tenant};
use wattle_tests::{Job, built_in_host, empty_store};

/// A test environment: a host, a store, a workdir and a network.
pub(crate) struct Place {
    pub(crate) host: Host,
    pub(crate) store: TenantStore,
    pub(crate) network: Arc<Network>,
    pub(crate) policy: policy::Policy,
    pub(crate) settings: Settings,
    pub(crate) dir: tempfile::TempDir,
    /// The structured output that the runs must return, if any.
    pub(crate) output: Option<OutputSettings>,
}

/// A network that responds to each request with the request's number, and counts requests by method
/// and URL.
#[derive(Default)]
pub(crate) struct Network {
    made: Mutex<BTreeMap<String, usize>>,
    all: AtomicUsize,
    keys: Mutex<Vec<Option<String>>>,
    hangs: AtomicBool,
    hung: tokio::sync::Notify,
}

impl Network {
    pub(crate) fn made(&self, what: &str) -> usize {
        self.made.lock().unwrap().get(what).copied().unwrap_or(0)
    }

    /// Returns the `Idempotency-Key` of each request, in order.
    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        self.keys.lock().unwrap().clone()
    }

    /// Makes the network stop responding to requests.
    pub(crate) fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    /// Waits for a request to which the network does not respond.
    pub(crate) async fn hung(&self) {
        self.hung.notified().await;
    }
}

impl http::Backend for Network {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        let request = outgoing.request();
        *self
            .made
            .lock()
            .unwrap()
            .entry(format!("{} {}", request.method, request.url))
            .or_default() += 1;
        let key =
            request.headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        self.keys.lock().unwrap().push(key);
        if self.hangs.load(Ordering::Relaxed) {
            self.hung.notify_one();
            return Box::pin(std::future::pending());
        }
        let number = self.all.fetch_add(1, Ordering::Relaxed);
        let status =
            if request.url.ends_with("/missing") { StatusCode::NOT_FOUND } else { StatusCode::OK };
        let body = format!("answer {number}").into();
        let answer = outgoing.answer(http::Response { status, headers: HeaderMap::new(), body });
        Box::pin(async { Ok(answer) })
    }
}

/// A model whose answer depends only on the number of its messages in the conversation, so every
/// process receives the same answers.
#[derive(Clone)]
pub(crate) struct ByTurn(pub(crate) Vec<String>);

impl Model for ByTurn {
    fn name(&self) -> &str {
        "by-turn"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        let answered =
            request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let text = self.0.get(answered).unwrap_or_else(|| panic!("no answer {answered}")).clone();
        Box::pin(async move { Ok(ModelReply { text, ..ModelReply::default() }) })
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        self.complete(request)
    }
}

/// Returns a model's answer that runs a program.
pub(crate) fn wat(body: &str) -> String {
    format!("ToolCall::Wat(```wat\n{body}\n(i32.const 0)\n```)")
}

/// Returns a model's final answer, `done`.
pub(crate) fn done() -> String {
    "ToolCall::Response(\"\"\"done\"\"\")".to_owned()
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::with(built_in_host(Limits::default()))
    }

    pub(crate) fn with(host: Host) -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("base.txt"), "base\n").unwrap();
        Place {
            host,
            store: empty_store().tenant(&Tenant::default()),
            network: Arc::default(),
            policy: policy::Policy::default(),
            settings: Settings::default(),
            dir,
            output: None,
        }
    }

    /// Creates an empty environment with the same host, policy and settings.
    pub(crate) fn another(&self) -> Place {
        Place {
            policy: self.policy.clone(),
            settings: self.settings.clone(),
            output: self.output.clone(),
            ..Place::with(self.host.clone())
        }
    }

    pub(crate) fn journal(&self) -> SharedJournal {
        Arc::new(self.store.clone())
    }

    pub(crate) fn workdir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the files and the grants of a run in a new process.
    pub(crate) fn process(&self, session: &str) -> (Arc<Files>, Arc<Grants>) {
        let base = Files::open_base(self.workdir()).unwrap();
        let files = Arc::new(Files::overlay(Some(base), OVERLAY_LIMIT));
        let access = Resources {
            state: Arc::new(self.store.state(session)),
            tenant: Arc::new(self.store.variables()),
            memory: Arc::new(self.store.memory(Some(session))),
            network: Arc::<Network>::clone(&self.network),
            ..Resources::new(&self.host, Arc::clone(&files))
        };
        let preflight = Preflight::new(self.policy.clone(), Some(Arc::new(NoApprover)));
        (files, Arc::new(access.grants().guarded(Arc::new(preflight))))
    }

    /// Returns a job for a new process, and the job's files.
    pub(crate) fn job(&self) -> (Arc<Files>, Job) {
        let (files, grants) = self.process("s");
        let grants = grants.as_ref().clone();
        let job = Job {
            session_id: Some("s".to_owned()),
            trace_dir: Some(self.workdir().to_owned()),
            output: self.output.clone(),
            ..Job::new("go", grants)
        };
        (files, job)
    }

    /// Runs a job under the given id and records it in the journal. Returns the outcome and the
    /// events.
    pub(crate) async fn run(
        &self,
        journal: &SharedJournal,
        model: &(impl Model + Clone + 'static),
        id: &str,
    ) -> (RunOutcome, Vec<Envelope>) {
        let (_, job) = self.job();
        let events = Mutex::new(Vec::new());
        let sink = |event: &Envelope| events.lock().unwrap().push(event.clone());
        let (parts, request) = job.on(&self.host, model, &self.settings);
        let origin = serde_json::json!({"by": "test"});
        let request = RunRequest { id: id.to_owned(), origin, ..request };
        let ended = journal::run(parts, &request, &sink, journal).await.unwrap();
        (ended, events.into_inner().unwrap())
    }

    /// Resumes a run in a new process. Returns the outcome and the files of that process.
    pub(crate) async fn resume(
        &self,
        model: &(impl Model + Clone + 'static),
        id: &str,
        answers: &[(&str, bool)],
    ) -> (Result<RunOutcome, journal::ResumeError>, Arc<Files>) {
        let (files, grants) = self.process("s");
        let parts = RunParts {
            settings: self.settings.clone(),
            trace_dir: Some(self.workdir().to_owned()),
            ..RunParts::new(self.host.clone(), Arc::new(model.clone()), grants)
        };
        let answers: Vec<(String, Approval)> =
            answers.iter().map(|(call, yes)| ((*call).to_owned(), Approval::once(*yes))).collect();
        let sink = |_: &Envelope| {};
        let ended = journal::resume(parts, id, &answers, false, &sink, &self.journal()).await;
        (ended, files)
    }

    pub(crate) async fn opened(&self, id: &str) -> RunRecord {
        self.journal().run(id).await.unwrap().unwrap()
    }

    /// Returns the value of a key in the session's state.
    pub(crate) async fn value(&self, key: &str) -> Option<String> {
        let value = self.store.state("s").get(key.to_owned()).await.unwrap();
        value.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    /// Returns the lines of the trace as JSON.
    pub(crate) fn steps(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.workdir().join(STEPS_FILE)).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Replays a run from its first step and returns the report.
    pub(crate) async fn replay(&self, id: &str) -> journal::ReplayReport {
        journal::replay(&self.host, &self.journal(), &self.opened(id).await, 1).await.unwrap()
    }
}

/// Returns the answer of a completed run.
pub(crate) fn answer(ended: &RunOutcome) -> &str {
    match ended {
        RunOutcome::Done(report) => report.ending.text(),
        RunOutcome::Parked(parked) => panic!("the run waits: {parked:?}"),
    }
}

/// Returns the observations of a run's steps.
pub(crate) async fn observations(place: &Place, id: &str) -> Vec<String> {
    let messages = journal::conversation(&place.journal(), &place.opened(id).await).await.unwrap();
    let observed = |message: &&Message| message.content.starts_with("[Observation");
    messages.iter().filter(observed).map(|message| wattle_tests::plain(&message.content)).collect()
}

pub(crate) async fn status(place: &Place, id: &str) -> Status {
    place.opened(id).await.status
}

//! The run service: starts runs, lets any number of clients follow them, and ends them.
//!
//! A run belongs to nobody's connection. [`RunService::start`] queues a run durably and returns its
//! id. [`RunService::follow`] returns its events: first the recorded ones, then the live ones,
//! without a gap and each once. Who started a run may leave and come back, in this process or in
//! the next one; [`RunService::resume_open`] goes on with the runs of a process that has ended.
//!
//! ```text
//! start ─► queue of the session ─► assemble ─► drive ─► settle ─► end
//!             │                                  │
//!             └── LiveRun: events, answer so far ┴──► Follower, TreeFollower (any number)
//! ```
//!
//! The service knows how runs are driven, and nothing about what they may use: a
//! [`RunAssembler`], which the command line and the server implement, creates the [`RunParts`] of
//! each run.

mod assemble;
mod child;
mod chunks;
mod drive;
mod error;
mod follow;
mod live;
mod queue;
mod tree;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value as Json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use assemble::{AssembleFuture, RunAssembler, RunParts, RunSeed, Settle};
pub(crate) use child::record_all;
pub use chunks::{Chunk, ChunkEvent, Chunks};
pub use error::{AnswerError, StartError};
pub use follow::{FollowError, Follower};
pub use live::Outcome;
pub use tree::{TreeCursor, TreeEvent, TreeFollower};
pub use view::{ArtifactLine, RunStatus, RunView, ToolUse};

use crate::agents::AgentSpec;
use crate::cancel::Cancel;
use crate::error::StoreError;
use crate::host::Host;
use crate::journal::{self, Approval, Journal as _, QueuedRun, ResumeError, RunFilter, Status};
use crate::now_ms;
use crate::store::TenantStore;
use crate::tenant::Tenant;
use live::LiveRun;
use queue::SessionQueues;

/// A request for a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// The user's message.
    pub message: String,
    /// The session that the run continues or starts.
    pub session: Option<String>,
    /// Data from which the assembler creates the run's parts, now and when the run is resumed.
    pub origin: Json,
}

impl RunRequest {
    /// Creates a request for a run of the default agent, without a session.
    #[must_use]
    pub fn new(message: impl Into<String>) -> RunRequest {
        RunRequest { message: message.into(), session: None, origin: Json::Object(Map::new()) }
    }

    /// Makes the request one for a run of this agent. A resumed run has the same agent.
    #[must_use]
    pub fn of_agent(mut self, agent: &AgentSpec) -> RunRequest {
        agent.write_to(&mut self.origin);
        self
    }
}

/// A run that is active in this process.
pub struct RunHandle {
    /// The run's id.
    pub id: String,
    live: Arc<LiveRun>,
}

impl RunHandle {
    /// Waits until the run has ended, is parked or is suspended.
    pub async fn outcome(&self) -> Outcome {
        self.live.outcome().await
    }

    /// Returns the cancellation of the run.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.live.cancel
    }
}

/// The limits of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Maximum number of runs, including those that wait for their turn in a session.
    pub runs: usize,
    /// Maximum number of waiting runs of one session.
    pub waiting: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        ServiceLimits { runs: 64, waiting: 8 }
    }
}

/// The service. Cheap to clone.
#[derive(Clone)]
pub struct RunService(Arc<Inner>);

struct Inner {
    host: Host,
    assembler: Arc<dyn RunAssembler>,
    limits: ServiceLimits,
    /// A permit for each run that may be active.
    slots: Arc<Semaphore>,
    sessions: SessionQueues,
    live: Mutex<HashMap<(Tenant, String), Arc<LiveRun>>>,
    /// Notified when a run begins or ends in this process.
    changed: watch::Sender<()>,
    tasks: TaskTracker,
    /// Cancelled when the service accepts no further runs.
    stopping: CancellationToken,
    /// Cancelled when the runs must be suspended.
    suspending: CancellationToken,
}

impl RunService {
    /// Creates a service. It must be used within a tokio runtime.
    #[must_use]
    pub fn new(host: Host, assembler: Arc<dyn RunAssembler>, limits: ServiceLimits) -> RunService {
        RunService(Arc::new(Inner {
            host,
            assembler,
            limits,
            slots: Arc::new(Semaphore::new(limits.runs.min(Semaphore::MAX_PERMITS))),
            sessions: SessionQueues::default(),
            live: Mutex::default(),
            changed: watch::Sender::new(()),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            suspending: CancellationToken::new(),
        }))
    }

    /// Queues a run, and returns its handle. When this returns, the run is durable: it is driven even
    /// if its caller leaves, and by the next process if this one ends.
    ///
    /// # Errors
    /// The service is full or stops, or the store cannot be written. In that case nothing is
    /// started.
    pub async fn start(
        &self,
        store: &TenantStore,
        request: RunRequest,
    ) -> Result<RunHandle, StartError> {
        let slot = self.slot()?;
        let waiting = self.0.limits.waiting;
        let session = request.session.as_deref();
        let position = self.0.sessions.queue(store.tenant(), session, waiting).await?;
        let RunRequest { message, session, origin } = request;
        let run = QueuedRun { id: journal::new_id(), session, made: now_ms(), message, origin };
        // Another process that looks for queued runs leaves a locked one alone.
        let lock = journal::lock_run(store, &run.id).await?.ok_or(StartError::Stopping)?;
        store.enqueue(run.clone()).await?;
        Ok(self.drive_queued(store.clone(), run, (position, slot), lock))
    }

    /// Returns a follower of a run's events with numbers above `after`. An unknown run has none.
    #[must_use]
    pub fn follow(&self, store: &TenantStore, run: &str, after: u64) -> Follower {
        Follower::new(self.clone(), store.clone(), run.to_owned(), after)
    }

    /// Returns a follower of the events of a run at the top and of all child runs below it: those
    /// after the event `after`, or all of them.
    #[must_use]
    pub fn follow_tree(
        &self,
        store: &TenantStore,
        run: &str,
        after: Option<TreeCursor>,
    ) -> TreeFollower {
        TreeFollower::new(self.clone(), store.clone(), run.to_owned(), after)
    }

    /// Answers a pending approval. The run goes on once all of its pending approvals are answered.
    ///
    /// # Errors
    /// The run does not wait for this approval, or the store cannot be read or written.
    pub async fn answer(
        &self,
        store: &TenantStore,
        run: &str,
        call: &str,
        approval: Approval,
    ) -> Result<(), AnswerError> {
        let record = store.run(run).await?.ok_or(AnswerError::Unknown)?;
        // The run at the top goes on, and resumes its child runs.
        let (run, call) = match record.start.parent.as_ref() {
            Some(parent) => (parent.root.as_str(), format!("{run}/{call}")),
            None => (run, call.to_owned()),
        };
        if record.status != Status::Parked || self.live(store.tenant(), run).is_some() {
            return Err(AnswerError::NotAsked);
        }
        match self.resume(store, run, &[(call, approval)], false).await {
            // The others are answered later.
            Err(AnswerError::Pending(_)) => Ok(()),
            resumed => resumed.map(drop),
        }
    }

    /// Starts to resume a run that was stopped or is parked, after its pending approvals are
    /// answered.
    ///
    /// # Errors
    /// The reason why the run cannot be resumed. Answers are recorded even if others are missing.
    pub async fn resume(
        &self,
        store: &TenantStore,
        run: &str,
        answers: &[(String, Approval)],
        release: bool,
    ) -> Result<RunHandle, AnswerError> {
        let record = store.run(run).await?.ok_or(AnswerError::Unknown)?;
        match (record.status, &record.reason) {
            (Status::Ended, _) => return Err(AnswerError::Ended),
            (Status::Parked, Some(reason)) if !release => {
                return Err(AnswerError::Parked(reason.clone()));
            }
            _ => {}
        }
        if journal::lock_run(store, run).await?.is_none() {
            return Err(AnswerError::Held);
        }
        if release {
            child::release(store, run).await?;
        }
        if record.status == Status::Parked || !answers.is_empty() {
            let pending = child::record_all(store, run, answers).await?;
            if let Some(first) = pending.into_iter().next() {
                return Err(AnswerError::Pending(first));
            }
        }
        self.resume_in_background(store, record, release).await
    }

    /// Releases a run that was parked because it, or a child run, repeatedly ended its process, and
    /// resumes it.
    ///
    /// # Errors
    /// There is no such run, or it is not parked for that reason.
    pub async fn release(&self, store: &TenantStore, run: &str) -> Result<(), AnswerError> {
        let record = store.run(run).await?.ok_or(AnswerError::Unknown)?;
        let is_below = child::release(store, run).await?;
        if record.status != Status::Parked || (record.reason.is_none() && !is_below) {
            return Err(AnswerError::NotAsked);
        }
        let release = record.reason.is_some();
        self.resume_in_background(store, record, release).await.map(drop)
    }

    /// Cancels a run for a reason. Returns its view; a run that has ended stays as it is. `None` if
    /// there is no such run.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn cancel(
        &self,
        store: &TenantStore,
        run: &str,
        reason: &str,
    ) -> Result<Option<RunView>, AnswerError> {
        if let Some(live) = self.live(store.tenant(), run) {
            live.cancel.cancel(reason);
        } else if let Some(record) = store.run(run).await?.filter(|run| run.status != Status::Ended)
        {
            self.resume_cancelled(store, record, reason).await?;
        }
        Ok(self.get(store, run).await?)
    }

    /// Returns a run, or `None` if there is no such run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get(&self, store: &TenantStore, run: &str) -> Result<Option<RunView>, StoreError> {
        view::get(self, store, run).await
    }

    /// Returns the runs that match the filter, newest first. Queued runs come first, if the filter
    /// has no status.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(
        &self,
        store: &TenantStore,
        filter: RunFilter,
    ) -> Result<Vec<RunView>, StoreError> {
        view::list(self, store, filter).await
    }

    /// Starts to resume the open and the queued runs of a tenant, the oldest first, as far as the
    /// assembler knows them and no other process holds them. Returns when all have a slot.
    pub async fn resume_open(&self, store: &TenantStore) {
        drive::resume_all(self, store).await;
    }

    /// Forks a run at a step, and starts to drive the new run. Returns its handle.
    ///
    /// # Errors
    /// There is no such run or step, or the service is full.
    pub async fn fork(
        &self,
        store: &TenantStore,
        run: &str,
        step: u32,
        message: Option<String>,
    ) -> Result<RunHandle, AnswerError> {
        let of = store.run(run).await?.ok_or(AnswerError::Unknown)?;
        let (journal, id): (journal::SharedJournal, _) =
            (Arc::new(store.clone()), journal::new_id());
        journal::fork(&journal, &of, step, message, id.clone()).await?;
        let forked = store.run(&id).await?.ok_or(AnswerError::Unknown)?;
        self.resume_in_background(store, forked, false).await
    }

    /// Returns a receiver that is notified when a run begins, is parked or ends in this process.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// Returns the number of active runs.
    #[must_use]
    pub fn active(&self) -> usize {
        self.0.tasks.len()
    }

    /// Returns true if the service accepts no further runs.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    /// Accepts no further runs, and waits until the active ones have ended. After `grace` the
    /// others are suspended: they stay open or queued, and the next process goes on with them.
    pub async fn stop(&self, grace: Duration) {
        self.0.stopping.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(grace, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(runs = self.0.tasks.len(), "the grace time is over; runs are suspended");
        }
        self.0.suspending.cancel();
        self.0.tasks.wait().await;
    }

    fn slot(&self) -> Result<OwnedSemaphorePermit, StartError> {
        if self.is_stopping() {
            return Err(StartError::Stopping);
        }
        let full = |_| StartError::TooManyRuns(self.0.limits.runs);
        Arc::clone(&self.0.slots).try_acquire_owned().map_err(full)
    }

    /// Returns the run if it is active in this process.
    fn live(&self, tenant: &Tenant, run: &str) -> Option<Arc<LiveRun>> {
        self.lock().get(&(tenant.clone(), run.to_owned())).cloned()
    }

    /// Returns the runs of a tree that are active in this process, with their ids.
    fn live_tree(&self, tenant: &Tenant, root: &str) -> Vec<(String, Arc<LiveRun>)> {
        let runs = self.lock();
        let of_tree = runs.iter().filter(|((own, _), live)| own == tenant && live.root == root);
        of_tree.map(|((_, run), live)| (run.clone(), Arc::clone(live))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Tenant, String), Arc<LiveRun>>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an active run of a tree. Returns it, and false if it is active already.
    fn add(
        &self,
        tenant: &Tenant,
        (run, root): (&str, &str),
        recorded: u64,
    ) -> (Arc<LiveRun>, bool) {
        let mut runs = self.lock();
        let mut is_new = false;
        let live = runs.entry((tenant.clone(), run.to_owned())).or_insert_with(|| {
            is_new = true;
            Arc::new(LiveRun::new(root, recorded))
        });
        let live = Arc::clone(live);
        drop(runs);
        self.0.changed.send_replace(());
        (live, is_new)
    }

    /// Removes an active run, after its outcome is set.
    fn remove(&self, tenant: &Tenant, run: &str) {
        self.lock().remove(&(tenant.clone(), run.to_owned()));
        self.0.changed.send_replace(());
    }
}

impl From<ResumeError> for AnswerError {
    fn from(error: ResumeError) -> AnswerError {
        match error {
            ResumeError::NotAsked(call) => AnswerError::NotAskedAbout(call),
            ResumeError::Pending(pending) => AnswerError::Pending(pending),
            ResumeError::Parked { reason, .. } => AnswerError::Parked(reason),
            ResumeError::Ended(_) => AnswerError::Ended,
            ResumeError::Held(_) => AnswerError::Held,
            ResumeError::Store(error) => AnswerError::Store(error),
        }
    }
}

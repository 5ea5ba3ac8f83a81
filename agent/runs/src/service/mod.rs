//! The run service: starts runs, lets any number of clients follow them, and ends them.
//!
//! A run does not depend on a connection. [`RunService::start`] queues a run durably and returns
//! its id. [`RunService::follow`] returns its events: first the recorded ones, then the live ones,
//! each exactly once. The client that started a run may disconnect and follow it again later, even
//! through another process. [`RunService::resume_open`] resumes the runs of a process that has
//! ended.
//!
//! ```text
//! start ─► queue of the session ─► assemble ─► drive ─► settle ─► end
//!             │                                  │
//!             └── LiveRun: events, answer so far ┴──► Follower, TreeFollower (any number)
//! ```
//!
//! The service drives runs, but it does not decide what they may use. A [`RunAssembler`], which the
//! command line and the server implement, creates the [`RunParts`](crate::RunParts) of each run.

mod answer;
mod assemble;
mod cancel;
mod child;
mod chunks;
mod drive;
mod error;
mod follow;
mod handover;
mod isolation;
mod live;
mod queue;
mod replica;
mod resume;
mod slots;
mod start;
mod tree;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use assemble::{AssembleError, AssembleFuture, RunAssembler};
pub use child::{Pending, pending, release_children};
pub use chunks::{Chunk, ChunkEvent, Chunks};
pub use error::{AnswerError, StartError};
pub use follow::{FollowError, Follower};
pub use live::Outcome;
pub use start::ServiceLimits;
pub use tree::{TreeCursor, TreeEvent, TreeFollower};
pub use view::{ArtifactLine, RunPage, RunStatus, RunView, ToolUse};

use crate::cancel::Cancel;
use crate::host::Host;
use crate::journal::{self, ForkedRun, Journal as _, ResumeError, RunFilter, Status};
use isolation::Passes;
use live::LiveRun;
use queue::SessionQueues;
use slots::Slots;
use wattle_store::StoreError;
use wattle_store::Tenant;
use wattle_store::{Store, TenantStore};

/// A run that is active in this process.
pub struct RunHandle {
    /// The run's id.
    pub id: String,
    live: Arc<LiveRun>,
}

impl RunHandle {
    /// Waits until the run ends, is parked or is suspended, and returns the outcome.
    pub async fn outcome(&self) -> Outcome {
        self.live.outcome().await
    }

    /// Returns the handle that cancels the run.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.live.cancel
    }
}

/// Counts of the runs that moved between processes since the service was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunMoves {
    /// Number of runs that this process took over after they had started.
    pub taken: u64,
    /// Number of runs that another process took over because this process did not renew their
    /// leases in time.
    pub lost: u64,
}

/// The run service. Cheap to clone.
#[derive(Clone)]
pub struct RunService(Arc<Inner>);

struct Inner {
    host: Host,
    assembler: Arc<dyn RunAssembler>,
    limits: ServiceLimits,
    slots: Slots,
    sessions: SessionQueues,
    passes: Passes,
    /// The runs that this process no longer drives, although it could not record that.
    unpaused: Mutex<HashSet<(Tenant, String)>>,
    live: Mutex<HashMap<(Tenant, String), Arc<LiveRun>>>,
    /// A channel that is notified when a run becomes active or inactive in this process.
    changed: watch::Sender<()>,
    tasks: TaskTracker,
    /// A signal that a run was added to the store's queue.
    queued: Notify,
    /// Number of runs that ended with each status.
    ended: Mutex<HashMap<RunStatus, u64>>,
    taken: AtomicU64,
    lost: AtomicU64,
    /// A token that is cancelled when the service stops accepting runs.
    stopping: CancellationToken,
    /// A token that is cancelled when root runs must stop at their next turn.
    handing_over: CancellationToken,
    /// A token that is cancelled when the runs must be suspended.
    suspending: CancellationToken,
}

impl RunService {
    /// Creates a service. It must be used within a tokio runtime.
    #[must_use]
    pub fn new(host: Host, assembler: Arc<dyn RunAssembler>, limits: ServiceLimits) -> RunService {
        RunService(Arc::new(Inner {
            host,
            assembler,
            slots: Slots::new(limits.clone()),
            limits,
            sessions: SessionQueues::default(),
            passes: Passes::default(),
            unpaused: Mutex::default(),
            live: Mutex::default(),
            changed: watch::Sender::new(()),
            tasks: TaskTracker::new(),
            queued: Notify::new(),
            ended: Mutex::default(),
            taken: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            stopping: CancellationToken::new(),
            handing_over: CancellationToken::new(),
            suspending: CancellationToken::new(),
        }))
    }

    /// Returns a follower that yields a run's events with sequence numbers greater than `after`. If
    /// the run is unknown, the follower's first read fails.
    #[must_use]
    pub fn follow(&self, store: &TenantStore, run: &str, after: u64) -> Follower {
        Follower::new(self.clone(), store.clone(), run.to_owned(), after)
    }

    /// Returns a follower of the events of a root run and all its child runs, starting after the
    /// event `after`, or at the first event if `after` is `None`.
    #[must_use]
    pub fn follow_tree(
        &self,
        store: &TenantStore,
        run: &str,
        after: Option<TreeCursor>,
    ) -> TreeFollower {
        TreeFollower::new(self.clone(), store.clone(), run.to_owned(), after)
    }

    /// Returns a run, or `None` if there is no such run.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn get(&self, store: &TenantStore, run: &str) -> Result<Option<RunView>, StoreError> {
        view::get(self, store, run).await
    }

    /// Returns a page of the runs that match the filter, newest first. Queued runs precede all
    /// other runs, and are omitted if the filter sets `status` or `tree_of`. A page contains fewer
    /// runs than the filter's `limit` if their texts are large. The filter's `bytes` has no effect.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn page(
        &self,
        store: &TenantStore,
        filter: RunFilter,
    ) -> Result<RunPage, StoreError> {
        view::page(self, store, filter).await
    }

    /// Resumes a tenant's open and queued runs, oldest first, except those that another process has
    /// locked. Returns once each run has a slot, without waiting for the runs to end. Runs with a
    /// [requirement](RunAssembler::needs) are left to [`look_after`](RunService::look_after).
    pub async fn resume_open(&self, store: &TenantStore) {
        resume::resume_all(self, store).await;
    }

    /// Forks a run at a step and drives the new run in the background. Returns the new run's id,
    /// and its handle if the run is active here. If the new run cannot be driven now, a process
    /// that [looks after](RunService::look_after) the store drives it later. `change` modifies the
    /// origin, for example to name who forked the run.
    ///
    /// # Errors
    /// If there is no such run or step, a [limit](ServiceLimits) is reached, the service is
    /// stopping, or the store cannot be read or written. In that case no new run is driven.
    pub async fn fork(
        &self,
        store: &TenantStore,
        run: &str,
        (step, message): (u32, Option<String>),
        change: impl FnOnce(&mut Json),
    ) -> Result<(ForkedRun, Option<RunHandle>), AnswerError> {
        let mut of = store.run(run).await?.ok_or(AnswerError::Unknown)?;
        change(&mut of.start.origin);
        let agent =
            self.current_agent(store, &of.start.origin).await.map_err(AnswerError::Agent)?;
        // The place is taken before the new run is recorded: any process would drive a recorded run
        // later, although the caller was refused.
        let slot = self.slot_of(store, 0).await?;
        let place = self.place(store, of.session.as_deref(), slot).await?;
        let journal: journal::SharedJournal = Arc::new(store.clone());
        let (id, limits) = (journal::new_id(), agent.limits(self.0.assembler.limits()));
        // The run stays locked until it is driven, so that no other process takes it.
        let lock = journal::lock_run(store, &id).await?.ok_or(StartError::Stopping)?;
        self.0.assembler.mask_secrets(store).await;
        let forked = journal::fork(&journal, &of, step, message, id.clone(), limits).await?;
        let (store, cancel) = (store.clone(), Cancel::new());
        let run = forked.run.clone();
        let driven = self.drive_resumed(store, run, false, place, &cancel, Some(lock)).await;
        // The new run is already recorded. An error would make the caller fork the run again.
        let handle = driven.inspect_err(|cause| {
            tracing::error!(run = id, %cause, "failed to drive a fork; it is driven later");
        });
        Ok((forked, handle.ok()))
    }

    /// Returns a receiver that is notified when a run starts, is parked or ends in this process.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// Returns the number of active runs.
    #[must_use]
    pub fn active(&self) -> usize {
        self.0.tasks.len()
    }

    /// Returns counts of the runs that moved between this process and others.
    #[must_use]
    pub fn moves(&self) -> RunMoves {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RunMoves { taken: load(&self.0.taken), lost: load(&self.0.lost) }
    }

    /// Returns the number of runs that ended with each status since the service was created.
    #[must_use]
    pub fn ended(&self) -> HashMap<RunStatus, u64> {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if the service no longer accepts runs.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    /// Stops accepting runs and waits until the active ones have ended. After `grace`, the
    /// remaining runs are suspended: they stay open or queued, and the next process resumes them.
    pub async fn stop(&self, grace: Duration) {
        self.0.stopping.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(grace, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(runs = self.0.tasks.len(), "the grace time is over; runs are suspended");
        }
        self.0.suspending.cancel();
        self.0.tasks.wait().await;
    }

    /// Stops accepting runs and hands the active ones over to the other processes that share the
    /// store: each run stops at its next turn. After `grace`, the remaining runs are suspended. All
    /// locks of `store` are released.
    pub async fn hand_over(&self, store: &Store, grace: Duration) {
        self.0.handing_over.cancel();
        self.stop(grace).await;
        if let Err(error) = store.close().await {
            tracing::warn!(%error, "failed to release the locks of this process");
        }
    }

    /// Passes each root run that this process drives to `take`: its tenant, its id and the origin of its
    /// request. However a run became active, it is among them until it is no longer driven.
    pub fn each_active(&self, mut take: impl FnMut(&Tenant, &str, &Json)) {
        for ((tenant, run), live) in &*self.lock() {
            if live.root == *run {
                take(tenant, run, &live.origin);
            }
        }
    }

    /// Returns the run if it is active in this process.
    fn live(&self, tenant: &Tenant, run: &str) -> Option<Arc<LiveRun>> {
        self.lock().get(&(tenant.clone(), run.to_owned())).cloned()
    }

    /// Returns the runs of a tree that are active in this process, each with its id.
    fn live_tree(&self, tenant: &Tenant, root: &str) -> Vec<(String, Arc<LiveRun>)> {
        let runs = self.lock();
        let of_tree = runs.iter().filter(|((own, _), live)| own == tenant && live.root == root);
        of_tree.map(|((_, run), live)| (run.clone(), Arc::clone(live))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Tenant, String), Arc<LiveRun>>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run in the tree of `root` to the active runs, unless it is already active. Returns
    /// the active run, and true if it was added. The events of the run up to the sequence number
    /// `recorded` are in the store. Cancelling `cancel` also cancels an added run. If `cancel` is
    /// already cancelled, the run is cancelled in any case.
    fn add(
        &self,
        tenant: &Tenant,
        (run, root): (&str, &str),
        origin: &Json,
        recorded: u64,
        cancel: &Cancel,
    ) -> (Arc<LiveRun>, bool) {
        let mut runs = self.lock();
        let mut is_new = false;
        let live = runs.entry((tenant.clone(), run.to_owned())).or_insert_with(|| {
            is_new = true;
            Arc::new(LiveRun::new(root, origin, recorded, cancel.child()))
        });
        let live = Arc::clone(live);
        if cancel.is_cancelled() {
            live.cancel.cancel(cancel.reason());
        }
        drop(runs);
        self.0.changed.send_replace(());
        (live, is_new)
    }

    /// Sets the outcome of a run and removes the run from the active runs. Both happen under one
    /// lock, so a caller that has read the outcome can drive the run again.
    fn leave(&self, tenant: &Tenant, (run, live): (&str, &LiveRun), outcome: Outcome) {
        let mut runs = self.lock();
        live.finish(outcome);
        runs.remove(&(tenant.clone(), run.to_owned()));
        drop(runs);
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
            ResumeError::Engine(why) => AnswerError::Engine(why),
            ResumeError::Store(error) => AnswerError::Store(error),
        }
    }
}

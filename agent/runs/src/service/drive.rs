//! The background tasks that drive new, queued, resumed and cancelled runs.

use std::collections::HashSet;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use wattle_capability::files::Files;
use wattle_machine::Input;
use wattle_store::{History, StoreError, Tenant, TenantStore};

use super::assemble::AssembleError;
use super::error::StartError;
use super::isolation::{Pass, isolation_of};
use super::live::{LiveRun, Outcome};
use super::queue::{Place, Position};
use super::{RunHandle, RunService, RunStatus, handover};
use crate::agents::AgentSpec;
use crate::cancel::Cancel;
use crate::delegates::SEPARATOR;
use crate::durable::{self, RunOutcome};
use crate::journal::{
    self, Journal as _, KeptFiles, Lock, ResumeError, RunRecord, RunRequest, SharedJournal,
};
use crate::parts::{RunParts, Settle};
use crate::reload::CatalogDiff;
use crate::report::Report;
use crate::tree::RunTree;

/// The reason that is reported when a run is suspended because this process is stopping.
const STOPPING: &str = "the process stops; the run goes on in the next one";

/// The reason that is reported when a run is suspended so that another process can resume it.
const HANDED_OVER: &str = "the process stops; the run goes on in another one";
/// The reason that is reported when a run is not driven because another process drives it.
const HELD: &str = "the run is suspended: it is under way in another process";
/// The reason that is reported when a run is suspended because another process has taken it over.
const LOST: &str = "this process lost its lease of the run, since it did not renew it in time; \
                    another process drives the run";
/// The reason for cancelling a run whose client was connected to a process that has ended.
pub(super) const CLIENT_LOST: &str = "the process to which its client was connected has ended";
/// Delay before a run that could not be driven is retried.
const RETRY: Duration = Duration::from_secs(1);

/// The tree and the files that a child run inherits from its ancestors.
#[derive(Default)]
pub(super) struct Lineage {
    /// The run's view of its tree. `None` for a root run.
    pub(super) tree: Option<RunTree>,
    /// The files that the run shares with its parent, or `None` if it shares none.
    pub(super) files: Option<Arc<Files>>,
}

/// The outcome of driving a run. If the run is done, the caller calls `settle` (if present) and
/// records the run's end. In all cases, the caller then releases the run's lock and notifies the
/// run's followers.
pub(super) enum Driven {
    Done {
        report: Report,
        settle: Option<Settle>,
        keeps_files: bool,
    },
    Parked(durable::ParkedRun),
    Suspended(String),
    /// The reason why the run could not be driven. The run is suspended and retried later.
    Failed(String),
    /// Another process has taken over the run.
    Lost,
}

impl RunService {
    /// Drives a queued run in the background. `lock` is the lock on the run. If `cancel` is already
    /// cancelled, the run ends immediately.
    pub(super) fn drive_queued(
        &self,
        store: TenantStore,
        run: RunRequest,
        place: Place,
        lock: Lock,
        cancel: &Cancel,
    ) -> RunHandle {
        let id = run.id.clone();
        let (live, is_new) = self.add(store.tenant(), (&run.id, &run.id), &run.origin, 0, cancel);
        let handle = RunHandle { id, live: Arc::clone(&live) };
        if !is_new {
            return handle;
        }
        let service = self.clone();
        self.0.tasks.spawn(async move {
            let Place { mut position, slot: _slot } = place;
            let id = run.id.clone();
            let driving = service.begin(&store, run, &mut position, &live, Lineage::default());
            service.drive_locked(&store, &id, &live, Box::pin(driving), Some(lock)).await;
        });
        handle
    }

    /// Drives an open or parked run in the background. `lock` is the lock on the run, if the caller
    /// holds it. If `cancel` is already cancelled, the run ends immediately.
    pub(super) async fn drive_resumed(
        &self,
        store: TenantStore,
        run: RunRecord,
        release: bool,
        place: Place,
        cancel: &Cancel,
        lock: Option<Lock>,
    ) -> Result<RunHandle, StartError> {
        let recorded = store.last_event(&run.id).await?;
        let root = run.start.parent.as_ref().map_or(&run.id, |parent| &parent.root);
        let (live, is_new) = loop {
            let ids = (run.id.as_str(), root.as_str());
            let (live, is_new) = self.add(store.tenant(), ids, &run.start.origin, recorded, cancel);
            if is_new || lock.is_none() {
                break (live, is_new);
            }
            // The caller holds the lock, so the task that drove the run has released it, and is
            // about to remove the run from the active ones.
            live.outcome().await;
        };
        let handle = RunHandle { id: run.id.clone(), live: Arc::clone(&live) };
        if !is_new {
            return Ok(handle);
        }
        let service = self.clone();
        self.0.tasks.spawn(async move {
            let Place { mut position, slot: _slot } = place;
            let (id, lineage) = (run.id.clone(), Lineage::default());
            let driving = service.go_on(&store, &run, release, &mut position, &live, lineage);
            service.drive_locked(&store, &id, &live, Box::pin(driving), lock).await;
        });
        Ok(handle)
    }

    /// Drives a run with [`perform`](Self::perform). Locks the run first, unless the caller passes
    /// its lock. `driving` is boxed because it is large. Otherwise each function that takes the
    /// future would reserve space for it.
    pub(super) async fn drive_locked(
        &self,
        store: &TenantStore,
        run: &str,
        live: &LiveRun,
        driving: Pin<Box<impl Future<Output = Driven>>>,
        lock: Option<Lock>,
    ) {
        let lock = match lock {
            Some(lock) => Ok(Some(lock)),
            None => journal::lock_run(store, run).await,
        };
        let reason = match lock {
            Ok(Some(lock)) => {
                self.perform(store, run, live, driving, lock).await;
                None
            }
            Ok(None) => Some(HELD.to_owned()),
            Err(cause) => Some(format!("the run is suspended: {cause}")),
        };
        if let Some(reason) = reason {
            self.leave(store.tenant(), (run, live), Outcome::Suspended(reason));
        }
        self.end_cancelled(store, run, live);
        // A child run that ends on its own may be the last one that its parked root run waits for.
        // If the root run is active, this check is repeated once that run is parked.
        let may_go_on = match live.newest().1 {
            Some(Outcome::Ended(_)) => {
                live.root != run && self.live(store.tenant(), &live.root).is_none()
            }
            Some(Outcome::Parked(parked)) => live.root == run && waits_below(&parked),
            _ => false,
        };
        if may_go_on {
            self.reopen_root(store, &live.root).await;
        }
    }

    /// Drives a run until it ends, is parked or must be suspended, and records its end. The run is
    /// locked until then. If another process takes over the lock, the run stops in this process,
    /// and nothing is recorded.
    async fn perform(
        &self,
        store: &TenantStore,
        run: &str,
        live: &LiveRun,
        mut driving: Pin<Box<impl Future<Output = Driven>>>,
        lock: Lock,
    ) {
        let driven = tokio::select! {
            biased;
            () = lock.lost() => Driven::Lost,
            driven = &mut driving => driven,
            () = live.handed_over.cancelled() => Driven::Suspended(HANDED_OVER.to_owned()),
            () = self.0.suspending.cancelled() => Driven::Suspended(STOPPING.to_owned()),
        };
        if !matches!(driven, Driven::Done { .. } | Driven::Parked(_)) {
            self.abandon_children(store, run, live);
        }
        // Dropping the run's programs cancels the child runs that they wait for, unless the run is
        // abandoned.
        drop(driving);
        let outcome = match driven {
            Driven::Done { report, settle, keeps_files } => {
                let kept = match settle {
                    Some(settle) => settle(&report),
                    None if keeps_files => KeptFiles::Added,
                    None => KeptFiles::Nothing,
                };
                let journal: SharedJournal = Arc::new(store.clone());
                match durable::end_keeping(&journal, &report, kept).await {
                    Ok(()) => {
                        self.count_end(RunStatus::of(&report.ending));
                        Outcome::Ended(Arc::new(report))
                    }
                    Err(cause) => {
                        tracing::error!(run, %cause, "failed to record the end of a run");
                        self.pause(store, run).await;
                        self.retry_delay().await;
                        Outcome::Suspended(format!("the end of the run is not recorded: {cause}"))
                    }
                }
            }
            Driven::Parked(parked) => Outcome::Parked(parked),
            Driven::Lost => {
                tracing::warn!(run, "{LOST}");
                self.0.lost.fetch_add(1, Ordering::Relaxed);
                if let Err(cause) = store.acquit(run).await {
                    tracing::warn!(run, %cause, "failed to record that this process has not ended");
                }
                Outcome::Suspended(LOST.to_owned())
            }
            Driven::Suspended(reason) => {
                self.pause(store, run).await;
                Outcome::Suspended(reason)
            }
            Driven::Failed(reason) => {
                self.pause(store, run).await;
                // The lock is kept for a while: the cause is likely to persist, and another process
                // would retry the run at once.
                self.retry_delay().await;
                Outcome::Suspended(reason)
            }
        };
        // Once the outcome can be read, another process must be able to take over the run.
        drop(lock);
        let has_ended = matches!(outcome, Outcome::Ended(_));
        self.leave(store.tenant(), (run, live), outcome);
        if has_ended {
            self.end_children(store, run);
        }
    }

    fn count_end(&self, status: RunStatus) {
        let mut ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *ended.entry(status).or_default() += 1;
    }

    /// Waits until a failed operation may be retried, or until the process stops.
    pub(super) async fn retry_delay(&self) {
        tokio::select! {
            () = tokio::time::sleep(RETRY) => {}
            () = self.0.handing_over.cancelled() => {}
            () = self.0.suspending.cancelled() => {}
        }
    }

    /// Waits for the run's turn in its session and then drives the run. The turn lasts until
    /// `position` is dropped.
    pub(super) async fn begin(
        &self,
        store: &TenantStore,
        run: RunRequest,
        position: &mut Position,
        live: &LiveRun,
        lineage: Lineage,
    ) -> Driven {
        let session = run.session.clone();
        let pass = self.0.passes.pass();
        let journal = self.journal(store, (live, &pass), &lineage);
        if run.needs_client
            && let Err(driven) = cancel_without_client(store, &run.id, live).await
        {
            return driven;
        }
        match self.refusal(store, &run.origin, (&lineage, live)).await {
            Ok(Some(reason)) => return self.refuse(&journal, &run, reason, live).await,
            Ok(None) => {}
            Err(cause) => return failed(&run.id, cause),
        }
        // A run that is cancelled while it waits stops waiting and adds nothing to its session.
        let turn = tokio::select! {
            biased;
            () = live.cancel.cancelled() => None,
            turn = self.turn((&journal, &run.id), session.as_deref(), position) => Some(turn),
        };
        let has_turn = match turn.transpose() {
            Ok(turn) => turn.is_some(),
            Err(driven) => return driven,
        };
        // A child run works during a turn of its parent.
        if lineage.tree.is_none() {
            pass.share().await;
        }
        self.refresh().await;
        let current = match self.current(store, &run, &lineage).await {
            Ok(current) => current,
            Err(why) => return self.refuse(&journal, &run, why, live).await,
        };
        let assembled = self.0.assembler.assemble(store, &current, lineage.files.as_ref()).await;
        let mut parts = match assembled {
            Ok(parts) => parts,
            Err(AssembleError::Store(cause)) if cause.is_outage() => return failed(&run.id, cause),
            Err(why) => return self.refuse(&journal, &run, why.to_string(), live).await,
        };
        if let Some(session) = session.as_deref().filter(|_| !live.cancel.is_cancelled()) {
            match store.history(session, parts.window()).await {
                Ok(History { messages, left_out }) => {
                    (parts.history, parts.left_out) = (messages, left_out);
                }
                Err(cause) => return failed(&run.id, cause),
            }
        }
        let tree = live.tree.get_or_init(|| lineage.tree.unwrap_or_default()).clone();
        let mut parts = self.placed(store, &current, parts, tree, live);
        let (settle, keeps_files) = (parts.settle.take(), parts.keeps_files);
        match durable::run(parts, &run, live, &journal).await {
            Ok(RunOutcome::Done(report)) => {
                let turns = if has_turn { report.turns } else { Vec::new() };
                Driven::Done { report: Report { turns, ..report }, settle, keeps_files }
            }
            Ok(RunOutcome::Parked(parked)) => Driven::Parked(parked),
            Err(cause) if cause.is_full() => self.end_full(&journal, &run.id, &cause, live).await,
            Err(cause) => failed(&run.id, cause),
        }
    }

    /// Returns the reason why a run must not go on by itself. A child run goes on with its parent, and
    /// a cancelled run ends.
    async fn refusal(
        &self,
        store: &TenantStore,
        origin: &Json,
        (lineage, live): (&Lineage, &LiveRun),
    ) -> Result<Option<String>, StoreError> {
        if lineage.tree.is_some() || live.cancel.is_cancelled() {
            return Ok(None);
        }
        self.0.assembler.refusal(store, origin).await
    }

    /// Returns the request of a run with its agent as it may be used now. That of a child run is
    /// known when its parent starts or resumes it.
    async fn current(
        &self,
        store: &TenantStore,
        run: &RunRequest,
        lineage: &Lineage,
    ) -> Result<RunRequest, String> {
        if lineage.tree.is_some() {
            return Ok(run.clone());
        }
        let agent = self.current_agent(store, &run.origin).await?;
        let mut current = run.clone();
        agent.write_to(&mut current.origin);
        Ok(current)
    }

    /// Returns the agent of a recorded run, [narrowed](crate::agents::Agents::narrowed) by its
    /// current declaration.
    pub(super) async fn current_agent(
        &self,
        store: &TenantStore,
        origin: &Json,
    ) -> Result<AgentSpec, String> {
        let agent = AgentSpec::of_origin(origin)?;
        let (agents, catalog) = (self.0.assembler.agents(), self.0.host.catalog());
        let narrowed = agents.narrowed(store.tenant(), &agent, &catalog).await;
        narrowed.map_err(|why| why.to_string())
    }

    /// Returns the parts of a run with those that belong to its place in the process. The run uses
    /// the share of its tenant, whatever the assembler has set.
    fn placed(
        &self,
        store: &TenantStore,
        run: &RunRequest,
        parts: RunParts,
        tree: RunTree,
        live: &LiveRun,
    ) -> RunParts {
        let children = self.children(store, run, &parts);
        if let Some(hooks) = &parts.hooks {
            live.hooks.get_or_init(|| Arc::clone(hooks));
        }
        let host = parts.host.owned_by(&self.0.limits.owner_of(store.tenant()));
        RunParts { host, tree, cancel: live.cancel.clone(), children: Some(children), ..parts }
    }

    /// Ends a run whose next turn would exceed a limit of the store.
    async fn end_full(
        &self,
        journal: &SharedJournal,
        run: &str,
        cause: &StoreError,
        live: &LiveRun,
    ) -> Driven {
        let record = match journal.run(run).await {
            Ok(Some(record)) => record,
            Ok(None) => return failed(run, "its record is gone"),
            Err(cause) => return failed(run, cause),
        };
        let input = Input::Failed(cause.to_string());
        match journal::abort(journal, &record, input, (live.newest().0, live)).await {
            Ok(report) => Driven::Done { report, settle: None, keeps_files: false },
            Err(cause) => failed(run, cause),
        }
    }

    /// Waits for the run's turn in its session and then resumes the run. The turn lasts until
    /// `position` is dropped.
    pub(super) async fn go_on(
        &self,
        store: &TenantStore,
        run: &RunRecord,
        release: bool,
        position: &mut Position,
        live: &LiveRun,
        lineage: Lineage,
    ) -> Driven {
        let pass = self.0.passes.pass();
        let journal = self.journal(store, (live, &pass), &lineage);
        if let Err(cause) = self.pause_again(store, &run.id).await {
            return failed(&run.id, cause);
        }
        if let Err(driven) = cancel_without_client(store, &run.id, live).await {
            return driven;
        }
        if run.reason.is_some() && live.cancel.is_cancelled() {
            return self.abort(&journal, run, live).await;
        }
        if !release {
            let parked = match self.refusal(store, &run.start.origin, (&lineage, live)).await {
                Ok(Some(reason)) => {
                    let parked = journal.park(&run.id, Some(reason.clone()), Vec::new()).await;
                    parked.map(|()| Some(reason))
                }
                other => other,
            };
            match parked {
                Ok(None) => {}
                Ok(Some(reason)) => {
                    tracing::warn!(run = run.id, "{reason}; it goes on once it is released");
                    let (run_id, waiting) = (run.id.clone(), Vec::new());
                    let reason = Some(reason);
                    return Driven::Parked(durable::ParkedRun { run_id, waiting, reason });
                }
                Err(cause) => return failed(&run.id, cause),
            }
        }
        let session = run.session.as_deref().filter(|_| !live.cancel.is_cancelled());
        if let Err(driven) = self.turn((&journal, &run.id), session, position).await {
            return driven;
        }
        let isolation = match lineage.tree {
            None => match self.enter(store, &run.id, &pass, live).await {
                Ok(isolation) => isolation,
                Err(driven) => return driven,
            },
            Some(_) => None,
        };
        if session.is_some() && run.start.forked.is_some() {
            let has_overlay = self.0.assembler.has_overlay(store, &run.start.origin);
            if let Err(cause) = store.rewind_session(&run.id, has_overlay).await {
                return failed(&run.id, cause);
            }
        }
        self.refresh().await;
        let (id, request) = (run.id.as_str(), RunRequest::of_run(run));
        let assembled = match self.current(store, &request, &lineage).await {
            Ok(current) => {
                let files = lineage.files.as_ref();
                let parts = self.0.assembler.assemble(store, &current, files).await;
                parts.map(|parts| (parts, current))
            }
            Err(why) => Err(why.into()),
        };
        let (parts, current) = match assembled {
            Ok(assembled) => assembled,
            Err(AssembleError::Store(cause)) if cause.is_outage() => return failed(id, cause),
            Err(_) if live.cancel.is_cancelled() => return self.abort(&journal, run, live).await,
            Err(reason) => return failed(id, reason),
        };
        let above = run.start.parent.clone().filter(|_| live.cancel.is_cancelled());
        let of_run = || match above {
            Some(above) => RunTree::ending(above),
            None => self.kept_tree(store, id).unwrap_or_default(),
        };
        let tree = live.tree.get_or_init(|| lineage.tree.unwrap_or_else(of_run)).clone();
        let mut parts = self.placed(store, &current, parts, tree, live);
        let (settle, keeps_files) = (parts.settle.take(), parts.keeps_files);
        let driving = durable::resume_locked(parts, id, &[], release, live, &journal);
        let mut driving = pin!(driving);
        let driven = tokio::select! {
            biased;
            driven = &mut driving => driven,
            () = end_isolation(store, id, &pass, isolation) => driving.await,
        };
        match driven {
            Ok(RunOutcome::Done(report)) => Driven::Done { report, settle, keeps_files },
            Ok(RunOutcome::Parked(parked)) => Driven::Parked(parked),
            Err(ResumeError::Pending(_)) => match journal::waiting(&journal, id).await {
                Ok(waiting) => Driven::Parked(durable::ParkedRun {
                    run_id: id.to_owned(),
                    waiting,
                    reason: None,
                }),
                Err(cause) => failed(id, cause),
            },
            Err(ResumeError::Parked { .. } | ResumeError::Engine(_))
                if live.cancel.is_cancelled() =>
            {
                self.abort(&journal, run, live).await
            }
            Err(ResumeError::Store(cause)) if live.cancel.is_cancelled() && !cause.is_outage() => {
                tracing::warn!(run = id, %cause, "a cancelled run is ended without its record");
                self.abort(&journal, run, live).await
            }
            Err(ResumeError::Store(cause)) if cause.is_full() => {
                self.end_full(&journal, id, &cause, live).await
            }
            Err(ResumeError::Parked { reason, .. }) => {
                tracing::warn!(run = id, "{reason}; it goes on once it is released");
                let (run_id, waiting) = (id.to_owned(), Vec::new());
                Driven::Parked(durable::ParkedRun { run_id, waiting, reason: Some(reason) })
            }
            Err(cause) => failed(id, cause),
        }
    }

    /// Returns the existing tree of a root run that is about to be resumed, or `None` if no child
    /// run kept running while the root run was parked. Such child runs charge their usage to this
    /// tree.
    fn kept_tree(&self, store: &TenantStore, root: &str) -> Option<RunTree> {
        let runs = self.live_tree(store.tenant(), root);
        runs.iter().find_map(|(_, live)| live.tree.get()?.top())
    }

    /// Records that a run failed because its parts could not be created.
    async fn refuse(
        &self,
        journal: &SharedJournal,
        run: &RunRequest,
        reason: String,
        live: &LiveRun,
    ) -> Driven {
        match durable::refuse(journal, run, reason, live).await {
            Ok(report) => Driven::Done { report, settle: None, keeps_files: false },
            Err(cause) => failed(&run.id, cause),
        }
    }

    /// Returns the journal of a run. The journal of a root run lets another process take over the
    /// run and its child runs.
    fn journal(
        &self,
        store: &TenantStore,
        (live, pass): (&LiveRun, &Arc<Pass>),
        lineage: &Lineage,
    ) -> SharedJournal {
        match lineage.tree {
            None => handover::journal(store, pass, &self.0.handing_over, &live.handed_over),
            Some(_) => Arc::new(store.clone()),
        }
    }

    /// Waits for the pass of a root run that is resumed. Returns the time for which the run is
    /// isolated, or `None` if it is not.
    async fn enter(
        &self,
        store: &TenantStore,
        run: &str,
        pass: &Pass,
        live: &LiveRun,
    ) -> Result<Option<Duration>, Driven> {
        let suspicion = store.suspicion(run).await.map_err(|cause| failed(run, cause))?;
        let Some(isolation) = isolation_of(suspicion).filter(|_| !live.cancel.is_cancelled())
        else {
            pass.share().await;
            return Ok(None);
        };
        tracing::warn!(
            run,
            "this run may have ended its process; it is resumed while no other run works"
        );
        tokio::select! {
            () = pass.be_alone() => {}
            () = live.cancel.cancelled() => return Ok(None),
            () = self.0.handing_over.cancelled() => {
                return Err(Driven::Suspended(HANDED_OVER.to_owned()));
            }
        }
        store.isolate(run, true).await.map_err(|cause| failed(run, cause))?;
        Ok(Some(isolation))
    }

    /// Records that a run is suspended. If that fails, the run must not be resumed before
    /// [`pause_again`](Self::pause_again) has succeeded: this process has not ended, so the attempt
    /// does not count.
    async fn pause(&self, store: &TenantStore, run: &str) {
        if let Err(cause) = store.pause(run).await {
            tracing::error!(run, %cause, "failed to suspend a run");
            self.unpaused().insert((store.tenant().clone(), run.to_owned()));
        }
    }

    /// Records that a run was suspended, if that failed before.
    async fn pause_again(&self, store: &TenantStore, run: &str) -> Result<(), StoreError> {
        let key = (store.tenant().clone(), run.to_owned());
        if self.unpaused().contains(&key) {
            store.pause(run).await?;
            self.unpaused().remove(&key);
        }
        Ok(())
    }

    fn unpaused(&self) -> MutexGuard<'_, HashSet<(Tenant, String)>> {
        self.0.unpaused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a run's turn in its session, or until this process hands over its runs.
    async fn turn(
        &self,
        (journal, run): (&SharedJournal, &str),
        session: Option<&str>,
        position: &mut Position,
    ) -> Result<(), Driven> {
        tokio::select! {
            biased;
            turn = position.turn(journal, session) => turn.map_err(|cause| failed(run, cause)),
            () = self.0.handing_over.cancelled() => Err(Driven::Suspended(HANDED_OVER.to_owned())),
        }
    }

    /// Reloads the catalog's folders and logs the changes.
    async fn refresh(&self) {
        let CatalogDiff { changed, removed, problems } = self.0.host.refresh().await;
        if !changed.is_empty() || !removed.is_empty() {
            tracing::info!(?changed, ?removed, "the catalog changed");
        }
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    }
}

/// Returns true if a parked run waits for one of its child runs.
fn waits_below(parked: &durable::ParkedRun) -> bool {
    parked.waiting.iter().any(|waiting| waiting.call.contains(SEPARATOR))
}

/// Waits until the isolation of a run is over, and lets other runs work beside it. Never returns if
/// the run is not isolated.
async fn end_isolation(store: &TenantStore, run: &str, pass: &Pass, isolation: Option<Duration>) {
    let Some(isolation) = isolation else { return std::future::pending().await };
    tokio::time::sleep(isolation).await;
    if let Err(cause) = store.isolate(run, false).await {
        tracing::warn!(run, %cause, "failed to record that a run is no longer isolated");
    }
    pass.join_others();
}

/// Cancels a run that must end without its client, if the process to which its client was connected
/// has ended.
async fn cancel_without_client(
    store: &TenantStore,
    run: &str,
    live: &LiveRun,
) -> Result<(), Driven> {
    match store.has_lost_client(run).await {
        Ok(true) => live.cancel.cancel(CLIENT_LOST),
        Ok(false) => {}
        Err(cause) => return Err(failed(run, cause)),
    }
    Ok(())
}

pub(super) fn failed(run: &str, cause: impl std::fmt::Display) -> Driven {
    tracing::error!(run, %cause, "failed to drive a run");
    Driven::Failed(format!("the run is suspended: {cause}"))
}

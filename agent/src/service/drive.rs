//! Driving runs in the background: new, queued, resumed and cancelled ones.

use std::sync::Arc;

use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_rt::Grants;

use super::assemble::{RunParts, RunSeed, Settle};
use super::child;
use super::error::{AnswerError, StartError};
use super::live::{LiveRun, Outcome};
use super::queue::Position;
use super::{RunHandle, RunService};
use crate::cancel::Cancel;
use crate::delegates::{DelegateNames, RunTree};
use crate::driver::Job;
use crate::embed::Hooks;
use crate::journal::{
    self, Journal as _, Lock, QueuedRun, ResumeError, ResumeOptions, RunFilter, RunOutcome,
    RunRecord, SharedJournal, Status,
};
use crate::reload::CatalogDiff;
use crate::report::Report;
use crate::store::{TenantStore, own_session};
use tokio::sync::OwnedSemaphorePermit;

/// The reason of a run that is suspended because its process stops.
const STOPPING: &str = "the process stops; the run goes on in the next one";

/// What a child run has from the runs above it.
#[derive(Default)]
pub(super) struct Lineage {
    /// The tree, at the level of the run. `None` for a run at the top.
    pub(super) tree: Option<RunTree>,
    /// The files that the runs share.
    pub(super) files: Option<Arc<Files>>,
}

/// Returns the files of a run's programs.
fn shared_files(grants: &Grants) -> Option<Arc<Files>> {
    grants.config::<Fs>().map(|fs| Arc::clone(&fs.0))
}

/// A run whose driving ended, with what remains to be done.
pub(super) enum Driven {
    Done { report: Report, settle: Option<Settle>, keeps_files: bool },
    Parked(journal::ParkedRun),
    Suspended(String),
}

impl RunService {
    /// Drives a queued run in the background. `lock` is the run's.
    pub(super) fn drive_queued(
        &self,
        store: TenantStore,
        run: QueuedRun,
        (position, slot): (Position, OwnedSemaphorePermit),
        lock: Lock,
    ) -> RunHandle {
        let id = run.id.clone();
        let (live, is_new) = self.add(store.tenant(), (&run.id, &run.id), 0);
        let handle = RunHandle { id, live: Arc::clone(&live) };
        if !is_new {
            return handle;
        }
        let service = self.clone();
        self.0.tasks.spawn(async move {
            let (_slot, _lock) = (slot, lock);
            let id = run.id.clone();
            let driving = service.begin(&store, run, position, &live, Lineage::default());
            service.perform(&store, &id, &live, driving).await;
        });
        handle
    }

    /// Drives an open or parked run in the background.
    pub(super) async fn resume_in_background(
        &self,
        store: &TenantStore,
        run: RunRecord,
        release: bool,
    ) -> Result<RunHandle, AnswerError> {
        let slot = self.slot()?;
        let position = self
            .0
            .sessions
            .queue(store.tenant(), run.session.as_deref(), self.0.limits.waiting)
            .await?;
        let cancel = Cancel::new();
        Ok(self.drive_resumed(store.clone(), run, release, (position, slot), cancel).await?)
    }

    /// Ends a run that is not active in this process as cancelled for a reason.
    pub(super) async fn resume_cancelled(
        &self,
        store: &TenantStore,
        run: RunRecord,
        reason: &str,
    ) -> Result<(), AnswerError> {
        let slot = self.slot()?;
        let position = self.0.sessions.queue(store.tenant(), None, usize::MAX).await?;
        let cancel = Cancel::new();
        cancel.cancel(reason);
        self.drive_resumed(store.clone(), run, false, (position, slot), cancel).await?;
        Ok(())
    }

    async fn drive_resumed(
        &self,
        store: TenantStore,
        run: RunRecord,
        release: bool,
        (position, slot): (Position, OwnedSemaphorePermit),
        cancel: Cancel,
    ) -> Result<RunHandle, StartError> {
        let recorded = store.last_event(&run.id).await?;
        let root = run.start.parent.as_ref().map_or(&run.id, |parent| &parent.root);
        let (live, is_new) = self.add(store.tenant(), (&run.id, root), recorded);
        if cancel.is_cancelled() {
            live.cancel.cancel(cancel.reason());
        }
        let handle = RunHandle { id: run.id.clone(), live: Arc::clone(&live) };
        if !is_new {
            return Ok(handle);
        }
        let service = self.clone();
        self.0.tasks.spawn(async move {
            let _slot = slot;
            let id = run.id.clone();
            let driving = service.go_on(&store, &run, release, position, &live, Lineage::default());
            service.perform(&store, &id, &live, driving).await;
        });
        Ok(handle)
    }

    /// Drives a run until it ends, is parked or must be suspended, and records its end.
    pub(super) async fn perform(
        &self,
        store: &TenantStore,
        run: &str,
        live: &LiveRun,
        driving: impl Future<Output = Driven>,
    ) {
        let driven = tokio::select! {
            biased;
            driven = driving => driven,
            () = self.0.suspending.cancelled() => Driven::Suspended(STOPPING.to_owned()),
        };
        let outcome = match driven {
            Driven::Done { report, settle, keeps_files } => {
                if let Some(settle) = settle {
                    settle(&report);
                }
                let journal: SharedJournal = Arc::new(store.clone());
                match journal::end(&journal, &report, keeps_files).await {
                    Ok(()) => Outcome::Ended(Arc::new(report)),
                    Err(cause) => {
                        tracing::error!(run, %cause, "failed to record the end of a run");
                        Outcome::Suspended(format!("the end of the run is not recorded: {cause}"))
                    }
                }
            }
            Driven::Parked(parked) => Outcome::Parked(parked),
            Driven::Suspended(reason) => {
                if let Err(cause) = store.pause(run).await {
                    tracing::error!(run, %cause, "failed to suspend a run");
                }
                Outcome::Suspended(reason)
            }
        };
        let has_ended = matches!(outcome, Outcome::Ended(_));
        live.finish(outcome);
        self.remove(store.tenant(), run);
        if has_ended {
            self.end_children(store, run);
        }
    }

    /// Waits for the run's turn in its session, and drives it.
    pub(super) async fn begin(
        &self,
        store: &TenantStore,
        run: QueuedRun,
        position: Position,
        live: &LiveRun,
        lineage: Lineage,
    ) -> Driven {
        let session = run.session.clone();
        let journal: SharedJournal = Arc::new(store.clone());
        // A run that is cancelled while it waits does not wait any longer, and adds nothing to its
        // session.
        let turn = tokio::select! {
            biased;
            () = live.cancel.cancelled() => None,
            turn = self.turn(&journal, session.as_deref(), position) => Some(turn),
        };
        // The turn lasts until this function returns.
        let turn = match turn.transpose() {
            Ok(turn) => turn,
            Err(cause) => return suspended(&run.id, cause),
        };
        self.refresh().await;
        let history = match session.as_deref() {
            Some(session) if !live.cancel.is_cancelled() => store.history(session).await,
            _ => Ok(Vec::new()),
        };
        let history = match history {
            Ok(history) => history,
            Err(cause) => return suspended(&run.id, cause),
        };
        let QueuedRun { id, message, origin, .. } = run;
        let own = own_session(&id);
        let seed = RunSeed {
            store,
            run: &id,
            session: session.as_deref(),
            state: session.as_deref().unwrap_or(&own),
            origin: &origin,
            files: lineage.files.as_ref(),
        };
        let parts = match self.0.assembler.assemble(seed).await {
            Ok(parts) => parts,
            Err(message_for_user) => {
                let refused = (session, message, origin);
                return self.refuse(&journal, id, refused, message_for_user, live).await;
            }
        };
        let RunParts { host, model, settings, grants, meter, workdir, signer, .. } = parts;
        let RunParts { label, output, keeps_files, settle, .. } = parts;
        let max_tokens = settings.machine.max_tokens_total;
        let files = shared_files(&grants);
        let job = Job {
            message,
            history,
            tenant: store.tenant().clone(),
            session_id: session,
            label,
            grants,
            workdir,
            signer,
            cancel: live.cancel.clone(),
            meter,
            tree: lineage.tree.unwrap_or_else(|| RunTree::new(max_tokens)),
            children: Some(self.children(store, &origin, &files)),
            delegates: DelegateNames::default(),
            output,
            hooks: Hooks::default(),
        };
        let to = (&journal, id.clone(), origin);
        match journal::run(&host, &*model, &settings, job, live, to).await {
            Ok(RunOutcome::Done(report)) => {
                let turns = if turn.is_some() { report.turns } else { Vec::new() };
                Driven::Done { report: Report { turns, ..report }, settle, keeps_files }
            }
            Ok(RunOutcome::Parked(parked)) => Driven::Parked(parked),
            Err(cause) => suspended(&id, cause),
        }
    }

    /// Waits for the run's turn in its session, and resumes it.
    pub(super) async fn go_on(
        &self,
        store: &TenantStore,
        run: &RunRecord,
        release: bool,
        position: Position,
        live: &LiveRun,
        lineage: Lineage,
    ) -> Driven {
        let journal: SharedJournal = Arc::new(store.clone());
        let session = run.session.as_deref().filter(|_| !live.cancel.is_cancelled());
        let _turn = match self.turn(&journal, session, position).await {
            Ok(turn) => turn,
            Err(cause) => return suspended(&run.id, cause),
        };
        self.refresh().await;
        let (own, id) = (own_session(&run.id), run.id.as_str());
        let seed = RunSeed {
            store,
            run: id,
            session: run.session.as_deref(),
            state: run.session.as_deref().unwrap_or(&own),
            origin: &run.start.origin,
            files: lineage.files.as_ref(),
        };
        let parts = match self.0.assembler.assemble(seed).await {
            Ok(parts) => parts,
            Err(reason) => return suspended(id, reason),
        };
        let (origin, max_tokens) = (&run.start.origin, run.start.setup.settings.max_tokens_total);
        let files = shared_files(&parts.grants);
        let above = run.start.parent.clone().filter(|_| live.cancel.is_cancelled());
        let of_run = || above.map_or_else(|| RunTree::new(max_tokens), RunTree::ending);
        let with = ResumeOptions {
            tree: lineage.tree.unwrap_or_else(of_run),
            children: Some(self.children(store, origin, &files)),
            grants: parts.grants,
            label: parts.label,
            signer: parts.signer,
            cancel: live.cancel.clone(),
            settings: parts.settings,
            meter: parts.meter,
            answers: Vec::new(),
            release,
            hooks: Hooks::default(),
        };
        match journal::resume(&parts.host, &*parts.model, id, with, live, &journal).await {
            Ok(RunOutcome::Done(report)) => {
                let (settle, keeps_files) = (parts.settle, parts.keeps_files);
                Driven::Done { report, settle, keeps_files }
            }
            Ok(RunOutcome::Parked(parked)) => Driven::Parked(parked),
            Err(ResumeError::Pending(_)) => match journal::waiting(&journal, id).await {
                Ok(waiting) => Driven::Parked(journal::ParkedRun {
                    run_id: id.to_owned(),
                    waiting,
                    reason: None,
                }),
                Err(cause) => suspended(id, cause),
            },
            Err(ResumeError::Parked { reason, .. }) => {
                tracing::warn!(run = id, "{reason}; it goes on once it is released");
                let (run_id, waiting) = (id.to_owned(), Vec::new());
                Driven::Parked(journal::ParkedRun { run_id, waiting, reason: Some(reason) })
            }
            Err(cause) => suspended(id, cause),
        }
    }

    /// Records a run that could not be assembled as failed.
    async fn refuse(
        &self,
        journal: &SharedJournal,
        id: String,
        (session, message, origin): (Option<String>, String, serde_json::Value),
        reason: String,
        live: &LiveRun,
    ) -> Driven {
        let queued = QueuedRun { id: id.clone(), session, made: crate::now_ms(), message, origin };
        match journal::refuse(journal, queued, reason, live).await {
            Ok(report) => Driven::Done { report, settle: None, keeps_files: false },
            Err(cause) => suspended(&id, cause),
        }
    }

    /// Waits until it is a run's turn in its session, in this process and among all.
    async fn turn(
        &self,
        journal: &SharedJournal,
        session: Option<&str>,
        position: Position,
    ) -> Result<impl Sized + use<>, crate::StoreError> {
        let turn = position.begin().await;
        let lock = match session {
            Some(session) => Some(journal::lock_session(journal, session).await?),
            None => None,
        };
        // The lock is dropped before the turn.
        Ok((lock, turn))
    }

    /// Reloads the folders of the catalog, and logs the changes.
    async fn refresh(&self) {
        let CatalogDiff { changed, removed, problems } = self.0.host.refresh().await;
        if !changed.is_empty() || !removed.is_empty() {
            tracing::info!(?changed, ?removed, "the catalog changed");
        }
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    }
}

fn suspended(run: &str, cause: impl std::fmt::Display) -> Driven {
    tracing::error!(run, %cause, "failed to drive a run");
    Driven::Suspended(format!("the run is suspended: {cause}"))
}

/// Resumes the open runs of a tenant and drives its queued ones, the oldest first.
pub(super) async fn resume_all(service: &RunService, store: &TenantStore) {
    // Their process ended between the end of the run at the top and theirs.
    match store.ended_above_open().await {
        Ok(tops) => tops.iter().for_each(|top| service.end_children(store, top)),
        Err(cause) => tracing::error!(%cause, "failed to list child runs that were left open"),
    }
    let runs = async {
        let mut open = child::answered(store).await?;
        open.extend(store.runs(RunFilter::status(Status::Open)).await?);
        open.sort_by(|one, other| (other.made, &other.id).cmp(&(one.made, &one.id)));
        Ok((open, store.queued().await?))
    };
    let (open, queued) = match runs.await {
        Ok(runs) => runs,
        Err::<_, crate::StoreError>(cause) => {
            return tracing::error!(%cause, "failed to list the open runs");
        }
    };
    let resumes = |origin: &serde_json::Value| service.0.assembler.resumes(origin);
    // The oldest first, so that the runs of a session keep their order.
    for run in open.into_iter().rev().filter(|run| resumes(&run.start.origin)) {
        let Some((position, slot)) = waiting_slot(service, store, run.session.as_deref()).await
        else {
            return;
        };
        let resumed =
            service.drive_resumed(store.clone(), run, false, (position, slot), Cancel::new());
        if let Err(cause) = resumed.await {
            tracing::error!(%cause, "failed to resume an open run");
        }
    }
    for run in queued.into_iter().filter(|run| resumes(&run.origin)) {
        let Some(place) = waiting_slot(service, store, run.session.as_deref()).await else {
            return;
        };
        // Another process that holds the lock drives the run.
        match journal::lock_run(store, &run.id).await {
            Ok(Some(lock)) => drop(service.drive_queued(store.clone(), run, place, lock)),
            Ok(None) => {}
            Err(cause) => tracing::error!(%cause, "failed to lock a queued run"),
        }
    }
}

/// Waits for a slot. Returns `None` if the service stops.
async fn waiting_slot(
    service: &RunService,
    store: &TenantStore,
    session: Option<&str>,
) -> Option<(Position, OwnedSemaphorePermit)> {
    let slot = tokio::select! {
        () = service.0.stopping.cancelled() => return None,
        slot = Arc::clone(&service.0.slots).acquire_owned() => slot.ok()?,
    };
    let position = service.0.sessions.queue(store.tenant(), session, usize::MAX).await.ok()?;
    Some((position, slot))
}

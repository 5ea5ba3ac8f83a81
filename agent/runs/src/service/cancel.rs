//! Cancellation of runs, wherever they are: active, queued, parked, or driven by another process.

use futures_util::FutureExt as _;
use wattle_machine::Input;
use wattle_store::{Tenant, TenantStore};

use super::drive::{Driven, failed};
use super::error::AnswerError;
use super::live::LiveRun;
use super::queue::{Place, Position};
use super::{RunService, RunView};
use crate::cancel::Cancel;
use crate::journal::{self, Journal as _, Lock, RunRecord, RunStart, SharedJournal, Status};

impl RunService {
    /// Cancels a run and records the reason. Returns the run, or `None` if there is no such run. A
    /// run that has already ended is not changed.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn cancel(
        &self,
        store: &TenantStore,
        run: &str,
        reason: &str,
    ) -> Result<Option<RunView>, AnswerError> {
        self.cancel_anywhere(store, run, reason).await?;
        Ok(self.get(store, run).await?)
    }

    /// Cancels a run. If another process drives it, that process is asked to cancel it.
    pub(super) async fn cancel_anywhere(
        &self,
        store: &TenantStore,
        run: &str,
        reason: &str,
    ) -> Result<(), AnswerError> {
        if self.cancel_live(store.tenant(), run, reason) {
            return Ok(());
        }
        match journal::lock_run(store, run).await? {
            Some(lock) => self.cancel_idle(store, run, reason, lock).await,
            // Another process drives the run or has it in its queue, or a request holds the lock
            // for a moment.
            None => Ok(store.request_cancel(run, reason).await?),
        }
    }

    /// Cancels a run if it is active in this process. Returns false if it is not. The task that
    /// drives the run sees the cancellation even if it is about to stop driving the run.
    fn cancel_live(&self, tenant: &Tenant, run: &str, reason: &str) -> bool {
        // The map of active runs stays locked, so that the run is not removed before it is
        // cancelled.
        let runs = self.lock();
        let live = runs.get(&(tenant.clone(), run.to_owned()));
        live.inspect(|live| live.cancel.cancel(reason)).is_some()
    }

    /// Cancels a run that no process drives. `lock` is the lock on the run.
    async fn cancel_idle(
        &self,
        store: &TenantStore,
        run: &str,
        reason: &str,
        lock: Lock,
    ) -> Result<(), AnswerError> {
        let cancel = Cancel::new();
        cancel.cancel(reason);
        // A run that is being cancelled needs no slot.
        let place = Place { position: Position::default(), slot: None };
        match (store.run(run).await?, store.queued_run(run).await?) {
            (Some(record), _) if record.status != Status::Ended => {
                let store = store.clone();
                self.drive_resumed(store, record, false, place, &cancel, Some(lock)).await?;
            }
            (None, Some(queued)) => {
                drop(self.drive_queued(store.clone(), queued, place, lock, &cancel));
            }
            // The run ended before its process could be asked to cancel it.
            _ => store.forget_cancel(run).await?,
        }
        Ok(())
    }

    /// Ends a cancelled run in the background if its cancellation came too late for the task that
    /// drove it, because the run was about to be parked or suspended. The run must no longer be
    /// active in this process.
    pub(super) fn end_cancelled(&self, store: &TenantStore, run: &str, live: &LiveRun) {
        if !live.cancel.is_cancelled() || live.has_ended() {
            return;
        }
        let (service, store, run) = (self.clone(), store.clone(), run.to_owned());
        let reason = live.cancel.reason().to_owned();
        let ending = async move {
            loop {
                // A process that is stopping would suspend the run at once, so the next process
                // ends it.
                let is_stopping =
                    service.0.suspending.is_cancelled() || service.0.handing_over.is_cancelled();
                let ended = if is_stopping {
                    store.request_cancel(&run, &reason).await.map_err(AnswerError::from)
                } else {
                    service.cancel_anywhere(&store, &run, &reason).await
                };
                let Err(cause) = ended else { return };
                tracing::error!(run, %cause, "failed to end a run that was cancelled");
                if is_stopping {
                    return;
                }
                service.retry_delay().await;
            }
        };
        // Boxed, because driving the run again calls this function again.
        self.0.tasks.spawn(ending.boxed());
    }

    /// Ends a cancelled run without driving it. Without this function, a run that cannot be driven,
    /// or that crashes its process, could never be ended.
    pub(super) async fn abort(
        &self,
        journal: &SharedJournal,
        run: &RunRecord,
        live: &LiveRun,
    ) -> Driven {
        let recorded = live.newest().0;
        let cancelled = Input::Cancel { reason: live.cancel.reason().to_owned() };
        match journal::abort(journal, run, cancelled, (recorded, live)).await {
            Ok(report) => {
                // The files of a child run are those of its root run. A fork that was never driven has
                // not brought its session back to the files that it begins with.
                let RunStart { parent, forked, .. } = &run.start;
                let keeps_files = parent.is_none() && forked.is_none();
                Driven::Done { report, settle: None, keeps_files }
            }
            Err(cause) => failed(&run.id, cause),
        }
    }
}

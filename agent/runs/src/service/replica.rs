//! The background work of a process that shares a store with others: the process takes runs that no
//! process drives, and cancels its own runs at the request of other processes.
//!
//! All state is in the tables of the store. The tables are read twice a second, and also when any
//! process queues a run or requests a cancellation. While runs wait, the tables are also read when
//! a run of this process ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use wattle_store::{
    FreeRun, QueueLook, RequestedCancel, Store, StoreError, Tenant, TenantStore, Topic,
};

use super::RunService;
use super::drive::CLIENT_LOST;
use super::queue::Place;
use super::slots::Free;
use crate::cancel::Cancel;
use crate::journal::{self, Journal as _, Status};

/// Maximum interval between reads of the store.
const POLL: Duration = Duration::from_millis(500);
/// Minimum interval between reads of the store.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of runs that are taken per read of the store.
const BATCH: usize = 64;

impl RunService {
    /// Manages the runs of a store until the service stops. While slots are free, drives queued and
    /// open runs that no process drives. Cancels runs of this process when a cancellation is
    /// requested through another process. `open` returns a tenant's part of the store.
    pub async fn look_after(
        &self,
        store: &Store,
        open: impl Fn(&Tenant) -> Option<TenantStore> + Send + Sync,
    ) {
        let mut changed = self.changes();
        loop {
            let (mut wakes, began) = (store.wakes(), Instant::now());
            changed.mark_unchanged();
            let waits = self.look(store, &open).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to look for runs that no process drives");
                true
            });
            let woken = async {
                tokio::select! {
                    _ = changed.changed(), if waits => {}
                    () = self.0.queued.notified() => {}
                    () = wakes.on(&[Topic::Queue, Topic::Cancellations]) => {}
                }
                tokio::time::sleep_until(began + PAUSE).await;
            };
            tokio::select! {
                () = self.0.suspending.cancelled() => return,
                () = tokio::time::sleep(POLL) => {}
                () = woken => {}
            }
        }
    }

    /// Performs requested cancellations, cancels runs whose clients were connected to processes that
    /// have ended, and takes runs that no process drives. Returns true if runs
    /// may be waiting for a slot or for another run.
    async fn look(
        &self,
        store: &Store,
        open: &(impl Fn(&Tenant) -> Option<TenantStore> + Send + Sync),
    ) -> Result<bool, StoreError> {
        for RequestedCancel { tenant, id, is_held } in store.cancellations().await? {
            // Another process holds the lock, and cancels the run.
            if is_held && self.live(&tenant, &id).is_none() {
                continue;
            }
            if let Some(of) = open(&tenant) {
                self.cancel_requested(&of, &id).await;
            }
        }
        // A run that needs its client must not be resumed: the client requests it again.
        for FreeRun { tenant, id } in store.runs_without_client().await? {
            if let Some(of) = open(&tenant)
                && let Err(cause) = self.cancel_anywhere(&of, &id, CLIENT_LOST).await
            {
                tracing::error!(run = id, %cause, "failed to cancel a run without its client");
            }
        }
        let Free { slots, only, without } = self.0.slots.free();
        if slots == 0 || self.is_stopping() {
            return Ok(true);
        }
        let per_tenant = self.0.limits.runs_per_tenant.unwrap_or(usize::MAX);
        let offers = self.0.assembler.offers();
        let (only, without) = (only.as_ref(), without.as_slice());
        let limit = slots.min(BATCH);
        let look = QueueLook { limit, per_tenant, only, without, offers: &offers };
        let found = store.free_runs(look).await?;
        let waits = !found.is_empty() || store.has_queue().await?;
        for FreeRun { tenant, id } in found {
            if self.live(&tenant, &id).is_some() {
                continue;
            }
            if let Some(store) = open(&tenant) {
                self.take(&store, &id).await?;
            }
        }
        Ok(waits)
    }

    /// Performs a requested cancellation if this process drives the run or no process does.
    async fn cancel_requested(&self, store: &TenantStore, run: &str) {
        // A reason that cannot be decrypted does not keep the run from being cancelled.
        let reason = store.cancel_reason(run).await.unwrap_or_else(|cause| {
            tracing::error!(run, %cause, "failed to read why a run is to be cancelled");
            None
        });
        let reason = reason.as_deref().unwrap_or_default();
        if let Err(cause) = self.cancel_anywhere(store, run, reason).await {
            tracing::error!(run, %cause, "failed to cancel a run as requested");
        }
    }

    /// Drives a run that no process drives, if a slot is free.
    async fn take(&self, store: &TenantStore, run: &str) -> Result<(), StoreError> {
        let Ok(slot) = self.0.slots.take(store.tenant()) else { return Ok(()) };
        // Another process may have been faster, so the run is read only after it is locked.
        let Some(lock) = journal::lock_run(store, run).await? else { return Ok(()) };
        if let Some(record) = store.run(run).await? {
            if record.status != Status::Open {
                return Ok(());
            }
            let session = record.session.as_deref();
            let position = self.0.sessions.queue(store.tenant(), session, usize::MAX).await;
            let Ok(position) = position else { return Ok(()) };
            let (store, place) = (store.clone(), Place { position, slot: Some(slot) });
            let (cancel, lock) = (Cancel::new(), Some(lock));
            self.0.taken.fetch_add(1, Ordering::Relaxed);
            let resumed = self.drive_resumed(store, record, false, place, &cancel, lock).await;
            if let Err(cause) = resumed {
                tracing::error!(run, %cause, "failed to resume an open run");
            }
        } else if let Some(queued) = store.queued_run(run).await? {
            let session = queued.session.as_deref();
            let position = self.0.sessions.queue(store.tenant(), session, usize::MAX).await;
            let Ok(position) = position else { return Ok(()) };
            let place = Place { position, slot: Some(slot) };
            drop(self.drive_queued(store.clone(), queued, place, lock, &Cancel::new()));
        }
        Ok(())
    }
}

//! The start of runs. A run starts immediately or waits in the store's queue.

use wattle_store::{Tenant, TenantStore, Topic};

use super::error::StartError;
use super::queue::Place;
use super::slots::RunSlot;
use super::{RunHandle, RunService};
use crate::cancel::Cancel;
use crate::journal::{self, Journal as _, RunRequest};

/// The limits of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Maximum number of active runs in a process, including runs that wait for their turn in a
    /// session (default 64).
    pub runs: usize,
    /// The operator's tenant (default: none). If it is set, the other tenants share the process with
    /// it: an eighth of `runs`, and at least one of four or more, is reserved for the operator.
    pub operator: Option<Tenant>,
    /// Maximum number of active runs per tenant, in all processes that share the store. Concurrent
    /// requests may exceed it briefly. By default, each tenant except the operator may have half of
    /// `runs` in each process, and there is no limit if there is no operator.
    pub runs_per_tenant: Option<usize>,
    /// Maximum number of queued runs per tenant (default 1,000).
    pub queued: usize,
    /// Maximum number of waiting runs per session (default 8).
    pub waiting: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        ServiceLimits { runs: 64, operator: None, runs_per_tenant: None, queued: 1_000, waiting: 8 }
    }
}

impl RunService {
    /// Starts a run and returns its handle. When this method returns, the run is durable: it is
    /// driven even if the caller disconnects. If this process ends, the next process drives the
    /// run, or cancels it if it [needs its client](RunRequest::needs_client). Cancelling `cancel`
    /// also cancels the run.
    ///
    /// # Errors
    /// If a [limit](ServiceLimits) is reached, the service is stopping, or the store cannot be
    /// written. In that case nothing is started.
    pub async fn start(
        &self,
        store: &TenantStore,
        request: RunRequest,
        cancel: &Cancel,
    ) -> Result<RunHandle, StartError> {
        let slot = self.slot_of(store, 0).await?;
        self.start_in(slot, store, request, cancel).await
    }

    /// Starts a run if it can begin in this process, and queues it otherwise. A queued run is
    /// driven by a process that [looks after](RunService::look_after) the store, once a slot is
    /// free and all earlier runs of its session have begun. Returns the run's id, and its handle if
    /// it is active here. When this method returns, the run is durable.
    ///
    /// # Errors
    /// If the queue is full, too many runs of the session are waiting, the service is stopping, or
    /// the store cannot be written. In that case nothing is queued.
    pub async fn enqueue(
        &self,
        store: &TenantStore,
        request: RunRequest,
    ) -> Result<(String, Option<RunHandle>), StartError> {
        let waits = match request.session.as_deref() {
            Some(session) => store.has_queued(session).await?,
            None => false,
        };
        if !waits {
            match self.slot_of(store, 0).await {
                Ok(slot) => {
                    let handle = self.start_in(slot, store, request, &Cancel::new()).await?;
                    return Ok((handle.id.clone(), Some(handle)));
                }
                Err(StartError::TooManyRuns(_) | StartError::TenantBusy(_)) => {}
                Err(other) => return Err(other),
            }
        }
        let limit = self.0.limits.queued;
        if self.is_stopping() {
            return Err(StartError::Stopping);
        }
        if usize::try_from(store.load().await?.queued).is_ok_and(|queued| queued >= limit) {
            return Err(StartError::QueueFull(limit));
        }
        let run = self.with_needs(request);
        let id = run.id.clone();
        self.0.assembler.mask_secrets(store).await;
        store.enqueue(run).await?;
        self.0.queued.notify_one();
        store.file().wake(Topic::Queue);
        Ok((id, None))
    }

    /// Returns a request with the requirement for driving its run.
    fn with_needs(&self, request: RunRequest) -> RunRequest {
        RunRequest { needs: self.0.assembler.needs(&request.origin), ..request }
    }

    async fn start_in(
        &self,
        slot: RunSlot,
        store: &TenantStore,
        request: RunRequest,
        cancel: &Cancel,
    ) -> Result<RunHandle, StartError> {
        let place = self.place(store, request.session.as_deref(), slot).await?;
        let run = self.with_needs(request);
        // The run is locked before it is queued, so that no other process takes it from the queue.
        let lock = journal::lock_run(store, &run.id).await?.ok_or(StartError::Stopping)?;
        self.0.assembler.mask_secrets(store).await;
        store.enqueue(run.clone()).await?;
        Ok(self.drive_queued(store.clone(), run, place, lock, cancel))
    }

    /// Takes a position in the queue of a session, for a run that has a slot.
    pub(super) async fn place(
        &self,
        store: &TenantStore,
        session: Option<&str>,
        slot: RunSlot,
    ) -> Result<Place, StartError> {
        let waiting = self.0.limits.waiting;
        let position = self.0.sessions.queue(store.tenant(), session, waiting).await?;
        Ok(Place { position, slot: Some(slot) })
    }

    /// Takes a slot for a run of a tenant. `locked` is the number of this tenant's runs that the
    /// caller has locked for it, which do not count as active yet.
    pub(super) async fn slot_of(
        &self,
        store: &TenantStore,
        locked: usize,
    ) -> Result<RunSlot, StartError> {
        if self.is_stopping() {
            return Err(StartError::Stopping);
        }
        let slot = self.0.slots.take(store.tenant())?;
        if let Some(limit) = self.0.limits.runs_per_tenant
            && let Ok(driven) = usize::try_from(store.load().await?.driven)
            && driven >= limit.saturating_add(locked)
        {
            return Err(StartError::TenantBusy(limit));
        }
        Ok(slot)
    }
}

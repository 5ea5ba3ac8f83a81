//! Resumption of runs whose process has ended.

use wattle_store::{StoreError, TenantStore};

use super::queue::Place;
use super::{RunService, child};
use crate::cancel::Cancel;
use crate::journal::{self, Journal as _, RunFilter, Status};

impl RunService {
    /// Returns true if this process resumes the run at startup. An open or queued run with a
    /// recorded requirement is left to [`look_after`](RunService::look_after).
    async fn takes_up(
        &self,
        store: &TenantStore,
        (run, is_parked): (&str, bool),
        origin: &serde_json::Value,
    ) -> bool {
        let recorded = match store.needs_of(run).await {
            Ok(needs) => needs.filter(|needs| !needs.is_empty()),
            Err(cause) => {
                tracing::error!(run, %cause, "failed to read what a run needs");
                return false;
            }
        };
        match recorded {
            Some(needs) => is_parked && self.0.assembler.offers().contains(&needs),
            None => self.0.assembler.offers().contains(&self.0.assembler.needs(origin)),
        }
    }
}

/// Resumes a tenant's open runs, oldest first, and then drives its queued runs, oldest first.
pub(super) async fn resume_all(service: &RunService, store: &TenantStore) {
    // Ends child runs that are still open because the process stopped between the end of their root
    // run and their own end.
    match store.ended_above_open().await {
        Ok(tops) => tops.iter().for_each(|top| service.end_children(store, top)),
        Err(cause) => tracing::error!(%cause, "failed to list child runs that were left open"),
    }
    let runs = async {
        let mut open = child::answered(store).await?;
        open.extend(store.runs(RunFilter::status(Status::Open)).await?);
        open.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
        Ok((open, store.queued().await?))
    };
    let (open, queued) = match runs.await {
        Ok(runs) => runs,
        Err::<_, StoreError>(cause) => {
            return tracing::error!(%cause, "failed to list the open runs");
        }
    };
    let cancel = Cancel::new();
    // Oldest first, so that the runs of a session keep their order.
    for run in open.into_iter().rev() {
        let of = (run.id.as_str(), run.status == Status::Parked);
        if !service.takes_up(store, of, &run.start.origin).await {
            continue;
        }
        let Some(place) = waiting_place(service, store, run.session.as_deref()).await else {
            return;
        };
        let resumed = service.drive_resumed(store.clone(), run, false, place, &cancel, None);
        if let Err(cause) = resumed.await {
            tracing::error!(%cause, "failed to resume an open run");
        }
    }
    for run in queued {
        if !service.takes_up(store, (&run.id, false), &run.origin).await {
            continue;
        }
        let Some(place) = waiting_place(service, store, run.session.as_deref()).await else {
            return;
        };
        // If another process holds the lock, that process drives the run.
        match journal::lock_run(store, &run.id).await {
            Ok(Some(lock)) => {
                drop(service.drive_queued(store.clone(), run, place, lock, &cancel));
            }
            Ok(None) => {}
            Err(cause) => tracing::error!(%cause, "failed to lock a queued run"),
        }
    }
}

/// Waits for a free slot and takes a position in the session's queue. Returns `None` if the service
/// is stopping.
async fn waiting_place(
    service: &RunService,
    store: &TenantStore,
    session: Option<&str>,
) -> Option<Place> {
    let slot = tokio::select! {
        () = service.0.stopping.cancelled() => return None,
        slot = service.0.slots.wait(store.tenant()) => slot,
    };
    let position = service.0.sessions.queue(store.tenant(), session, usize::MAX).await.ok()?;
    Some(Place { position, slot: Some(slot) })
}
